use super::*;
use crate::grammar::Span;

fn at(text: &str, part: &str) -> Span {
    let start = text.find(part).expect("the part is in the text");
    Span::new(start, start + part.len())
}

fn drawn(diagnostic: Diagnostic, text: &str) -> String {
    render(&[diagnostic], &[("policy.dw", text)], Style::Plain)
}

const RULE: &str =
    "permit (principal, action, resource)\nwhen { context.input.arg1 == \"push\" };\n";

#[test]
fn every_part_is_drawn() {
    let diagnostic = Diagnostic::error(
        "optional-attribute",
        at(RULE, "arg1"),
        "`arg1` may be absent here.",
    )
    .label("read without a guard")
    .also(at(RULE, "permit"), "in this rule")
    .help("Test for it first.")
    .fix(
        "add `context.input has arg1 &&`",
        Span::at(RULE.find("context").unwrap()),
        "context.input has arg1 && ",
    );
    insta::assert_snapshot!(drawn(diagnostic, RULE), @r#"
    error[optional-attribute]: `arg1` may be absent here.
      ┌─ policy.dw:2:22
      │
    1 │ permit (principal, action, resource)
      │ ------ in this rule
    2 │ when { context.input.arg1 == "push" };
      │                      ^^^^ read without a guard
      │
      = help: Test for it first.
      = fix: add `context.input has arg1 &&`
    "#);
}

#[test]
fn sorted_by_source_then_place_with_ties_as_made() {
    let of = |code: &'static str, source: u16, at: usize| {
        Diagnostic::error(code, Span::at(at), code).in_source(SourceId(source))
    };
    let found = [of("d", 1, 0), of("c", 0, 4), of("a", 0, 1), of("b", 0, 1)];
    let out = render(&found, &[("one", "abcdef"), ("two", "x")], Style::Plain);
    insta::assert_snapshot!(out, @"
    error[a]: a
      ┌─ one:1:2
      │
    1 │ abcdef
      │  ^

    error[b]: b
      ┌─ one:1:2
      │
    1 │ abcdef
      │  ^

    error[c]: c
      ┌─ one:1:5
      │
    1 │ abcdef
      │     ^

    error[d]: d
      ┌─ two:1:1
      │
    1 │ x
      │ ^
    ");
    let json = to_json(&found, &[("one", "abcdef"), ("two", "x")]);
    let codes: Vec<_> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["a", "b", "c", "d"]);
}

#[test]
fn tabs_line_up() {
    let text = "forbid\n\t(principal,\taction)\n";
    let diagnostic =
        Diagnostic::warning("w", at(text, "action"), "Tabs are four wide.").label("here");
    insta::assert_snapshot!(drawn(diagnostic, text), @"
    warning[w]: Tabs are four wide.
      ┌─ policy.dw:2:14
      │
    2 │     (principal, action)
      │                 ^^^^^^ here
    ");
}

#[test]
fn wide_and_combined_characters_line_up() {
    let text = "@description(\"größe 日本 👩‍🔧\") permit;\n";
    let diagnostic =
        Diagnostic::error("e", at(text, "permit"), "Columns count characters.").label("here");
    insta::assert_snapshot!(drawn(diagnostic, text), @r#"
    error[e]: Columns count characters.
      ┌─ policy.dw:1:30
      │
    1 │ @description("größe 日本 👩‍🔧") permit;
      │                                 ^^^^^^ here
    "#);
}

#[test]
fn empty_spans_and_ends_of_files() {
    let empty = drawn(
        Diagnostic::error("e", Span::at(7), "An empty span has one caret.").label("here"),
        RULE,
    );
    insta::assert_snapshot!(empty, @"
    error[e]: An empty span has one caret.
      ┌─ policy.dw:1:8
      │
    1 │ permit (principal, action, resource)
      │        ^ here
    ");
    let end = drawn(
        Diagnostic::error(
            "e",
            Span::at(RULE.len()),
            "The end is shown behind the last text.",
        )
        .label("expected `;`"),
        RULE,
    );
    insta::assert_snapshot!(end, @r#"
    error[e]: The end is shown behind the last text.
      ┌─ policy.dw:2:39
      │
    2 │ when { context.input.arg1 == "push" };
      │                                       ^ expected `;`
    "#);
    let nothing = drawn(
        Diagnostic::error("e", Span::at(0), "The text is empty."),
        "",
    );
    insta::assert_snapshot!(nothing, @"
    error[e]: The text is empty.
      ┌─ policy.dw:1:1
      │
    1 │ 
      │ ^
    ");
    let blank = drawn(
        Diagnostic::error("e", Span::new(0, 3), "Only line breaks."),
        "\n\n\n",
    );
    insta::assert_snapshot!(blank, @"
    error[e]: Only line breaks.
      ┌─ policy.dw:1:1
      │
    1 │ 
      │ ^
    ");
}

#[test]
fn spans_over_several_lines() {
    let diagnostic =
        Diagnostic::error("e", Span::new(0, RULE.len()), "The whole rule.").label("never applies");
    insta::assert_snapshot!(drawn(diagnostic, RULE), @r#"
    error[e]: The whole rule.
      ┌─ policy.dw:1:1
      │  
    1 │ ╭ permit (principal, action, resource)
    2 │ │ when { context.input.arg1 == "push" };
      │ ╰──────────────────────────────────────^ never applies
    "#);
}

#[test]
fn windows_line_ends() {
    let text = "permit (principal);\r\nforbid (actoin);\r\n";
    let diagnostic = Diagnostic::error("e", at(text, "actoin"), "Unknown variable.");
    insta::assert_snapshot!(drawn(diagnostic, text), @"
    error[e]: Unknown variable.
      ┌─ policy.dw:2:9
      │
    2 │ forbid (actoin);
      │         ^^^^^^
    ");
}

#[test]
fn labels_in_another_source() {
    let mut diagnostic = Diagnostic::error(
        "duplicate-macro",
        at("def temporal m() {};", "m("),
        "`m` is defined twice.",
    )
    .in_source(SourceId(1));
    diagnostic = diagnostic.label("again here");
    diagnostic.labels.push(crate::grammar::diagnostic::Label {
        source: SourceId(0),
        span: Span::new(13, 14),
        text: "first here".to_owned(),
    });
    let out = render(
        &[diagnostic],
        &[
            ("a.dw", "def temporal m() {};"),
            ("b.dw", "def temporal m() {};"),
        ],
        Style::Plain,
    );
    insta::assert_snapshot!(out, @"
    error[duplicate-macro]: `m` is defined twice.
      ┌─ b.dw:1:14
      │
    1 │ def temporal m() {};
      │              ^^ again here
      │
      ┌─ a.dw:1:14
      │
    1 │ def temporal m() {};
      │              - first here
    ");
}

#[test]
fn spans_outside_the_text_are_moved_into_it() {
    let text = "é";
    for span in [
        Span::new(1, 1),
        Span::new(0, 1),
        Span::new(5, 900),
        Span::new(2, 1),
    ] {
        let out = drawn(Diagnostic::error("e", span, "Still drawn."), text);
        assert!(out.starts_with("error[e]: Still drawn.\n"), "{out}");
        assert!(out.contains("policy.dw:1:"), "{out}");
    }
    let unknown = Diagnostic::error("e", Span::new(0, 4), "No such source.").in_source(SourceId(9));
    assert!(drawn(unknown, text).contains("<unknown>:1:1"));
}

#[test]
fn a_terminal_is_not_at_the_mercy_of_a_policy() {
    let text = "permit \u{1b}[2J\u{202e}evil\u{85}\rx;\n";
    let diagnostic = Diagnostic::error("e", at(text, "evil"), "Unknown word `\u{1b}[2Jevil`.")
        .label("\u{7}here");
    let out = drawn(diagnostic, text);
    assert!(!out.contains(is_unprintable), "{out:?}");
    insta::assert_snapshot!(out, @r#"
    error[e]: Unknown word `\u{1b}[2Jevil`.
      ┌─ policy.dw:1:13
      │
    1 │ permit ?[2J�evil¿?x;
      │             ^^^^ \u{7}here
    "#);
}

#[test]
fn a_very_long_line_is_cut() {
    let text = format!(
        "one line\n{} wrong {}\n",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    let diagnostic = Diagnostic::error(
        "too-deep",
        at(&text, "wrong"),
        "This is nested more than 200 deep.",
    )
    .label("here")
    .also(Span::new(0, 3), "begins here");
    let out = drawn(diagnostic, &text);
    insta::assert_snapshot!(out, @"
    error[too-deep]: This is nested more than 200 deep.
      ┌─ policy.dw:2:100002
      │
    2 │ … ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((( wrong )))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) …
      │                                                               ^^^^^ here
      │
      = policy.dw:1:1: begins here
    ");
}

#[test]
fn colour_is_only_colour() {
    let diagnostic = Diagnostic::error("e", at(RULE, "permit"), "A message.")
        .label("a label")
        .help("Help.");
    let sources = [("policy.dw", RULE)];
    let plain = render(std::slice::from_ref(&diagnostic), &sources, Style::Plain);
    let colour = render(&[diagnostic], &sources, Style::Color);
    assert_ne!(plain, colour);
    assert_eq!(anstream::adapter::strip_str(&colour).to_string(), plain);
}

#[test]
fn json_has_places_in_bytes_lines_and_characters() {
    let text = "é\n\té = push;\n";
    let diagnostic = Diagnostic::error("single-equals", at(text, "="), "Use `==`.")
        .label("here")
        .also(Span::new(0, 2), "because of this")
        .help("`=` does not compare.")
        .fix("write `==`", at(text, "="), "==");
    insta::assert_json_snapshot!(to_json(&[diagnostic], &[("p.dw", text)]), @r#"
    [
      {
        "severity": "error",
        "code": "single-equals",
        "message": "Use `==`.",
        "labels": [
          {
            "source": "p.dw",
            "start": 7,
            "len": 1,
            "line": 2,
            "column": 4,
            "message": "here"
          },
          {
            "source": "p.dw",
            "start": 0,
            "len": 2,
            "line": 1,
            "column": 1,
            "message": "because of this"
          }
        ],
        "help": "`=` does not compare.",
        "fix": {
          "title": "write `==`",
          "edits": [
            {
              "source": "p.dw",
              "start": 7,
              "len": 1,
              "line": 2,
              "column": 4,
              "text": "=="
            }
          ]
        }
      }
    ]
    "#);
    let bare = Diagnostic::warning("w", Span::at(0), "Bare.");
    insta::assert_json_snapshot!(to_json(&[bare], &[("p.dw", text)]), @r#"
    [
      {
        "severity": "warning",
        "code": "w",
        "message": "Bare.",
        "labels": [
          {
            "source": "p.dw",
            "start": 0,
            "len": 0,
            "line": 1,
            "column": 1
          }
        ],
        "help": null,
        "fix": null
      }
    ]
    "#);
}

#[test]
fn tally_counts_both() {
    let found = [
        Diagnostic::error("a", Span::at(0), ""),
        Diagnostic::warning("b", Span::at(0), ""),
        Diagnostic::error("c", Span::at(0), ""),
    ];
    assert_eq!(tally(&found), (2, 1));
}
