//! What an aggregate counts, and where a cap ends.

use super::facts::field_path;
use super::places::Limit;
use super::{Set, Subject, action_of, between};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Aggregate, AggregateOp, CompareOp, Cond, CondKind, Matcher, Rule, Term, TermKind, Window,
};
use dogwood_grammar::diagnostic::{Diagnostic, Edit, Fix};
use smol_str::SmolStr;

use super::places::Pull;

/// Fields that take many different values, so that counting them means something.
const MANY: [&str; 7] = ["path", "host", "uri", "url", "command", "cwd", "id"];
/// From here on, so many different values of any other text are hardly meant.
const HARDLY_DIFFERENT: i64 = 10;

pub fn check(set: &mut Set, subject: &Subject) {
    for limit in &subject.reading.limits {
        cap(set, subject, limit);
    }
    for aggregate in aggregates(&subject.checked.rule) {
        columns(set, subject, aggregate);
    }
}

fn aggregates(rule: &Rule) -> Vec<&Aggregate> {
    fn of<'r>(term: &'r Term, found: &mut Vec<&'r Aggregate>) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => found.push(aggregate),
            TermKind::Sum { first, rest } => {
                of(first, found);
                rest.iter().for_each(|(_, term)| of(term, found));
            }
            TermKind::Product(terms) => terms.iter().for_each(|term| of(term, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for leaf in crate::check::leaves(rule) {
        crate::check::each_cond(&leaf.body, &mut |cond| {
            if let CondKind::Compare { left, right, .. } = &cond.kind {
                of(left, &mut found);
                of(right, &mut found);
            }
        });
    }
    found
}

fn counts_moments(aggregate: &Aggregate) -> bool {
    aggregate
        .binders
        .iter()
        .any(|binder| binder.ty.text() == "Timepoint")
}

/// The window and the predicates of `formerly within w (P{…} && …)`, tested back from the request.
fn looked_back(body: &Cond) -> Option<(&Window, Vec<&Matcher>)> {
    let CondKind::Formerly { window, body } = &body.kind else {
        return None;
    };
    let parts = match &body.kind {
        CondKind::And(parts) => parts.as_slice(),
        _ => std::slice::from_ref(&**body),
    };
    let matchers: Vec<&Matcher> = parts
        .iter()
        .filter_map(|part| match &part.kind {
            CondKind::Match(matcher) => Some(matcher),
            _ => None,
        })
        .collect();
    (!matchers.is_empty()).then_some((window, matchers))
}

/// The request is in the history before it is decided, so a count that it matches includes it.
fn cap(set: &mut Set, subject: &Subject, limit: &Limit) {
    let (wrong, right) = match (limit.pull, limit.op, limit.turned) {
        (Pull::Deny, CompareOp::Ge, false) => (">=", ">"),
        (Pull::Deny, CompareOp::Ge, true) => ("<=", "<"),
        (Pull::Allow, CompareOp::Lt, false) => ("<", "<="),
        (Pull::Allow, CompareOp::Lt, true) => (">", ">="),
        _ => return,
    };
    let aggregate = limit.aggregate;
    if !matches!(aggregate.op, AggregateOp::Count) || !counts_moments(aggregate) || limit.number < 1
    {
        return;
    }
    let Some((window, matchers)) = looked_back(&aggregate.body) else {
        return;
    };
    let own = matchers.iter().all(|matcher| {
        set.is_attempt(matcher)
            && subject.decides(&action_of(matcher))
            && !subject.facts.contradicts(matcher)
    });
    if !own {
        return;
    }
    let number = limit.number;
    let passes = match number - 1 {
        0 => "none passes".to_owned(),
        1 => "only 1 passes".to_owned(),
        n => format!("only {n} pass"),
    };
    let within = match window.span.text(subject.text) {
        text if text.len() <= 8 && text.starts_with(|c: char| c.is_ascii_digit()) => {
            format!(" within {text}")
        }
        _ => String::new(),
    };
    let operator = between(subject.text, limit.sides.0, limit.sides.1, wrong);
    let said = Diagnostic::warning(
        "cap-counts-itself",
        operator.unwrap_or(limit.span),
        format!("the count includes the request being decided, so {passes}{within}"),
    )
    .help(format!("to let {number} pass, write `{right}`"));
    let said = match operator {
        Some(span) => said.fix(format!("change to `{right}`"), span, right),
        None => said,
    };
    set.say(subject, said);
}

/// Aggregates are over sets: equal rows are one.
fn columns(set: &mut Set, subject: &Subject, aggregate: &Aggregate) {
    let said_so = |name: &str| name.contains("distinct");
    let call = subject
        .calls
        .iter()
        .find(|call| call.span == aggregate.span);
    if counts_moments(aggregate) || call.is_some_and(|call| said_so(&call.name)) {
        return;
    }
    let Some(first) = aggregate.binders.first() else {
        return;
    };
    let (span, message) = match &aggregate.op {
        AggregateOp::Sum(_) if aggregate.binders.len() == 1 => (
            first.span,
            format!("equal values of `{}` are added only once", first.var.name),
        ),
        AggregateOp::Count if aggregate.binders.len() == 1 => {
            let limit = subject
                .reading
                .limits
                .iter()
                .find(|limit| std::ptr::eq(limit.aggregate, aggregate))
                .map_or(0, |limit| limit.number);
            if !hardly_meant(set, aggregate, &first.var.name, &first.ty.text(), limit) {
                return;
            }
            (
                first.span,
                format!(
                    "this counts different values of `{}`, not events",
                    first.var.name
                ),
            )
        }
        _ => return,
    };
    let said = Diagnostic::warning("value-counted", span, message)
        .help("to count every event, add a time point: `(at: Timepoint)` in the list, `tp(at)` in the condition");
    let said = match call {
        Some(_) => said,
        None => Diagnostic {
            fix: with_moment(subject.text, aggregate),
            ..said
        },
    };
    set.say(subject, said);
}

fn hardly_meant(
    set: &Set,
    aggregate: &Aggregate,
    name: &SmolStr,
    ty: &SmolStr,
    limit: i64,
) -> bool {
    match ty.as_str() {
        "Long" | "Bool" | "Boolean" | "decimal" | "Decimal" => true,
        "String" => {
            limit >= HARDLY_DIFFERENT
                && fields_of(aggregate, name)
                    .iter()
                    .any(|field| !MANY.iter().any(|many| field.ends_with(many)))
        }
        // Of an enumerated type there are only so many.
        _ => set
            .service
            .actions
            .entity_types
            .values()
            .filter(|entity| {
                crate::nearest::last_segment(&entity.name) == crate::nearest::last_segment(ty)
            })
            .filter_map(|entity| entity.choices.as_ref())
            .any(|choices| limit > i64::try_from(choices.len()).unwrap_or(i64::MAX)),
    }
}

/// The last words of the fields a variable of an aggregate stands for.
fn fields_of(aggregate: &Aggregate, name: &SmolStr) -> Vec<SmolStr> {
    let mut found = Vec::new();
    crate::check::each_cond(&aggregate.body, &mut |cond| {
        let CondKind::Match(matcher) = &cond.kind else {
            return;
        };
        for field in matcher.fields() {
            if matches!(&field.term.kind, TermKind::Var(var) if var.name == *name) {
                found.extend(field_path(field).last().cloned());
            }
        }
    });
    found
}

/// The edits that add a time point to an aggregate over `formerly`.
fn with_moment(text: &str, aggregate: &Aggregate) -> Option<Fix> {
    let CondKind::Formerly { body, .. } = &aggregate.body.kind else {
        return None;
    };
    let last = aggregate.binders.last()?.span;
    let name = ["at", "then", "moment"].into_iter().find(|name| {
        let taken = |word: &str| word == *name;
        !text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(taken)
    })?;
    let insert = |at: u32, text: String| Edit {
        span: Span { start: at, end: at },
        text,
    };
    let mut edits = vec![insert(last.end, format!(", ({name}: Timepoint)"))];
    match &body.kind {
        CondKind::And(parts) => {
            let end = parts.last()?.span.end;
            edits.push(insert(end, format!(" && tp({name})")));
        }
        CondKind::Match(matcher) => {
            edits.push(insert(matcher.span.start, "(".to_owned()));
            edits.push(insert(matcher.span.end, format!(" && tp({name}))")));
        }
        _ => return None,
    }
    Some(Fix {
        title: "count every event".to_owned(),
        edits,
    })
}
