//! Folders in memory, and texts with a `‸` where the cursor is.

use dogwood_compiler::project::Files;
use dogwood_lsp::document::{Document, Kind};
use dogwood_lsp::shelf::{Disk, Shelf};
use dogwood_lsp::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Default)]
pub struct InMemory(pub BTreeMap<PathBuf, String>);

impl Files for InMemory {
    fn is_file(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let inside = self.0.keys().filter(|path| path.parent() == Some(folder));
        inside.cloned().collect()
    }
}

impl Disk for InMemory {
    fn read(&self, path: &Path) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn folders(&self, _: &Path) -> Vec<PathBuf> {
        Vec::new()
    }
}

pub const CURSOR: char = '‸';

/// A workspace `/w` with these files; the first is open. Its cursors are taken out and come beside it.
pub fn open(files: &[(&str, &str)]) -> (Snapshot, Vec<usize>) {
    let mut disk = InMemory::default();
    let mut cursors = Vec::new();
    let mut first = None;
    for (name, text) in files {
        let path = Path::new("/w").join(name);
        let mut plain = String::new();
        for c in text.chars() {
            if c == CURSOR {
                if first.is_none() {
                    cursors.push(plain.len());
                }
            } else {
                plain.push(c);
            }
        }
        first.get_or_insert_with(|| (path.clone(), plain.clone()));
        disk.0.insert(path, plain);
    }
    let (path, text) = first.unwrap();
    let mut shelf = Shelf::new(Arc::new(disk));
    shelf.roots = vec![PathBuf::from("/w")];
    let kind = Kind::of(&path).unwrap();
    shelf.open(Document::new(path.clone(), kind, 1, text));
    (Snapshot::new(&shelf, &path).unwrap(), cursors)
}

pub fn policy(text: &str) -> (Snapshot, Vec<usize>) {
    open(&[("policy.dw", text)])
}

pub const DEPOT: &str = r#"namespace Depot {
  entity Crew;
  // Somebody who moves crates.
  entity Clerk in [Crew] = { rank: Long, nick?: String };
  entity Bay;
  entity Speed enum ["slow", "fast"];
  type MoveIn = {
    // Which crate.
    crate: String,
    kg?: Long,
    speed?: Speed
  };
  // Everything that moves.
  action Any;
  // Carries a crate to another bay.
  action "move" in [Any] appliesTo {
    principal: [Clerk],
    resource: [Bay],
    context: { input: MoveIn, output?: { ok: Bool } }
  };
  action "weigh" in [Any] appliesTo { principal: [Clerk], resource: [Bay], context: { input: MoveIn } };
}
"#;

/// A policy of the depot; a test file beside it names the schema.
pub fn depot(text: &str) -> (Snapshot, Vec<usize>) {
    open(&[
        ("policy.dw", text),
        ("depot.cedarschema", DEPOT),
        ("policy.dwtest.toml", DEPOT_TESTS),
    ])
}

pub const DEPOT_TESTS: &str = r#"policy-schema = "depot.cedarschema"

[[test]]
name = "crates are weighed first"
events = [
  { action = "Depot::move", input = { crate = "a" }, expect = "deny", by = "weighed" },
]
"#;

pub const PROVIDERS: &str = r#"{
  "entityTypes": { "Scan::Level": { "enum": ["LOW", "HIGH"] } },
  "availableProviders": {
    "Scan::Crate": {
      "argumentTypes": [{ "paramType": "string" }],
      "outputType": { "paramType": "record",
        "fields": { "level": { "paramType": "entity", "entityType": "Scan::Level" }, "note": { "paramType": "string" } },
        "required": ["level"] },
      "implementation": { "kind": "rhai", "script": "fn evaluate(crate) { #{ level: \"LOW\" } }" }
    },
    "Scale::Load": {
      "argumentTypes": [{ "paramType": "long" }, { "paramType": "entity", "entityType": "Scan::Level" }],
      "outputType": { "paramType": "long" },
      "availableMethods": {
        "plus": { "argumentTypes": [{ "paramType": "long" }], "inputType": { "paramType": "long" }, "outputType": { "paramType": "long" } },
        "words": { "outputType": { "paramType": "set", "items": { "paramType": "string" } } },
        "named": { "inputType": { "paramType": "string" }, "outputType": { "paramType": "string" } }
      },
      "implementation": { "kind": "rhai", "script": "fn evaluate(kg, level) { kg } fn plus(n, more) { n + more } fn words(n) { [] } fn named(s) { s }" }
    }
  }
}"#;
