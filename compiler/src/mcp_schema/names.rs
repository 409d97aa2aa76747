//! Names of what is declared: words of the schema language, each given to one thing only.

use super::error::{ManifestError, ManifestProblem};
use super::write;
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{Decl, DeclKind, EntityBody};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// Stands for `null`, and for what has no type in Cedar. Nothing can be asked of either.
pub const NULL: &str = "Null";
pub const UNKNOWN: &str = "Unknown";

/// Type names that mean something already.
const BUILT_IN: [&str; 12] = [
    "Bool",
    "Boolean",
    "Long",
    "String",
    "Set",
    "Record",
    "Entity",
    "Extension",
    "decimal",
    "ipaddr",
    "datetime",
    "duration",
];

#[derive(Default)]
pub struct Names {
    /// With the place of what has the name; nothing for those of the template.
    taken: BTreeMap<SmolStr, Option<Span>>,
    opaque: BTreeSet<&'static str>,
}

impl Names {
    pub fn reserving(names: &[&str]) -> Names {
        let all = names.iter().chain(&BUILT_IN).chain(&[NULL, UNKNOWN]);
        Names {
            taken: all.map(|name| (SmolStr::new(name), None)).collect(),
            opaque: BTreeSet::new(),
        }
    }

    /// Takes a name for what stands at `span`.
    pub fn take(&mut self, name: &SmolStr, span: Span, errors: &mut Vec<ManifestError>) {
        if let Some(first) = self.taken.get(name) {
            let problem = ManifestProblem::NameTaken {
                name: name.clone(),
                first: *first,
            };
            errors.push(ManifestError { span, problem });
            return;
        }
        self.taken.insert(name.clone(), Some(span));
    }

    /// `Null` or `Unknown`.
    pub fn use_opaque(&mut self, name: &'static str) -> &'static str {
        self.opaque.insert(name);
        name
    }

    /// The declarations of those that were used.
    pub fn opaque(&self) -> Vec<Decl> {
        let decl = |name: &&'static str| {
            write::decl(DeclKind::Entity {
                names: vec![write::ident(name)],
                body: EntityBody::Standard {
                    parents: Vec::new(),
                    attrs: None,
                    tags: None,
                },
            })
        };
        self.opaque.iter().map(decl).collect()
    }
}

/// A part of a type name: what is no letter, digit or `_` becomes `_`.
pub fn word(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(plain).collect()
}
