//! What is said about calls of information providers.

use super::{Finding, Problem};
use dogwood_grammar::diagnostic::Diagnostic;

impl Finding {
    pub(super) fn provider(&self) -> Diagnostic {
        match &self.problem {
            Problem::UnknownProvider { name, nearest, any } => {
                let found = self.error(
                    "unknown-provider",
                    format!("the information provider `{name}` is not declared"),
                );
                let any = *any;
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    Some(if any {
                        "declare it in the file of the providers".to_owned()
                    } else {
                        "name the file that declares the providers: `--providers FILE`".to_owned()
                    })
                })
            }
            Problem::ProviderArity { of, wanted, found } => self
                .error(
                    "wrong-arity",
                    format!(
                        "`{of}` takes {}, not {found}",
                        match wanted {
                            1 => "1 argument".to_owned(),
                            n => format!("{n} arguments"),
                        }
                    ),
                )
                .help("its arguments are declared in the file of the providers"),
            Problem::ProviderArgument => self
                .error(
                    "provider-argument",
                    "an information provider cannot be given this",
                )
                .help(
                    "it takes paths such as `context.input.path`, literals, and sets of these; \
                     what it gives back can be used in any expression",
                ),
            Problem::ProviderLiteral { wanted, found } => self
                .error(
                    "type-mismatch",
                    format!("this is {found}, but {wanted} is declared"),
                )
                .label(format!("expected {wanted}")),
            Problem::ProviderPathMissing { path, of } => self
                .error("unknown-attribute", format!("{of} has no `{path}`"))
                .help("a provider is asked for every request; narrow the head of the rule"),
            Problem::ProviderPathType {
                path,
                wanted,
                found,
            } => self
                .error(
                    "type-mismatch",
                    format!("`{path}` is {found}, but {wanted} is declared"),
                )
                .label(format!("expected {wanted}")),
            Problem::UnknownProviderMethod {
                name,
                provider,
                nearest,
                known,
            } => {
                let found = self.error(
                    "unknown-method",
                    format!("`{provider}` has no method `{name}`"),
                );
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                    Some(if names.is_empty() {
                        "it has no methods at all".to_owned()
                    } else {
                        format!("its methods are {}", names.join(", "))
                    })
                })
            }
            Problem::ShadowedMethod { name, provider } => self
                .error(
                    "shadowed-method",
                    format!("the method `{name}` of `{provider}` cannot be asked"),
                )
                .label("a method of the language")
                .help("give it another name in the declaration of the provider"),
            Problem::MethodInput {
                name,
                wanted,
                found,
            } => self
                .error(
                    "type-mismatch",
                    format!("`{name}` takes {wanted}, but what is before it gives {found}"),
                )
                .help("each method of a chain takes what the one before it gives"),
            // Said by the other parts.
            _ => self.never(),
        }
    }
}
