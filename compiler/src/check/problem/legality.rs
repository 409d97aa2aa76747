//! What is said about variables and values of temporal blocks.

use super::{Early, Finding, Problem, before};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::{Diagnostic, Edit, Fix};

impl Finding {
    pub(super) fn legality(&self, source: &str) -> Diagnostic {
        match &self.problem {
            Problem::ReservedBinder { name } => self
                .error("reserved-variable", format!("`{name}` cannot be the name of a variable"))
                .help("it means the event being decided; choose another name"),
            Problem::Misplaced { what } => self
                .error("misplaced-value", format!("{what} can only be one side of a comparison"))
                .help("give it a name first: `exists (n: Long). ((count …) == n && …)`"),
            Problem::NotRestricted { name, list } => self
                .error(
                    "unrestricted-variable",
                    format!("nothing in the {} gives `{name}` a value", body(*list)),
                )
                .help(format!(
                    "use `{name}` as the value of a field in a predicate that is not negated, in \
                     `tp({name})`, or in `{name} == …`"
                )),
            Problem::UnusedBinder { name, list, cut } => {
                let found = self
                    .error("unused-variable", format!("`{name}` does not occur in the {}", body(*list)))
                    .help(if *list {
                        "remove it from the list, or use it: only rows that differ in a listed variable \
                         are counted apart"
                    } else {
                        "remove the `exists`, or use the variable"
                    });
                // Where a macro made the list, it is not in the text.
                match cut.filter(|cut| cut.text(source).starts_with(['(', ',']) && !cut.is_empty()) {
                    Some(cut) => found.fix("remove it from the list", cut, ""),
                    None => found,
                }
            }
            Problem::SummandNotListed { name, first } => {
                let found = self
                .error("summand-not-listed", format!("`{name}` is summed, but is not in the `for` list"))
                .help(format!("write `for ({name}: Long), …`"));
                let listed = format!("({name}: Long), ");
                // Where a macro made the list, it is not in the text.
                match first.filter(|first| first.text(source).starts_with('(')) {
                    Some(first) => found.fix("add it to the list", before(first), listed),
                    None => found,
                }
            }
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
                .error("arithmetic-off", "arithmetic inside `temporal { … }` is switched off")
                .help("it is an experiment: switch it on with `--experimental-arithmetic`, or compare the values without it"),
            _ => Diagnostic::warning(
                "experimental-arithmetic",
                self.span,
                "arithmetic inside `temporal { … }` is an experiment and may change",
            )
            .help("compare the values without it where that is possible"),
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
}

fn body(list: bool) -> &'static str {
    if list {
        "`where` part"
    } else {
        "condition after it"
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
