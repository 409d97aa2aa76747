//! What the generated cases reach. A feature that no accepted case has was not tested at all.

use std::collections::BTreeMap;

/// The texts of one case.
pub struct Case<'a> {
    pub policy: &'a str,
    pub schema: &'a str,
    pub events: &'a str,
    pub trace: &'a str,
    /// Whether some decision could not be evaluated in full.
    pub failed: bool,
}

/// How many cases have each feature.
pub type Counts = BTreeMap<&'static str, usize>;

type Test = fn(&Case) -> bool;

const FEATURES: &[(&str, Test)] = &[
    // Cedar
    ("decimal methods", |c| {
        has(
            c.policy,
            &[
                ".lessThan(",
                ".lessThanOrEqual(",
                ".greaterThan(",
                ".greaterThanOrEqual(",
            ],
        )
    }),
    ("datetime literals", |c| has(c.policy, &["datetime("])),
    ("datetime attributes", |c| reads(c, ": datetime")),
    ("datetime methods", |c| {
        has(
            c.policy,
            &[".offset(", ".durationSince(", ".toDate()", ".toTime()"],
        )
    }),
    ("duration literals", |c| has(c.policy, &["duration("])),
    ("duration attributes", |c| reads(c, ": duration")),
    ("duration methods", |c| {
        has(
            c.policy,
            &[
                ".toMilliseconds()",
                ".toSeconds()",
                ".toMinutes()",
                ".toHours()",
                ".toDays()",
            ],
        )
    }),
    ("ip literals", |c| has(c.policy, &["ip(\""])),
    ("ip attributes", |c| reads(c, ": ipaddr")),
    ("ip methods", |c| {
        has(
            c.policy,
            &[
                ".isIpv4()",
                ".isIpv6()",
                ".isLoopback()",
                ".isMulticast()",
                ".isInRange(",
            ],
        )
    }),
    ("sets", |c| {
        has(
            c.policy,
            &[".contains(", ".containsAll(", ".containsAny(", ".isEmpty()"],
        )
    }),
    ("records", |c| has(c.policy, &["{a: ", "{who: "])),
    ("has chains", |c| {
        has(c.policy, &["has deep.", "has dims.h", "has a.b"])
    }),
    ("missing optional groups", |c| {
        c.schema.contains("deep?") && !c.trace.contains("deep")
    }),
    ("is in", |c| has(c.policy, &["::Clerk in "])),
    ("hierarchies", |c| {
        has(c.policy, &["::Crew::\"c2\""]) && has(c.trace, &["in ["])
    }),
    ("action groups", |c| {
        has(c.policy, &["::\"Any\"", "::\"All\""])
    }),
    ("tags", |c| {
        has(c.policy, &[".hasTag("]) && has(c.policy, &[".getTag("])
    }),
    ("enumerated entities", |c| has(c.policy, &["::Color::"])),
    ("common types", |c| has(c.schema, &["type In"])),
    ("if", |c| has(c.policy, &["if "])),
    ("like", |c| has(c.policy, &[" like "])),
    // information providers
    ("providers", |c| has(c.policy, &["Risk::"])),
    ("provider methods", |c| {
        has(c.policy, &[").above(", ").twice()", ").worse()"])
    }),
    ("provider enums", |c| has(c.policy, &["Risk::Grade::"])),
    ("provider sets", |c| has(c.policy, &["Risk::Marks("])),
    ("provider records", |c| has(c.policy, &["Risk::Facts("])),
    ("provider decimals", |c| has(c.policy, &["Risk::Price("])),
    ("provider patterns", |c| has(c.policy, &["Risk::Found("])),
    ("provider failures", |c| {
        c.failed && has(c.policy, &["Risk::Breaks("])
    }),
    // macros
    ("cedar macros", |c| {
        called(c.policy, &["between(", "outside("])
    }),
    ("condition macros", |c| {
        called(c.policy, &["seen(", "strictly(", "often("])
    }),
    ("value macros", |c| called(c.policy, &["times("])),
    ("library macros", |c| {
        has(c.policy, &["count_within("])
            || has(c.policy, &["sum_within(", "count_distinct_within("])
    }),
    ("bind", |c| has(c.policy, &["bind("])),
    // temporal blocks
    ("formerly", |c| has(c.policy, &["formerly within"])),
    ("previous", |c| has(c.policy, &["previous within"])),
    ("since", |c| has(c.policy, &["since within"])),
    ("three deep", |c| deep(c.policy) >= 3),
    ("joins", |c| has(c.policy, &["exists ("])),
    ("count", |c| has(c.policy, &["(count for"])),
    ("sum", |c| has(c.policy, &["(sum "])),
    ("correlated aggregates", |c| correlated(c.policy)),
    ("blocks among conditions", |c| {
        has(c.policy, &["|| temporal", "|| !temporal", "&& temporal"])
    }),
    // events
    ("pins", |c| has(c.events, &["pin "])),
    ("principal partitions", |c| {
        c.events.matches("= principal").count() == 3
    }),
    ("session partitions", |c| {
        has(c.events, &["= context.sessionId"])
    }),
    ("resource partitions", |c| has(c.events, &["= resource"])),
    ("custom kinds", |c| {
        has(c.policy, &["::attempt{", "::outcome{"])
    }),
    ("max_window", |c| has(c.events, &["max_window"])),
    ("equal stamps", |c| {
        c.times().windows(2).any(|pair| pair[0] == pair[1])
    }),
    ("late stamps", |c| !c.times().is_sorted()),
    ("missing optional fields", |c| {
        c.schema.contains("f0?:") && c.trace.lines().any(|line| !line.contains("f0:"))
    }),
    ("null values", |c| has(c.trace, &["null"])),
    ("no scope", |c| {
        c.trace
            .lines()
            .any(|line| line.contains("request_context") && !line.contains("scope("))
    }),
    ("failed evaluations", |c| c.failed),
];

impl Case<'_> {
    fn times(&self) -> Vec<i64> {
        self.trace.lines().filter_map(time_of).collect()
    }
}

/// The time of a line of a trace.
pub fn time_of(line: &str) -> Option<i64> {
    line.strip_prefix('@')?.split(' ').next()?.parse().ok()
}

/// Counts what a case reaches.
pub fn count(case: &Case, counts: &mut Counts) {
    for (name, test) in FEATURES {
        *counts.entry(name).or_default() += usize::from(test(case));
    }
}

/// Features that no case reached.
pub fn unreached(counts: &Counts) -> Vec<&'static str> {
    let names = FEATURES.iter().map(|(name, _)| *name);
    names
        .filter(|name| counts.get(name).is_none_or(|n| *n == 0))
        .collect()
}

fn has(text: &str, any: &[&str]) -> bool {
    any.iter().any(|part| text.contains(part))
}

/// Called, not only defined.
fn called(policy: &str, any: &[&str]) -> bool {
    let rules = policy.lines().filter(|line| !line.starts_with("def "));
    rules.into_iter().any(|line| has(line, any))
}

/// Whether a guard reads an input of this type.
fn reads(case: &Case, ty: &str) -> bool {
    let declared = case.schema.split([',', '{', '}', ';']).filter_map(|field| {
        let field = field.trim();
        field
            .strip_suffix(ty)
            .map(|name| name.trim_end_matches('?'))
    });
    let mut guards = case.policy.lines().filter(|line| line.contains("context."));
    let declared: Vec<&str> = declared.collect();
    guards.any(|line| {
        declared
            .iter()
            .any(|name| line.contains(&format!(".{name}")))
    })
}

/// How many temporal operators stand within each other.
fn deep(policy: &str) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let (mut parens, mut deepest) = (0usize, 0);
    for (at, c) in policy.char_indices() {
        match c {
            '(' => parens += 1,
            ')' => {
                parens = parens.saturating_sub(1);
                open.retain(|within| *within <= parens);
            }
            'f' | 'p' | 's'
                if ["formerly within", "previous within", "since within"]
                    .iter()
                    .any(|word| policy.get(at..).is_some_and(|rest| rest.starts_with(word))) =>
            {
                open.retain(|within| *within < parens);
                open.push(parens);
                deepest = deepest.max(open.len());
            }
            '\n' => open.clear(),
            _ => {}
        }
    }
    deepest
}

/// An aggregate that reads a variable bound around it.
fn correlated(policy: &str) -> bool {
    policy.split("(exists (").skip(1).any(|rest| {
        let name = rest.split(':').next().unwrap_or_default();
        let inside = ["(count for", "(sum "]
            .iter()
            .filter_map(|word| rest.find(word))
            .min();
        let body = inside.and_then(|at| rest.get(at..)).unwrap_or_default();
        let body = body.lines().next().unwrap_or_default();
        body.contains(&format!(": {name} ")) || body.contains(&format!(": {name},"))
    })
}
