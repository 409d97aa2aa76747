//! Random rules, each in random spellings that mean the same.

/// Decisions, one after the other; where there are none left, always the first choice.
pub struct Choices<'c>(pub &'c [u8]);

impl Choices<'_> {
    fn pick(&mut self, of: usize) -> usize {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                usize::from(*first) % of
            }
            None => 0,
        }
    }

    fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        let mut out = Vec::new();
        while !items.is_empty() {
            let at = self.pick(items.len());
            out.push(items.remove(at));
        }
        out
    }
}

#[derive(Clone, Debug)]
enum Guard {
    Text(usize, usize),
    Number(usize, usize, i64),
    Flag,
    Who(usize),
    Like(usize, usize),
    Not(Box<Guard>),
    All(Vec<Guard>),
    Any(Vec<Guard>),
    If(Box<[Guard; 3]>),
    Past(Past),
}

#[derive(Clone, Debug)]
enum Past {
    Match(Vec<(usize, usize)>),
    Formerly(usize, Box<Past>),
    Previous(usize, Box<Past>),
    Since(Box<Past>, usize, Box<Past>),
    Not(Box<Past>),
    All(Vec<Past>),
    /// A value of this event that an earlier one had, too.
    Join(usize, usize),
    /// An earlier number that is less than one of this event.
    Less(usize, usize),
    Count(usize, usize, i64),
    /// Different texts of a field.
    Distinct(usize, usize, usize, i64),
    /// Over a number of each event.
    Sum(usize, usize, usize, i64),
    Asked(usize, bool, usize),
}

#[derive(Clone, Debug)]
pub struct Written {
    pub forbids: bool,
    pub actions: Vec<usize>,
    clauses: Vec<Guard>,
}

const TEXTS: [&str; 3] = ["host", "path", "method"];
const NUMBERS: [&str; 2] = ["port", "body_bytes"];
pub const VALUES: [&str; 3] = ["a", "b", "c"];
const SECONDS: [i64; 4] = [60, 90, 3600, 86_400];
const ACTIONS: [&str; 3] = ["http:request", "net:connect", "mcp:call"];
const OPS: [(&str, &str, &str); 6] = [
    ("==", "==", "!="),
    ("!=", "!=", "=="),
    ("<", ">", ">="),
    ("<=", ">=", ">"),
    (">", "<", "<="),
    (">=", "<=", "<"),
];

impl Written {
    pub fn of(c: &mut Choices<'_>) -> Written {
        Written {
            forbids: c.pick(2) == 0,
            actions: (0..1 + c.pick(3)).map(|_| c.pick(ACTIONS.len())).collect(),
            clauses: (0..1 + c.pick(3)).map(|_| Guard::of(c, 3)).collect(),
        }
    }

    pub fn spelled(&self, c: &mut Choices<'_>) -> String {
        let actions: Vec<String> = c
            .shuffled(self.actions.clone())
            .iter()
            .map(|at| format!("Box::Action::\"{}\"", ACTIONS[*at]))
            .collect();
        let heads = vec![
            "principal".to_owned(),
            format!("action in [{}]", actions.join(", ")),
            "resource".to_owned(),
        ];
        let mut text = format!(
            "{} ({})",
            if self.forbids { "forbid" } else { "permit" },
            c.shuffled(heads).join(", ")
        );
        let mut clauses = Vec::new();
        for clause in c.shuffled(self.clauses.clone()) {
            match (&clause, c.pick(4)) {
                (Guard::All(parts), 1) => clauses.extend(parts.clone()),
                (Guard::Past(Past::All(parts)), 1) => {
                    clauses.extend(parts.iter().cloned().map(Guard::Past));
                }
                _ => clauses.push(clause),
            }
        }
        while clauses.len() > 1 && c.pick(3) == 1 {
            let last = clauses.pop().unwrap();
            let before = clauses.pop().unwrap();
            clauses.push(Guard::All(vec![before, last]));
        }
        for clause in c.shuffled(clauses) {
            text.push_str(&match (&clause, c.pick(3)) {
                (Guard::Past(past), 0) => format!(" when temporal {{ {} }}", past.spelled(c, &[])),
                (Guard::Past(past), 1) => {
                    format!(" unless temporal {{ !({}) }}", past.spelled(c, &[]))
                }
                (guard, 1) => format!(" unless {{ !({}) }}", guard.spelled(c)),
                (guard, _) => format!(" when {{ {} }}", guard.spelled(c)),
            });
        }
        text + ";"
    }
}

impl Guard {
    fn of(c: &mut Choices<'_>, depth: usize) -> Guard {
        let some = |c: &mut Choices<'_>| -> Vec<Guard> {
            (0..2 + c.pick(2))
                .map(|_| Guard::of(c, depth - 1))
                .collect()
        };
        match c.pick(if depth == 0 { 6 } else { 10 }) {
            0 => Guard::Text(c.pick(3), c.pick(3)),
            1 => Guard::Number(c.pick(2), c.pick(6), c.pick(12) as i64),
            2 => Guard::Flag,
            3 => Guard::Like(c.pick(3), c.pick(3)),
            4 => Guard::Past(Past::of(c, 2)),
            5 => Guard::Who(c.pick(3)),
            6 => Guard::Not(Box::new(Guard::of(c, depth - 1))),
            7 => Guard::All(some(c)),
            8 => Guard::Any(some(c)),
            _ => Guard::If(Box::new([
                Guard::of(c, depth - 1),
                Guard::of(c, depth - 1),
                Guard::of(c, depth - 1),
            ])),
        }
    }

    fn spelled(&self, c: &mut Choices<'_>) -> String {
        let plain = match self {
            Guard::Text(field, value) => {
                let (field, value) = (
                    format!("context.input.{}", TEXTS[*field]),
                    format!("\"{}\"", VALUES[*value]),
                );
                match c.pick(4) {
                    0 => format!("{field} == {value}"),
                    1 => format!("{value} == {field}"),
                    2 => format!("!({field} != {value})"),
                    _ => format!("[{value}].contains({field})"),
                }
            }
            Guard::Number(field, op, bound) => {
                let field = format!("context.input.{}", NUMBERS[*field]);
                number(&field, *op, *bound, c)
            }
            Guard::Flag => [
                "context.input.intercepted",
                "context[\"input\"].intercepted",
            ][c.pick(2)]
            .to_owned(),
            Guard::Who(who) => {
                let who = format!("Box::Agent::\"{}\"", VALUES[*who]);
                match c.pick(3) {
                    0 => format!("principal == {who}"),
                    1 => format!("{who} == principal"),
                    _ => format!("!(principal != {who})"),
                }
            }
            Guard::Like(field, value) => {
                format!(
                    "context.input.{} like \"{}*\"",
                    TEXTS[*field], VALUES[*value]
                )
            }
            Guard::Not(inner) => format!("!({})", inner.spelled(c)),
            Guard::All(parts) => joined(parts, "&&", "||", c),
            Guard::Any(parts) => joined(parts, "||", "&&", c),
            Guard::If(parts) => {
                let [test, yes, no] = parts.as_ref();
                let (test, yes, no) = (test.spelled(c), yes.spelled(c), no.spelled(c));
                match c.pick(2) {
                    0 => format!("if {test} then {yes} else {no}"),
                    _ => format!("if !({test}) then {no} else {yes}"),
                }
            }
            Guard::Past(past) => format!("temporal {{ {} }}", past.spelled(c, &[])),
        };
        match c.pick(8) {
            1 => format!("(!(!({plain})))"),
            2 => format!("(({plain}))"),
            3 => format!("(if {plain} then true else false)"),
            4 => format!("(({plain}) && true)"),
            5 => format!("(({plain}) == true)"),
            _ => format!("({plain})"),
        }
    }
}

/// A comparison of whole numbers.
fn number(subject: &str, op: usize, bound: i64, c: &mut Choices<'_>) -> String {
    let (op, mirrored, negated) = OPS[op];
    match (c.pick(4), op) {
        (1, _) => format!("{bound} {mirrored} {subject}"),
        (2, _) => format!("!({subject} {negated} {bound})"),
        (3, ">") => format!("{subject} >= {}", bound + 1),
        (3, "<=") => format!("{subject} < {}", bound + 1),
        _ => format!("{subject} {op} {bound}"),
    }
}

fn joined(parts: &[Guard], op: &str, dual: &str, c: &mut Choices<'_>) -> String {
    let mut parts = c.shuffled(parts.to_vec());
    if c.pick(5) == 1 {
        let again = parts[0].clone();
        parts.push(again);
    }
    match c.pick(4) {
        1 => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| format!("!({})", part.spelled(c)))
                .collect();
            format!("!({})", parts.join(&format!(" {dual} ")))
        }
        2 if parts.len() == 2 => {
            let (first, rest) = (parts[0].spelled(c), parts[1].spelled(c));
            match op {
                "&&" => format!("if {first} then {rest} else false"),
                _ => format!("if {first} then true else {rest}"),
            }
        }
        3 if parts.len() > 2 => {
            let first = parts[0].spelled(c);
            format!("{first} {op} ({})", joined(&parts[1..], op, dual, c))
        }
        _ => {
            let parts: Vec<String> = parts.iter().map(|part| part.spelled(c)).collect();
            parts.join(&format!(" {op} "))
        }
    }
}

fn window(at: usize, c: &mut Choices<'_>) -> String {
    let seconds = SECONDS[at];
    for (unit, letter) in [(86_400, 'd'), (3600, 'h'), (60, 'm')] {
        if seconds % unit == 0 && c.pick(2) == 1 {
            return format!("{}{letter}", seconds / unit);
        }
    }
    format!("{seconds}s")
}

/// A name that hides none of those in sight.
fn fresh(taken: &[String], c: &mut Choices<'_>) -> String {
    let names = ["t", "u", "host", "x", "y", "n"];
    let mut name = names[c.pick(names.len())].to_owned();
    while taken.contains(&name) {
        name.push('1');
    }
    name
}

impl Past {
    fn of(c: &mut Choices<'_>, depth: usize) -> Past {
        let inner = |c: &mut Choices<'_>| Box::new(Past::of(c, depth - 1));
        match c.pick(if depth == 0 { 7 } else { 12 }) {
            0 => Past::Match((0..c.pick(3)).map(|_| (c.pick(3), c.pick(3))).collect()),
            1 => Past::Join(c.pick(3), c.pick(4)),
            2 => Past::Less(c.pick(2), c.pick(4)),
            3 => Past::Count(c.pick(4), c.pick(6), c.pick(12) as i64),
            4 => Past::Asked(c.pick(3), c.pick(2) == 0, c.pick(3)),
            5 => Past::Distinct(c.pick(3), c.pick(4), c.pick(6), c.pick(12) as i64),
            6 => Past::Sum(c.pick(2), c.pick(4), c.pick(6), c.pick(12) as i64),
            7 => Past::Formerly(c.pick(4), inner(c)),
            8 => Past::Previous(c.pick(4), inner(c)),
            9 => Past::Since(inner(c), c.pick(4), inner(c)),
            10 => Past::Not(inner(c)),
            _ => Past::All((0..2 + c.pick(2)).map(|_| Past::of(c, depth - 1)).collect()),
        }
    }

    fn spelled(&self, c: &mut Choices<'_>, taken: &[String]) -> String {
        let event = |fields: Vec<String>, c: &mut Choices<'_>| {
            let fields = c.shuffled(fields);
            let braces = match c.pick(3) {
                1 if fields.len() > 1 => {
                    let (first, rest) = fields.split_at(1);
                    format!("{{ {} }}{{ {} }}", first.join(", "), rest.join(", "))
                }
                _ => format!("{{ {} }}", fields.join(", ")),
            };
            format!("Box::Action::\"http:request\"::request{braces}")
        };
        let plain = match self {
            Past::Match(fields) => {
                let fields = fields.iter().map(|(field, value)| {
                    format!("input.{}: \"{}\"", TEXTS[*field], VALUES[*value])
                });
                event(fields.collect(), c)
            }
            Past::Join(field, at) => {
                let name = fresh(taken, c);
                let now = event(vec![format!("input.{}: {name}", TEXTS[*field])], c);
                let then = format!("formerly within {} {now}", window(*at, c));
                let parts = c.shuffled(vec![now, then]);
                format!("exists ({name}: String). ({})", parts.join(" && "))
            }
            Past::Less(field, at) => {
                let one = fresh(taken, c);
                let other = fresh(&[taken, std::slice::from_ref(&one)].concat(), c);
                let now = event(vec![format!("input.{}: {one}", NUMBERS[*field])], c);
                let then = event(vec![format!("input.{}: {other}", NUMBERS[*field])], c);
                let then = format!("formerly within {} {then}", window(*at, c));
                let less = [
                    format!("{other} < {one}"),
                    format!("{one} > {other}"),
                    format!("!({other} >= {one})"),
                ][c.pick(3)]
                .clone();
                let parts = c.shuffled(vec![now, then, less]);
                let binders = c.shuffled(vec![one, other]);
                format!(
                    "exists ({}: Long). exists ({}: Long). ({})",
                    binders[0],
                    binders[1],
                    parts.join(" && ")
                )
            }
            Past::Count(at, op, bound) => {
                let name = fresh(taken, c);
                let seen = event(Vec::new(), c);
                let window = window(*at, c);
                match c.pick(4) {
                    1 => number(&format!("count_within({window}, {seen})"), *op, *bound, c),
                    2 => {
                        let n = fresh(taken, c);
                        let is = format!("{n} == count_within({window}, {seen})");
                        let asked = number(&n, *op, *bound, c);
                        let parts = c.shuffled(vec![is, asked]);
                        format!("exists ({n}: Long). ({})", parts.join(" && "))
                    }
                    _ => {
                        let body = c.shuffled(vec![seen, format!("tp({name})")]).join(" && ");
                        let count = format!(
                            "(count for ({name}: Timepoint). where formerly within {window} ({body}))"
                        );
                        number(&count, *op, *bound, c)
                    }
                }
            }
            Past::Distinct(field, at, op, bound) => {
                let name = fresh(taken, c);
                let seen = event(vec![format!("input.{}: {name}", TEXTS[*field])], c);
                let window = window(*at, c);
                let count = match c.pick(2) {
                    0 => format!(
                        "(count for ({name}: String). where formerly within {window} {seen})"
                    ),
                    _ => format!("count_distinct_within({name}, {window}, {seen})"),
                };
                number(&count, *op, *bound, c)
            }
            Past::Sum(field, at, op, bound) => {
                let name = fresh(taken, c);
                let point = fresh(&[taken, std::slice::from_ref(&name)].concat(), c);
                let seen = event(vec![format!("input.{}: {name}", NUMBERS[*field])], c);
                let window = window(*at, c);
                let sum = match c.pick(2) {
                    0 => {
                        let binders =
                            vec![format!("({name}: Long)"), format!("({point}: Timepoint)")];
                        let binders = c.shuffled(binders).join(", ");
                        let body = c.shuffled(vec![seen, format!("tp({point})")]).join(" && ");
                        format!(
                            "(sum {name} for {binders}. where formerly within {window} ({body}))"
                        )
                    }
                    _ => format!("sum_within({name}, {window}, {seen})"),
                };
                number(&sum, *op, *bound, c)
            }
            Past::Asked(field, is, value) => {
                let (field, value) = (TEXTS[*field], VALUES[*value]);
                let op = if *is { "==" } else { "!=" };
                match c.pick(2) {
                    0 => format!("context.input.{field} {op} \"{value}\""),
                    _ => format!("\"{value}\" {op} context.input.{field}"),
                }
            }
            Past::Formerly(at, body) => {
                format!(
                    "formerly within {} {}",
                    window(*at, c),
                    body.spelled(c, taken)
                )
            }
            Past::Previous(at, body) => {
                format!(
                    "previous within {} {}",
                    window(*at, c),
                    body.spelled(c, taken)
                )
            }
            Past::Since(left, at, right) => format!(
                "{} since within {} {}",
                left.spelled(c, taken),
                window(*at, c),
                right.spelled(c, taken)
            ),
            Past::Not(body) => format!("!({})", body.spelled(c, taken)),
            Past::All(parts) => {
                let mut parts = c.shuffled(parts.clone());
                if c.pick(5) == 1 {
                    let again = parts[0].clone();
                    parts.push(again);
                }
                let mut parts: Vec<String> =
                    parts.iter().map(|part| part.spelled(c, taken)).collect();
                if parts.len() > 2 && c.pick(2) == 1 {
                    let rest = parts.split_off(1).join(" && ");
                    parts.push(format!("({rest})"));
                }
                parts.join(" && ")
            }
        };
        match c.pick(6) {
            1 => format!("(!(!({plain})))"),
            2 => format!("(({plain}))"),
            _ => format!("({plain})"),
        }
    }
}
