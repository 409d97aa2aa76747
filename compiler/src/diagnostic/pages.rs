//! The pages `dogwood explain-error` shows: why, and a wrong and a right example.
//!
//! A page is plain text with indented examples under headings. `Wrong:` and `Right:` stand before a policy,
//! `Wrong event schema:` and the like before another kind of file; files under `With this …:` go with both.
//! A test checks every example: the wrong one is told its code, the right one nothing.

/// Code and page, sorted by code.
pub use super::codes::PAGES;

/// The page of a code, if there is such a code.
pub fn page(code: &str) -> Option<&'static str> {
    let at = PAGES.binary_search_by_key(&code, |(name, _)| name).ok()?;
    PAGES.get(at).map(|(_, page)| *page)
}
