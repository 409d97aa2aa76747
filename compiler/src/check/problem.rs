//! What a check can find, and how it is said.

use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::{Diagnostic, Edit, Fix};
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub span: Span,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    // Legality of temporal blocks.
    ReservedBinder {
        name: SmolStr,
    },
    Misplaced {
        what: &'static str,
    },
    /// Of `exists`, or of the `for` list of an aggregate.
    NotRestricted {
        name: SmolStr,
        list: bool,
    },
    UnusedBinder {
        name: SmolStr,
        list: bool,
    },
    SummandNotListed {
        name: SmolStr,
    },
    FreeVariable {
        name: SmolStr,
        nearest: Option<SmolStr>,
        ty: SmolStr,
        wrap: Option<Span>,
    },
    TooEarly {
        name: SmolStr,
        early: Early,
        later: Option<Span>,
        /// The conjunct, the next one, and the one after which it would be in order.
        reordered: Option<(Span, Span, Span)>,
    },
    ArithmeticOff,
    ArithmeticExperimental,

    // Names.
    UnknownAction {
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    ActionElsewhere {
        name: SmolStr,
        written: SmolStr,
        home: SmolStr,
    },
    GroupAction {
        name: SmolStr,
    },
    UnknownEntityType {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    UnknownChoice {
        ty: SmolStr,
        name: SmolStr,
        nearest: Option<SmolStr>,
        choices: Vec<SmolStr>,
    },
    UnknownKind {
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    UnknownField {
        name: SmolStr,
        /// The group it was looked for in; empty for the event itself.
        group: SmolStr,
        event: String,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    FieldElsewhere {
        name: SmolStr,
        event: String,
        home: SmolStr,
    },
    FieldGroup {
        name: SmolStr,
        known: Vec<SmolStr>,
    },
    FieldHasNoParts {
        name: SmolStr,
    },
    UnknownBinderType {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    UnknownAttr {
        of: SmolStr,
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
        action: Option<SmolStr>,
    },
    NotRecord {
        of: SmolStr,
        found: SmolStr,
    },
    AttrNotEverywhere {
        name: SmolStr,
        root: &'static str,
        missing: SmolStr,
        others: Vec<SmolStr>,
    },
    AttrTypesDiffer {
        left: SmolStr,
        right: SmolStr,
    },
    UnknownProvider {
        name: SmolStr,
    },
    UnknownMethod {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    Template {
        name: SmolStr,
    },

    // Windows and time.
    ZeroWindow,
    LongWindow {
        max: i64,
    },
    NotTemporal,

    // Types of temporal blocks.
    FieldType {
        field: SmolStr,
        wanted: SmolStr,
        found: SmolStr,
    },
    NeverComparable {
        left: SmolStr,
        right: SmolStr,
    },
    NotOrdered {
        found: SmolStr,
    },
    NotNumber {
        found: SmolStr,
    },
    NotTimepoint {
        name: SmolStr,
        found: SmolStr,
    },
    SummandType {
        name: SmolStr,
        found: SmolStr,
    },

    // Types of conditions.
    Expected {
        wanted: &'static str,
        found: SmolStr,
    },
    Incompatible {
        what: &'static str,
        left: SmolStr,
        right: SmolStr,
    },
    MixedSet {
        first: SmolStr,
        found: SmolStr,
    },
    EmptySet,
    OptionalAttr {
        target: Span,
        name: SmolStr,
        word: bool,
        condition: Span,
    },
    UnguardedTag {
        target: Span,
        argument: Span,
        condition: Span,
    },
    NoTags {
        of: SmolStr,
    },
    NotLiteral {
        function: &'static str,
    },
    BadLiteral {
        function: &'static str,
        text: SmolStr,
    },

    // What can never hold.
    ImpossibleScope {
        first: Option<(SmolStr, Vec<SmolStr>, Vec<SmolStr>)>,
    },
    NeverApplies,
    HasNever {
        of: SmolStr,
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    NeverIs {
        found: SmolStr,
        wanted: SmolStr,
    },
    NeverEqual {
        left: SmolStr,
        right: SmolStr,
    },
    NeverIn {
        left: SmolStr,
        right: SmolStr,
    },
}

/// What reads a variable too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    Filter,
    Value,
    Negation,
    SinceLeft,
}

impl Finding {
    /// The message; `source` is the text the span belongs to.
    pub fn diagnostic(&self, source: &str) -> Diagnostic {
        match &self.problem {
            Problem::ReservedBinder { .. }
            | Problem::Misplaced { .. }
            | Problem::NotRestricted { .. }
            | Problem::UnusedBinder { .. }
            | Problem::SummandNotListed { .. }
            | Problem::FreeVariable { .. }
            | Problem::TooEarly { .. }
            | Problem::ArithmeticOff
            | Problem::ArithmeticExperimental => self.legality(source),
            Problem::ZeroWindow
            | Problem::LongWindow { .. }
            | Problem::NotTemporal
            | Problem::FieldType { .. }
            | Problem::NeverComparable { .. }
            | Problem::NotOrdered { .. }
            | Problem::NotNumber { .. }
            | Problem::NotTimepoint { .. }
            | Problem::SummandType { .. } => self.leaf(),
            Problem::Expected { .. }
            | Problem::Incompatible { .. }
            | Problem::MixedSet { .. }
            | Problem::EmptySet
            | Problem::OptionalAttr { .. }
            | Problem::UnguardedTag { .. }
            | Problem::NoTags { .. }
            | Problem::NotLiteral { .. }
            | Problem::BadLiteral { .. } => self.guard(source),
            Problem::ImpossibleScope { .. }
            | Problem::NeverApplies
            | Problem::HasNever { .. }
            | Problem::NeverIs { .. }
            | Problem::NeverEqual { .. }
            | Problem::NeverIn { .. } => self.never(source),
            _ => self.name(source),
        }
    }

    fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.span, message)
    }

    // ---------------------------------------------------------------------------- legality

    fn legality(&self, source: &str) -> Diagnostic {
        match &self.problem {
            Problem::ReservedBinder { name } => self
                .error("reserved-variable", format!("`{name}` cannot be the name of a variable"))
                .help("it means the event being decided; choose another name"),
            Problem::Misplaced { what } => self
                .error("misplaced-value", format!("{what} can only be one side of a comparison"))
                .help(match *what {
                    "a list" => "compare with one value at a time",
                    _ => "give it a name first: `exists (n: Long). ((count …) == n && …)`",
                }),
            Problem::NotRestricted { name, list } => self
                .error(
                    "unrestricted-variable",
                    format!("nothing in the {} gives `{name}` a value", body(*list)),
                )
                .help(format!(
                    "use `{name}` as the value of a field in a predicate that is not negated, in \
                     `tp({name})`, or in `{name} == …`"
                )),
            Problem::UnusedBinder { name, list } => self
                .error("unused-variable", format!("`{name}` does not occur in the {}", body(*list)))
                .help(if *list {
                    "remove it from the list, or use it: only rows that differ in a listed variable \
                     are counted apart"
                } else {
                    "remove the `exists`, or use the variable"
                }),
            Problem::SummandNotListed { name } => self
                .error("summand-not-listed", format!("`{name}` is summed, but is not in the `for` list"))
                .help(format!("write `for ({name}: Long), …`")),
            Problem::FreeVariable { name, nearest, ty, wrap } => {
                let found = self.error("free-variable", format!("`{name}` is not declared"));
                match (nearest, wrap) {
                    (Some(near), _) => found
                        .help(format!("did you mean `{near}`?"))
                        .fix(format!("change to `{near}`"), self.span, near.as_str()),
                    (None, wrap) => {
                        let exists = format!("exists ({name}: {ty}). ");
                        let help = format!("declare it where it is used: `{exists}(…)`");
                        Diagnostic { fix: wrap.map(|span| exists_around(&exists, span)), ..found }
                            .help(help)
                    }
                }
            }
            Problem::TooEarly { name, early, later, reordered } => {
                self.too_early(name, *early, *later, *reordered, source)
            }
            Problem::ArithmeticOff => self
                .error("arithmetic-off", "arithmetic inside `temporal { … }` is not yet supported")
                .help("it is an experiment; switch it on, or compare the values without it"),
            _ => Diagnostic::warning(
                "experimental-arithmetic",
                self.span,
                "arithmetic inside `temporal { … }` is an experiment and may change",
            ),
        }
    }

    fn too_early(
        &self,
        name: &str,
        early: Early,
        later: Option<Span>,
        reordered: Option<(Span, Span, Span)>,
        source: &str,
    ) -> Diagnostic {
        let what = match early {
            Early::Filter => "compared",
            Early::Value => "read",
            Early::Negation => "read under `!`",
            Early::SinceLeft => "read left of `since`",
        };
        let found = self
            .error(
                "variable-too-early",
                format!("`{name}` is {what} before it has a value"),
            )
            .label("has no value yet");
        let found = match later {
            Some(span) => found
                .also(span, "gets its value here")
                .help("a chain is read from left to right: put what gives the value first"),
            None if early == Early::SinceLeft => found.help(format!(
                "let the right side of `since` give `{name}` its value, or a predicate before it"
            )),
            None => found.help(format!(
                "put a predicate that gives `{name}` its value before this"
            )),
        };
        match reordered.and_then(|(this, next, last)| reorder(source, this, next, last)) {
            Some((span, text)) => found.fix("put the condition after it", span, text),
            None => found,
        }
    }

    // ------------------------------------------------------------------------------- names

    fn name(&self, source: &str) -> Diagnostic {
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
            Problem::GroupAction { name } => self
                .error(
                    "group-action",
                    format!("`{name}` is a group of actions; nobody asks for it itself"),
                )
                .help("write `action in` for the actions of the group"),
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
            Problem::UnknownProvider { name } => self
                .error(
                    "unknown-provider",
                    format!("the information provider `{name}` is not declared"),
                )
                .help("information providers are not enabled"),
            Problem::UnknownMethod { name, nearest } => {
                let found = self.error("unknown-method", format!("there is no method `{name}`"));
                self.propose(found, nearest.as_ref().map(ToString::to_string), || None)
            }
            Problem::Template { name } => self
                .error(
                    "template-slot",
                    format!("`?{name}` makes this a template, which a policy cannot be"),
                )
                .help("name the entity"),
            // Said by the other parts.
            _ => self.never(source),
        }
    }

    fn propose(
        &self,
        found: Diagnostic,
        nearest: Option<String>,
        otherwise: impl FnOnce() -> Option<String>,
    ) -> Diagnostic {
        match nearest {
            Some(near) => found
                .help(format!("did you mean `{}`?", near.trim_matches('"')))
                .fix(
                    format!("change to `{}`", near.trim_matches('"')),
                    self.span,
                    near,
                ),
            None => Diagnostic {
                help: otherwise(),
                ..found
            },
        }
    }

    // ------------------------------------------------------------------------------ leaves

    fn leaf(&self) -> Diagnostic {
        match &self.problem {
            Problem::ZeroWindow => self
                .error("zero-window", "a window must be longer than nothing")
                .help("to look at the event being decided, write the predicate without an operator"),
            Problem::LongWindow { max } => {
                let max = window(*max);
                self.error("window-too-long", format!("the longest window allowed here is {max}"))
                    .help("the event schema can raise it with `max_window`")
                    .fix(format!("shorten to {max}"), self.span, max)
            }
            Problem::NotTemporal => self
                .error("not-temporal", "this part never looks at what happened")
                .help("move it to a `when { … }` clause, or into the `exists` whose events it is about"),
            Problem::FieldType { field, wanted, found } => self
                .error("type-mismatch", format!("`{field}` is {wanted}, but this is {found}"))
                .label(format!("expected {wanted}")),
            Problem::NeverComparable { left, right } => self
                .error("type-mismatch", format!("{left} never equals {right}"))
                .help("both sides of `==` and `!=` must have the same type"),
            Problem::NotOrdered { found } => self
                .error("type-mismatch", format!("only Longs can be ordered, but this is {found}"))
                .help("`<`, `<=`, `>` and `>=` compare whole numbers; use `==` or `!=` for the rest"),
            Problem::NotNumber { found } => {
                self.error("type-mismatch", format!("arithmetic needs Longs, but this is {found}"))
            }
            Problem::NotTimepoint { name, found } => self
                .error("type-mismatch", format!("`tp` needs a Timepoint, but `{name}` is {found}"))
                .help(format!("declare it as `({name}: Timepoint)`")),
            Problem::SummandType { name, found } => self
                .error("type-mismatch", format!("only Longs can be summed, but `{name}` is {found}"))
                .help(format!("declare it as `({name}: Long)`")),
            _ => self.never(""),
        }
    }

    // -------------------------------------------------------------------------- conditions

    fn guard(&self, source: &str) -> Diagnostic {
        match &self.problem {
            Problem::Expected { wanted, found } => self
                .error(
                    "type-mismatch",
                    format!("this is {found}, but {wanted} is needed"),
                )
                .label(format!("expected {wanted}")),
            Problem::Incompatible { what, left, right } => self
                .error(
                    "type-mismatch",
                    format!("{what} have different types: {left} and {right}"),
                )
                .help("both must have the same type"),
            Problem::MixedSet { first, found } => self
                .error(
                    "mixed-set",
                    format!("this is {found}, but the elements before it are each {first}"),
                )
                .help("all elements of a set have one type"),
            Problem::EmptySet => self
                .error("empty-set", "an empty set has no type")
                .help("to ask whether a set is empty, write `.isEmpty()`"),
            Problem::OptionalAttr {
                target,
                name,
                word,
                condition,
            } => {
                let target = target.text(source);
                let attr = if *word {
                    name.to_string()
                } else {
                    format!("{name:?}")
                };
                let guard = format!("{target} has {attr}");
                self.error("unguarded-optional", format!("`{name}` may be absent"))
                    .help(format!("test for it first: `{guard} && …`"))
                    .fix(
                        format!("add `{guard} &&`"),
                        before(*condition),
                        format!("{guard} && "),
                    )
            }
            Problem::UnguardedTag {
                target,
                argument,
                condition,
            } => {
                let guard = format!("{}.hasTag({})", target.text(source), argument.text(source));
                self.error("unguarded-tag", "the entity may not have this tag")
                    .help(format!("test for it first: `{guard} && …`"))
                    .fix(
                        format!("add `{guard} &&`"),
                        before(*condition),
                        format!("{guard} && "),
                    )
            }
            Problem::NoTags { of } => self
                .error("no-tags", format!("{of} has no tags"))
                .help("tags are declared with `tags` behind the entity type in the action schema"),
            Problem::NotLiteral { function } => self
                .error(
                    "not-a-literal",
                    format!("`{function}` can only be given a literal"),
                )
                .help(format!("write the text itself: `{function}(\"…\")`")),
            Problem::BadLiteral { function, text } => self
                .error(
                    "bad-literal",
                    format!("`{text}` is not {}", literal_name(function)),
                )
                .help(literal_help(function)),
            _ => self.never(source),
        }
    }

    // ---------------------------------------------------------------- what can never hold

    fn never(&self, _source: &str) -> Diagnostic {
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
                self.propose(found, nearest.as_ref().map(ToString::to_string), || None)
            }
            Problem::NeverIs { found, wanted } => warning(
                "never-true",
                format!("this is always a `{found}`, never a `{wanted}`"),
            ),
            Problem::NeverEqual { left, right } => warning(
                "never-equal",
                format!("a `{left}` never equals a `{right}`"),
            ),
            Problem::NeverIn { left, right } => {
                warning("never-true", format!("a `{left}` is never in a `{right}`")).help(
                    "membership is declared with `in` behind the entity type in the action schema",
                )
            }
            // `NeverApplies`, and nothing else.
            _ => warning(
                "never-applies",
                "no request can meet this condition, so the rule does nothing".to_owned(),
            ),
        }
    }
}

fn body(list: bool) -> &'static str {
    if list {
        "`where` part"
    } else {
        "condition after it"
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

fn names(known: &[SmolStr]) -> String {
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

fn before(span: Span) -> Span {
    Span {
        start: span.start,
        end: span.start,
    }
}

/// The longest unit that divides the time.
fn window(seconds: i64) -> String {
    match seconds {
        s if s % 3600 == 0 => format!("{}h", s / 3600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

fn exists_around(exists: &str, span: Span) -> Fix {
    let after = Span {
        start: span.end,
        end: span.end,
    };
    Fix {
        title: format!("declare it: `{}`", exists.trim_end()),
        edits: vec![
            Edit {
                span: before(span),
                text: format!("{exists}("),
            },
            Edit {
                span: after,
                text: ")".to_owned(),
            },
        ],
    }
}

/// The chain with `this` put after `last`, where nothing but `&&` stands between the conjuncts.
fn reorder(source: &str, this: Span, next: Span, last: Span) -> Option<(Span, String)> {
    let gap = Span {
        start: this.end,
        end: next.start,
    }
    .text(source);
    let moved = this.text(source);
    let rest = Span {
        start: next.start,
        end: last.end,
    }
    .text(source);
    let plain = gap.trim() == "&&" && balanced(moved) && balanced(rest) && !rest.is_empty();
    plain.then(|| (this.to(last), format!("{rest} && {moved}")))
}

/// Whether brackets outside strings are closed where they were opened.
fn balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => {
                            chars.next();
                        }
                        _ => {}
                    }
                }
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth < 0 {
                    return false;
                }
            }
            '/' if text.contains("//") => return false,
            _ => {}
        }
    }
    depth == 0
}

fn literal_name(function: &str) -> &'static str {
    match function {
        "decimal" => "a decimal",
        "ip" => "an address",
        "datetime" => "a date",
        _ => "a duration",
    }
}

fn literal_help(function: &str) -> &'static str {
    match function {
        "decimal" => "digits on both sides of a dot, at most four behind it: `1.5`",
        "ip" => "an IPv4 or IPv6 address, perhaps with a prefix: `10.0.0.0/8`",
        "datetime" => {
            "`2024-01-31`, or `2024-01-31T10:20:30Z`, perhaps with milliseconds or an offset \
                       such as `+0130`"
        }
        _ => "numbers with the units `d`, `h`, `m`, `s`, `ms`, largest first: `1h30m`",
    }
}
