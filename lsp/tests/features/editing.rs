//! Code actions and formatting: the text before and after.

use crate::drawing::drawn;
use crate::workspace::{depot, open, policy};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Edit;
use dogwood_lsp::feature::{action, diagnostics, formatting};
use dogwood_lsp::snapshot::Snapshot;

fn applied(text: &str, edits: &[Edit]) -> String {
    let mut text = text.to_owned();
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
    for edit in edits {
        text.replace_range(edit.span.range(), &edit.text);
    }
    text
}

/// The lines that an edit changed.
fn changed(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..]
        .iter()
        .rev()
        .zip(new[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let mut out = String::new();
    for line in &old[head..old.len() - tail] {
        out.push_str(&format!("- {line}\n"));
    }
    for line in &new[head..new.len() - tail] {
        out.push_str(&format!("+ {line}\n"));
    }
    out
}

/// With two cursors: what can be done to the text between them. With one: at it.
fn offered((snapshot, cursors): (Snapshot, Vec<usize>)) -> String {
    let findings = diagnostics::diagnostics(&snapshot);
    let range = Span::new(cursors[0], *cursors.last().unwrap());
    let mut out = drawn(snapshot.text(), &[(range, "selected".to_owned())]);
    for action in action::actions(&snapshot, &findings, range) {
        let after = applied(snapshot.text(), &action.edits);
        out.push_str(&format!("{:?}: {}\n", action.kind, action.title));
        out.push_str(&changed(snapshot.text(), &after));
    }
    out
}

#[test]
fn fixes_of_messages() {
    insta::assert_snapshot!(offered(policy(
        "@id(\"a\") permit (principal, action == Box::Action::\"shell:sp‸wan\", resource);\n"
    )));
}

#[test]
fn wrap_in_exists() {
    insta::assert_snapshot!(offered(depot(
        "@id(\"a\") permit (principal, action == Depot::Action::\"move\", resource)\nwhen temporal { formerly within 1h Depot::Action::\"move\"::request{ input.kg: ‸w } && w == context.input.kg };\n"
    )));
}

/// In a macro there is no message: the caller might introduce the variable. It is offered all the same.
#[test]
fn wrap_in_exists_in_a_macro() {
    insta::assert_snapshot!(offered(depot(
        "def temporal moved(?w) { formerly within ?w Depot::Action::\"move\"::request{ callerPrincipal: ‸who } };\n"
    )));
}

#[test]
fn test_for_an_optional_field_first() {
    let both = [
        "@id(\"a\") permit (principal, action == Box::Action::\"shell:spawn\", resource)\nwhen { context.input.program == \"git\" && context.input.ar‸g1 == \"push\" };\n",
        "@id(\"a\") permit (principal, action == Box::Action::\"shell:spawn\", resource)\nwhen { context.input.program == \"git\" || [\"a\"].contains(context.input.ar‸g1) };\n",
    ];
    insta::assert_snapshot!(both.map(|text| offered(policy(text))).join("\n"));
}

#[test]
fn extract_a_macro() {
    let both = [
        "// About pushes.\n@id(\"a\") permit (principal, action == Box::Action::\"shell:spawn\", resource)\nwhen { ‸context.input.program == \"git\"‸ && true };\n",
        "@id(\"a\") permit (principal, action == Box::Action::\"fs:read\", resource)\nwhen temporal { exists (p: String). (‸formerly within 1h Box::Action::\"fs:read\"::request{ input.path: p }‸ && p != \"x\") };\n",
    ];
    insta::assert_snapshot!(both.map(|text| offered(policy(text))).join("\n"));
}

/// The extracted text means what it meant: the check says the same of it.
#[test]
fn an_extracted_macro_passes_the_check() {
    let (snapshot, cursors) = policy(
        "@id(\"a\") permit (principal, action == Box::Action::\"fs:read\", resource)\nwhen temporal { exists (p: String). (‸formerly within 1h Box::Action::\"fs:read\"::response{ input.path: p }‸ && p != \"x\") };\n",
    );
    let findings = diagnostics::diagnostics(&snapshot);
    let range = Span::new(cursors[0], cursors[1]);
    let all = action::actions(&snapshot, &findings, range);
    let extracted = all
        .iter()
        .find(|action| action.kind == action::ActionKind::Extract)
        .unwrap();
    let (after, _) = policy(&applied(snapshot.text(), &extracted.edits));
    let codes = |snapshot: &Snapshot| -> Vec<&str> {
        let found = diagnostics::diagnostics(snapshot).diagnostics;
        found.iter().map(|found| found.code).collect()
    };
    assert_eq!(codes(&after), codes(&snapshot));
}

#[test]
fn name_a_rule() {
    insta::assert_snapshot!(offered(policy(
        "@id(\"permit_fs_read\")\npermit (principal, action == Box::Action::\"fs:read\", resource);\n// Again.\nper‸mit (principal, action == Box::Action::\"fs:read\", resource) when { context.input.path == \"a\" };\n"
    )));
}

#[test]
fn formatting_a_document_a_range_and_what_was_typed() {
    let text = "permit(principal,action,resource)when{true};\n\n\n// Second.\npermit(principal,action,resource)unless{false};\n";
    let (snapshot, _) = policy(text);
    let whole = applied(text, &formatting::document(&snapshot.document).unwrap());
    let second = text.rfind("permit").unwrap();
    let range = formatting::range(&snapshot.document, Span::new(second, second + 1)).unwrap();
    let typed = formatting::on_type(&snapshot.document, text.find(';').unwrap() + 1).unwrap();
    insta::assert_snapshot!(format!(
        "document\n{}range\n{}typed\n{}",
        drawn(&whole, &[]),
        drawn(&applied(text, &range), &[]),
        drawn(&applied(text, &typed), &[])
    ));
}

#[test]
fn a_broken_rule_does_not_stop_the_others_from_being_laid_out() {
    let text = "permit(principal,action,resource)when{;\npermit(principal,action,resource);\n";
    let (snapshot, _) = policy(text);
    assert_eq!(formatting::document(&snapshot.document), Some(Vec::new()));
    let whole = Span::new(0, text.len());
    let laid = applied(text, &formatting::range(&snapshot.document, whole).unwrap());
    assert_eq!(
        laid,
        "permit(principal,action,resource)when{;\npermit (principal, action, resource);\n"
    );
}

/// With two cursors: what is laid out between them, and what is when the second was just typed at.
fn schema_laid_out(name: &str, text: &str) -> String {
    let (snapshot, cursors) = open(&[(name, text)]);
    let text = snapshot.text();
    let document = &snapshot.document;
    let after = |edits: Option<Vec<Edit>>| drawn(&applied(text, &edits.unwrap()), &[]);
    format!(
        "document\n{}range\n{}typed\n{}",
        after(formatting::document(document)),
        after(formatting::range(
            document,
            Span::new(cursors[0], cursors[1])
        )),
        after(formatting::on_type(document, cursors[1]))
    )
}

#[test]
fn formatting_action_schemas() {
    insta::assert_snapshot!(schema_laid_out(
        "a.cedarschema",
        "namespace Depot{\n// Who.\nentity ‸Clerk={rank:Long};\n @doc(\"What.\")entity Bay ; action \"move\" appliesTo{principal:[Clerk],resource:[Bay],context:{crate:String,kg?:Long}};‸\n}\n"
    ));
}

#[test]
fn formatting_event_schemas() {
    insta::assert_snapshot!(schema_laid_out(
        "e.dwschema",
        "max_window=1h\nevent <A>::‸error{}\ndecision event<A>::request{...inputs(A), // all\npin who:principalType(A)=principal}‸\n"
    ));
}

#[test]
fn a_broken_declaration_does_not_stop_the_others_from_being_laid_out() {
    let text = "entity A={;\nentity B={};\n";
    let (snapshot, _) = open(&[("a.cedarschema", text)]);
    assert_eq!(formatting::document(&snapshot.document), Some(Vec::new()));
    let whole = Span::new(0, text.len());
    let laid = applied(text, &formatting::range(&snapshot.document, whole).unwrap());
    assert_eq!(laid, "entity A={;\nentity B = {};\n");
}

#[test]
fn formatting_test_files() {
    let text = "policy='a.dw'\n[[test]]\nname='x'\nevents=[\n{request=\"shell:exec\"}, # one\n]\n";
    let (snapshot, _) = open(&[("a.dwtest.toml", text)]);
    let document = &snapshot.document;
    let whole = applied(text, &formatting::document(document).unwrap());
    let name = text.find("name").unwrap();
    let range = formatting::range(document, Span::new(name, name + 1)).unwrap();
    insta::assert_snapshot!(format!("document\n{whole}range\n{}", applied(text, &range)), @r#"
    document
    policy = 'a.dw'

    [[test]]
    name = 'x'
    events = [
      { request = "shell:exec" }, # one
    ]
    range
    policy='a.dw'
    [[test]]
    name = 'x'
    events=[
    {request="shell:exec"}, # one
    ]
    "#);
    let (snapshot, _) = open(&[("a.dwtest.toml", "[[test]\nname='x'\n")]);
    assert_eq!(formatting::document(&snapshot.document), Some(Vec::new()));
}
