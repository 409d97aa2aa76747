//! What is said about windows and types, in temporal blocks and in conditions.

use super::{Finding, Problem, before};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;

impl Finding {
    pub(super) fn leaf(&self) -> Diagnostic {
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
            Problem::FieldType { field, wanted, found, replacement } => self.wrong_type(
                format!("`{field}` is {wanted}, but this is {found}"),
                wanted,
                replacement.as_deref(),
            ),
            Problem::NeverComparable { left, right } => self
                .error("type-mismatch", format!("{left} never equals {right}"))
                .help("both sides of `==` and `!=` must have the same type"),
            Problem::NotOrdered { found } => self
                .error("type-mismatch", format!("only Longs can be ordered, but this is {found}"))
                .help("`<`, `<=`, `>` and `>=` compare whole numbers; use `==` or `!=` for the rest"),
            Problem::NotNumber { found } => {
                self.error("type-mismatch", format!("arithmetic needs Longs, but this is {found}"))
                    .help("whole numbers have `+`, `-` and `*`; decimals have none")
            }
            Problem::NotTimepoint { name, found } => self
                .error("type-mismatch", format!("`tp` needs a Timepoint, but `{name}` is {found}"))
                .help(format!("declare it as `({name}: Timepoint)`")),
            Problem::SummandType { name, found } => self
                .error("type-mismatch", format!("only Longs can be summed, but `{name}` is {found}"))
                .help(format!("declare it as `({name}: Long)`")),
            _ => self.never(),
        }
    }

    pub(super) fn guard(&self) -> Diagnostic {
        match &self.problem {
            Problem::Expected { wanted, found } => self
                .error(
                    "type-mismatch",
                    format!("this is {found}, but {wanted} is needed"),
                )
                .label(format!("expected {wanted}")),
            Problem::WrongLiteral {
                other,
                found,
                replacement,
            } => self.wrong_type(
                format!("this is {found}, but what it is compared with is {other}"),
                other,
                replacement.as_deref(),
            ),
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
                name,
                guard,
                condition,
            } => {
                let found = self.error("unguarded-optional", format!("`{name}` may be absent"));
                guarded(found, guard.as_deref(), *condition)
            }
            Problem::OptionalAnswer { name } => self
                .error("unguarded-optional", format!("`{name}` may be absent"))
                .help(format!(
                    "a test of one call says nothing of the next; list `{name}` as `required` in the \
                     declaration of the provider, and always give it"
                )),
            Problem::UnguardedTag { guard, condition } => {
                let found = self.error("unguarded-tag", "the entity may be without this tag");
                guarded(found, guard.as_deref(), *condition)
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
            _ => self.never(),
        }
    }
}

fn window(seconds: i64) -> String {
    match seconds {
        s if s % 3600 == 0 => format!("{}h", s / 3600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
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

fn guarded(found: Diagnostic, guard: Option<&str>, condition: Span) -> Diagnostic {
    let Some(guard) = guard else {
        return found.help("test for it first, on the very same expression");
    };
    found
        .help(format!("test for it first: `{guard} && …`"))
        .fix(
            format!("add `{guard} &&`"),
            before(condition),
            format!("{guard} && "),
        )
}
