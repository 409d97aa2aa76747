//! What can be wrong with a macro or with a call of one, and how it is said.

use crate::check::is_method;
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroError {
    pub span: Span,
    pub problem: MacroProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MacroProblem {
    // Definitions.
    ReservedName {
        name: SmolStr,
    },
    Duplicate {
        name: SmolStr,
        first: Span,
    },
    DuplicateParam {
        name: SmolStr,
        first: Span,
    },
    UnknownParam {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    CallInBody {
        name: SmolStr,
    },
    TemporalInCedar,
    ProviderInCedar,
    // Calls.
    UnknownMacro {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    UnknownFunction {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    Arity {
        name: SmolStr,
        params: Vec<SmolStr>,
        found: usize,
    },
    CedarInTemporal {
        name: SmolStr,
    },
    TemporalInExpression {
        name: SmolStr,
    },
    ValueAsCondition {
        name: SmolStr,
    },
    ConditionAsValue {
        name: SmolStr,
    },
    // Arguments.
    NotWindow {
        name: SmolStr,
        param: SmolStr,
    },
    NotCondition {
        name: SmolStr,
        param: SmolStr,
    },
    NotTerm {
        name: SmolStr,
        param: SmolStr,
    },
    NotVariable {
        name: SmolStr,
        param: SmolStr,
    },
    NotMatcher {
        name: SmolStr,
        param: SmolStr,
    },
    // Sigils outside a macro.
    StrayParam {
        name: SmolStr,
        place: Place,
    },
    StrayFresh {
        name: SmolStr,
    },
    // Limits.
    TooDeep {
        limit: u16,
    },
    TooLarge {
        limit: usize,
    },
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Window,
    Condition,
    Term,
    Binder,
    Expression,
}

impl MacroError {
    pub fn diagnostic(&self) -> Diagnostic {
        let span = self.span;
        use MacroProblem::*;
        match &self.problem {
            ReservedName { name } => Diagnostic::error(
                "reserved-macro-name",
                span,
                format!("`{name}` already means something before a parenthesis"),
            )
            .help("choose another name for this macro"),
            Duplicate { name, first } => {
                Diagnostic::error("duplicate-macro", span, format!("the macro `{name}` is defined twice"))
                    .also(*first, "first defined here")
                    .help("remove one of the two, or rename it")
            }
            DuplicateParam { name, first } => Diagnostic::error(
                "duplicate-parameter",
                span,
                format!("two parameters are called `?{name}`"),
            )
            .also(*first, "the first one")
            .help("give each parameter a name of its own"),
            UnknownParam { name, nearest } => {
                let found = Diagnostic::error(
                    "unknown-parameter",
                    span,
                    format!("this macro has no parameter `?{name}`"),
                );
                match nearest {
                    Some(near) => found
                        .help(format!("did you mean `?{near}`?"))
                        .fix(format!("change to `?{near}`"), span, format!("?{near}")),
                    None => found.help("add it to the list behind the macro's name"),
                }
            }
            CallInBody { name } => Diagnostic::error(
                "call-in-macro",
                span,
                format!("a macro body cannot call `{name}`"),
            )
            .help("macros do not call macros; write out what it stands for, or pass it as an argument"),
            TemporalInCedar => {
                Diagnostic::error("temporal-in-macro", span, "a `def cedar` body cannot look back in time")
                    .help("use `def temporal` and call it inside `temporal { … }`")
            }
            ProviderInCedar => Diagnostic::error(
                "provider-in-macro",
                span,
                "a `def cedar` body cannot call an information provider",
            )
            .help("pass what the provider says as an argument"),
            UnknownMacro { name, nearest } => unknown(
                "unknown-macro",
                span,
                format!("there is no temporal macro `{name}`"),
                nearest,
                "declare it with `def temporal`",
            ),
            UnknownFunction { name, .. } if is_method(name) => Diagnostic::error(
                "unknown-function",
                span,
                format!("there is no function or macro `{name}`"),
            )
            .help(format!("`{name}` is a method: write `….{name}(…)`, with what it asks in front")),
            UnknownFunction { name, nearest } => unknown(
                "unknown-function",
                span,
                format!("there is no function or macro `{name}`"),
                nearest,
                "the functions are `decimal`, `datetime`, `duration` and `ip`; a macro is declared \
                 with `def cedar`",
            ),
            Arity { name, params, found } => {
                let list: Vec<String> = params.iter().map(|param| format!("?{param}")).collect();
                Diagnostic::error(
                    "wrong-argument-count",
                    span,
                    format!(
                        "`{name}` takes {}, but is given {found}",
                        count(params.len(), "argument"),
                    ),
                )
                .help(format!("it is declared as `{name}({})`", list.join(", ")))
            }
            CedarInTemporal { name } => Diagnostic::error(
                "wrong-macro-kind",
                span,
                format!("`{name}` is a `def cedar` macro and cannot be used inside `temporal {{ … }}`"),
            )
            .help("declare it with `def temporal`, or call it in a clause of its own"),
            TemporalInExpression { name } => Diagnostic::error(
                "wrong-macro-kind",
                span,
                format!("`{name}` is a `def temporal` macro and works only inside `temporal {{ … }}`"),
            )
            .help(format!("write `temporal {{ {name}(…) }}`")),
            ValueAsCondition { name } => Diagnostic::error(
                "wrong-macro-kind",
                span,
                format!("`{name}` gives a number, but a condition is needed here"),
            )
            .help(format!("compare it, as in `{name}(…) <= 3`")),
            ConditionAsValue { name } => Diagnostic::error(
                "wrong-macro-kind",
                span,
                format!("`{name}` gives a condition, but a value is needed here"),
            )
            .help("use it as a condition of its own"),
            NotWindow { name, param } => Diagnostic::error(
                "wrong-argument",
                span,
                format!("`{name}` uses `?{param}` as a window"),
            )
            .help("give a length of time without `within`, such as `10m`"),
            NotCondition { name, param } => Diagnostic::error(
                "wrong-argument",
                span,
                format!("`{name}` uses `?{param}` as a condition"),
            )
            .help("give a predicate such as `Ns::Action::\"name\"::request{}`, or another condition"),
            NotTerm { name, param } => Diagnostic::error(
                "wrong-argument",
                span,
                format!("`{name}` uses `?{param}` as a value"),
            )
            .help("give a literal, a variable, `context.…`, or an aggregate"),
            NotVariable { name, param } => Diagnostic::error(
                "wrong-argument",
                span,
                format!("`{name}` uses `?{param}` as the name of a variable"),
            )
            .help("give a single word; the other arguments can then use it"),
            NotMatcher { name, param } => Diagnostic::error(
                "wrong-argument",
                span,
                format!("`{name}` adds a field to `?{param}`, which must be a single predicate"),
            )
            .help("give one predicate, without `&&`, `!` or an operator around it"),
            StrayParam { name, place } => {
                let place = match place {
                    Place::Window => "as a window",
                    Place::Condition => "as a condition",
                    Place::Term => "as a value",
                    Place::Binder => "as the name of a variable",
                    Place::Expression => "in an expression",
                };
                Diagnostic::error(
                    "stray-parameter",
                    span,
                    format!("`?{name}` is used {place}, but only a macro body has parameters"),
                )
                .help("write the value itself; there are no templates")
            }
            StrayFresh { name } => Diagnostic::error(
                "stray-parameter",
                span,
                format!("`${name}` is a fresh name, which only a macro body can have"),
            )
            .fix(format!("change to `{name}`"), span, name.as_str()),
            TooDeep { limit } => Diagnostic::error(
                "expansion-too-deep",
                span,
                format!("with this call written out the rule is nested more than {limit} deep"),
            )
            .help("nest fewer calls into one another"),
            TooLarge { limit } => Diagnostic::error(
                "expansion-too-large",
                span,
                format!("with this call written out the rule has more than {limit} parts"),
            )
            .help("a macro that uses a parameter twice doubles with every nested call"),
        }
    }
}

fn unknown(
    code: &'static str,
    span: Span,
    text: String,
    nearest: &Option<SmolStr>,
    help: &str,
) -> Diagnostic {
    let found = Diagnostic::error(code, span, text);
    match nearest {
        Some(near) => found.help(format!("did you mean `{near}`?")).fix(
            format!("change to `{near}`"),
            span,
            near.as_str(),
        ),
        None => found.help(help),
    }
}

fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
