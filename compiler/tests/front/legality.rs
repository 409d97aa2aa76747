//! Which temporal blocks are legal: the table of the language reference, 3.8, and more of its kind.

use super::screen::said;
use super::screen::{depot, diagnostics, draw, in_depot};

fn rule(leaf: &str) -> String {
    let leaf = leaf
        .replace("M{", "Depot::Action::\"move\"::request{")
        .replace("Q{", "Depot::Action::\"weigh\"::request{")
        .replace("B{", "Depot::Action::\"beep\"::request{");
    format!(
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen temporal {{ {leaf} }};\n"
    )
}

/// The codes of what is said about a leaf, in order.
#[track_caller]
fn says(leaf: &str, codes: &[&str]) {
    let policy = rule(leaf);
    let said = diagnostics(&policy, &depot());
    let found: Vec<&str> = said.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(found, codes, "\n{}", draw(&policy, &said));
}

#[test]
fn variables_bound_before_they_are_read() {
    says("exists (k: Long). (M{ input.kg: k } && 0 < k)", &[]);
    says(
        "exists (k: Long). (!(M{input.kg: k}) since within 1h Q{input.kg: k})",
        &[],
    );
    says(
        "exists (k: Long). (M{input.kg: k} && (!(M{input.kg: k}) since within 1h Q{}))",
        &[],
    );
    says(
        "exists (c: String). (c == context.input.crate && formerly within 1h Q{input.crate: c})",
        &[],
    );
    says(
        "exists (c: String). exists (n: Long). (M{input.crate: c} && n == (count for (t: Timepoint). \
         where (formerly within 1h (Q{input.crate: c} && tp(t)))))",
        &[],
    );
    says(
        "exists (k: Long). (M{input.kg: k} && !!(Q{input.kg: k}))",
        &[],
    );
    says(
        "exists (k: Long). (formerly within 1h (M{input.kg: k} && 0 < k) && k != 7)",
        &[],
    );
    says(
        "exists (k: Long). ((M{input.kg: k} && 0 < k) && k != 7)",
        &[],
    );
    says(
        "exists (c: String). (M{ input.crate: c } && exists (c: String). (formerly within 1h Q{ input.crate: c }))",
        &[],
    );
    says(
        "(sum k for (k: Long), (t: Timepoint). where (k == context.input.kg && tp(t))) == 4",
        &[],
    );
    says(
        "exists (k: Long). (M{input.kg: k}{input.crate: \"a\"} && k > 2)",
        &[],
    );
}

#[test]
fn variables_read_too_early() {
    says(
        "exists (k: Long). (0 < k && M{ input.kg: k })",
        &["variable-too-early"],
    );
    says(
        "exists (k: Long). (!(Q{ input.kg: k }) && M{ input.kg: k })",
        &["variable-too-early"],
    );
    says(
        "exists (k: Long). ((M{input.kg: k} since within 1h Q{}) && M{input.kg: k})",
        &["variable-too-early"],
    );
    says(
        "exists (c: String). exists (n: Long). (n == (count for (t: Timepoint). \
         where (formerly within 1h (Q{input.crate: c} && tp(t)))) && M{input.crate: c})",
        &["variable-too-early"],
    );
    // The variable of an inner `exists` is another one.
    says(
        "exists (k: Long). (M{input.kg: k} && exists (k: Long). (0 < k && Q{input.kg: k}))",
        &["variable-too-early"],
    );
}

#[test]
fn variables_that_nothing_restricts() {
    says(
        "exists (k: Long). !(M{ input.kg: k })",
        &["unrestricted-variable"],
    );
    says(
        "exists (k: Long). !!(M{ input.kg: k })",
        &["unrestricted-variable"],
    );
    says(
        "exists (k: Long). (M{input.kg: k} since within 1h Q{})",
        &["unrestricted-variable"],
    );
    says(
        "exists (k: Long). (exists (j: Long). (M{} && k == j))",
        &["unrestricted-variable", "unrestricted-variable"],
    );
    says("exists (k: Long). M{}", &["unused-variable"]);
    says(
        "exists (k: Long). (M{} && k > 3)",
        &["unrestricted-variable"],
    );
}

#[test]
fn free_variables() {
    says("M{ input.kg: k }", &["free-variable"]);
    says("M{} && !(M{ input.kg: k })", &["free-variable"]);
    says(
        "1 <= (count for (t: Timepoint). where (M{input.kg: k} && tp(t)))",
        &["free-variable"],
    );
}

#[test]
fn aggregates() {
    says("(count for (t: Timepoint). where (M{} && tp(t))) <= 3", &[]);
    says(
        "(sum k for (j: Long). where M{ input.kg: j }) <= 3",
        &["summand-not-listed"],
    );
    says(
        "(count for (t: Timepoint). where M{}) <= 3",
        &["unused-variable"],
    );
    says(
        "(count for (k: Long). where (M{} && !(Q{input.kg: k}))) <= 3",
        &["unrestricted-variable"],
    );
    says(
        "M{ input.kg: (count for (t: Timepoint). where (M{} && tp(t))) }",
        &["misplaced-value"],
    );
}

#[test]
fn arithmetic_is_off_and_reserved_names_stay_reserved() {
    says(
        "exists (k: Long). (M{ input.kg: k } && k + 1 < 3)",
        &["arithmetic-off"],
    );
    says(
        "exists (action: Timepoint). (M{} && tp(action))",
        &["reserved-variable", "reserved-variable"],
    );
}

#[test]
fn a_filter_before_its_binder_offers_the_chain_in_order() {
    said!(in_depot(&rule(
        "exists (k: Long). (0 < k && B{} && M{ input.kg: k })"
    )));
}

#[test]
fn a_free_variable_offers_the_exists() {
    said!(in_depot(&rule(
        "formerly within 1h Q{ input.kg: k } && M{ input.kg: k }"
    )));
}

#[test]
fn a_free_time_point_offers_the_exists() {
    said!(in_depot(&rule("formerly within 1h (Q{} && tp(t))")));
}

#[test]
fn a_misspelt_variable_proposes_the_declared_one() {
    said!(in_depot(&rule(
        "exists (crate: String). (M{ input.crate: crate } && formerly within 1h Q{ input.crate: crat })"
    )));
}

#[test]
fn every_kind_of_early_read() {
    said!(in_depot(&format!(
        "{}{}{}{}",
        rule("exists (k: Long). (M{ input.kg: k } since within 1h Q{} && M{ input.kg: k })"),
        rule("exists (k: Long). (!Q{ input.kg: k } && M{ input.kg: k })"),
        rule(
            "exists (c: String). (1 == (count for (t: Timepoint). where (Q{ input.crate: c } && tp(t))) && M{ input.crate: c })"
        ),
        rule(
            "exists (k: Long). exists (n: Long). (n == (count for (t: Timepoint). where (Q{ input.kg: k } && tp(t))) && M{ input.kg: k })"
        ),
    )));
}

#[test]
fn what_an_aggregate_needs() {
    said!(in_depot(&format!(
        "{}{}{}{}{}",
        rule("(sum k for (j: Long). where M{ input.kg: j }) <= 3"),
        rule("(count for (t: Timepoint). where M{}) <= 3"),
        rule("(count for (k: Long). where (M{} && !(Q{ input.kg: k }))) <= 3"),
        rule("M{ input.kg: (count for (t: Timepoint). where (M{} && tp(t))) }"),
        rule("exists (k: Long). (M{ input.kg: k } && k + 1 < 3)"),
    )));
}

#[test]
fn binders_that_do_nothing() {
    said!(in_depot(&format!(
        "{}{}{}",
        rule("exists (k: Long). !(M{ input.kg: k })"),
        rule("exists (k: Long). M{}"),
        rule("exists (action: Timepoint). (M{} && tp(action))"),
    )));
}
