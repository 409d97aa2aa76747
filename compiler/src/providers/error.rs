//! What can be wrong with the declarations of providers, and how it is said.

use super::ScriptError;
use crate::json::{JsonError, JsonProblem};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationError {
    pub span: Span,
    pub problem: DeclarationProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclarationProblem {
    // JSON.
    NotJson(JsonProblem),
    WrongShape {
        wanted: &'static str,
        found: &'static str,
    },
    /// `of` is empty for a type.
    MissingKey {
        of: SmolStr,
        key: &'static str,
    },
    MisspelledKey {
        name: SmolStr,
        nearest: SmolStr,
    },
    Repeated {
        name: SmolStr,
        first: Span,
    },

    // Providers.
    NoProviders,
    ProviderName {
        name: SmolStr,
    },
    MethodOfCedar {
        name: SmolStr,
    },

    // Types.
    UnknownParamType {
        name: SmolStr,
        nearest: Option<SmolStr>,
        /// The type has to do with entities, so that it cannot be taken for a string.
        refused: bool,
    },
    EntityWithoutType,
    KeyOnEntity {
        key: &'static str,
    },
    EntityTypeElsewhere,
    UnqualifiedEntity {
        name: SmolStr,
    },
    UndeclaredOutput {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },

    // Enumerated types.
    EnumKey {
        name: SmolStr,
    },
    EnumName {
        name: SmolStr,
    },
    ReservedNamespace {
        name: SmolStr,
    },
    UnqualifiedEnum {
        name: SmolStr,
    },
    NamespaceWithoutProvider {
        name: SmolStr,
        namespace: SmolStr,
        nearest: Option<SmolStr>,
    },
    NoChoices {
        name: SmolStr,
    },
    SameExport {
        name: SmolStr,
        other: SmolStr,
        export: SmolStr,
        first: Span,
    },

    // Scripts.
    ScriptKind {
        name: SmolStr,
    },
    ScriptOrFile,
    ScriptFile {
        name: SmolStr,
        why: String,
    },
    Script {
        error: ScriptError,
    },
    NoFunction {
        name: SmolStr,
        takes: usize,
    },
}

impl DeclarationError {
    pub fn diagnostic(&self) -> Diagnostic {
        use DeclarationProblem as P;
        let error = |code, message: String| Diagnostic::error(code, self.span, message);
        let warning = |code, message: String| Diagnostic::warning(code, self.span, message);
        match &self.problem {
            P::NotJson(problem) => JsonError {
                span: self.span,
                problem: *problem,
            }
            .diagnostic(),
            P::WrongShape { wanted, found } => error(
                "wrong-shape",
                format!("{wanted} is needed here, but this is {found}"),
            )
            .label(format!("expected {wanted}")),
            P::MissingKey { of, key } if of.is_empty() => {
                error("missing-key", format!("this type lacks its `{key}`"))
                    .help("as in `{ \"paramType\": \"string\" }`")
            }
            P::MissingKey { of, key } => {
                let found = error("missing-key", format!("`{of}` lacks its `{key}`"));
                match *key {
                    "enum" => found.help("list its values: `\"enum\": [\"LOW\", \"HIGH\"]`"),
                    "kind" => found.help("scripts have `\"kind\": \"rhai\"`"),
                    _ => found
                        .help("say what it gives: `\"outputType\": { \"paramType\": \"bool\" }`"),
                }
            }
            P::MisspelledKey { name, nearest } => self.meant(
                warning(
                    "unknown-key",
                    format!("the key `{name}` means nothing here"),
                ),
                Some(nearest),
            ),
            P::Repeated { name, first } => error("duplicate", format!("`{name}` is given twice"))
                .also(*first, "first given here")
                .help("keep one of them"),
            P::NoProviders => warning("no-providers", "this file declares no provider".to_owned())
                .help("providers are declared under `\"availableProviders\"`"),
            P::ProviderName { name } => warning(
                "provider-name",
                format!("no policy can ask a provider named `{name}`"),
            )
            .help("providers are named with a namespace, as in `Ns::Name`"),
            P::MethodOfCedar { name } => warning(
                "shadowed-method",
                format!("`{name}` is a method of the language, which hides this one"),
            )
            .help("choose another name for it"),
            P::UnknownParamType {
                name,
                nearest,
                refused: false,
            } => {
                let found = warning(
                    "unknown-param-type",
                    format!("there is no type `{name}`; it is taken for a string"),
                );
                self.meant(found, nearest.as_ref())
            }
            P::UnknownParamType { name, nearest, .. } => self.meant(
                error("unknown-param-type", format!("there is no type `{name}`")),
                nearest.as_ref(),
            ),
            P::EntityWithoutType => error(
                "provider-type",
                "an entity type must say which: it lacks its `entityType`".to_owned(),
            )
            .help("as in `{ \"paramType\": \"entity\", \"entityType\": \"Ns::Type\" }`"),
            P::KeyOnEntity { key } => error(
                "provider-type",
                format!("an entity does not take `{key}`; it is known by its id only"),
            )
            .help(format!("remove `{key}`")),
            P::EntityTypeElsewhere => error(
                "provider-type",
                "`entityType` belongs to `\"paramType\": \"entity\"` only".to_owned(),
            )
            .help("remove it, or make the type an entity"),
            P::UnqualifiedEntity { name } => {
                error("provider-type", format!("`{name}` lacks its namespace"))
                    .help(format!("write it in full, as in `Ns::{name}`"))
            }
            P::UndeclaredOutput { name, nearest } => self.meant(
                error(
                    "unknown-entity-type",
                    format!("`{name}` is not declared under `entityTypes`"),
                ),
                nearest.as_ref(),
            ),
            P::EnumKey { name } => {
                error("unknown-key", format!("an enumerated type has no `{name}`"))
                    .help("its keys are `enum` and `annotations`")
            }
            P::EnumName { name } => error(
                "entity-type-name",
                format!("`{name}` cannot be the name of an entity type"),
            )
            .help("names are words of letters, digits and `_`, joined by `::`"),
            P::ReservedNamespace { name } => error(
                "reserved-name",
                format!("`{name}` is in the reserved namespace `__cedar`"),
            )
            .help("declare it in the namespace of a provider of this file"),
            P::UnqualifiedEnum { name } => error(
                "entity-type-name",
                format!("`{name}` needs the namespace of the provider that gives it"),
            )
            .help(format!("as in `Ns::{name}`")),
            P::NamespaceWithoutProvider {
                name,
                namespace,
                nearest,
            } => {
                let found = error(
                    "entity-type-namespace",
                    format!("`{name}` is in a namespace without a provider"),
                );
                match nearest {
                    Some(near) => {
                        let last = name.strip_prefix(namespace.as_str()).unwrap_or_default();
                        let renamed: SmolStr = format!("{near}{last}").into();
                        self.meant(found, Some(&renamed))
                    }
                    None => found.help(format!(
                        "declare it in the namespace of a provider of this file, not in `{namespace}`"
                    )),
                }
            }
            P::NoChoices { name } => error("empty-enum", format!("`{name}` has no values"))
                .help("list at least one: `\"enum\": [\"LOW\", \"HIGH\"]`"),
            P::SameExport {
                name,
                other,
                export,
                first,
            } => error(
                "exported-name",
                format!("`{name}` and `{other}` would both be called `{export}` in the schema"),
            )
            .also(*first, format!("`{other}` is declared here"))
            .help("rename one of them"),
            P::ScriptKind { name } => error(
                "script-kind",
                format!("there are no scripts of the kind `{name}`"),
            )
            .help("scripts are written in Rhai: `\"kind\": \"rhai\"`"),
            P::ScriptOrFile => error(
                "script-source",
                "a script is given either as `script` or as `scriptFile`".to_owned(),
            )
            .help("give one of the two: the script itself, or the name of a file beside this one"),
            P::ScriptFile { name, why } => error(
                "script-source",
                format!("the script `{name}` cannot be read: {why}"),
            )
            .help("the path is taken from the folder of this file"),
            P::Script { error: found } => error(
                "script-error",
                format!("this script cannot be run: {found}"),
            )
            .help("lines and positions are those of the script itself"),
            P::NoFunction { name, takes } => {
                let params: Vec<String> = (0..*takes)
                    .map(|n| char::from(b'a' + (n % 26) as u8).to_string())
                    .collect();
                warning(
                    "script-function",
                    format!("the script has no function `{name}` of {takes} parameters"),
                )
                .help(format!("write `fn {name}({}) {{ … }}`", params.join(", ")))
            }
        }
    }

    /// With what was probably meant, as a string of JSON.
    fn meant(&self, found: Diagnostic, nearest: Option<&SmolStr>) -> Diagnostic {
        match nearest {
            Some(near) => found.help(format!("did you mean `{near}`?")).fix(
                format!("change to `{near}`"),
                self.span,
                format!("{:?}", near.as_str()),
            ),
            None => found,
        }
    }
}
