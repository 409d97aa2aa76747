//! What a script may do, and where it is stopped.

use super::*;
use crate::value::EntityUid;

fn eval(text: &str, args: Vec<Value>) -> Result<Value, ScriptError> {
    compile(text)?.run(Base::Evaluate(args), &[])
}

fn says(body: &str) -> String {
    match eval(&format!("fn evaluate() {{ {body} }}"), Vec::new()) {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

fn ok(body: &str) -> Value {
    eval(&format!("fn evaluate() {{ {body} }}"), Vec::new()).unwrap()
}

#[test]
fn values_go_in_and_come_out() {
    let record: Record = [
        (SmolStr::new("n"), Value::Int(-3)),
        (SmolStr::new("d"), Value::Decimal("1.50".into())),
        (
            SmolStr::new("list"),
            Value::Array(vec![true.into(), Value::Null]),
        ),
    ]
    .into();
    let value = Value::Object(record);
    assert_eq!(eval("fn evaluate(v) { v }", vec![value.clone()]), Ok(value));
    let ann = Value::Entity(EntityUid::new("Depot::Clerk", "ann"));
    assert_eq!(
        eval("fn evaluate(v) { type_of(v) + v }", vec![ann]),
        Ok(Value::str("stringDepot::Clerk::\"ann\""))
    );
    assert_eq!(
        eval("fn evaluate(v) { type_of(v) }", vec![Value::Null]),
        Ok(Value::str("()"))
    );
}

#[test]
fn decimals_are_written_as_the_language_writes_them() {
    let written = |body: &str| match ok(body) {
        Value::Decimal(text) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(written("parse_decimal(\"5\")"), "5.0");
    assert_eq!(written("parse_decimal(\"0.90\")"), "0.90");
    assert_eq!(written("parse_decimal(\"1.25000\")"), "1.2500");
    assert_eq!(written("parse_decimal(\"0.12345\")"), "0.12345");
    assert_eq!(
        written("parse_decimal(\"-1.5\") * parse_decimal(\"2\")"),
        "-3.0"
    );
}

#[test]
fn methods_get_the_value_before_them() {
    let script = compile("fn evaluate(n) { n } fn plus(before, n) { before + n }").unwrap();
    let plus = |n: i64| Stage {
        function: "plus",
        args: vec![n.into()],
    };
    let stages = [plus(10), plus(100)];
    assert_eq!(
        script.run(Base::Evaluate(vec![1.into()]), &stages),
        Ok(111.into())
    );
    assert_eq!(script.run(Base::Given(5.into()), &stages), Ok(115.into()));
    assert!(script.has("plus", 2) && !script.has("plus", 1));
    assert_eq!(
        script.run(Base::Evaluate(Vec::new()), &[]),
        Err(ScriptError::NoFunction {
            name: "evaluate".into(),
            takes: 0
        })
    );
}

#[test]
fn patterns_are_looked_for() {
    assert_eq!(ok("regex_is_match(\"^[A-Z]+$\", \"ABC\")"), true.into());
    assert_eq!(ok("regex_find(\"[0-9]+\", \"a12b345\")"), "12".into());
    assert_eq!(ok("regex_find(\"[0-9]+\", \"ab\")"), "".into());
    assert_eq!(ok("regex_count(\"[0-9]\", \"a12b345\")"), 5.into());
    assert_eq!(
        ok("[regex_is_match(\"(\", \"a\"), regex_find(\"(\", \"a\"), regex_count(\"(\", \"a\")]"),
        Value::Array(vec![false.into(), "".into(), 0.into()])
    );
    // Too large when compiled.
    assert_eq!(
        ok("regex_is_match(\"(a{1000}){1000}\", \"a\")"),
        false.into()
    );
}

#[test]
fn more_patterns_than_are_kept() {
    let body = "let n = 0; for i in 0..200 { if regex_is_match(`^${i}$`, `${i}`) { n += 1; } } n";
    assert_eq!(ok(body), 200.into());
}

/// What each script says, a line each.
fn all_say(bodies: &[&str]) -> String {
    let lines = bodies
        .iter()
        .map(|body| format!("{body}\n    {}\n", says(body)));
    lines.collect()
}

#[test]
fn what_runs_forever_is_stopped() {
    insta::assert_snapshot!(all_say(&[
        "loop { }",
        "let x = 0; while x >= 0 { x = (x + 1) % 7; }",
    ]));
    // At the top of the script, too.
    let top = eval("loop { }\nfn evaluate() { 1 }", Vec::new());
    assert!(matches!(top, Err(ScriptError::TooLong)), "{top:?}");
}

#[test]
fn deep_recursion_is_stopped() {
    let deep =
        "fn down(n) { if n == 0 { 0 } else { 1 + down(n - 1) } }\nfn evaluate(n) { down(n) }";
    assert_eq!(eval(deep, vec![40.into()]), Ok(40.into()));
    let said = eval(deep, vec![1_000_000.into()]).unwrap_err();
    insta::assert_snapshot!(said, @"its script calls itself too deeply");
    let said = eval("fn evaluate() { evaluate() }", Vec::new()).unwrap_err();
    assert!(matches!(said, ScriptError::TooDeep), "{said}");
}

/// The deepest calls of the widest expressions do not break the stack.
#[test]
fn the_deepest_script_fits_the_stack() {
    let nested = format!("{}down(n + 1){}", "(1 + ".repeat(12), ")".repeat(12));
    let deep = format!("fn down(n) {{ {nested} }}\nfn evaluate() {{ down(0) }}");
    let said = eval(&deep, Vec::new()).unwrap_err();
    assert!(matches!(said, ScriptError::TooDeep), "{said}");
    // What nests more is no script.
    let wide = format!(
        "fn evaluate() {{ {}1{} }}",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    assert!(matches!(compile(&wide), Err(ScriptError::Syntax { .. })));
}

#[test]
fn large_values_are_stopped() {
    for body in [
        "let s = \"0123456789\"; loop { s += s; }",
        "let a = [1]; loop { a += a; }",
        "let a = [0]; loop { a = [a, a]; }",
        "let m = #{}; for i in 0..5000 { m[`k${i}`] = i; } m",
        "let s = \"x\"; s.pad(100000000, \"y\"); s",
        "let a = []; a.pad(100000000, 1); a",
    ] {
        let said = eval(&format!("fn evaluate() {{ {body} }}"), Vec::new());
        assert!(
            matches!(said, Err(ScriptError::TooLarge)),
            "{body}: {said:?}"
        );
    }
    insta::assert_snapshot!(says("let a = [1]; loop { a += a; }"), @"its script holds a value that is too large");
    let fits = "let s = \"x\"; s.pad(65536, \"y\"); let a = []; a.pad(4096, 1); s.len() + a.len()";
    assert_eq!(ok(fits), (65_536 + 4_096).into());
}

#[test]
fn there_is_no_way_out() {
    let ways = [
        "eval(\"1 + 1\")",
        "let e = Fn(\"eval\"); e.call(\"1 + 1\")",
        "import \"other\" as o; o::f()",
        "sleep(1)",
        "sleep(0.1)",
        "timestamp()",
        "open_file(\"/etc/passwd\")",
        "http_get(\"http://localhost/\")",
        "rand()",
    ];
    for body in ways {
        let said = eval(&format!("fn evaluate() {{ {body} }}"), Vec::new());
        assert!(said.is_err(), "{body}: {said:?}");
    }
    insta::assert_snapshot!(all_say(&ways));
}

#[test]
fn runs_share_nothing() {
    let script = compile("let seen = 0;\nfn evaluate() { seen }").unwrap();
    assert!(script.run(Base::Evaluate(Vec::new()), &[]).is_err());
    let counting = compile("fn evaluate(n) { n += 1; n }").unwrap();
    for _ in 0..2 {
        assert_eq!(
            counting.run(Base::Evaluate(vec![1.into()]), &[]),
            Ok(2.into())
        );
    }
}

#[test]
fn what_is_no_value_is_said() {
    insta::assert_snapshot!(all_say(&[
        "1.5",
        "'c'",
        "|x| x",
        "[1, 2.5]",
        "throw \"no\"",
        "let x = 1;\nx + y",
    ]));
}
