//! Makes a macro of a selected condition or expression.

use super::{Action, ActionKind, sound};
use crate::mark::{Mark, What};
use crate::snapshot::{Snapshot, item_span, within};
use crate::walk::{self, Node};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::{CondKind, ExprKind, Item, Sigil, TermKind};
use dogwood_compiler::grammar::diagnostic::Edit;

/// Which kind of macro a selection can become.
#[derive(Clone, Copy)]
enum Selected {
    Cedar,
    Temporal,
}

pub fn extract(snapshot: &Snapshot, range: Span) -> Option<Action> {
    let text = snapshot.text();
    let written = range.text(text);
    let trimmed = written.trim();
    if trimmed.is_empty() {
        return None;
    }
    let start = range.start as usize + written.find(trimmed)?;
    let selected = Span::new(start, start + trimmed.len());
    let item = snapshot.item_at(start)?;
    if !matches!(item, Item::Rule(_)) || !sound(snapshot, item) {
        return None;
    }
    let kind = selected_part(item, selected)?;
    let (params, body) = abstracted(snapshot, selected, kind);
    let word = match kind {
        Selected::Cedar => "cedar",
        Selected::Temporal => "temporal",
    };
    let name = fresh_name(snapshot);
    let declared: Vec<String> = params.iter().map(|name| format!("?{name}")).collect();
    let definition = format!(
        "def {word} {name}({}) {{\n  {body}\n}};\n\n",
        declared.join(", ")
    );
    let call = format!("{name}({})", params.join(", "));
    Some(Action {
        title: format!("extract to a macro `{name}`"),
        kind: ActionKind::Extract,
        edits: vec![
            Edit {
                span: Span::at(start_of(snapshot, item)),
                text: definition,
            },
            Edit {
                span: selected,
                text: call,
            },
        ],
        mends: None,
    })
}

/// Where a definition goes: before the statement and the comment that belongs to it.
fn start_of(snapshot: &Snapshot, item: &Item) -> usize {
    let document = &snapshot.document;
    let start = item_span(item).start as usize;
    let line = document.lines.line(start);
    let before = text_before(snapshot, line, start);
    if !before.trim().is_empty() {
        return start;
    }
    let mut first = line;
    while let Some(above) = first.checked_sub(1) {
        if !document
            .lines
            .text(&document.text, above)
            .trim()
            .starts_with("//")
        {
            break;
        }
        first = above;
    }
    document.lines.start(&document.text, first)
}

fn text_before(snapshot: &Snapshot, line: usize, offset: usize) -> &str {
    let start = snapshot.document.lines.start(snapshot.text(), line);
    snapshot.text().get(start..offset).unwrap_or("")
}

/// The part that is selected as a whole, if a macro can stand for it. A macro's body calls no macros, and
/// one for expressions neither looks back nor asks a provider.
fn selected_part(item: &Item, selected: Span) -> Option<Selected> {
    let mut kind = None;
    let mut fits = true;
    walk::item(item, &mut |node| {
        if node.span() == selected && kind.is_none() {
            kind = match node {
                Node::Cond(_) => Some(Selected::Temporal),
                Node::Term(term) if matches!(term.kind, TermKind::Aggregate(_)) => {
                    Some(Selected::Temporal)
                }
                Node::Expr(_) => Some(Selected::Cedar),
                _ => None,
            };
        }
        if within(node.span(), selected) {
            match node {
                Node::Cond(cond) if matches!(cond.kind, CondKind::Call(_) | CondKind::Error) => {
                    fits = false;
                }
                Node::Term(term) if matches!(term.kind, TermKind::Call(_) | TermKind::Error) => {
                    fits = false;
                }
                Node::Temporal(_) => fits = false,
                Node::Expr(expr) => match &expr.kind {
                    ExprKind::Call { name, .. } => {
                        let text = name.text();
                        let constructor =
                            matches!(text.as_str(), "decimal" | "datetime" | "duration" | "ip");
                        fits &= constructor;
                    }
                    ExprKind::Error => fits = false,
                    _ => {}
                },
                _ => {}
            }
        }
    });
    kind.filter(|_| fits)
}

/// The variables that are introduced outside, and the text with each of them as a parameter.
fn abstracted(snapshot: &Snapshot, selected: Span, kind: Selected) -> (Vec<String>, String) {
    let text = snapshot.text();
    let mut params: Vec<String> = Vec::new();
    let mut body = String::new();
    let mut from = selected.start as usize;
    if let Selected::Temporal = kind {
        let outside = |mark: &&Mark| {
            within(mark.span, selected)
                && matches!(&mark.what, What::Local(local)
                    if local.sigil == Sigil::Plain && !within(local.binder, selected))
        };
        for mark in snapshot.document.marks().iter().filter(outside) {
            let name = mark.span.text(text);
            if !params.iter().any(|known| known == name) {
                params.push(name.to_owned());
            }
            body.push_str(text.get(from..mark.span.start as usize).unwrap_or(""));
            body.push('?');
            body.push_str(name);
            from = mark.span.end as usize;
        }
    }
    body.push_str(text.get(from..selected.end as usize).unwrap_or(""));
    (params, body)
}

fn fresh_name(snapshot: &Snapshot) -> String {
    let taken = snapshot.all_macros();
    let free = |name: &str| taken.iter().all(|(def, _)| def.name.text != name);
    let mut name = "condition".to_owned();
    let mut number = 2;
    while !free(&name) {
        name = format!("condition_{number}");
        number += 1;
    }
    name
}
