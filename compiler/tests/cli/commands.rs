//! The commands beside check, explain and replay: fmt, lower and schema.

use crate::Place;

const SCHEMA: &str = "namespace Depot {\n  entity Clerk;\n  entity Bay;\n  action \"move\" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { kg: Long } } };\n}\n";
const TEMPORAL: &str = "permit(principal, action == Depot::Action::\"move\", resource)\nwhen { context.input.kg < 10 }\nunless temporal { formerly within 1h Depot::Action::\"move\"::request{ input.kg: 3 } };\n";

#[test]
fn fmt_prints_the_layout() {
    let place = Place::new();
    place.file("p.dw", "permit(principal,action,resource);");
    let laid = "permit (principal, action, resource);\n";
    for name in ["fmt", "format"] {
        let answer = place.run(&[name, "p.dw"]);
        assert_eq!(
            (answer.status, answer.out.as_str(), answer.err.as_str()),
            (0, laid, "")
        );
    }
    let answer = place.run_with(&["fmt", "-"], "permit(principal,action,resource);");
    assert_eq!((answer.status, answer.out.as_str()), (0, laid));
}

#[test]
fn fmt_checks_and_writes() {
    let place = Place::new();
    let path = place.file("p.dw", "permit(principal,action,resource);");
    let answer = place.run(&["fmt", "--check", "p.dw"]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert_eq!(answer.err, "p.dw: not laid out\n");
    let answer = place.run(&["fmt", "--write", "p.dw"]);
    assert_eq!(
        (answer.status, answer.err.as_str()),
        (0, "1 file changed\n")
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "permit (principal, action, resource);\n");
    assert_eq!(place.run(&["fmt", "--check", "p.dw"]).status, 0);
    let files = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the file");
}

#[test]
fn fmt_of_a_file_with_errors_prints_and_writes_nothing() {
    let place = Place::new();
    place.file("good.dw", "permit(principal,action,resource);");
    place.file("bad.dw", "permit(principal, action resource);");
    for arg in ["--write", "--check"] {
        let answer = place.run(&["fmt", arg, "good.dw", "bad.dw"]);
        assert_eq!((answer.status, answer.out.as_str()), (2, ""));
        assert!(answer.err.contains("bad.dw:1:"), "{}", answer.err);
    }
    let good = std::fs::read_to_string(place.path().join("good.dw")).unwrap();
    assert_eq!(good, "permit(principal,action,resource);");
    assert_eq!(place.run(&["fmt", "none.dw"]).status, 1);
}

#[test]
fn fmt_lays_out_schemas_by_their_endings() {
    let place = Place::new();
    let loose = "entity A{a:Long};// a\n";
    let laid = "entity A { a: Long }; // a\n";
    place.file("a.cedarschema", loose);
    place.file("e.dwschema", "event<A>::request{...inputs(A)}");
    let answer = place.run(&["fmt", "--check", "a.cedarschema", "e.dwschema"]);
    assert_eq!(
        (answer.status, answer.err.as_str()),
        (2, "a.cedarschema: not laid out\ne.dwschema: not laid out\n")
    );
    assert_eq!(
        place
            .run(&["fmt", "--write", "a.cedarschema", "e.dwschema"])
            .err,
        "2 files changed\n"
    );
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(read("a.cedarschema"), laid);
    assert_eq!(
        read("e.dwschema"),
        "event <A>::request {\n  ...inputs(A)\n}\n"
    );
    let answer = place.run_with(&["fmt", "--language", "cedarschema", "-"], loose);
    assert_eq!((answer.status, answer.out.as_str()), (0, laid));
}

#[test]
fn fmt_leaves_a_broken_schema_and_other_files_alone() {
    let place = Place::new();
    let path = place.file("a.cedarschema", "entity A { a Long };");
    let answer = place.run(&["fmt", "--write", "a.cedarschema"]);
    assert_eq!(answer.status, 2);
    assert!(answer.err.contains("a.cedarschema:1:14"), "{}", answer.err);
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text, "entity A { a Long };");
    place.file("box.toml", "name='x'\n");
    let answer = place.run(&["fmt", "--write", "box.toml"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.err, @"dogwood: error: box.toml cannot be laid out: only policies (.dw), action schemas (.cedarschema), event schemas (.dwschema) and test files (.dwtest.toml) can");
}

#[test]
fn fmt_lays_test_files_out() {
    let place = Place::new();
    let path = place.file("a.dwtest.toml", "[[test]]\nname='x' # why\n\n");
    assert_eq!(place.run(&["fmt", "--check", "a.dwtest.toml"]).status, 2);
    assert_eq!(place.run(&["fmt", "--write", "a.dwtest.toml"]).status, 0);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "[[test]]\nname = 'x' # why\n");
    assert_eq!(place.run(&["fmt", "--check", "a.dwtest.toml"]).status, 0);
    let piped = place.run_with(&["fmt", "--language", "dwtest", "-"], "a=1");
    assert_eq!((piped.status, piped.out.as_str()), (0, "a = 1\n"));
    place.file("a.dwtest.toml", "[[test]\n");
    let broken = place.run(&["fmt", "--write", "a.dwtest.toml"]);
    assert_eq!(broken.status, 2);
    assert!(broken.err.contains("a.dwtest.toml:1:"), "{}", broken.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[[test]\n");
}

#[test]
fn lower_prints_policies_and_schema() {
    let place = Place::new();
    place.file("p.dw", TEMPORAL);
    place.file("d.cedarschema", SCHEMA);
    let answer = place.run(&["lower", "p.dw", "--policy-schema", "d.cedarschema"]);
    assert_eq!(answer.status, 0);
    insta::assert_snapshot!(answer.out, @r#"
    // Policies

    permit(principal, action == Depot::Action::"move", resource)
    when { context.input.kg < 10 }
    unless { context.policy_0__temporal_0 };

    // Schema

    namespace Depot {
      entity Bay;
      entity Clerk;
      action "move" appliesTo {
        principal: [Depot::Clerk],
        resource: [Depot::Bay],
        context: { input: { kg: Long }, policy_0__temporal_0: Bool }
      };
    }
    "#);
    insta::assert_snapshot!(answer.err, @"
    schema: d.cedarschema
    note: Cedar alone cannot decide these policies: it reads 1 temporal block from the context
    ");
}

#[test]
fn lower_prints_what_is_asked_for() {
    let place = Place::new();
    place.file("p.dw", TEMPORAL);
    place.file("d.cedarschema", SCHEMA);
    let run = |emit: &str, format: &str| {
        place.run(&[
            "lower",
            "p.dw",
            "--policy-schema",
            "d.cedarschema",
            "--emit",
            emit,
            "--format",
            format,
        ])
    };
    assert!(
        run("cedar-policies", "human")
            .out
            .starts_with("permit(principal")
    );
    assert!(
        run("cedar-schema", "human")
            .out
            .starts_with("namespace Depot {")
    );
    let json: serde_json::Value = serde_json::from_str(&run("cedar-json", "human").out).unwrap();
    let context = &json["Depot"]["actions"]["move"]["appliesTo"]["context"]["attributes"];
    assert_eq!(context["policy_0__temporal_0"]["name"], "Bool");
    let answer = run("both", "json").json();
    assert_eq!(answer["self_contained"], false);
    assert_eq!(answer["decision_kinds"], serde_json::json!(["request"]));
    assert_eq!(
        answer["temporal_fields"],
        serde_json::json!(["policy_0__temporal_0"])
    );
    assert_eq!(answer["temporal_blocks"][0]["name"], "policy_0__temporal_0");
    assert_eq!(
        answer["temporal_blocks"][0]["actions"][0],
        "Depot::Action::\"move\""
    );
    assert_eq!(answer["provider_fields"], serde_json::json!([]));
    assert!(answer["cedar_policies"].is_string() && answer["cedar_schema"].is_string());
}

#[test]
fn lower_needs_no_note_where_nothing_was_hoisted() {
    let place = Place::new();
    place.file(
        "p.dw",
        "forbid(action, principal) when { !!!!!true == true };",
    );
    let answer = place.run(&[
        "lower",
        "p.dw",
        "--emit",
        "cedar-policies",
        "--format",
        "json",
    ]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    assert_eq!(answer.json()["self_contained"], true);
    assert_eq!(
        answer.json()["cedar_policies"],
        "forbid(principal, action, resource)\nwhen { !(!(!(!(!true)))) == true };\n"
    );
}

#[test]
fn lower_refuses_a_name_that_is_taken() {
    let place = Place::new();
    place.file("p.dw", TEMPORAL);
    let clash = SCHEMA.replace("input:", "policy_0__temporal_0?: Long, input:");
    place.file("d.cedarschema", clash);
    let answer = place.run(&["lower", "p.dw", "--policy-schema", "d.cedarschema"]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    insta::assert_snapshot!(answer.err, @r#"
    schema: d.cedarschema
    error[hoisted-name]: in Cedar this becomes `context.policy_0__temporal_0`, which the context of `move` declares itself
      ┌─ p.dw:3:8
      │
    3 │ unless temporal { formerly within 1h Depot::Action::"move"::request{ input.kg: 3 } };
      │        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      │
      = help: rename that attribute of the schema

    FAILED: 1 error, 0 warnings
    "#);
}

#[test]
fn schemas_are_checked_by_themselves() {
    let place = Place::new();
    place.file("d.cedarschema", SCHEMA);
    place.file(
        "d.json",
        r#"{ "": { "entityTypes": { "A": {} }, "actions": {} } }"#,
    );
    place.file("e.dwschema", "event <A>::request { x: Long }\n");
    place.file(
        "p.json",
        r#"{ "availableProviders": { "N::F": { "outputType": { "paramType": "string" } } } }"#,
    );
    for (kind, file) in [
        ("action", "d.cedarschema"),
        ("action", "d.json"),
        ("event", "e.dwschema"),
        ("providers", "p.json"),
    ] {
        let answer = place.run(&["schema", kind, file]);
        assert_eq!((answer.status, answer.out), (0, format!("OK: {file}\n")));
        let answer = place.run(&["schema", kind, file, "--format", "json"]);
        assert_eq!(
            answer.json(),
            serde_json::json!({ "kind": kind, "ok": true })
        );
    }
    place.file(
        "bad.json",
        r#"{ "": { "entityTypes": { "A": 3 }, "actions": {} } }"#,
    );
    let answer = place.run(&["schema", "action", "bad.json", "--format", "json"]);
    assert_eq!(answer.status, 2);
    assert_eq!(answer.json()["ok"], false);
    assert_eq!(answer.json()["errors"][0]["code"], "json-shape");
}

#[test]
fn a_json_schema_serves_as_policy_schema() {
    let place = Place::new();
    place.file("p.dw", TEMPORAL);
    place.file("d.cedarschema", SCHEMA);
    let json = place.run(&[
        "lower",
        "p.dw",
        "--policy-schema",
        "d.cedarschema",
        "--emit",
        "cedar-json",
    ]);
    let json = json.out.replace("policy_0__temporal_0", "other");
    place.file("d.json", json);
    let answer = place.run(&["validate", "p.dw", "--policy-schema", "d.json"]);
    assert_eq!((answer.status, answer.out.as_str()), (0, "OK: 1 rule\n"));
}

#[test]
fn a_schema_is_made_of_tools() {
    let place = Place::new();
    place.file("tools.json", r#"[{ "name": "ping", "inputSchema": { "type": "object", "properties": { "host": { "type": "string" } } } }]"#);
    let answer = place.run(&[
        "schema",
        "mcp",
        "--manifest",
        "tools.json",
        "-o",
        "t.cedarschema",
    ]);
    assert_eq!((answer.status, answer.out.as_str()), (0, ""));
    assert_eq!(answer.err, "wrote t.cedarschema\n");
    let printed = place.run(&["schema", "mcp", "--manifest", "tools.json"]);
    let written = std::fs::read_to_string(place.path().join("t.cedarschema")).unwrap();
    assert_eq!(printed.out, written);
    place.file("p.dw", "permit(principal, action == Drupe::Action::\"ping\", resource)\nwhen { context.input has host && context.input.host like \"*.local\" };\n");
    let answer = place.run(&["check", "p.dw", "--policy-schema", "t.cedarschema"]);
    assert_eq!((answer.status, answer.out.as_str()), (0, "OK: 1 rule\n"));
    let answer = place.run_with(&["schema", "mcp", "--manifest", "-"], "{}");
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert!(answer.err.contains("manifest-tools"), "{}", answer.err);
}

#[test]
fn lower_keeps_annotations() {
    let place = Place::new();
    place.file("p.dw", "@id(\"light\")\n@why(\"a \\\"b\\\"\")\n@bare\npermit (principal, action, resource) when temporal { formerly within 1h Depot::Action::\"move\"::request{} };\n");
    place.file("d.cedarschema", "@doc(\"yard\")\nnamespace Depot {\n  type In = { @unit(\"kg\") kg: Long };\n  @doc(\"who\") entity Clerk = { @pii home: { @pii street: String } };\n  entity Bay;\n  @doc(\"lift\") action \"move\" appliesTo { principal: [Clerk], resource: [Bay], context: { @doc(\"what\") input: In } };\n}\n");
    let answer = place.run(&["lower", "p.dw", "--policy-schema", "d.cedarschema"]);
    assert_eq!(answer.status, 0);
    insta::assert_snapshot!(answer.out);
    let json = place.run(&[
        "lower",
        "p.dw",
        "--policy-schema",
        "d.cedarschema",
        "--emit",
        "cedar-json",
    ]);
    let json = json.json();
    assert_eq!(
        json["Depot"]["annotations"],
        serde_json::json!({ "doc": "yard" })
    );
    let move_ = &json["Depot"]["actions"]["move"];
    assert_eq!(move_["annotations"]["doc"], "lift");
    let context = &move_["appliesTo"]["context"]["attributes"];
    assert_eq!(context["input"]["annotations"]["doc"], "what");
    let home = &json["Depot"]["entityTypes"]["Clerk"]["shape"]["attributes"]["home"];
    assert_eq!(home["annotations"]["pii"], "");
    assert_eq!(home["attributes"]["street"]["annotations"]["pii"], "");
}

#[test]
fn arithmetic_in_temporal_blocks_is_an_experiment() {
    let place = Place::new();
    place.file("p.dw", "permit (principal, action == Depot::Action::\"move\", resource)\nwhen temporal { exists (k: Long). (Depot::Action::\"move\"::request{ input.kg: k } && k * 2 + 1 > 5) };\n");
    place.file("d.cedarschema", SCHEMA);
    let line = |at: u32, kg: u32| {
        format!(
            "@{at} scope(principal: Depot::Clerk::\"a\", resource: Depot::Bay::\"b\") request_context(input: {{ kg: {kg} }}) Depot::Action::\"move\"::request(input: {{ kg: {kg} }}, callerPrincipal: Depot::Clerk::\"a\")\n"
        )
    };
    place.file("t.log", line(1, 2) + &line(2, 3));
    let schema = ["--policy-schema", "d.cedarschema"];
    let trace = ["--trace", "t.log"];
    let commands: [(&str, Vec<&str>); 6] = [
        ("check", schema.to_vec()),
        ("validate", schema.to_vec()),
        ("check-parse", Vec::new()),
        ("lower", schema.to_vec()),
        ("explain", schema.to_vec()),
        ("replay", [schema, trace].concat()),
    ];
    for (command, more) in commands {
        let off = [&[command, "p.dw"], more.as_slice()].concat();
        let answer = place.run(&off);
        assert_eq!(answer.status, 2, "{command}");
        let said = answer.out + &answer.err;
        assert!(said.contains("[arithmetic-off]"), "{said}");
        let on = [off.as_slice(), &["--experimental-arithmetic"]].concat();
        let answer = place.run(&on);
        assert_eq!(answer.status, 0, "{command}: {}", answer.out);
    }
    let on = [
        "check",
        "p.dw",
        schema[0],
        schema[1],
        "--experimental-arithmetic",
    ];
    let answer = place.run(&on);
    assert!(
        answer.out.contains("warning[experimental-arithmetic]"),
        "{}",
        answer.out
    );
    let replayed = [
        &["replay", "p.dw", "--experimental-arithmetic"],
        &schema[..],
        &trace[..],
    ]
    .concat();
    let answer = place.run(&replayed);
    assert_eq!(
        answer.out,
        "@1 (time point 0): DENY\n@2 (time point 1): ALLOW  [rules: 0]\n"
    );
}
