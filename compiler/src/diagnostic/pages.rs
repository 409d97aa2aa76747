//! The pages `dogwood explain-error` shows: why, and a wrong and a right example.
//!
//! A test checks every example: the wrong one is told its code, the right one is not.

/// Code and page, sorted by code.
pub const PAGES: &[(&str, &str)] = &[
    ("absent-unequal", include_str!("pages/absent-unequal.md")),
    (
        "attempt-as-precondition",
        include_str!("pages/attempt-as-precondition.md"),
    ),
    (
        "cap-counts-itself",
        include_str!("pages/cap-counts-itself.md"),
    ),
    ("duplicate-id", include_str!("pages/duplicate-id.md")),
    (
        "forbid-without-permit",
        include_str!("pages/forbid-without-permit.md"),
    ),
    (
        "impossible-scope",
        include_str!("pages/impossible-scope.md"),
    ),
    ("never-now", include_str!("pages/never-now.md")),
    ("open-metadata", include_str!("pages/open-metadata.md")),
    ("partial-pin", include_str!("pages/partial-pin.md")),
    ("positive-since", include_str!("pages/positive-since.md")),
    ("self-match", include_str!("pages/self-match.md")),
    ("shadowed-rule", include_str!("pages/shadowed-rule.md")),
    (
        "temporal-bypassed",
        include_str!("pages/temporal-bypassed.md"),
    ),
    ("unbounded-read", include_str!("pages/unbounded-read.md")),
    ("unknown-code", include_str!("pages/unknown-code.md")),
    (
        "unreachable-prerequisite",
        include_str!("pages/unreachable-prerequisite.md"),
    ),
    ("value-counted", include_str!("pages/value-counted.md")),
    ("window-too-long", include_str!("pages/window-too-long.md")),
    ("zero-window", include_str!("pages/zero-window.md")),
];

/// The page of a code, if it has one.
pub fn page(code: &str) -> Option<&'static str> {
    let at = PAGES.binary_search_by_key(&code, |(name, _)| name).ok()?;
    PAGES.get(at).map(|(_, page)| *page)
}
