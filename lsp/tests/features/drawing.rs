//! A text with notes under the places they are about.

use dogwood_compiler::grammar::Span;
use dogwood_lsp::snapshot::Place;

pub fn drawn(text: &str, notes: &[(Span, String)]) -> String {
    let mut notes: Vec<&(Span, String)> = notes.iter().collect();
    notes.sort_by_key(|(span, _)| (span.start, span.end));
    let mut out = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let shown = line.trim_end_matches('\n');
        let here: Vec<_> = notes
            .iter()
            .filter(|(span, _)| {
                let at = span.start as usize;
                start <= at && (at < end || at == end && end == text.len())
            })
            .collect();
        out.push_str(format!("│ {shown}").trim_end());
        out.push('\n');
        for (span, note) in here {
            let from = span.start as usize - start;
            let to = (span.end as usize).min(start + shown.len()) - start;
            let blank = shown.get(..from).unwrap_or("").chars().count();
            let length = shown.get(from..to).unwrap_or("").chars().count();
            let further = if span.end as usize > end { "…" } else { "" };
            let mark = if length == 0 {
                "^".to_owned()
            } else {
                "~".repeat(length)
            };
            let mut lines = note.lines();
            let first = lines.next().unwrap_or("");
            let line = format!("  {}{mark}{further} {first}", " ".repeat(blank));
            out.push_str(line.trim_end());
            out.push('\n');
            for more in lines {
                let line = format!("  {}{more}", " ".repeat(blank + length + 1));
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        start = end;
    }
    out
}

/// Places by document, each under its text.
pub fn places(all: &[(Place, String)]) -> String {
    let mut out = String::new();
    let mut done: Vec<&std::path::Path> = Vec::new();
    for (place, _) in all {
        let path = place.document.path.as_path();
        if done.contains(&path) {
            continue;
        }
        done.push(path);
        let notes: Vec<(Span, String)> = all
            .iter()
            .filter(|(other, _)| other.document.path == path)
            .map(|(other, note)| (other.span, note.clone()))
            .collect();
        out.push_str(&format!(
            "{}\n{}",
            path.display(),
            drawn(&place.document.text, &notes)
        ));
    }
    out
}
