//! Declarations of information providers, and calls of them.

use crate::random::Random;
use crate::world::Ty;

/// What a provider says, and how a condition tests it.
pub struct Provider {
    pub name: &'static str,
    pub takes: &'static [Ty],
    declaration: &'static str,
    /// `{}` is the call.
    pub tests: &'static [&'static str],
}

pub const ALL: [Provider; 9] = [
    Provider {
        name: "Risk::Score",
        takes: &[Ty::Text, Ty::Long],
        declaration: r#""argumentTypes": [{ "paramType": "string" }, { "paramType": "long" }],
      "outputType": { "paramType": "integer" },
      "availableMethods": {
        "above": { "argumentTypes": [{ "paramType": "long" }], "outputType": { "paramType": "bool" }, "inputType": { "paramType": "integer" } },
        "twice": { "outputType": { "paramType": "integer" } }
      },
      "implementation": { "kind": "rhai", "script": "fn evaluate(s, n) { if s == () || n == () { -1 } else { s.len() + n } } fn above(input, n) { input > n } fn twice(input) { input * 2 }" }"#,
        tests: &[
            "{} > 1",
            "{}.above(2)",
            "{}.twice() == 4",
            "{}.twice().above(3)",
            "{} + 1 != 2",
            "{}.above(\"x\")",
        ],
    },
    Provider {
        name: "Risk::Level",
        takes: &[Ty::Long],
        declaration: r#""argumentTypes": [{ "paramType": "long" }],
      "outputType": { "paramType": "entity", "entityType": "Risk::Grade" },
      "availableMethods": { "worse": { "outputType": { "paramType": "entity", "entityType": "Risk::Grade" } } },
      "implementation": { "kind": "rhai", "script": "fn evaluate(n) { if n == () { \"low\" } else if n > 3 { \"none\" } else if n > 1 { \"high\" } else { \"low\" } } fn worse(input) { \"high\" }" }"#,
        tests: &[
            "{} == Risk::Grade::\"high\"",
            "{} != Risk::Grade::\"low\"",
            "{}.worse() == Risk::Grade::\"high\"",
            "[Risk::Grade::\"low\", Risk::Grade::\"high\"].contains({})",
            "{} == Risk::Grade::\"none\"",
        ],
    },
    Provider {
        name: "Risk::Marks",
        takes: &[Ty::Texts],
        declaration: r#""argumentTypes": [{ "paramType": "set", "items": { "paramType": "string" } }],
      "outputType": { "paramType": "set" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(all) { if all == () { [] } else { all.push(\"x\"); all } }" }"#,
        tests: &[
            "{}.contains(\"x\")",
            "{}.isEmpty()",
            "{}.containsAll([\"a\", \"x\"])",
            "{}.containsAny([\"b\", \"q\"])",
        ],
    },
    Provider {
        name: "Risk::Facts",
        takes: &[Ty::Bool],
        declaration: r#""argumentTypes": [{ "paramType": "boolean" }],
      "outputType": { "paramType": "record", "fields": { "n": { "paramType": "long" }, "of": { "paramType": "entity", "entityType": "Risk::Grade" }, "s": { "paramType": "string" } }, "required": ["n"] },
      "implementation": { "kind": "rhai", "script": "fn evaluate(b) { if b == true { #{ n: 1, of: \"low\", s: \"yes\" } } else { #{ n: 0 } } }" }"#,
        tests: &[
            "{}.n == 1",
            "{} has s",
            "{} has of && {}.of == Risk::Grade::\"low\"",
            "{}.s like \"y*\"",
        ],
    },
    Provider {
        name: "Risk::Price",
        takes: &[Ty::Decimal],
        declaration: r#""argumentTypes": [{ "paramType": "decimal" }],
      "outputType": { "paramType": "decimal" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(d) { if d == () { parse_decimal(\"0.5\") } else { d } }" }"#,
        tests: &[
            "{}.lessThan(decimal(\"1.5\"))",
            "{}.greaterThanOrEqual(decimal(\"1.5\"))",
            "{} == decimal(\"1.50\")",
        ],
    },
    Provider {
        name: "Deep::Risk::Found",
        takes: &[Ty::Text],
        declaration: r#""argumentTypes": [{ "paramType": "string" }],
      "outputType": { "paramType": "boolean" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(s) { s != () && (regex_is_match(\"^[ab]$\", s) || regex_count(\"c\", s) > 1 || regex_find(\"q+\", s) == \"q\") }" }"#,
        tests: &["{}", "!{}", "{} == true", "{}.nothing()"],
    },
    Provider {
        name: "Risk::Breaks",
        takes: &[Ty::Long],
        declaration: r#""argumentTypes": [{ "paramType": "long" }],
      "outputType": { "paramType": "long" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(n) { if n == () { 0 } else if n > 2 { throw \"too many\" } else { n } }" }"#,
        tests: &["{} == 1", "{} < 9"],
    },
    Provider {
        name: "Risk::Paint",
        takes: &[Ty::Color],
        declaration: r#""argumentTypes": [{ "paramType": "string" }],
      "outputType": { "paramType": "string" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(c) { if c == () { \"\" } else { `${c}!` } }" }"#,
        tests: &["{} like \"*red*\"", "{} != \"\""],
    },
    Provider {
        name: "Risk::Total",
        takes: &[Ty::Longs],
        declaration: r#""argumentTypes": [{ "paramType": "set", "items": { "paramType": "long" } }],
      "outputType": { "paramType": "long" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(all) { let sum = 0; if all != () { for n in all { sum += n; } } sum }" }"#,
        tests: &["{} >= 1", "{} * 2 == 8"],
    },
];

/// A file with all of them, or with some.
pub fn declarations(random: &mut Random) -> String {
    let some = random.chance(30);
    let declared: Vec<String> = ALL
        .iter()
        .filter(|provider| !some || provider.declaration.contains("Grade") || random.chance(70))
        .map(|provider| format!("    \"{}\": {{ {} }}", provider.name, provider.declaration))
        .collect();
    format!(
        "{{ \"availableProviders\": {{\n{}\n  }},\n  \"entityTypes\": {{ \"Risk::Grade\": {{ \"enum\": [\"low\", \"high\"] }} }} }}\n",
        declared.join(",\n")
    )
}
