//! Enumerated types of providers beside those of the action schema.
//!
//! Policies and messages call such a type by its declared name. Where the rules leave the language for
//! Cedar's, the type is one of the action schema's home namespace, under its [`Export::exported`] name.

use super::{Chain, Providers};
use crate::schema::{ActionSchema, EntityType, RecordType};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// A type of the declarations that goes with the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub declared: SmolStr,
    pub exported: SmolStr,
    pub choices: Vec<SmolStr>,
    pub annotations: BTreeMap<SmolStr, SmolStr>,
}

/// Why a type cannot go with the schema. The span is of the declarations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportClash {
    /// The schema declares the very name that policies would use.
    Declared { name: SmolStr, span: Span },
    /// The schema declares the name it would be exported under.
    Exported {
        name: SmolStr,
        exported: SmolStr,
        span: Span,
    },
    /// The exported name would hide one of the schema's root namespace.
    Shadows {
        name: SmolStr,
        exported: SmolStr,
        hidden: SmolStr,
        span: Span,
    },
    /// A provider takes entities of a type that nobody declares.
    Unknown {
        name: SmolStr,
        provider: SmolStr,
        span: Span,
    },
    /// A provider takes entities of a type that is not enumerated, and would know nothing of them.
    NotEnumerated {
        name: SmolStr,
        provider: SmolStr,
        span: Span,
    },
}

/// `A::B::C` as one word.
pub(super) fn flattened(name: &str) -> SmolStr {
    name.replace("::", "_").into()
}

/// The namespace that exported types go into: the first that declares an action; empty for the root.
pub fn home(schema: &ActionSchema) -> SmolStr {
    let namespace = |ty: &SmolStr| match ty.rsplit_once("::") {
        Some((namespace, _)) => SmolStr::new(namespace),
        None => SmolStr::default(),
    };
    let spaces = schema.actions.keys().map(|uid| namespace(&uid.ty));
    spaces.min().unwrap_or_default()
}

/// The types that the providers asked in these calls name.
pub fn exports<'e>(
    providers: &Providers,
    schema: &ActionSchema,
    calls: impl IntoIterator<Item = &'e Chain<'e>>,
) -> Result<Vec<Export>, Vec<ExportClash>> {
    let asked: BTreeSet<SmolStr> = calls.into_iter().map(|call| call.name.text()).collect();
    let home = home(schema);
    let mut found: BTreeMap<SmolStr, Export> = BTreeMap::new();
    let mut clashes = Vec::new();
    for asked in asked {
        let Some(provider) = providers.get(&asked) else {
            continue;
        };
        for name in provider.entity_types() {
            let Some(declared) = providers.enums.get(name) else {
                let theirs = schema.entity_types.get(name);
                let (name, span, provider) = (name.clone(), provider.span, asked.clone());
                match theirs {
                    None => clashes.push(ExportClash::Unknown {
                        name,
                        provider,
                        span,
                    }),
                    Some(ty) if ty.choices.is_none() => {
                        clashes.push(ExportClash::NotEnumerated {
                            name,
                            provider,
                            span,
                        });
                    }
                    Some(_) => {}
                }
                continue;
            };
            if found.contains_key(name) {
                continue;
            }
            let flat = flattened(name);
            let exported = if home.is_empty() {
                flat.clone()
            } else {
                format_smolstr!("{home}::{flat}")
            };
            clashes.extend(clash(schema, name, &exported, &flat, declared.span));
            let export = Export {
                declared: name.clone(),
                exported,
                choices: declared.choices.clone(),
                annotations: declared.annotations.clone(),
            };
            found.insert(name.clone(), export);
        }
    }
    if clashes.is_empty() {
        Ok(found.into_values().collect())
    } else {
        Err(clashes)
    }
}

fn clash(
    schema: &ActionSchema,
    name: &SmolStr,
    exported: &SmolStr,
    flat: &SmolStr,
    span: Span,
) -> Option<ExportClash> {
    let name = name.clone();
    if schema.declares(&name) {
        Some(ExportClash::Declared { name, span })
    } else if schema.declares(exported) {
        let exported = exported.clone();
        Some(ExportClash::Exported {
            name,
            exported,
            span,
        })
    } else if schema.declares(flat) {
        Some(ExportClash::Shadows {
            name,
            exported: exported.clone(),
            hidden: flat.clone(),
            span,
        })
    } else {
        None
    }
}

impl Export {
    /// The type as a checker needs it, under its declared name.
    pub(crate) fn entity_type(&self) -> EntityType {
        EntityType {
            name: self.declared.clone(),
            parents: BTreeSet::new(),
            ancestors: BTreeSet::new(),
            attrs: RecordType::default(),
            tags: None,
            choices: Some(self.choices.clone()),
        }
    }
}

impl ExportClash {
    /// About the text of the declarations.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            ExportClash::Declared { name, span } => Diagnostic::error(
                "exported-name",
                *span,
                format!("the action schema declares `{name}` too, so the name would mean both"),
            )
            .help("rename one of them"),
            ExportClash::Exported {
                name,
                exported,
                span,
            } => Diagnostic::error(
                "exported-name",
                *span,
                format!("`{name}` is exported as `{exported}`, which the action schema declares"),
            )
            .help("rename one of them"),
            ExportClash::Shadows {
                name,
                exported,
                hidden,
                span,
            } => Diagnostic::error(
                "exported-name",
                *span,
                format!(
                    "`{name}` is exported as `{exported}`, which would hide `{hidden}` of the action schema"
                ),
            )
            .help("rename one of them"),
            ExportClash::Unknown { name, provider, span } => Diagnostic::error(
                "unknown-entity-type",
                *span,
                format!("`{provider}` takes a `{name}`, which is declared nowhere"),
            )
            .help("declare it in the action schema, or under `entityTypes`"),
            ExportClash::NotEnumerated { name, provider, span } => Diagnostic::error(
                "not-an-enum",
                *span,
                format!("`{provider}` takes a `{name}`, which is not an enumerated type"),
            )
            .help("a provider is given the id only; let it take a string"),
        }
    }
}
