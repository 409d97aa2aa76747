//! `@allow("code")`: a rule whose author means it.

use crate::compile::CheckedRule;
use crate::diagnostic::codes;
use dogwood_grammar::Span;
use dogwood_grammar::ast::Rule;
use dogwood_grammar::diagnostic::{Diagnostic, Severity};

/// The codes a rule allows, each with its place. Several stand in one annotation with commas between
/// them, or in several annotations.
fn codes_of(rule: &Rule) -> Vec<(&str, Span)> {
    let mut found = Vec::new();
    for note in rule.annotations.iter().filter(|n| n.key.text == "allow") {
        let Some(value) = &note.value else { continue };
        let mut at = value.span.start as usize + 1;
        for part in value.value.split(',') {
            let code = part.trim();
            let start = at + (part.len() - part.trim_start().len());
            at += part.len() + 1;
            // Escapes make the value shorter than its text; then the whole string is the place.
            let whole =
                value.span.end as usize - value.span.start as usize == value.value.len() + 2;
            let span = match whole {
                true => Span::new(start, start + code.len()),
                false => value.span,
            };
            if !code.is_empty() {
                found.push((code, span));
            }
        }
    }
    found
}

/// Warnings about codes that do not exist.
pub(crate) fn allowed(checked: &CheckedRule) -> Vec<Diagnostic> {
    let unknown = codes_of(&checked.rule)
        .into_iter()
        .filter(|(code, _)| codes::meaning(code).is_none());
    unknown
        .map(|(code, span)| {
            let found = Diagnostic::warning(
                "unknown-code",
                span,
                format!("no message has the code `{code}`, so this allows nothing"),
            );
            let found = match codes::nearest(code) {
                Some(near) => found.help(format!("did you mean `{near}`?")).fix(
                    format!("change to `{near}`"),
                    span,
                    near,
                ),
                None => found.help("`dogwood explain-error` lists the codes"),
            };
            // A piece of a string is replaced only where it stands as written.
            match span.end as usize - span.start as usize == code.len() {
                true => found.in_source(checked.source),
                false => Diagnostic { fix: None, ..found }.in_source(checked.source),
            }
        })
        .collect()
}

/// Drops the warnings their rule allows.
pub(crate) fn silence(diagnostics: &mut Vec<Diagnostic>, rules: &[CheckedRule]) {
    let allowing: Vec<_> = rules
        .iter()
        .map(|checked| (checked, codes_of(&checked.rule)))
        .filter(|(_, codes)| !codes.is_empty())
        .collect();
    if allowing.is_empty() {
        return;
    }
    diagnostics.retain(|said| {
        let silent = allowing.iter().any(|(checked, codes)| {
            let rule = &checked.rule.span;
            checked.source == said.source
                && rule.start <= said.span.start
                && said.span.end <= rule.end
                && codes.iter().any(|(code, _)| *code == said.code)
        });
        said.severity == Severity::Error || !silent
    });
}
