//! The name an author probably meant.

use smol_str::SmolStr;

/// The candidate closest to `wanted`, if one is close enough to be worth proposing.
///
/// A name that differs only in its qualification counts as close: `Agent` proposes `Box::Agent`.
pub fn nearest<'c>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'c SmolStr>,
) -> Option<SmolStr> {
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.as_str() != wanted)
        .filter_map(|candidate| distance(wanted, candidate, allowed).map(|d| (d, candidate)))
        .min()
        .map(|(_, candidate)| candidate.clone())
}

fn distance(wanted: &str, candidate: &str, allowed: usize) -> Option<usize> {
    if last_segment(wanted) == last_segment(candidate) {
        return Some(0);
    }
    if wanted.eq_ignore_ascii_case(candidate) {
        return Some(0);
    }
    // Long and far apart: not worth the quadratic comparison.
    if wanted.len().abs_diff(candidate.len()) > allowed * 4 || wanted.len() > 200 {
        return None;
    }
    let edits = strsim::damerau_levenshtein(wanted, candidate);
    if edits <= allowed {
        return Some(edits);
    }
    // `test` for `shell_test`: one a whole part of the other.
    let part = wanted.len() >= 4 && candidate.len() >= 4;
    (part && (candidate.contains(wanted) || wanted.contains(candidate))).then_some(allowed)
}

/// `Clerk` of `Depot::Clerk`.
pub fn last_segment(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn propose(wanted: &str, candidates: &[&str]) -> Option<String> {
        let candidates: Vec<SmolStr> = candidates.iter().map(SmolStr::new).collect();
        nearest(wanted, &candidates).map(String::from)
    }

    #[test]
    fn proposes_what_is_close_and_nothing_else() {
        assert_eq!(
            propose("shell:spwan", &["shell:exec", "shell:spawn"]).as_deref(),
            Some("shell:spawn")
        );
        assert_eq!(
            propose("Agent", &["Other", "Box::Agent"]).as_deref(),
            Some("Box::Agent")
        );
        assert_eq!(
            propose("program", &["program_path", "cwd"]).as_deref(),
            Some("program_path")
        );
        assert_eq!(propose("zebra", &["shell:exec", "cwd"]), None);
    }
}
