//! Diagnostics, hover, hints, colours, outline, folds.

use crate::drawing::drawn;
use crate::workspace::{DEPOT, depot, open, policy};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Severity;
use dogwood_lsp::feature::{
    definition, diagnostics, folding, hover, inlay, selection, symbols, tokens,
};
use dogwood_lsp::snapshot::Snapshot;

fn messages(snapshot: &Snapshot) -> String {
    let findings = diagnostics::diagnostics(snapshot);
    let mut notes = Vec::new();
    for found in &findings.diagnostics {
        let severity = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut note = format!("{severity}[{}]: {}", found.code, found.message);
        if !found.label.is_empty() {
            note.push_str(&format!("\n{}", found.label));
        }
        if let Some(tag) = diagnostics::tag(found.code) {
            note.push_str(&format!("\ntag: {tag:?}"));
        }
        if let Some(help) = &found.help {
            note.push_str(&format!("\nhelp: {help}"));
        }
        if let Some(fix) = &found.fix {
            note.push_str(&format!("\nfix: {}", fix.title));
        }
        notes.push((found.span, note));
        for label in &found.labels {
            let path = &findings.sources[usize::from(label.source.0)];
            if *path == snapshot.document.path {
                notes.push((label.span, format!("({}) {}", found.code, label.text)));
            }
        }
    }
    drawn(snapshot.text(), &notes)
}

#[test]
fn diagnostics_of_a_policy() {
    let (snapshot, _) = policy(
        r#"@id("a")
permit (principal, action == Box::Action::"shell:spwan", resource);
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.pth == "x" && 1 > "a" };
permit (principal, action == Box::Action::"mcp:call", resource)
when temporal { count_within(1h, Box::Action::"mcp:call"::request{}) < 60 };
"#,
    );
    insta::assert_snapshot!(messages(&snapshot));
}

#[test]
fn lints_are_warnings_with_tags() {
    let (snapshot, _) = policy(
        r#"@id("any")
permit (principal, action == Box::Action::"fs:read", resource);
@id("some")
permit (principal, action == Box::Action::"fs:read", resource)
when { context.input.path like "/tmp/*" };
@id("never")
forbid (principal, action == Box::Action::"fs:write", resource);
"#,
    );
    insta::assert_snapshot!(messages(&snapshot));
}

#[test]
fn a_broken_rule_leaves_the_others() {
    let (snapshot, cursors) = policy(
        r#"permit (principal, action == Box::Action::"fs:read", resource)
when { context.input.path == };

@id("whole")
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.pa‸th like "*.key" };
"#,
    );
    let told = hover::hover(&snapshot, cursors[0]).unwrap();
    insta::assert_snapshot!(format!("{}\n{}", messages(&snapshot), told.text));
}

#[test]
fn diagnostics_of_schemas_and_tests() {
    let (actions, _) = open(&[(
        "depot.cedarschema",
        "entity Clerk in [Crw];\nentity Crew;\n",
    )]);
    let (events, _) = open(&[
        (
            "depot.dwschema",
            "decision event <A>::request { ...input(A), pin x: Long = foo }\n",
        ),
        ("depot.cedarschema", DEPOT),
    ]);
    let (tests, _) = open(&[
        (
            "policy.dwtest.toml",
            "[[test]]\nname = \"a\"\nevents = [\n  { action = \"fs:red\", expect = \"allow\", by = \"files\" },\n  { command = \"git push\", expct = \"deny\" },\n  { command = \"git push\", expect = \"deny\", by = \"fils\" },\n]\n",
        ),
        (
            "policy.dw",
            "@id(\"files\") permit (principal, action == Box::Action::\"fs:read\", resource);\n",
        ),
    ]);
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}",
        messages(&actions),
        messages(&events),
        messages(&tests)
    ));
}

/// A rule that is not checked looks right: the policy says why it is not, and the tests what they lack.
#[test]
fn schemas_that_cannot_be_read() {
    let test = "policy-schema = \"depot.cedarschema\"\nevent-schema = \"depot.dwschema\"\n";
    let files = |actions, events| {
        [
            (
                "policy.dw",
                "permit (principal, action, resource) when { true };\n",
            ),
            ("depot.cedarschema", actions),
            ("depot.dwschema", events),
            ("policy.dwtest.toml", test),
        ]
    };
    let events = "decision event <A>::request { ...inputs(A) }\n";
    let (actions, _) = open(&files("entity Clerk in [Crw];\n", events));
    let (kinds, _) = open(&files(DEPOT, "event <A>::request { ...inputs(A) "));
    let (none, _) = open(&[
        ("policy.dwtest.toml", test),
        ("policy.dw", ""),
        ("depot.cedarschema", DEPOT),
    ]);
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}",
        messages(&actions),
        messages(&kinds),
        messages(&none)
    ));
}

/// A schema in Cedar's JSON syntax is a schema like others.
#[test]
fn a_schema_in_json() {
    let schema = r#"{
  "Depot": {
    "entityTypes": { "Clerk": {}, "Bay": {} },
    "actions": {
      "move": {
        "appliesTo": {
          "principalTypes": ["Clerk"],
          "resourceTypes": ["Bay"],
          "context": { "type": "Record", "attributes": { "kg": { "type": "Long" } } }
        }
      }
    }
  }
}
"#;
    let (snapshot, cursors) = open(&[
        (
            "policy.dw",
            "permit (principal is Depot::Cl‸erk, action == Depot::Action::\"mo‸ve\", resource) when { context.k‸g > 3 && context.gk > 3 };\n",
        ),
        ("schema.json", schema),
        ("policy.dwtest.toml", "policy-schema = \"schema.json\"\n"),
    ]);
    let mut out = messages(&snapshot);
    for cursor in cursors {
        for place in definition::definition(&snapshot, cursor) {
            let lines = &place.document.lines;
            let line = lines.line(place.span.start as usize);
            out.push_str(&format!(
                "{}:{}: {}\n",
                place.document.path.display(),
                line + 1,
                place.span.text(&place.document.text)
            ));
        }
    }
    insta::assert_snapshot!(out);
}

/// Every hover at a cursor, one after the other.
fn hovers((snapshot, cursors): (Snapshot, Vec<usize>)) -> String {
    let text = snapshot.text();
    let mut out = String::new();
    for cursor in cursors {
        let told = hover::hover(&snapshot, cursor);
        let line = snapshot.document.lines.line(cursor);
        let start = snapshot.document.lines.start(text, line);
        let shown = snapshot.document.lines.text(text, line);
        out.push_str(&format!("│ {shown}\n"));
        let Some(told) = told else {
            out.push_str(&format!("  {}^ nothing\n\n", " ".repeat(cursor - start)));
            continue;
        };
        let from = (told.span.start as usize).saturating_sub(start);
        let length = (told.span.end - told.span.start) as usize;
        out.push_str(&format!("  {}{}\n", " ".repeat(from), "~".repeat(length)));
        for line in told.text.lines() {
            out.push_str(format!("    {line}").trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

#[test]
fn hover_on_a_rule_of_a_box() {
    insta::assert_snapshot!(hovers(policy(
        r#"@i‸d("push_‸gate")
@description("Run the tests, then push.")
@allow("self-‸match")
for‸bid (prin‸cipal, action == Box::Action::"shell:s‸pawn", resource)
w‸hen { con‸text.inp‸ut.arg1 l‸ike "push" && context.input h‸as ar‸g1 }
unless tem‸poral {
  !Box::Action::"fs:write"::respon‸se{ output.res‸ult: Box::FsResponseRes‸ult::"comple‸ted" }
  sin‸ce wit‸hin 1‸5m
  Box::Action::"shell:spawn"::response{ input.program: "run-tests", output.sta‸tus: 0 }
};
"#
    )));
}

#[test]
fn hover_on_temporal_operators() {
    insta::assert_snapshot!(hovers(policy(
        r#"permit (principal, action i‸n [Box::Action::"mcp:call"], resource)
when temporal {
  exis‸ts (‸s: Str‸ing). (pre‸vious within 1m Box::Action::"mcp:call"::request{ input.server: ‸s } &‸& context.input.server !‸= ‸s) &&
  (co‸unt fo‸r (t: Time‸point). whe‸re (for‸merly within 1h (Box::Action::"mcp:call"::requ‸est{} && t‸p(t)))) <= 3 &&
  su‸m_within(‸n, 1h, Box::Action::"http:request"::request{ input.body_by‸tes: n }) < 10
}
when { principal i‸s Box::Ag‸ent && ["a"].cont‸ains(context.input.server) && !‸ip("10.0.0.1").isIpv4() };

d‸ef temporal mine(?sp‸an, ?seen) { (su‸m ‸n for (n: Long). where formerly within ?span ?se‸en) };
"#
    )));
}

#[test]
fn hover_with_a_schema_of_ones_own() {
    insta::assert_snapshot!(hovers(depot(
        r#"permit (principal is Depot::Cl‸erk, action in Depot::Action::"An‸y", resource)
when { principal.ni‸ck == "x" && context.input.cra‸te == "a" && context.input.spe‸ed == Depot::Speed::"fast" }
when temporal { formerly within 1d Depot::Action::"mo‸ve"::request{ input.crate: "a", callerPrin‸cipal: principal } };
"#
    )));
}

#[test]
fn hover_in_schemas_and_tests() {
    let actions = hovers(open(&[(
        "depot.cedarschema",
        "namespace Depot {\n  ent‸ity Clerk = {\n    // How high.\n    ra‸nk?: Lo‸ng\n  };\n  entity Mode en‸um [\"a\"];\n  act‸ion \"m\" appl‸iesTo { princ‸ipal: [Cl‸erk], resource: [Clerk] };\n}\n",
    )]));
    let events = hovers(open(&[(
        "box.dwschema",
        "max_wi‸ndow = 7‸d\ndeci‸sion ev‸ent <A>::req‸uest { ...inp‸uts(A), p‸in who: princ‸ipalType(A) = principal, no‸te: String }\n",
    )]));
    let tests = hovers(open(&[
        (
            "policy.dwtest.toml",
            "[[test]]\nna‸me = \"a\"\nevents = [{ act‸ion = \"fs:re‸ad\", input = { oper‸ation = \"exec\" }, expe‸ct = \"allow\", b‸y = \"fi‸les\" }]\n",
        ),
        (
            "policy.dw",
            "@id(\"files\") permit (principal, action == Box::Action::\"fs:read\", resource);\n",
        ),
    ]));
    insta::assert_snapshot!(format!("{actions}{events}{tests}"));
}

#[test]
fn inlay_hints() {
    let (snapshot, _) = policy(
        r#"permit (principal, action == Box::Action::"mcp:call", resource)
when temporal {
  exists (s: String). (formerly within 90m Box::Action::"mcp:call"::request{ input.server: s }) &&
  (count for (t: Timepoint). where (formerly within 24h (Box::Action::"mcp:call"::request{} && tp(t)))) <= 3
};
forbid (principal, action, resource) when { false };
"#,
    );
    let whole = Span::new(0, snapshot.text().len());
    let notes: Vec<(Span, String)> = inlay::hints(&snapshot, whole)
        .into_iter()
        .map(|hint| {
            (
                Span::at(hint.offset),
                format!("{} ({:?})", hint.text, hint.kind),
            )
        })
        .collect();
    insta::assert_snapshot!(drawn(snapshot.text(), &notes));
}

#[test]
fn semantic_tokens() {
    let (snapshot, _) = policy(
        r#"// A rule.
@id("a")
permit (principal is Box::Agent, action == Box::Action::"mcp:call", resource)
when { context.input has tool && context.input.count == ip("::1") }
when temporal {
  exists (s: String). (formerly within 90m Box::Action::"mcp:call"::request{ input.server: s, input.tool: "two
lines" }) && count_within(1h, Box::Action::"mcp:call"::request{}) <= 3
};
def temporal m(?w) { formerly within ?w Box::Action::"mcp:call"::error{} && tp($t) };
"#,
    );
    let whole = Span::new(0, snapshot.text().len());
    let notes: Vec<(Span, String)> = tokens::tokens(&snapshot.document, whole)
        .into_iter()
        .map(|token| {
            let modifiers: Vec<&str> = tokens::MODIFIERS
                .iter()
                .enumerate()
                .filter(|(at, _)| token.modifiers & (1 << at) != 0)
                .map(|(_, name)| *name)
                .collect();
            let kind = tokens::TYPES[token.kind as usize];
            (token.span, format!("{kind} {}", modifiers.join(" ")))
        })
        .collect();
    insta::assert_snapshot!(drawn(snapshot.text(), &notes));
}

fn outline(symbols: &[symbols::Symbol], depth: usize, text: &str, out: &mut String) {
    for symbol in symbols {
        let line = 1 + text[..symbol.span.start as usize].matches('\n').count();
        out.push_str(&format!(
            "{}{:?} {} — {} (line {line}, name {:?})\n",
            "  ".repeat(depth),
            symbol.kind,
            symbol.name,
            symbol.detail,
            symbol.selection.text(text),
        ));
        outline(&symbol.children, depth + 1, text, out);
    }
}

#[test]
fn document_symbols() {
    let mut out = String::new();
    for (name, text) in [
        (
            "policy.dw",
            "@id(\"a\") permit (principal, action, resource);\nforbid (principal, action, resource);\ndef cedar m(?a) { ?a };\nbroken broken;\n",
        ),
        ("depot.cedarschema", DEPOT),
        (
            "box.dwschema",
            "decision event <A>::request { ...inputs(A) }\nevent <A>::response { ...outputs(A) }\n",
        ),
        ("policy.dwtest.toml", crate::workspace::DEPOT_TESTS),
    ] {
        let (snapshot, _) = open(&[(name, text)]);
        out.push_str(&format!("{name}\n"));
        outline(&symbols::symbols(&snapshot.document), 1, text, &mut out);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn workspace_symbols() {
    let (snapshot, _) = depot("@id(\"weighed\") permit (principal, action, resource);\n");
    let found: Vec<String> = symbols::workspace(&snapshot.shelf, "wei")
        .into_iter()
        .map(|(symbol, place)| format!("{} in {}", symbol.name, place.document.path.display()))
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    weigh in /w/depot.cedarschema
    weighed in /w/policy.dw
    crates are weighed first in /w/policy.dwtest.toml
    ");
}

#[test]
fn folding_ranges() {
    let mut out = String::new();
    for (name, text) in [
        (
            "policy.dw",
            "// One.\n// Two.\n@id(\"a\")\npermit (\n  principal,\n  action in [\n    Box::Action::\"fs:read\"\n  ],\n  resource\n)\nwhen {\n  true\n};\n// Alone.\npermit (principal, action, resource);\n",
        ),
        ("policy.dwtest.toml", crate::workspace::DEPOT_TESTS),
    ] {
        let (snapshot, _) = open(&[(name, text)]);
        let folds = folding::folds(&snapshot);
        for (at, line) in text.lines().enumerate() {
            let starts: Vec<String> = folds
                .iter()
                .filter(|fold| fold.first == at)
                .map(|fold| {
                    format!(
                        "▾ to {}{}",
                        fold.last + 1,
                        if fold.comment { " (comment)" } else { "" }
                    )
                })
                .collect();
            let shown = format!("{:3} {line:50} {}", at + 1, starts.join(", "));
            out.push_str(shown.trim_end());
            out.push('\n');
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn selection_ranges() {
    let mut out = String::new();
    for (snapshot, cursors) in [
        policy(
            "permit (principal, action == Box::Action::\"fs:read\", resource)\nwhen { context.input.pa‸th == \"a\" && true }\nwhen temporal { formerly within 1h Box::Action::\"fs:read\"::request{ input.path: \"‸x\" } };\n",
        ),
        open(&[(
            "p.dwtest.toml",
            "[[test]]\nname = \"a\"\nevents = [{ command = \"git‸ x\", expect = \"deny\" }]\n",
        )]),
    ] {
        for cursor in cursors {
            for span in selection::selection(&snapshot, cursor) {
                out.push_str(&format!("{}\n--\n", span.text(snapshot.text()).trim_end()));
            }
            out.push_str("====\n");
        }
    }
    insta::assert_snapshot!(out);
}
