//! What is said about names that mean nothing.

use super::{Finding, Problem};
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

impl Finding {
    pub(super) fn name(&self, source: &str) -> Diagnostic {
        match &self.problem {
            Problem::UnknownAction {
                name,
                nearest,
                known,
            } => {
                let near = nearest.as_ref().map(|near| format!("{:?}", near.as_str()));
                let found = self.error("unknown-action", format!("there is no action `{name}`"));
                self.propose(found, near, || list("the actions are", known))
            }
            Problem::UnknownActionType { name, nearest } => {
                let found = self.error("unknown-action-type", format!("`{name}` has no actions"));
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    Some(
                        "an action is written with its namespace, as in `Ns::Action::\"name\"`"
                            .to_owned(),
                    )
                })
            }
            Problem::ActionElsewhere {
                name,
                written,
                home,
            } => self
                .error(
                    "unknown-action",
                    format!("`{written}` has no action `{name}`, but `{home}` has"),
                )
                .fix(format!("change to `{home}`"), self.span, home.as_str()),
            Problem::GroupAction { name, head } => {
                let text = format!("`{name}` is a group of actions; nobody asks for it itself");
                self.error("group-action", text).fix(
                    "change to `action in`",
                    *head,
                    format!("action in {}", self.span.text(source)),
                )
            }
            Problem::UnknownEntityType { name, nearest } => {
                let found = self.error(
                    "unknown-entity-type",
                    format!("there is no entity type `{name}`"),
                );
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    Some("types are written with their namespace, as in `Ns::Type`".to_owned())
                })
            }
            Problem::UnknownChoice {
                ty,
                name,
                nearest,
                choices,
            } => {
                let near = nearest.as_ref().map(|near| format!("{:?}", near.as_str()));
                let found = self.error(
                    "unknown-enum-value",
                    format!("`{name}` is not one of the values of `{ty}`"),
                );
                self.propose(found, near, || list("the values are", choices))
            }
            Problem::UnknownKind {
                name,
                nearest,
                known,
            } => {
                let found = self.error(
                    "unknown-event",
                    format!("there is no event `{name}` of this action"),
                );
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    list("its events are", known)
                })
            }
            Problem::UnknownField {
                name,
                group,
                event,
                nearest,
                known,
            } => {
                let text = if group.is_empty() {
                    format!("the event `{event}` has no field `{name}`")
                } else {
                    format!("`{group}` of the event `{event}` has no field `{name}`")
                };
                let found = self.error("unknown-field", text);
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    list("the fields are", known)
                })
            }
            Problem::FieldElsewhere { name, event, home } => self
                .error(
                    "unknown-field",
                    format!("the event `{event}` has no field `{name}`"),
                )
                .help(format!("did you mean `{home}`?"))
                .fix(format!("change to `{home}`"), self.span, home.as_str()),
            Problem::FieldGroup { name, known } => {
                let found = self.error(
                    "field-group",
                    format!("`{name}` is a group of fields, not a field"),
                );
                let example = known
                    .first()
                    .map(|field| format!(", as in `{name}.{field}`"));
                found.help(format!(
                    "name the field inside it{}",
                    example.unwrap_or_default()
                ))
            }
            Problem::FieldHasNoParts { name } => self
                .error(
                    "unknown-field",
                    format!("`{name}` is a single value and has no fields"),
                )
                .help(format!("match `{name}` itself")),
            Problem::UnknownBinderType { name, nearest } => {
                let found = Diagnostic::warning(
                    "unknown-variable-type",
                    self.span,
                    format!("there is no type `{name}`"),
                );
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    Some("a variable is a `Long`, a `String`, a `Bool`, a `decimal`, a `Timepoint`, \
                          or of an entity type".to_owned())
                })
            }
            Problem::UnknownAttr {
                of,
                name,
                nearest,
                known,
                action,
            } => {
                let place = action.as_ref().map(|a| format!(" of the action `{a}`"));
                let text = format!(
                    "{of}{} has no attribute `{name}`",
                    place.unwrap_or_default()
                );
                let found = self.error("unknown-attribute", text);
                let shown = self.span.text(source).starts_with('"');
                let near = nearest.as_ref().map(|near| {
                    if shown {
                        format!("{:?}", near.as_str())
                    } else {
                        near.to_string()
                    }
                });
                self.propose(found, near, || {
                    if known.is_empty() {
                        Some("it has no attributes at all".to_owned())
                    } else {
                        list("its attributes are", known)
                    }
                })
            }
            Problem::NotRecord { of, found } => self
                .error(
                    "not-a-record",
                    format!("{of} is {} and has no attributes", article(found)),
                )
                .help("only records and entities have attributes"),
            Problem::AttrNotEverywhere {
                name,
                root,
                missing,
                others,
            } => {
                let found = self.error(
                    "unknown-attribute",
                    format!("a `{root}` of type `{missing}` has no attribute `{name}`"),
                );
                match others.first() {
                    Some(other) => found.help(format!(
                        "the rule admits several types; narrow it: `{root} is {other}` in its head"
                    )),
                    None => found,
                }
            }
            Problem::AttrTypesDiffer { left, right } => self
                .error("ambiguous-type", format!("this is {left}, but {right}"))
                .help("narrow the head of the rule to one of the types"),
            Problem::UnknownMethod { name, nearest } => {
                let found = self.error("unknown-method", format!("there is no method `{name}`"));
                self.propose(found, nearest.as_ref().map(ToString::to_string), || {
                    Some("`dogwood explain-error unknown-method` lists the methods".to_owned())
                })
            }
            Problem::Template { name } => self
                .error(
                    "template-slot",
                    format!("`?{name}` makes this a template, which a policy cannot be"),
                )
                .help("name the entity, or leave the variable bare"),
            Problem::DuplicateAnnotation { name, first } => Diagnostic::warning(
                "duplicate-annotation",
                self.span,
                format!("this rule has two annotations `@{name}`; only the last one counts"),
            )
            .also(*first, "this one is ignored")
            .help("keep one of them"),
            // Said by the other parts.
            _ => self.never(),
        }
    }
}

fn article(found: &str) -> String {
    match found {
        "Bool" | "Long" | "String" | "decimal" | "datetime" | "duration" => format!("a {found}"),
        "ipaddr" => "an ipaddr".to_owned(),
        other if other.starts_with("Set<") => format!("a {other}"),
        other => other.to_owned(),
    }
}

fn list(what: &str, known: &[SmolStr]) -> Option<String> {
    const SHOWN: usize = 12;
    if known.is_empty() {
        return None;
    }
    let mut names: Vec<String> = known
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    if known.len() > SHOWN {
        names.push(format!("and {} more", known.len() - SHOWN));
    }
    Some(format!("{what} {}", names.join(", ")))
}
