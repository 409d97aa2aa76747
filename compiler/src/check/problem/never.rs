//! What is said about conditions that cannot hold.

use super::{Finding, Problem};
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

impl Finding {
    pub(super) fn never(&self) -> Diagnostic {
        let warning = |code, message: String| Diagnostic::warning(code, self.span, message);
        match &self.problem {
            Problem::ImpossibleScope { first } => {
                let found = self.error(
                    "impossible-scope",
                    "no request can match the head of this rule",
                );
                match first {
                    Some((action, principals, resources)) => found.help(format!(
                        "`{action}` is asked for by {} on {}",
                        names(principals),
                        names(resources)
                    )),
                    None => found.help("none of these actions can be asked for"),
                }
            }
            Problem::HasNever { of, name, nearest } => {
                let found = warning(
                    "never-true",
                    format!("{of} never has an attribute `{name}`"),
                );
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    Some("remove the test, or narrow the head of the rule to what has it".to_owned())
                })
            }
            Problem::NeverIs { wanted } => warning(
                "never-true",
                format!("for no request of this rule is this a `{wanted}`"),
            )
            .help("remove the test, or change the head of the rule"),
            Problem::NeverTagged { of } => warning("never-true", format!("{of} has no tags"))
                .help("tags are declared with `tags` behind the entity type in the action schema"),
            Problem::NeverEqual { left, right } => {
                warning("never-equal", format!("{left} never equals {right}"))
                    .help("the comparison is the same for every request; compare with a value of the same type")
            }
            Problem::NeverIn { left, right } => {
                warning("never-true", format!("a `{left}` is never in a `{right}`")).help(
                    "membership is declared with `in` behind the entity type in the action schema",
                )
            }
            // `NeverApplies`, and nothing else.
            _ => warning(
                "never-applies",
                "no request can meet this condition, so the rule does nothing".to_owned(),
            )
            .help("mend the condition, or remove the rule"),
        }
    }
}

fn names(known: &[SmolStr]) -> String {
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}
