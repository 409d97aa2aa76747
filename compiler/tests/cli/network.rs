//! `dogwood explain --cost` and `--graph`.

use crate::Place;

const SCHEMA: &str = "namespace Depot {\n  entity Clerk;\n  entity Bay;\n  action \"move\", \"weigh\" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { crate: String, kg: Long }, output?: { ok: Bool } } };\n}\n";
const EVENTS: &str = "decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A) }\nevent <A>::response { ...inputs(A), ...outputs(A), callerPrincipal: principalType(A) }\n";

const RULES: &str = r#"@id("open")
permit (principal, action, resource);
@id("weighed")
forbid (principal, action == Depot::Action::"move", resource)
unless temporal { formerly within 1h Depot::Action::"weigh"::response{ input.crate: context.input.crate, output.ok: true } };
@id("fresh")
forbid (principal, action == Depot::Action::"move", resource)
unless temporal { !Depot::Action::"move"::response{ input.crate: context.input.crate } since within 15m Depot::Action::"weigh"::response{ input.crate: context.input.crate, output.ok: true } };
@id("cap")
forbid (principal, action == Depot::Action::"move", resource)
when temporal { (count for (t: Timepoint). where formerly within 1h (Depot::Action::"move"::response{ input.crate: context.input.crate } && tp(t))) >= 60 };
@id("kinds")
forbid (principal, action == Depot::Action::"move", resource)
when temporal { (count for (c: String). where formerly within 1d Depot::Action::"move"::response{ input.crate: c }) >= 9 };
@id("twice")
forbid (principal, action == Depot::Action::"weigh", resource)
when temporal { previous within 10s Depot::Action::"weigh"::response{ output.ok: true } };
@id("again")
forbid (principal, action == Depot::Action::"weigh", resource)
unless temporal { formerly within 1h Depot::Action::"weigh"::response{ input.crate: context.input.crate, output.ok: true } };
@id("nested")
forbid (principal, action == Depot::Action::"weigh", resource)
when temporal { formerly within 1h (Depot::Action::"move"::response{ input.crate: context.input.crate } && formerly within 5m Depot::Action::"weigh"::response{ input.kg: context.input.kg }) };
"#;

fn place(rules: &str) -> Place {
    let place = Place::new();
    place.file("p.dw", rules);
    place.file("a.cedarschema", SCHEMA);
    place.file("e.dwschema", EVENTS);
    place
}

fn explain(place: &Place, more: &[&str]) -> crate::Answer {
    let schemas = [
        "explain",
        "p.dw",
        "--policy-schema",
        "a.cedarschema",
        "--event-schema",
        "e.dwschema",
    ];
    place.run(&[schemas.as_slice(), more].concat())
}

#[test]
fn the_cost_of_every_kind_of_cell() {
    let place = place(RULES);
    let answer = explain(&place, &["--cost"]);
    assert_eq!(answer.status, 0, "{}{}", answer.out, answer.err);
    insta::assert_snapshot!(answer.out);
    let json = explain(&place, &["--cost", "--format", "json"]).json();
    insta::assert_json_snapshot!(json["rules"][1]);
    assert_eq!(json["rules"].as_array().map(Vec::len), Some(8));
}

#[test]
fn a_pinned_history_is_held_once_for_each_key() {
    let place = place(RULES);
    place.file(
        "e.dwschema",
        EVENTS.replace(
            "callerPrincipal: principalType(A)",
            "pin callerPrincipal: principalType(A) = principal",
        ),
    );
    let answer = explain(&place, &["--cost"]);
    let closing = answer.out.lines().last().unwrap_or_default();
    insta::assert_snapshot!(closing);
    place.file("p.dw", "permit (principal, action, resource);");
    insta::assert_snapshot!(explain(&place, &["--cost"]).out);
}

#[test]
fn the_network_is_drawn() {
    let place = place(RULES);
    let answer = explain(&place, &["--graph"]);
    assert_eq!(
        (answer.status, answer.err.as_str()),
        (0, "schema: a.cedarschema, e.dwschema\n")
    );
    insta::assert_snapshot!(answer.out);
    insta::assert_snapshot!(explain(&place, &["--graph", "mermaid"]).out);
}

/// Names that would end a label, a line or a tag.
#[test]
fn hostile_names_stay_names() {
    let rules = r##"@id("\"] --> n0; click n1 \"javascript:x\" %% `#quot;` <script>alert(1)</script> \\ \n end \u{1b}[31m")
forbid (principal, action == Depot::Action::"move", resource)
when temporal { formerly within 1h Depot::Action::"weigh"::response{ input.crate: "a\"]; n9 -> n8 [label=\"b\\ \n<b>\u{1b}[0m" } };
"##;
    let place = place(rules);
    let dot = explain(&place, &["--graph", "dot"]);
    assert_eq!(dot.status, 0, "{}", dot.out);
    insta::assert_snapshot!(dot.out);
    let mermaid = explain(&place, &["--graph", "mermaid"]);
    insta::assert_snapshot!(mermaid.out);
    for out in [dot.out, mermaid.out] {
        assert!(!out.contains('\u{1b}'));
    }
    insta::assert_snapshot!(explain(&place, &["--cost"]).out);
}

#[test]
fn one_question_at_a_time() {
    let place = place(RULES);
    for more in [
        ["--cost", "--graph"].as_slice(),
        &["--cost", "--trace", "t"],
        &["--graph", "--trace", "t"],
    ] {
        assert_eq!(explain(&place, more).status, 2, "{more:?}");
    }
}
