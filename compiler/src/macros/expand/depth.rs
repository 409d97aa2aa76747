//! How deep a node is, from how deep its parts are.

use dogwood_grammar::ast::{CondKind, ExprKind, FieldPattern, TermKind};

pub(super) fn expr_depth(kind: &ExprKind) -> u16 {
    let mut deepest = 0;
    // The parts of a node are those `each_part` names, plus a temporal body.
    if let ExprKind::Temporal(leaf) = kind {
        deepest = leaf.body.depth;
    }
    kind.each_part(&mut |part| deepest = deepest.max(part.depth));
    deepest.saturating_add(1)
}

pub(super) fn cond_depth(kind: &CondKind) -> u16 {
    let fields = |groups: &[Vec<FieldPattern>]| {
        groups
            .iter()
            .flatten()
            .map(|field| field.term.depth)
            .max()
            .unwrap_or(0)
    };
    let deepest = match kind {
        CondKind::And(parts) => parts.iter().map(|part| part.depth).max().unwrap_or(0),
        CondKind::Since { left, right, .. } => left.depth.max(right.depth),
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => body.depth,
        CondKind::Compare { left, right, .. } => left.depth.max(right.depth),
        CondKind::Match(matcher) => fields(&matcher.groups),
        CondKind::Tp(_) | CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => 0,
    };
    deepest.saturating_add(1)
}

pub(super) fn term_depth(kind: &TermKind) -> u16 {
    let deepest = match kind {
        TermKind::Array(items) | TermKind::Product(items) => {
            items.iter().map(|item| item.depth).max().unwrap_or(0)
        }
        TermKind::Sum { first, rest } => rest
            .iter()
            .map(|(_, item)| item.depth)
            .max()
            .unwrap_or(0)
            .max(first.depth),
        TermKind::Aggregate(aggregate) => aggregate.body.depth,
        _ => 0,
    };
    deepest.saturating_add(1)
}
