//! What the layout looks like, and that it changes nothing else.

#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// The text laid out; laying it out again must give the same.
fn once(text: &str) -> String {
    let laid = format(text, Language::Policy).unwrap();
    assert_eq!(
        format(&laid, Language::Policy).unwrap(),
        laid,
        "laid out twice"
    );
    laid
}

#[test]
fn a_short_rule_stays_on_few_lines() {
    insta::assert_snapshot!(once("@id(\"a\")  permit(principal,action,\n resource) when{context.n>3&&!principal has  x};"), @r#"
    @id("a")
    permit (principal, action, resource)
    when { context.n > 3 && !principal has x };
    "#);
}

#[test]
fn wide_scopes_and_conditions_are_broken() {
    insta::assert_snapshot!(once(r#"permit(principal is Box::Agent in Box::Group::"engineering-team", action in [Box::Action::"fs:read", Box::Action::"fs:write"], resource) when { context.input.path like "/srv/app/*" && (context.input.mode == "read" || context.input.mode == "append" || principal.trusted) && [1, 2, 3].contains(context.n) } unless { if context has input && context.input has path then context.input.path == "/etc/passwd" else resource in Box::Folder::"secret things" };"#), @r#"
    permit (
      principal is Box::Agent in Box::Group::"engineering-team",
      action in [Box::Action::"fs:read", Box::Action::"fs:write"],
      resource
    )
    when {
      context.input.path like "/srv/app/*"
      && (
        context.input.mode == "read"
        || context.input.mode == "append"
        || principal.trusted
      )
      && [1, 2, 3].contains(context.n)
    }
    unless {
      if context has input && context.input has path
      then context.input.path == "/etc/passwd"
      else resource in Box::Folder::"secret things"
    };
    "#);
}

#[test]
fn temporal_blocks_have_operators_at_the_start_of_lines() {
    insta::assert_snapshot!(once(r#"forbid(principal, action == Box::Action::"net:connect", resource) when temporal { !Box::Action::"approve"::response{input.host: context.input.host} since within 12h Box::Action::"fs:read"::response{input.path: "/srv/secrets/keys", callerPrincipal: principal} && formerly within 1h (exists (p: String). (Box::Action::"fs:read"::response{input.path: p} && previous within 5m Box::Action::"fs:write"::request{input.path: p})) && (count for (h: String), (t: tp). where formerly within 10m (Box::Action::"net:connect"::request{input.host: h} && tp(t))) >= 60 };"#), @r#"
    forbid (principal, action == Box::Action::"net:connect", resource)
    when temporal {
      !Box::Action::"approve"::response{ input.host: context.input.host }
      since within 12h Box::Action::"fs:read"::response{
        input.path: "/srv/secrets/keys",
        callerPrincipal: principal
      }
      && formerly within 1h (
        exists (p: String). (
          Box::Action::"fs:read"::response{ input.path: p }
          && previous within 5m Box::Action::"fs:write"::request{ input.path: p }
        )
      )
      && (
        count for (h: String), (t: tp). where
          formerly within 10m (
            Box::Action::"net:connect"::request{ input.host: h } && tp(t)
          )
      ) >= 60
    };
    "#);
}

#[test]
fn macros_are_laid_out() {
    insta::assert_snapshot!(once("def cedar small(?n){?n<10}; def temporal often(?w,?s){(count for (t: tp). where formerly within ?w (?s && tp(t)))>3};"), @"
    def cedar small(?n) {
      ?n < 10
    };

    def temporal often(?w, ?s) {
      (count for (t: tp). where formerly within ?w (?s && tp(t))) > 3
    };
    ");
}

#[test]
fn comments_stay_where_they_stood() {
    insta::assert_snapshot!(once(r#"


// The file.


// About the first rule.
@id("a") // why it is called so
permit (
  principal, // anyone
  action, resource
)
// Before the clause.
when {
  // The first condition.
  a(1) && // trailing
  // The second condition.
  context.ok
  // At the end.
}; // after
// Next.
forbid (principal, action, resource)
when temporal {
  formerly within 1h (
    // Denied before.
    N::Action::"x"::request{ input.a: 1, // one
      input.b: 2 }
    && N::Action::"y"::request{}
  )
};
// The end."#), @r#"
    // The file.

    // About the first rule.
    @id("a") // why it is called so
    permit (
      principal, // anyone
      action,
      resource
    )
    // Before the clause.
    when {
      // The first condition.
      a(1) // trailing
      // The second condition.
      && context.ok
      // At the end.
    }; // after

    // Next.
    forbid (principal, action, resource)
    when temporal {
      formerly within 1h (
        // Denied before.
        N::Action::"x"::request{
          input.a: 1, // one
          input.b: 2
        }
        && N::Action::"y"::request{}
      )
    };

    // The end.
    "#);
}

#[test]
fn a_statement_with_a_comment_in_an_odd_place_keeps_its_text() {
    insta::assert_snapshot!(once("permit(principal  // why\n == T::\"a\",action,resource);\npermit(principal,action,resource);"), @r#"
    permit(principal  // why
     == T::"a",action,resource);

    permit (principal, action, resource);
    "#);
}

#[test]
fn text_with_errors_is_not_laid_out() {
    let errors = format("permit(principal, action resource);", Language::Policy).unwrap_err();
    assert_eq!(errors.len(), 1);
}

#[test]
fn nothing_is_nothing() {
    assert_eq!(once(""), "");
    assert_eq!(once("\n\n  \n"), "");
    assert_eq!(once("// only this"), "// only this\n");
}

/// Comments and line breaks at any place between tokens.
fn strewn() -> impl Strategy<Value = String> {
    const TOKENS: &[&str] = &[
        "@",
        "id",
        "(",
        "\"a\"",
        ")",
        "permit",
        "(",
        "principal",
        "==",
        "T::\"a\"",
        ",",
        "action",
        ",",
        "resource",
        ")",
        "when",
        "{",
        "(",
        "context.a",
        "==",
        "1",
        "||",
        "!",
        "context.b",
        ")",
        "&&",
        "[",
        "1",
        ",",
        "2",
        "]",
        ".",
        "contains",
        "(",
        "3",
        ")",
        "&&",
        "(",
        "if",
        "true",
        "then",
        "1",
        "+",
        "2",
        "<",
        "3",
        "else",
        "{",
        "a",
        ":",
        "1",
        "}",
        "has",
        "b",
        ")",
        "}",
        "unless",
        "temporal",
        "{",
        "formerly",
        "within",
        "1h",
        "(",
        "exists",
        "(",
        "x",
        ":",
        "Long",
        ")",
        ".",
        "(",
        "A::\"b\"::request",
        "{",
        "input.a",
        ":",
        "x",
        ",",
        "input.b",
        ":",
        "2",
        "}",
        "&&",
        "(",
        "count",
        "for",
        "(",
        "t",
        ":",
        "tp",
        ")",
        ".",
        "where",
        "formerly",
        "within",
        "2h",
        "tp",
        "(",
        "t",
        ")",
        ")",
        "<",
        "3",
        ")",
        ")",
        "since",
        "within",
        "3d",
        "A::\"c\"::request",
        "{",
        "}",
        "}",
        ";",
        "def",
        "cedar",
        "m",
        "(",
        "?a",
        ")",
        "{",
        "?a",
        "}",
        ";",
    ];
    let gap = prop_oneof![
        12 => Just(" "),
        2 => Just("\n"),
        1 => Just("\n\n"),
        1 => Just(" // c\n"),
        1 => Just("\n// own\n"),
        1 => Just("\n\n// own\n  // more\n"),
    ];
    prop::collection::vec(gap, TOKENS.len()).prop_map(|gaps| {
        TOKENS
            .iter()
            .zip(gaps)
            .flat_map(|(token, gap)| [*token, gap])
            .collect()
    })
}

#[test]
fn the_schemas_that_come_with_the_toolchain_are_laid_out() {
    use crate::schema::{BOX_ACTIONS, BOX_EVENTS, DEFAULT_EVENTS};
    for (text, language) in [
        (BOX_ACTIONS, Language::ActionSchema),
        (BOX_EVENTS, Language::EventSchema),
        (DEFAULT_EVENTS, Language::EventSchema),
    ] {
        assert_eq!(format(text, language).as_deref(), Ok(text));
    }
}

#[test]
fn a_schema_with_errors_is_left_alone() {
    let errors = format("\u{feff}entity A = { a Long };", Language::ActionSchema).unwrap_err();
    let spans: Vec<_> = errors.iter().map(|error| error.span).collect();
    assert_eq!(spans, [Span::new(18, 22)]);
    assert!(format("event <A>::x { a: }", Language::EventSchema).is_err());
    assert!(format("", Language::EventSchema).is_err());
}

/// What an author wrote that the tree does not keep stays too.
#[test]
fn schemas_are_spelled_as_they_were() {
    let text = r#"action "a" in b appliesTo { resource: R } attributes { x: Long };
entity A { n: Long };

namespace N {
  entity E enum ["x\u{41}"];
}

entity After;
"#;
    assert_eq!(format(text, Language::ActionSchema).unwrap(), text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn layout_changes_neither_tree_nor_comments(text in strewn()) {
        let parsed = parse_policy(&text);
        prop_assert!(parsed.errors.is_empty(), "{}\n{:?}", text, parsed.errors);
        let laid = file(&parsed, &text);
        let read = |text: &str| Read::of(parse_policy(text), text, print_policy);
        let (before, after) = (read(&text), read(&laid));
        prop_assert!(after.parsed.errors.is_empty(), "{}\nbecame\n{}", text, laid);
        prop_assert_eq!(before.says, after.says, "{}\nbecame\n{}", text, laid);
        let again = format(&laid, Language::Policy).unwrap();
        prop_assert_eq!(again, laid);
    }
}
