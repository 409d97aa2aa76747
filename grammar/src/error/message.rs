//! What the author is told about each syntax error.

use super::{Expected, SyntaxError, SyntaxErrorKind as Kind};
use crate::diagnostic::{Diagnostic, Edit, Fix};
use crate::span::Span;

impl SyntaxError {
    /// The message about this error. `source` is the text that was read.
    pub fn diagnostic(&self, source: &str) -> Diagnostic {
        let text = self.span.text(source);
        let say = |code, message: &str| Diagnostic::error(code, self.span, message);
        match &self.kind {
            Kind::OpenString => say("open-string", "this string has no closing quote")
                .help("close it with `\"`; a quote inside a string is written `\\\"`"),
            Kind::ForeignCharacter => foreign(self.span, text),
            Kind::InvalidEscape => say("invalid-escape", &format!("`{text}` is not an escape"))
                .help(
                    "escapes are \\n \\r \\t \\0 \\\\ \\\" \\' \\xHH (up to 7F) and \\u{…}; \
                     a backslash itself is written `\\\\`",
                ),
            Kind::StarEscape => say("star-escape", "`\\*` is only an escape in a `like` pattern")
                .help("in other strings `*` stands for itself")
                .fix("change to `*`", self.span, "*"),
            Kind::IntegerRange => say("integer-range", "this number does not fit 64 bits").help(
                "numbers go from -9223372036854775808 to 9223372036854775807",
            ),
            Kind::Unexpected { expected } if is_field(expected) && ["=", "=="].contains(&text) => {
                say("syntax", "a field is matched with `:`").fix("change to `:`", self.span, ":")
            }
            Kind::Unexpected { expected } if is_field(expected) && compares(text) => {
                say("syntax", &format!("a field is matched with `:`, not compared with `{text}`")).help(format!(
                    "give its value a name and compare that: `exists (x: Long). (…{{ field: x }} && x {text} …)`"
                ))
            }
            Kind::Unexpected { expected } if text.is_empty() => {
                say("syntax", &format!("expected {}", listed(expected)))
            }
            Kind::Unexpected { expected } => say(
                "syntax",
                &format!("expected {}, but found `{}`", listed(expected), shown(text)),
            ),
            Kind::UnexpectedEnd { expected } => {
                say("syntax", &format!("expected {} before the end", listed(expected)))
            }
            Kind::Unclosed => {
                let partner = match text {
                    "(" => ")",
                    "[" => "]",
                    _ => "}",
                };
                say("unclosed-bracket", &format!("this `{text}` is never closed"))
                    .help(format!("add the `{partner}` that belongs to it"))
            }
            Kind::TooDeep => say("too-deep", "this nests too deeply to be read").help(
                "200 levels are the limit; split the rule, or write a long chain without parentheses",
            ),
            Kind::MissingSemicolon => say("missing-semicolon", "a `;` is missing here")
                .help("every rule, macro and declaration ends with `;`")
                .fix("add `;`", self.span, ";"),
            Kind::StraySemicolon => say("stray-semicolon", "this `;` ends nothing")
                .fix("remove it", self.span, ""),
            Kind::TrailingComma => say("trailing-comma", "no comma may follow the last element here")
                .fix("remove it", self.span, ""),
            Kind::Duplicate { what, name, first } => {
                say("duplicate", &format!("the {what} `{name}` is given twice"))
                    .also(*first, "first given here")
                    .help("keep one of them")
            }
            _ => self.rule_message(source),
        }
    }

    fn rule_message(&self, source: &str) -> Diagnostic {
        let text = self.span.text(source);
        let say = |code, message: &str| Diagnostic::error(code, self.span, message);
        match &self.kind {
            Kind::UnknownEffect => {
                let meant = match text {
                    "allow" | "grant" | "accept" => Some("permit"),
                    "deny" | "block" | "reject" => Some("forbid"),
                    _ => nearest(text, &["permit", "forbid"]),
                };
                let found = say("unknown-effect", &format!("`{text}` is not an effect"))
                    .help("a rule begins with `permit` or `forbid`");
                self.rename(found, meant)
            }
            Kind::ScopeVariable { name } => {
                let found =
                    say("unknown-scope-variable", &format!("a scope has no variable `{name}`"))
                        .help("the scope constrains `principal`, `action` and `resource`, in any order; conditions go into `when { … }`");
                self.rename(found, nearest(name, &["principal", "action", "resource"]))
            }
            Kind::ScopeColon => {
                let start = self.span.start as usize;
                let spaced = source.get(..start).is_some_and(|before| before.ends_with(' '));
                say("scope-colon", "a type is tested with `is`, not `:`").fix(
                    "change to `is`",
                    self.span,
                    if spaced { "is" } else { " is" },
                )
            }
            Kind::ScopeOperator => {
                say("scope-operator", &format!("`{text}` cannot stand in a scope"))
                    .help("a scope knows `==`, `in` and `is`; other tests go into `when { … }`")
            }
            Kind::ActionIs => say("action-is", "`is` does not apply to actions").help(
                "name the action with `action == …::Action::\"id\"`, or its group with `action in …`",
            ),
            Kind::ActionSlot => say("action-slot", "an action cannot be left open")
                .help("name the action: `action == …::Action::\"id\"`"),
            Kind::ScopeSlot { variable } => {
                say("unknown-slot", &format!("`{text}` does not fit `{variable}`"))
                    .help("there are no templates; name the entity, or leave the variable bare")
            }
            Kind::ScopeNotEntity { action } => {
                let ty = if *action { "Namespace::Action" } else { "Type" };
                // A string is often the id, with the type forgotten.
                let id = if text.starts_with('"') { shown(text) } else { "\"id\"".to_owned() };
                say("scope-entity", "a scope compares with one named entity").help(format!(
                    "write it as `{ty}::{id}`; computed tests go into `when {{ … }}`"
                ))
            }
            Kind::ScopeList => say("scope-list", "a list is not allowed here").help(
                "only `action in […]` takes a list; write one rule for each, or use a group",
            ),
            Kind::MissingClauseWord => {
                say("missing-clause-word", "a condition begins with `when` or `unless`").fix(
                    "add `when`",
                    Span::at(self.span.start as usize),
                    "when ",
                )
            }
            Kind::UnknownClauseWord { word } => {
                let meant = match word.as_str() {
                    "if" | "where" => Some("when"),
                    word => nearest(word, &["when", "unless"]),
                };
                let found = say("unknown-clause-word", &format!("`{word}` does not begin a condition"))
                    .help("a condition begins with `when` or `unless`");
                match word.as_str() {
                    "guardrails" => found.fix(
                        "add `when`",
                        Span::at(self.span.start as usize),
                        "when ",
                    ),
                    _ => self.rename(found, meant),
                }
            }
            _ => self.expression_message(source),
        }
    }

    fn expression_message(&self, source: &str) -> Diagnostic {
        let text = self.span.text(source);
        let say = |code, message: &str| Diagnostic::error(code, self.span, message);
        match &self.kind {
            Kind::AssignForEq => say("assign-for-eq", "equality is tested with `==`").fix(
                "change to `==`",
                self.span,
                "==",
            ),
            Kind::UnsupportedOperator { operator } => say(
                "unsupported-operator",
                &format!("there is no `{operator}` operator"),
            )
            .help("whole numbers have `+`, `-` and `*`"),
            Kind::UnknownVariable { name } if name.contains("::") => say(
                "unknown-variable",
                &format!("`{name}` is a name, not a value"),
            )
            .help(format!(
                "an entity is written `{name}::\"id\"`, a call `{name}(…)`"
            )),
            Kind::UnknownVariable { name } => {
                let found = say("unknown-variable", &format!("there is no variable `{name}`")).help(
                    format!(
                        "the variables are `principal`, `action`, `resource` and `context`; an input of the \
                         action is `context.input.{name}`, a string is `\"{name}\"`"
                    ),
                );
                self.rename(
                    found,
                    nearest(name, &["principal", "action", "resource", "context"]),
                )
            }
            Kind::IndexNotString => say("index-not-string", "an index is a string literal").help(
                "write `record[\"key\"]` or `record.key`; sets are asked with `.contains(…)`",
            ),
            Kind::CallOfNonName => say("call-of-non-name", "this cannot be called")
                .help("only a function name or a method can be: `f(…)`, `e.m(…)`"),
            Kind::Arity {
                name,
                expected,
                found,
                method,
            } => {
                let what = if *method { "method" } else { "function" };
                let takes = match expected {
                    0 => "no argument".to_owned(),
                    1 => "one argument".to_owned(),
                    n => format!("{n} arguments"),
                };
                say(
                    "wrong-arity",
                    &format!("the {what} `{name}` takes {takes}, but is given {found}"),
                )
                .help(match (*method, *expected) {
                    (true, 0) => format!("write `x.{name}()`"),
                    (true, _) => format!("write `x.{name}(y)`"),
                    (false, _) => format!("give it one text: `{name}(\"…\")`"),
                })
            }
            Kind::EntityRecord => say("entity-record", "entities are not written as records")
                .help("name an entity by its id: `Type::\"id\"`"),
            Kind::MixedUnary => say("mixed-signs", "`!` and `-` cannot follow each other")
                .help("`!` takes a truth value, `-` a number; use parentheses if this is meant"),
            Kind::PatternNotLiteral => {
                say("pattern-literal", "a `like` pattern is a string literal")
                    .help("write it out: `like \"report-*\"`")
            }
            Kind::Fraction => {
                let before = source.get(..self.span.start as usize).unwrap_or("");
                let text = text.replace(' ', "");
                let mended = match before.trim_end().ends_with("decimal(") {
                    true => format!("\"{text}\""),
                    false => format!("decimal(\"{text}\")"),
                };
                say("fraction", "there are no numbers with a fraction")
                    .help("a decimal is written as text: `decimal(\"1.5\")`")
                    .fix(format!("change to `{mended}`"), self.span, mended)
            }
            Kind::WordOperator { operator } => say(
                "word-operator",
                &format!("`{text}` is not an operator"),
            )
            .fix(format!("change to `{operator}`"), self.span, *operator),
            Kind::LooseRelation => say(
                "loose-relation",
                &format!("`{text}` cannot follow `has`, `like` or `is` directly"),
            )
            .help("put the first test into parentheses: `(e has a) == …`"),
            _ => self.temporal_message(source),
        }
    }

    fn temporal_message(&self, source: &str) -> Diagnostic {
        let text = self.span.text(source);
        let say = |code, message: &str| Diagnostic::error(code, self.span, message);
        match &self.kind {
            Kind::OrInTemporal => say("temporal-or", "there is no `||` in a temporal condition")
                .help("write `a || b` as `!(!a && !b)`, or as two rules"),
            Kind::LetInTemporal => say("temporal-let", "there is no `let` in a temporal condition")
                .help("name a value with `exists`: `exists (n: Long). ((count …) == n && …)`"),
            Kind::NotInTemporal { word } => {
                say("not-in-temporal", &format!("there is no `{word}` in a temporal condition"))
                    .help("test it in a `when { … }` beside the temporal block")
            }
            Kind::ChainedSince => say("chained-since", "`since` does not chain")
                .help("put one of them into parentheses: `(a since within 1h b) since within 1h c`"),
            Kind::BinderParens => say("binder-parentheses", "a variable is introduced in parentheses, with its type")
                .help("write `exists (x: Type). …`, `count for (x: Type). where …`"),
            Kind::MissingDot => say("missing-dot", "a `.` is missing behind the variables")
                .help("`exists (x: T). …` and `for (x: T), (y: U). where …`")
                .fix("add `.`", self.span, "."),
            Kind::MissingWindow { operator } => {
                say("missing-window", &format!("`{operator}` needs a time window"))
                    .help(format!("say how far back it looks: `{operator} within 1h …`"))
            }
            Kind::MissingUnit => say("missing-unit", "this window has no unit")
                .help("units are s, m, h and d: `within 10m`"),
            Kind::BadUnit => {
                let meant = match text {
                    "S" | "sec" | "secs" | "second" | "seconds" => Some("s"),
                    "M" | "min" | "mins" | "minute" | "minutes" => Some("m"),
                    "H" | "hr" | "hrs" | "hour" | "hours" => Some("h"),
                    "D" | "day" | "days" => Some("d"),
                    _ => None,
                };
                let found = say("bad-unit", &format!("`{text}` is not a unit of time"))
                    .help("units are s, m, h and d");
                self.rename(found, meant)
            }
            Kind::MissingKind => {
                let found = say("missing-event-kind", "the kind of event is missing")
                    .help(format!("name it behind the action: `{}::request{{ … }}`", shown(text)));
                let end = self.span.end as usize;
                let after = source.get(end..).unwrap_or_default();
                let (at, kind) = match after.strip_prefix("::") {
                    Some(_) => (end + 2, "request"),
                    None if after.trim_start().starts_with('{') => (end, "::request"),
                    None => (end, "::request{}"),
                };
                found.fix(format!("add `{kind}`"), Span::at(at), kind)
            }
            Kind::MissingBraces => say("missing-braces", "the braces of this event pattern are missing")
                .help("they stand even where no field is asked for")
                .fix("add `{}`", Span::at(self.span.end as usize), "{}"),
            Kind::NeedsParens { operator } => {
                let mut found = say(
                    "needs-parentheses",
                    &format!("behind `{operator}` this needs parentheses"),
                );
                let (start, end) = (self.span.start as usize, self.span.end as usize);
                found.fix = Some(Fix {
                    title: "add parentheses".to_owned(),
                    edits: vec![
                        Edit { span: Span::at(start), text: "(".to_owned() },
                        Edit { span: Span::at(end), text: ")".to_owned() },
                    ],
                });
                found
            }
            Kind::ChainedCompare => say("chained-comparison", "comparisons do not chain here")
                .help("write two of them, joined by `&&`"),
            Kind::NotATerm => say("not-a-value", "a condition stands where a value is needed")
                .help("values are literals, variables, `context.…`, `principal`, `resource` and counts"),
            Kind::NotACondition => say("not-a-condition", "a value stands where a condition is needed")
                .help("compare it: `… == true`, `… <= 3`"),
            Kind::ArrayTerm => say("list-in-temporal", "a list cannot be matched or compared")
                .help("match single values; sets are compared in a `when { … }` beside the temporal block"),
            Kind::ContextAlone => say("context-alone", "`context` alone is not a value here")
                .help("name what is read from it: `context.input.…`"),
            Kind::PathRoot { name } => {
                let found = say("path-root", &format!("`{name}` has no fields here")).help(
                    "fields are read from `context`, `principal` and `resource`; those of past events are \
                     bound in a pattern: `…::request{ input.field: x }`",
                );
                self.rename(found, nearest(name, &["principal", "resource", "context"]))
            }
            Kind::ReservedCall { name } => {
                say("call-of-non-name", &format!("`{name}` cannot be called"))
                    .help("only the name of a macro can be: `count_within(…)`")
            }
            Kind::DecimalArgument => {
                let found = say("decimal-literal", "`decimal` takes one string literal")
                    .help("write `decimal(\"1.5\")`");
                let number = text
                    .strip_prefix("decimal(")
                    .and_then(|rest| rest.strip_suffix(')'))
                    .filter(|number| number.chars().all(|c| c.is_ascii_digit()))
                    .map(|number| format!("decimal(\"{number}.0\")"));
                self.rename(found, number.as_deref())
            }
            _ => self.schema_message(source),
        }
    }

    fn schema_message(&self, source: &str) -> Diagnostic {
        let text = self.span.text(source);
        let say = |code, message: &str| Diagnostic::error(code, self.span, message);
        match &self.kind {
            Kind::ZeroMaxWindow => say(
                "zero-max-window",
                "`max_window` must be longer than nothing",
            )
            .help("give the longest time any rule may look back: `max_window = 24h`"),
            Kind::WindowRange => say("window-range", "this window is longer than can be counted")
                .help("rules look back as far as `max_window` says, 24h where it is not given"),
            Kind::BlankSchema => say("blank-schema", "the event schema is empty")
                .help("declare an event: `decision event <A>::request { ...inputs(A) }`"),
            Kind::LateMaxWindow => say(
                "late-max-window",
                "`max_window` stands at the top of the file",
            )
            .help("write it once, before all events"),
            Kind::PinOnGroup => {
                say("pin-on-group", "a group of fields cannot be pinned").help("pin a single field")
            }
            Kind::PinWithoutValue => say("pin-without-value", "a pinned field needs a value").help(
                format!("say what it is pinned to: `{}: … = principal`", shown(text)),
            ),
            Kind::ValueWithoutPin { field } => {
                say("value-without-pin", "only a pinned field has a value")
                    .help("write `pin` before the field, or leave the value out")
                    .fix("add `pin`", Span::at(field.start as usize), "pin ")
            }
            Kind::SelectorArgument { binder } => say(
                "selector-argument",
                &format!("`{text}` is not the variable of this declaration"),
            )
            .help(format!("the declaration begins with `event <{binder}>`"))
            .fix(format!("change to `{binder}`"), self.span, binder.as_str()),
            Kind::PinRoot => say(
                "pin-value",
                &format!("a field cannot be pinned to `{text}`"),
            )
            .help("pin to `principal`, `resource`, a field of them, or `context.…`"),
            Kind::TypeArgument { name } => {
                let found = say(
                    "type-argument",
                    &format!("the type `{name}` takes no argument"),
                )
                .help("only `Set<…>` does");
                let meant = match name.as_str() {
                    "List" | "Array" | "Vec" => Some("Set"),
                    name => nearest(name, &["Set"]),
                };
                self.rename(found, meant)
            }
            Kind::AppliesToKey { name } => {
                let found = say(
                    "applies-to-part",
                    &format!("`appliesTo` has no part `{name}`"),
                )
                .help("its parts are `principal`, `resource` and `context`");
                let meant = match name.as_str() {
                    "principals" => Some("principal"),
                    "resources" => Some("resource"),
                    name => nearest(name, &["principal", "resource", "context"]),
                };
                self.rename(found, meant)
            }
            Kind::AppliesToTypes { key } => {
                say("applies-to-types", &format!("`{key}` lists entity types"))
                    .help(format!("write `{key}: [Type, Other]`"))
            }
            Kind::AppliesToContext => say("applies-to-context", "a context is a record")
                .help("write `context: { … }`, or the name of a record type"),
            Kind::NestedNamespace => say("nested-namespace", "namespaces do not nest").help(
                "close the one before with `}`, and write the full name: `namespace A::B { … }`",
            ),
            Kind::UnknownDeclaration { event_schema } => {
                let known: &[&str] = match event_schema {
                    true => &["event", "decision", "max_window"],
                    false => &["entity", "action", "type", "namespace"],
                };
                let found = say(
                    "unknown-declaration",
                    &format!("`{text}` does not begin a declaration"),
                )
                .help(match event_schema {
                    true => "declarations begin with `event` or `decision event`",
                    false => "declarations begin with `entity`, `action`, `type` or `namespace`",
                });
                self.rename(found, nearest(text, known))
            }
            Kind::StrayBrace => {
                say("stray-brace", "this `}` closes nothing").fix("remove it", self.span, "")
            }
            // All others are answered above.
            _ => say("syntax", "this cannot be read"),
        }
    }

    fn rename(&self, found: Diagnostic, meant: Option<&str>) -> Diagnostic {
        match meant {
            Some(meant) => found.fix(format!("change to `{meant}`"), self.span, meant),
            None => found,
        }
    }
}

/// What may follow the name of a field in a predicate.
fn is_field(expected: &[Expected]) -> bool {
    expected == [Expected::Text("."), Expected::Text(":")]
}

fn compares(text: &str) -> bool {
    ["!=", "<", "<=", ">", ">="].contains(&text)
}

fn foreign(span: Span, text: &str) -> Diagnostic {
    let found = Diagnostic::error(
        "foreign-character",
        span,
        format!("`{}` is not part of the language", shown(text)),
    );
    match text {
        "&" => found.fix("change to `&&`", span, "&&"),
        "|" => found.fix("change to `||`", span, "||"),
        "#" => found.help("a comment begins with `//`"),
        _ if text.starts_with(['\'', '‘', '’', '“', '”', '`']) => {
            found.help("strings stand in double quotes: `\"…\"`")
        }
        _ if !text.is_ascii() => {
            found.help("names are made of a-z, A-Z, 0-9 and `_`; anything else goes into a string")
        }
        _ => found,
    }
}

/// Text of the author inside a message: on one line, and not long.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    let mut short: String = line.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn listed(expected: &[Expected]) -> String {
    let names: Vec<String> = expected.iter().map(|one| named(*one)).collect();
    match names.as_slice() {
        [] => "something else".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

fn named(expected: Expected) -> String {
    match expected {
        Expected::Expression => "an expression".to_owned(),
        Expected::Condition => "a condition".to_owned(),
        Expected::Value => "a value".to_owned(),
        Expected::Operator => "an operator".to_owned(),
        Expected::Word => "a name".to_owned(),
        Expected::String => "a string".to_owned(),
        Expected::Number => "a number".to_owned(),
        Expected::Parameter => "a parameter like `?x`".to_owned(),
        Expected::Text(text) => format!("`{text}`"),
    }
}

/// The word the author may have meant.
fn nearest<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    let lower = text.to_ascii_lowercase();
    words
        .iter()
        .map(|word| {
            (
                strsim::osa_distance(&lower, &word.to_ascii_lowercase()),
                *word,
            )
        })
        .filter(|(distance, word)| *distance * 3 <= word.len())
        .min()
        .map(|(_, word)| word)
}
