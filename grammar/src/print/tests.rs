//! Printing and reading again is the identity on trees, apart from spans.

use super::*;
use crate::{
    Parsed, parse_action_schema, parse_condition, parse_event_schema, parse_expr, parse_policy,
};
use proptest::prelude::*;
use std::fmt::Debug;

mod policies;
mod schema_layouts;
mod schemas;

/// The tree without its places.
fn shape(tree: &impl Debug) -> String {
    let text = format!("{tree:?}");
    let mut shape = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Span { start: ") {
        shape.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('}').map_or(rest.len(), |end| end + 1)..];
    }
    shape.push_str(rest);
    shape
}

fn same<T: Debug>(tree: &T, text: &str, parsed: &Parsed<T>) -> Result<(), TestCaseError> {
    prop_assert!(parsed.errors.is_empty(), "{text}\n{:?}", parsed.errors);
    prop_assert_eq!(shape(tree), shape(&parsed.tree), "{}", text);
    Ok(())
}

fn laid_out(parsed: &Parsed<PolicyFile>, text: &str) -> String {
    let items = parsed.tree.items.iter();
    let texts: Vec<String> = items
        .filter_map(|item| lay_out(item, text, &parsed.trivia))
        .collect();
    texts.join("\n\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn expressions_are_read_back(tree in policies::expr()) {
        let text = print_expr(&tree);
        same(&tree, &text, &parse_expr(&text))?;
    }

    #[test]
    fn conditions_are_read_back(tree in policies::cond()) {
        let text = print_cond(&tree);
        same(&tree, &text, &parse_condition(&text))?;
    }

    #[test]
    fn policies_are_read_back(tree in policies::policy()) {
        let text = print_policy(&tree);
        same(&tree, &text, &parse_policy(&text))?;
    }

    /// Broken lines do not change the tree, and laying out again changes nothing.
    #[test]
    fn laid_out_policies_are_read_back(tree in policies::policy()) {
        let text = print_policy(&tree);
        let parsed = parse_policy(&text);
        let again = laid_out(&parsed, &text);
        same(&tree, &again, &parse_policy(&again))?;
        prop_assert_eq!(&laid_out(&parse_policy(&again), &again), &again);
    }

    #[test]
    fn action_schemas_are_read_back(tree in schemas::action_schema()) {
        let text = print_action_schema(&tree);
        same(&tree, &text, &parse_action_schema(&text))?;
        let text = lay_out_action_schema(&tree);
        same(&tree, &text, &parse_action_schema(&text))?;
    }

    #[test]
    fn event_schemas_are_read_back(tree in schemas::event_schema()) {
        let text = print_event_schema(&tree);
        same(&tree, &text, &parse_event_schema(&text))?;
    }
}

#[test]
fn layout() {
    let source = r#"
        @id("quiet hours") @noted
        forbid(action in [A::"x", A::"y"], principal is U in G::"g")
        when guardrails { !(context.n == -1) && (context.a || resource has b.c) }
        unless temporal { exists (t: Timepoint). tp(t) && (count for (u: T). where tp(u)) <= 3 };
        def temporal often(?w, ?s) { (count for ($t: T). where formerly within ?w (?s{ a: $t } && tp($t))) };
    "#;
    insta::assert_snapshot!("policy", print_policy(&parse_policy(source).tree));
    let source = r#"entity A, B in P = { a: Long, "b c"?: Set<String> } tags Bool;
        namespace N { @doc("d") action go, "stop now" in Any appliesTo { resource: R, principal: [P], context: {} }; type T = {}; }"#;
    insta::assert_snapshot!(
        "action_schema",
        print_action_schema(&parse_action_schema(source).tree)
    );
    let source = "max_window = 2 d decision event <A>::request { ...inputs(A), pin who: principalType(A) = principal.boss, g: { n: Long } }";
    insta::assert_snapshot!(
        "event_schema",
        print_event_schema(&parse_event_schema(source).tree)
    );
}
