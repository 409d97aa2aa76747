//! How operators bind: each text and the tree it stands for, as another text that spells it out.

use dogwood_grammar::print::{print_cond, print_expr};
use dogwood_grammar::{parse_condition, parse_expr};

/// Both texts stand for one tree.
#[track_caller]
fn same_expr(one: &str, other: &str) {
    let (one, other) = (parse_expr(one), parse_expr(other));
    assert_eq!((&one.errors, &other.errors), (&vec![], &vec![]));
    assert_eq!(print_expr(&one.tree), print_expr(&other.tree));
}

#[track_caller]
fn same_cond(one: &str, other: &str) {
    let (left, right) = (parse_condition(one), parse_condition(other));
    assert_eq!(left.errors, [], "{one}");
    assert_eq!(right.errors, [], "{other}");
    assert_eq!(print_cond(&left.tree), print_cond(&right.tree));
}

#[track_caller]
fn other_cond(one: &str, other: &str) {
    let (left, right) = (parse_condition(one), parse_condition(other));
    assert_eq!((&left.errors, &right.errors), (&vec![], &vec![]));
    assert_ne!(print_cond(&left.tree), print_cond(&right.tree));
}

#[test]
fn expressions() {
    same_expr("true || false && true", "true || (false && true)");
    same_expr("1 + 2 * 3 - 4 == 3", "((1 + (2 * 3) - 4) == 3)");
    same_expr("1 < 2 == true", "(1 < 2) == true");
    same_expr("!context.a.b()", "!(context.a.b())");
    same_expr("if true then 1 else 2 + 3", "if true then 1 else (2 + 3)");
    same_expr("!true == false", "(!true) == false");
    same_expr("1 in [2] && true", "(1 in [2]) && true");
}

#[test]
fn conditions() {
    same_cond(
        "!tp(a) since within 1h tp(b) && tp(c)",
        "((!tp(a)) since within 1h tp(b)) && tp(c)",
    );
    same_cond(
        "exists (x: T). tp(a) && tp(b)",
        "exists (x: T). (tp(a) && tp(b))",
    );
    other_cond(
        "(exists (x: T). tp(a)) && tp(b)",
        "exists (x: T). tp(a) && tp(b)",
    );
    same_cond(
        "formerly within 1h tp(a) && tp(b)",
        "(formerly within 1h tp(a)) && tp(b)",
    );
    same_cond("!x == y", "!(x == y)");
    same_cond("formerly within 1h x == y", "formerly within 1h (x == y)");
    same_cond("a + b * c == d", "(a + (b * c)) == d");
}

#[test]
fn a_comparison_behind_a_condition_is_the_aggregates() {
    same_cond(
        "count for (t: T). where formerly within 1m (tp(t)) <= 3",
        "(count for (t: T). where formerly within 1m (tp(t))) <= 3",
    );
    same_cond(
        "count for (t: T). where tp(t) && A::\"a\"::r{} <= 3 && tp(u) && tp(v)",
        "(count for (t: T). where tp(t) && A::\"a\"::r{}) <= 3 && tp(u) && tp(v)",
    );
    same_cond(
        "exists (u: U). count for (t: T). where exists (v: V). (tp(t)) <= 3 && tp(u)",
        "exists (u: U). ((count for (t: T). where exists (v: V). (tp(t))) <= 3 && tp(u))",
    );
    same_cond(
        "1 + count for (t: T). where !(tp(t)) <= 3",
        "(1 + (count for (t: T). where !(tp(t)))) <= 3",
    );
    same_cond(
        "2 <= count for (t: T). where tp(t) && tp(u)",
        "2 <= (count for (t: T). where (tp(t) && tp(u)))",
    );
    // A value can be compared, so here the comparison stays inside.
    same_cond(
        "(count for (t: T). where tp(t) && x <= 3) == 1",
        "(count for (t: T). where (tp(t) && (x <= 3))) == 1",
    );
}
