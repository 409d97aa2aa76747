//! Schemas laid out: what it looks like, and that nothing else changes.

use super::schemas;
use crate::print::*;
use crate::token::{self, Language};
use crate::{Span, parse_action_schema, parse_event_schema};
use proptest::prelude::*;

/// The text laid out; laying it out again must give the same.
fn once(text: &str, language: Language) -> String {
    let laid = lay_out_schema(text, language).unwrap();
    assert_eq!(
        lay_out_schema(&laid, language).unwrap(),
        laid,
        "laid out twice"
    );
    laid
}

fn actions(text: &str) -> String {
    assert_eq!(parse_action_schema(text).errors, []);
    once(text, Language::ActionSchema)
}

fn events(text: &str) -> String {
    assert_eq!(parse_event_schema(text).errors, []);
    once(text, Language::EventSchema)
}

#[test]
fn short_declarations_stand_on_one_line() {
    insta::assert_snapshot!(actions(
        "entity  A,B in[C,D,]={a:Long,\n\"b c\" ? :Set < String >,}tags Bool;entity E{};entity   Role enum[\"x\",\"y\"];\n\n\naction go,\"stop now\"in Other::Action::\"any\"appliesTo{resource:R,principal:[P]};type T=Set<{a:Long}>;type U={\n};action\"a\",b appliesTo{principal:P,resource:[R,S],context:{}};"
    ), @r#"
    entity A, B in [C, D] = { a: Long, "b c"?: Set<String> } tags Bool;
    entity E {};
    entity Role enum ["x", "y"];

    action go, "stop now" in Other::Action::"any" appliesTo {
      resource: R,
      principal: [P]
    };
    type T = Set<{ a: Long }>;
    type U = {};
    action "a", b appliesTo { principal: P, resource: [R, S], context: {} };
    "#);
}

#[test]
fn what_is_too_wide_has_an_element_to_a_line() {
    insta::assert_snapshot!(actions(
        "namespace Depot { entity Clerk in [Team, Department] = { name: String, badge: Long, home?: { street: String, number: Long, town: { name: String, code: String }, floor?: Long } } tags Set<String>; entity Ways enum [\"by road over the hills\", \"by rail\", \"by sea\", \"by air from the north\"]; action \"stock:read\", \"stock:write\", \"stock:count\", \"stock:move\", \"stock:destroy\" in [\"stock:any\"] appliesTo { principal: [Clerk], resource: [Shelf], context: { amount: Long } }; }"
    ), @r#"
    namespace Depot {
      entity Clerk in [Team, Department] = {
        name: String,
        badge: Long,
        home?: {
          street: String,
          number: Long,
          town: { name: String, code: String },
          floor?: Long
        }
      } tags Set<String>;
      entity Ways enum [
        "by road over the hills",
        "by rail",
        "by sea",
        "by air from the north"
      ];
      action "stock:read", "stock:write", "stock:count", "stock:move",
        "stock:destroy" in ["stock:any"] appliesTo {
        principal: [Clerk],
        resource: [Shelf],
        context: { amount: Long }
      };
    }
    "#);
}

#[test]
fn lines_hold_eighty_columns() {
    // To the column: 80, and one more.
    for (letters, lines) in [(57, 1), (58, 3)] {
        let name = "x".repeat(letters);
        let laid = actions(&format!("type Abcd = {{ {name}: Long }};"));
        assert_eq!(laid.lines().count(), lines, "{laid}");
    }
    for (letters, lines) in [(57, 4), (58, 6)] {
        let name = "x".repeat(letters);
        let laid = actions(&format!(
            "type Ab = {{ {name}: {{ abcdefgh: Long }}, b: {{}} }};"
        ));
        assert_eq!(laid.lines().count(), lines, "{laid}");
    }
}

#[test]
fn annotations_stand_above_what_they_are_about() {
    insta::assert_snapshot!(actions(
        "@doc(\"What is kept.\")@owner(\"team\")namespace N{@doc(\"One.\") @new entity A={@doc(\"Its name, as it is printed on the label of every box\") name:String,@old @gone(\"\") other?:Long};type T={@doc(\"short\") a:Long};}"
    ), @r#"
    @doc("What is kept.")
    @owner("team")
    namespace N {
      @doc("One.")
      @new
      entity A = {
        @doc("Its name, as it is printed on the label of every box")
        name: String,
        @old
        @gone("")
        other?: Long
      };
      type T = { @doc("short") a: Long };
    }
    "#);
}

#[test]
fn comments_and_blank_lines_stay() {
    insta::assert_snapshot!(actions(r#"

// The file.


// About A.
entity A; // after A
// Before B.
entity B = { // opens
  // above a
  a: Long // behind a
  , // behind its comma

  // above b
  b: String,


  c: Long
  // the end of B
} // before the end
  tags Long;
namespace N { // opens
  // nothing
}
@doc("x") // why
// above
entity // in the midst
  C;
namespace Empty { }
namespace M {

  entity D enum [
    // only this
  ];
} // closes
// The end."#), @r#"
    // The file.

    // About A.
    entity A; // after A
    // Before B.
    entity B = { // opens
      // above a
      a: Long, // behind a
      // behind its comma

      // above b
      b: String,

      c: Long
      // the end of B
    } // before the end
      tags Long;

    namespace N { // opens
      // nothing
    }

    @doc("x") // why
    // above
    entity // in the midst
      C;

    namespace Empty {}

    namespace M {
      entity D enum [
        // only this
      ];
    } // closes

    // The end.
    "#);
}

#[test]
fn event_schemas_have_a_member_to_a_line() {
    insta::assert_snapshot!(events(
        "// Day.\nmax_window=24 h // a day\ndecision   event<A>::request{...inputs( A ),pin who:principalType(A)=principal . boss,g:{n:Long,s:N::T},}event <A>::error{}\n// Last.\nevent <A>::response { context: { who: principalType(A), what: resourceType(A), when: Long, elsewhere: String } }"
    ), @"
    // Day.
    max_window = 24h // a day

    decision event <A>::request {
      ...inputs(A),
      pin who: principalType(A) = principal.boss,
      g: { n: Long, s: N::T }
    }

    event <A>::error {}

    // Last.
    event <A>::response {
      context: {
        who: principalType(A),
        what: resourceType(A),
        when: Long,
        elsewhere: String
      }
    }
    ");
}

#[test]
fn line_ends_of_windows_and_a_mark_at_the_start_make_no_difference() {
    assert_eq!(
        actions("\u{feff}// a\r\n\r\n\r\nentity A;\r\nentity B;\r\n"),
        "// a\n\nentity A;\nentity B;\n"
    );
    assert_eq!(actions("// only this"), "// only this\n");
}

#[test]
fn one_declaration_alone() {
    let source = "namespace N {\n  broken [;\n  entity   A={ a : Long };\n}";
    let start = source.find("entity").unwrap();
    let span = Span::new(start, source.find("\n}").unwrap());
    assert_eq!(
        lay_out_declaration(source, span, Language::ActionSchema, 2).as_deref(),
        Some("entity A = { a: Long };")
    );
}

#[test]
fn brackets_that_do_not_match_are_left_alone() {
    for text in ["entity A = {;", "}", "namespace N {", "type T = [};"] {
        assert_eq!(lay_out_schema(text, Language::ActionSchema), None, "{text}");
    }
    // Deeper than any schema that is read, and no deeper than the stack.
    let nested = format!("type T = {}{};", "{a:".repeat(599), "}".repeat(599));
    assert!(lay_out_schema(&nested, Language::ActionSchema).is_some());
    let deep = "{a:".repeat(100_000);
    assert_eq!(
        lay_out_schema(&format!("type T = {deep}"), Language::ActionSchema),
        None
    );
}

/// The text with line ends and comments put between its tokens.
fn scattered(text: &str, language: Language, choices: &[u8]) -> String {
    let (lexemes, _) = token::lex(text, language);
    let mut out = String::new();
    let mut end = 0;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let gap = &text[end..lexeme.span.start as usize];
        match choices.get(at % choices.len().max(1)) {
            Some(0) => out.push_str(&format!("{gap}\n")),
            Some(1) => out.push_str("\n\n\n"),
            Some(2) => out.push_str(&format!(" // trails {at}  \n")),
            Some(3) => out.push_str(&format!("\n  // alone {at}\n")),
            Some(4) => out.push_str(&format!("\n\n// apart {at}\n\n")),
            Some(5) => out.push_str(&format!("// {at}\n// {at} again\n")),
            _ => out.push_str(gap),
        }
        out.push_str(lexeme.span.text(text));
        end = lexeme.span.end as usize;
    }
    out
}

fn keeps_all(
    text: &str,
    language: Language,
    print: fn(&str) -> Option<String>,
) -> Result<(), TestCaseError> {
    let Some(before) = print(text) else {
        // A line end before some words makes them the start of a declaration.
        return Ok(());
    };
    let laid = lay_out_schema(text, language);
    prop_assert!(laid.is_some(), "{text}");
    let laid = laid.unwrap();
    prop_assert_eq!(print(&laid), Some(before), "{}\n{}", text, laid);
    let comments = |text: &str| -> Vec<String> {
        let (_, trivia) = token::lex(text, language);
        let all = trivia.comments();
        all.map(|span| span.text(text).to_owned()).collect()
    };
    prop_assert_eq!(comments(&laid), comments(text), "{}\n{}", text, laid);
    prop_assert_eq!(
        lay_out_schema(&laid, language),
        Some(laid.clone()),
        "{}\nfirst:\n{}",
        text,
        laid
    );
    prop_assert!(laid.lines().all(|line| line.trim_end() == line) || text.contains('"'));
    Ok(())
}

fn print_actions(text: &str) -> Option<String> {
    let parsed = parse_action_schema(text);
    parsed
        .errors
        .is_empty()
        .then(|| print_action_schema(&parsed.tree))
}

fn print_events(text: &str) -> Option<String> {
    let parsed = parse_event_schema(text);
    parsed
        .errors
        .is_empty()
        .then(|| print_event_schema(&parsed.tree))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn action_schemas_keep_all(
        tree in schemas::action_schema(),
        choices in prop::collection::vec(0..40u8, 1..60),
    ) {
        let text = print_action_schema(&tree);
        keeps_all(&text, Language::ActionSchema, print_actions)?;
        let text = scattered(&text, Language::ActionSchema, &choices);
        keeps_all(&text, Language::ActionSchema, print_actions)?;
    }

    #[test]
    fn event_schemas_keep_all(
        tree in schemas::event_schema(),
        choices in prop::collection::vec(0..40u8, 1..60),
    ) {
        let text = print_event_schema(&tree);
        keeps_all(&text, Language::EventSchema, print_events)?;
        let text = scattered(&text, Language::EventSchema, &choices);
        keeps_all(&text, Language::EventSchema, print_events)?;
    }
}
