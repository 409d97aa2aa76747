//! Macros: `def cedar` and `def temporal`, and what a call of one stands for (language reference,
//! section 6).
//!
//! ```text
//! MacroDef ─ define ─► Library ┐
//!                              ├─ expand ─► Rule without calls, parameters or fresh names
//!                        Rule ─┘
//! ```
//!
//! Expansion puts trees into trees, so there are no precedence accidents. A node that comes from a
//! macro body carries the span of the call, one that comes from an argument its own: a later message
//! always points at something the author of the rule wrote.

mod define;
mod error;
mod expand;
mod plain;

pub(crate) use define::is_constructor;
pub use error::{MacroError, MacroProblem, Place};
pub use expand::{CallSite, Expanded, MAX_EXPANSION, expand_builtins, expand_rule};
pub(crate) use plain::is_plain;

use dogwood_grammar::ast::{Item, MacroBody, MacroDef, PolicyFile};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// The macros that need no declaration, as their own source text.
pub const BUILTIN_MACROS: &str = include_str!("../../stdlib-policies/macros.dw");

/// Names a macro cannot have: words that already mean something before a parenthesis.
pub const RESERVED_NAMES: [&str; 17] = [
    "decimal", "datetime", "duration", "ip", "let", "in", "where", "for", "sum", "count", "tp",
    "formerly", "previous", "since", "exists", "true", "false",
];

/// The macros a rule can call, by name.
#[derive(Clone, Debug, Default)]
pub struct Library {
    macros: BTreeMap<SmolStr, Definition>,
}

#[derive(Clone, Debug)]
struct Definition {
    def: MacroDef,
    /// Nothing is wrong with it. A call of a faulty one is not an error of its own.
    sound: bool,
    /// One of the macros that need no declaration.
    builtin: bool,
}

impl Library {
    /// The built-in library.
    pub fn builtin() -> Library {
        let file = dogwood_grammar::parse_policy(BUILTIN_MACROS).tree;
        let mut library = Library::define(&file).0;
        for definition in library.macros.values_mut() {
            definition.builtin = true;
        }
        library
    }

    /// The macros a file declares, and what is wrong with them. Rules are passed over.
    pub fn define(file: &PolicyFile) -> (Library, Vec<MacroError>) {
        let mut library = Library::default();
        let mut errors = Vec::new();
        for item in &file.items {
            let Item::Macro(def) = item else { continue };
            let before = errors.len();
            define::check(def, &mut errors);
            if let Some(first) = library.macros.get(&def.name.text) {
                let first = first.def.name.span;
                let problem = MacroProblem::Duplicate {
                    name: def.name.text.clone(),
                    first,
                };
                errors.push(MacroError {
                    span: def.name.span,
                    problem,
                });
                continue;
            }
            let broken = matches!(def.body, MacroBody::Broken);
            let definition = Definition {
                def: def.clone(),
                sound: errors.len() == before && !broken,
                builtin: false,
            };
            library.macros.insert(def.name.text.clone(), definition);
        }
        (library, errors)
    }

    /// These macros, where `over` does not declare one of the same name.
    #[must_use]
    pub fn overridden_by(&self, over: Library) -> Library {
        let mut macros = self.macros.clone();
        macros.extend(over.macros);
        Library { macros }
    }

    /// The names of all macros, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &SmolStr> {
        self.macros.keys()
    }

    /// The definition of a macro that its author gave a name.
    pub fn declared(&self, name: &str) -> Option<&MacroDef> {
        let definition = self.get(name).filter(|found| !found.builtin)?;
        Some(&definition.def)
    }

    fn get(&self, name: &str) -> Option<&Definition> {
        self.macros.get(name)
    }
}
