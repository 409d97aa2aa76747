//! Definitions, references, highlights, names changed.

use crate::drawing::{drawn, places};
use crate::workspace::{DEPOT, DEPOT_TESTS, PROVIDERS, depot, open, policy};
use dogwood_compiler::grammar::Span;
use dogwood_lsp::builtin;
use dogwood_lsp::feature::{action, definition, diagnostics, highlight, references, rename};
use dogwood_lsp::snapshot::{Place, Snapshot};
use std::path::PathBuf;
use std::sync::Arc;

/// For each cursor its place, and what it leads to.
fn lead(
    (snapshot, cursors): (Snapshot, Vec<usize>),
    ask: impl Fn(&Snapshot, usize) -> Vec<Place>,
) -> String {
    let mut out = String::new();
    for cursor in cursors {
        let from = Place {
            document: Arc::clone(&snapshot.document),
            span: Span::at(cursor),
        };
        let mut all = vec![(from, "cursor".to_owned())];
        all.extend(
            ask(&snapshot, cursor)
                .into_iter()
                .map(|place| (place, "here".to_owned())),
        );
        out.push_str(&places(&all));
        out.push('\n');
    }
    out
}

#[test]
fn definitions_in_a_policy() {
    insta::assert_snapshot!(lead(
        policy(
            r#"def temporal seen(?w, ?e) { formerly within ?‸w ?e };
permit (principal, action == Box::Action::"fs:read", resource)
when temporal { exists (p: String). (se‸en(1h, Box::Action::"fs:read"::request{ input.path: ‸p })) };
"#
        ),
        definition::definition
    ));
}

#[test]
fn definitions_in_a_schema() {
    insta::assert_snapshot!(lead(
        depot(
            r#"permit (principal is Depot::Cl‸erk, action == Depot::Action::"mo‸ve", resource)
when { context.input.cra‸te == "a" }
when temporal { formerly within 1h Depot::Action::"move"::request{ input.k‸g: 1 } };
"#
        ),
        definition::definition
    ));
}

/// Only the line a place is on: what is built in is long.
fn lines_led_to((snapshot, cursors): (Snapshot, Vec<usize>)) -> String {
    let mut out = String::new();
    for cursor in cursors {
        let lines = &snapshot.document.lines;
        let line = lines.line(cursor);
        let mut shown = lines.text(snapshot.text(), line).to_owned();
        shown.insert(cursor - lines.start(snapshot.text(), line), '‸');
        out.push_str(&format!("│ {shown}\n"));
        for place in definition::definition(&snapshot, cursor) {
            let document = &place.document;
            let line = document.lines.line(place.span.start as usize);
            out.push_str(&format!(
                "    {}:{}: {} in `{}`\n",
                document.path.display(),
                line + 1,
                place.span.text(&document.text),
                document.lines.text(&document.text, line).trim()
            ));
        }
    }
    out
}

#[test]
fn what_is_built_in_has_a_definition_too() {
    let boxed = lines_led_to(policy(
        r#"permit (principal is Box::Ag‸ent, action == Box::Action::"fs:r‸ead", resource)
when { context.input.pa‸th == "a" && context.input.operation == Box::FsReadOp‸eration::"exe‸c" }
when temporal { count_wi‸thin(1h, Box::Action::"fs:read"::resp‸onse{ input.path: "a", output.res‸ult: *, caller‸Principal: principal }) > 3 };
"#,
    ));
    let default_events = lines_led_to(depot(
        r#"permit (principal, action, resource)
when temporal { formerly within 1h Depot::Action::"move"::requ‸est{ sessi‸onId: "a" } };
"#,
    ));
    insta::assert_snapshot!(format!("{boxed}\n{default_events}"));
}

/// In the text that an editor shows of what is built in.
#[test]
fn what_is_built_in_leads_further_and_stays_as_it_is() {
    let (snapshot, _) = policy("permit (principal, action, resource);\n");
    for document in [builtin::macros(), builtin::actions(), builtin::box_events()] {
        let there = Snapshot::new(&snapshot.shelf, &document.path).unwrap();
        let found = diagnostics::diagnostics(&there);
        assert_eq!(found.diagnostics, [], "{}", document.path.display());
        let (names, _): (Vec<_>, Vec<_>) = document.marks().iter().partition(|mark| mark.defines);
        for name in names {
            let at = name.span.start as usize;
            let leads = definition::definition(&there, at);
            assert!(
                leads
                    .iter()
                    .all(|place| place.document.path == document.path),
                "{}",
                name.span.text(&document.text)
            );
            assert!(rename::prepare(&there, at).is_err());
            assert!(action::actions(&there, &found, name.span).is_empty());
        }
    }
}

#[test]
fn a_test_leads_to_its_rule_and_files() {
    let tests = DEPOT_TESTS
        .replace("weighed", "wei‸ghed")
        .replace("depot.cedar", "depot.c‸edar");
    insta::assert_snapshot!(lead(
        open(&[
            ("policy.dwtest.toml", &tests),
            (
                "policy.dw",
                "@id(\"weighed\") permit (principal, action, resource);\n"
            ),
            ("depot.cedarschema", DEPOT),
        ]),
        definition::definition
    ));
}

#[test]
fn references_across_documents() {
    let all = |snapshot: &Snapshot, at| references::references(snapshot, at, true);
    insta::assert_snapshot!(lead(
        depot(
            r#"@id("wei‸ghed")
forbid (principal, action == Depot::Action::"mo‸ve", resource)
unless temporal { exists (c: String). (formerly within 1h Depot::Action::"weigh"::request{ input.crate: ‸c } && context.input.crate == c) };
"#
        ),
        all
    ));
}

const GIVEN: &str = r#"policy-schema = "depot.cedarschema"

[[test]]
name = "crates"
events = [{ action = "Depot::move", input = { crate = "a", speed = "fast" }, expect = "deny" }]
"#;

const MOVING: &str = r#"permit (principal, action == Depot::Action::"move", resource)
when { context.input.crate == "a" && principal.nick == "b" }
when temporal { formerly within 1h Depot::Action::"weigh"::request{ input.crate: "c", requestId: "d" } };
"#;

/// From its declaration, from a rule and from a test: the same places.
#[test]
fn references_of_fields() {
    let all = |snapshot: &Snapshot, at| references::references(snapshot, at, true);
    let schema = DEPOT.replace("    crate:", "    cra‸te:");
    let from_schema = open(&[
        ("depot.cedarschema", &schema),
        ("policy.dw", MOVING),
        ("policy.dwtest.toml", GIVEN),
    ]);
    let from_policy = open(&[
        (
            "policy.dw",
            &MOVING.replace("input.crate ==", "input.cra‸te =="),
        ),
        ("depot.cedarschema", DEPOT),
        ("policy.dwtest.toml", GIVEN),
    ]);
    let from_test = open(&[
        ("policy.dwtest.toml", &GIVEN.replace("crate =", "cra‸te =")),
        ("policy.dw", MOVING),
        ("depot.cedarschema", DEPOT),
    ]);
    let found: Vec<Vec<(PathBuf, Span)>> = [&from_schema, &from_policy, &from_test]
        .map(|(snapshot, cursors)| {
            let places = all(snapshot, cursors[0]).into_iter();
            let mut places: Vec<_> = places
                .map(|place| (place.document.path.clone(), place.span))
                .collect();
            places.sort();
            places
        })
        .into();
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    insta::assert_snapshot!(lead(from_schema, all));
}

#[test]
fn definitions_of_fields_of_entities_and_of_what_a_test_gives() {
    let policy = MOVING
        .replace("nick", "ni‸ck")
        .replace("requestId", "reques‸tId");
    let events = "decision event <A>::request { ...inputs(A), requestId: String }\n";
    let test = format!("event-schema = \"e.dwschema\"\n{GIVEN}");
    let from_policy = lead(
        open(&[
            ("policy.dw", &policy),
            ("depot.cedarschema", DEPOT),
            ("e.dwschema", events),
            ("policy.dwtest.toml", &test),
        ]),
        definition::definition,
    );
    let from_test = lead(
        open(&[
            ("policy.dwtest.toml", &GIVEN.replace("speed", "spe‸ed")),
            ("policy.dw", MOVING),
            ("depot.cedarschema", DEPOT),
        ]),
        definition::definition,
    );
    insta::assert_snapshot!(format!("{from_policy}\n{from_test}"));
}

/// A schema knows who uses it, whatever else they are read against.
#[test]
fn references_from_a_schema_beside_an_event_schema() {
    let all = |snapshot: &Snapshot, at| references::references(snapshot, at, true);
    let test = format!("event-schema = \"e.dwschema\"\n{GIVEN}");
    let events = "decision event <A>::requ‸est { ...inputs(A), requestId: String }\n";
    let policy = (
        "policy.dw",
        "permit (principal is Depot::Clerk, action, resource) when temporal { formerly within 1h Depot::Action::\"move\"::request{} };\n",
    );
    let actions = lead(
        open(&[
            (
                "depot.cedarschema",
                "namespace Depot { entity Cle‸rk, Bay; action \"move\" appliesTo { principal: Clerk, resource: Bay, context: {} }; }\n",
            ),
            ("e.dwschema", &events.replace('‸', "")),
            policy,
            ("policy.dwtest.toml", &test),
        ]),
        all,
    );
    let kinds = lead(
        open(&[
            ("e.dwschema", events),
            ("depot.cedarschema", DEPOT),
            policy,
            ("policy.dwtest.toml", &test),
        ]),
        all,
    );
    insta::assert_snapshot!(format!("{actions}\n{kinds}"));
}

/// From the library itself, too.
#[test]
fn references_of_a_macro_of_a_library() {
    let all = |snapshot: &Snapshot, at| references::references(snapshot, at, true);
    insta::assert_snapshot!(lead(
        open(&[
            (
                "lib.dw",
                "def temporal rece‸ntly(?w, ?e) { formerly within ?w ?e };\n"
            ),
            (
                "policy.dw",
                "permit (principal, action, resource) when temporal { recently(1h, Box::Action::\"fs:read\"::response{}) };\n",
            ),
            ("policy.dwtest.toml", "macros = \"lib.dw\"\n"),
            (
                "other.dw",
                "def temporal recently(?w, ?e) { formerly within ?w ?e };\n",
            ),
        ]),
        all
    ));
}

#[test]
fn information_providers() {
    let policy = "permit (principal, action, resource) when { Scan::Cr‸ate(\"a\").level == Scan::Crate(\"b\").level };\n";
    let test = "providers = \"prov‸iders.json\"\n";
    let all = |snapshot: &Snapshot, at| references::references(snapshot, at, true);
    let from_policy = lead(
        open(&[
            ("policy.dw", policy),
            ("providers.json", PROVIDERS),
            ("policy.dwtest.toml", &test.replace('‸', "")),
        ]),
        all,
    );
    let from_test = lines_led_to(open(&[
        ("policy.dwtest.toml", test),
        ("policy.dw", ""),
        ("providers.json", PROVIDERS),
    ]));
    insta::assert_snapshot!(format!("{from_policy}\n{from_test}"));
}

#[test]
fn highlights_in_one_rule() {
    let (snapshot, cursors) = policy(
        r#"permit (principal, action == Box::Action::"fs:read", resource)
when { context.input.pa‸th == "a" || context.input.path == "b" }
when temporal { exists (p: String). (formerly within 1h Box::Action::"fs:read"::request{ input.path: p } && ‸p != "x") };
permit (principal, action == Box::Action::"fs:write", resource) when { context.input.path == "c" };
"#,
    );
    let mut out = String::new();
    for cursor in cursors {
        let notes: Vec<(Span, String)> = highlight::highlights(&snapshot, cursor)
            .into_iter()
            .map(|found| {
                (
                    found.span,
                    if found.writes { "write" } else { "read" }.to_owned(),
                )
            })
            .collect();
        out.push_str(&drawn(snapshot.text(), &notes));
        out.push('\n');
    }
    insta::assert_snapshot!(out);
}

/// Every document after a renaming, or why it is refused.
fn renamed((snapshot, cursors): (Snapshot, Vec<usize>), new: &str) -> String {
    let mut out = String::new();
    for cursor in cursors {
        match rename::prepare(&snapshot, cursor) {
            Ok((_, name)) => out.push_str(&format!("{name} → {new}\n")),
            Err(refusal) => {
                out.push_str(&format!("{refusal}\n"));
                continue;
            }
        }
        match rename::rename(&snapshot, cursor, new) {
            Err(refusal) => out.push_str(&format!("{refusal}\n")),
            Ok(changes) => {
                for (document, edits) in changes {
                    let mut text = document.text.clone();
                    let mut edits = edits.clone();
                    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
                    for edit in edits {
                        text.replace_range(edit.span.range(), &edit.text);
                    }
                    out.push_str(&format!("{}\n", document.path.display()));
                    out.push_str(&drawn(&text, &[]));
                }
            }
        }
    }
    out
}

#[test]
fn renaming_a_variable_a_parameter_and_a_macro() {
    insta::assert_snapshot!(renamed(
        policy(
            r#"def temporal se‸en(?w, ?‸e) { formerly within ?w (?e && tp($‸t)) };
permit (principal, action == Box::Action::"fs:read", resource)
when temporal { exists (p: String). (seen(1h, Box::Action::"fs:read"::request{ input.path: ‸p }) && exists (p: Long). (p == 1)) };
"#
        ),
        "other"
    ));
}

#[test]
fn renaming_a_rule_with_its_tests() {
    insta::assert_snapshot!(renamed(
        depot("@id(\"wei‸ghed\") permit (principal, action, resource);\n"),
        "weighed first"
    ));
}

#[test]
fn what_cannot_be_renamed() {
    let text = r#"permit (principal, action == Box::Action::"fs:r‸ead", resource)
when temporal { exists (p: String). (exists (q: String). (formerly within 1h Box::Action::"fs:read"::request{ input.path: ‸p } && p == q)) && count_wi‸thin(1h, Box::Action::"fs:read"::request{}) > 1 };
"#;
    let mut out = String::new();
    for new in ["q", "1x", "since", "fine"] {
        out.push_str(&renamed(policy(text), new));
    }
    insta::assert_snapshot!(out);
}
