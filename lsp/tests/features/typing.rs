//! Random edits: never a panic, and the end is what a fresh reading of the final text gives.

use crate::workspace::{DEPOT, InMemory, PROVIDERS};
use dogwood_compiler::grammar::Span;
use dogwood_lsp::document::{Document, Kind};
use dogwood_lsp::feature::{
    action, completion, definition, diagnostics, folding, formatting, highlight, hover, inlay,
    lens, references, rename, selection, signature, symbols, tokens,
};
use dogwood_lsp::shelf::Shelf;
use dogwood_lsp::snapshot::Snapshot;
use dogwood_lsp::text::{Encoding, Point};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Texts to begin with, and bits to put in.
const STARTS: &[(&str, &str)] = &[
    (
        "policy.dw",
        "@id(\"a\")\npermit (principal, action == Box::Action::\"fs:read\", resource)\nwhen { context.input.path like \"é*\" };\n// é\ndef temporal m(?w, ?e) { formerly within ?w (?e && tp($t)) };\nforbid (principal, action, resource)\nwhen temporal { exists (s: String). (m(1h, Box::Action::\"mcp:call\"::request{ input.server: s })) }\nunless { principal is Box::Agent };\n",
    ),
    (
        "asking.dw",
        "permit (principal, action == Box::Action::\"fs:read\", resource)\nwhen { Scan::Crate(context.input.path).level == Scan::Level::\"LOW\" && Scale::Load(1, Scan::Level::\"HIGH\").plus(3) > 2 };\n",
    ),
    ("depot.cedarschema", DEPOT),
    (
        "json.cedarschema",
        "{ \"N\": { \"entityTypes\": { \"E\": {} }, \"actions\": { \"a\": { \"appliesTo\": { \"principalTypes\": [\"E\"], \"resourceTypes\": [\"E\"] } } } } }\n",
    ),
    (
        "box.dwschema",
        "max_window = 7d\ndecision event <A>::request { ...inputs(A), pin who: principalType(A) = principal }\nevent <A>::response { ...outputs(A) }\n",
    ),
    (
        "given.dwtest.toml",
        "[[test]]\nname = \"a\"\nevents = [\n  { action = \"fs:read\", input = { path = \"/a\", operation = \"exec\" }, expect = \"deny\" },\n]\n",
    ),
    (
        "policy.dwtest.toml",
        "[[test]]\nname = \"a\"\nevents = [\n  { command = \"git ${verb}\", expect = \"deny\", by = [\"a\"] },\n]\ncases = [{ verb = \"x\" }]\n",
    ),
];

const BITS: &[&str] = &[
    "",
    "\n",
    " ",
    ";",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    ",",
    ".",
    ":",
    "::",
    "@",
    "?x",
    "$t",
    "=",
    "==",
    "!",
    "&&",
    "||",
    "//",
    "é",
    "𝄞",
    "\r\n",
    "permit",
    "forbid (principal, action, resource);",
    "when {",
    "temporal {",
    "context",
    "input",
    "exists (x: String). (",
    "count for (t: Timepoint). where ",
    "since within 1h",
    "99999999999999999999s",
    "Box::Action::\"fs:read\"::request{",
    "count_within(1h, ",
    "def cedar ",
    "@id(\"a\")",
    "entity X in [X];",
    "action ",
    "\\",
    "'",
    "[[test]]\n",
    "events = [",
    "${verb}",
    "ip(",
    "-",
    "*",
    "\u{feff}",
    "\t",
    "if true then ",
    "Scale::Load(",
    ").",
    "input = { ",
    "action = \"mcp:call\"",
    "namespace N {",
    "appliesTo { principal: ",
    "event <B>::x {",
];

#[derive(Clone, Debug)]
struct Edit {
    from: (u32, u32),
    lines: u32,
    column: u32,
    bit: usize,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (0u32..14, 0u32..90, 0u32..3, 0u32..40, 0..BITS.len()).prop_map(
        |(line, character, lines, column, bit)| Edit {
            from: (line, character),
            lines,
            column,
            bit,
        },
    );
    prop::collection::vec(edit, 1..25)
}

/// Asks everything at a place.
fn ask_all(snapshot: &Snapshot, offset: usize) {
    let document = &snapshot.document;
    let findings = diagnostics::diagnostics(snapshot);
    let whole = Span::new(0, document.text.len());
    let some = Span::new(offset, document.text.len().min(offset + 20));
    hover::hover(snapshot, offset);
    completion::completion(snapshot, offset);
    signature::signature(snapshot, offset);
    definition::definition(snapshot, offset);
    references::references(snapshot, offset, true);
    highlight::highlights(snapshot, offset);
    _ = rename::rename(snapshot, offset, "other");
    selection::selection(snapshot, offset);
    inlay::hints(snapshot, whole);
    symbols::symbols(document);
    folding::folds(snapshot);
    lens::lenses(snapshot, &lens::Slow::default());
    action::actions(snapshot, &findings, some);
    formatting::document(document);
    formatting::range(document, some);
    formatting::on_type(document, offset);
    let mut end = 0;
    for token in tokens::tokens(document, whole) {
        assert!(
            token.span.start >= end,
            "tokens overlap at {:?}",
            token.span
        );
        assert!(document.text.get(token.span.range()).is_some());
        end = token.span.end;
    }
}

fn shelf(path: &Path, text: &str) -> Shelf {
    let mut disk = InMemory::default();
    disk.0.insert(path.to_path_buf(), text.to_owned());
    disk.0
        .insert(PathBuf::from("/w/providers.json"), PROVIDERS.to_owned());
    let mut shelf = Shelf::new(Arc::new(disk));
    if path.ends_with("asking.dw") {
        shelf.settings.providers = Some(PathBuf::from("/w/providers.json"));
    }
    let kind = Kind::of(path).unwrap();
    shelf.open(Document::new(path.to_path_buf(), kind, 1, text.to_owned()));
    shelf
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_edits_end_as_a_fresh_reading(
        which in 0..STARTS.len(), edits in edits(), wide in any::<bool>(),
    ) {
        let (name, text) = STARTS[which];
        let path = PathBuf::from("/w").join(name);
        let encoding = if wide { Encoding::Utf16 } else { Encoding::Utf8 };
        let mut shelf = shelf(&path, text);
        let mut checker = diagnostics::Checker::default();
        for (number, edit) in edits.iter().enumerate() {
            let document = shelf.document(&path).unwrap();
            let from = Point { line: edit.from.0, column: edit.from.1 };
            let to = match edit.lines {
                0 => Point { line: from.line, column: from.column + edit.column % 6 },
                lines => Point { line: from.line + lines - 1, column: edit.column },
            };
            let version = i32::try_from(number).unwrap() + 2;
            shelf.replace(document.edited(version, from, to, BITS[edit.bit], encoding));
            let snapshot = Snapshot::new(&shelf, &path).unwrap();
            let offset = snapshot.document.lines.offset(snapshot.text(), from, encoding);
            ask_all(&snapshot, offset);
            prop_assert_eq!(checker.diagnostics(&snapshot), diagnostics::diagnostics(&snapshot));
        }
        let last = Snapshot::new(&shelf, &path).unwrap();
        let again = self::shelf(&path, last.text());
        let fresh = Snapshot::new(&again, &path).unwrap();
        prop_assert_eq!(&last.document.lines, &fresh.document.lines);
        prop_assert_eq!(last.document.marks(), fresh.document.marks());
        prop_assert_eq!(diagnostics::diagnostics(&last), diagnostics::diagnostics(&fresh));
    }
}
