//! What comes with the toolchain, as documents: the macros, and the schemas that are read where none is given.
//!
//! They have no file. Their addresses begin with `dogwood:`, and an editor that knows those asks for their texts
//! with `dogwood/source`; other editors are not told about them.

use crate::document::{Document, Kind};
use dogwood_compiler::macros::BUILTIN_MACROS;
use dogwood_compiler::schema::{BOX_ACTIONS, BOX_EVENTS, DEFAULT_EVENTS};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const FOLDER: &str = "dogwood://builtin";

static MACROS: OnceLock<Arc<Document>> = OnceLock::new();
static ACTIONS: OnceLock<Arc<Document>> = OnceLock::new();
static BOX: OnceLock<Arc<Document>> = OnceLock::new();
static EVENTS: OnceLock<Arc<Document>> = OnceLock::new();

fn once(
    place: &'static OnceLock<Arc<Document>>,
    name: &str,
    kind: Kind,
    text: &str,
) -> &'static Arc<Document> {
    place.get_or_init(|| {
        let path = PathBuf::from(format!("{FOLDER}/{name}"));
        Arc::new(Document::new(path, kind, 0, text.to_owned()))
    })
}

pub fn macros() -> &'static Arc<Document> {
    once(&MACROS, "macros.dw", Kind::Policy, BUILTIN_MACROS)
}

/// The actions of a box.
pub fn actions() -> &'static Arc<Document> {
    let name = "box/actions.cedarschema";
    once(&ACTIONS, name, Kind::ActionSchema, BOX_ACTIONS)
}

/// The events of a box.
pub fn box_events() -> &'static Arc<Document> {
    once(&BOX, "box/events.dwschema", Kind::EventSchema, BOX_EVENTS)
}

/// The events of an action schema that comes without an event schema.
pub fn default_events() -> &'static Arc<Document> {
    once(
        &EVENTS,
        "events.dwschema",
        Kind::EventSchema,
        DEFAULT_EVENTS,
    )
}

pub fn document(path: &Path) -> Option<&'static Arc<Document>> {
    let all = [macros(), actions(), box_events(), default_events()];
    all.into_iter().find(|document| document.path == path)
}

/// Whether it is an address of ours, rather than a file.
pub fn is(path: &Path) -> bool {
    path.starts_with(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_address() {
        for document in [macros(), actions(), box_events(), default_events()] {
            assert!(is(&document.path));
            assert_eq!(Kind::of(&document.path), Some(document.kind));
            let address = crate::uri::of(&document.path);
            let found = self::document(&crate::uri::path(&address)).unwrap();
            assert!(Arc::ptr_eq(found, document), "{address}");
        }
        assert!(document(Path::new("/w/dogwood://builtin/macros.dw")).is_none());
    }
}
