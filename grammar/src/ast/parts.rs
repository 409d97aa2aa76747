//! What a node of the tree is made of.

use super::{Expr, ExprKind};

impl ExprKind {
    /// The direct parts of an expression of this kind, a temporal body not included.
    pub fn each_part<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match self {
            ExprKind::Bool(_)
            | ExprKind::Long(_)
            | ExprKind::Str(_)
            | ExprKind::Var(_)
            | ExprKind::Entity(_)
            | ExprKind::Slot(_)
            | ExprKind::Temporal(_)
            | ExprKind::Error => {}
            ExprKind::Set(items)
            | ExprKind::Or(items)
            | ExprKind::And(items)
            | ExprKind::Product(items)
            | ExprKind::Call { args: items, .. } => items.iter().for_each(visit),
            ExprKind::Record(fields) => fields.iter().for_each(|field| visit(&field.value)),
            ExprKind::If { test, yes, no } => {
                visit(test);
                visit(yes);
                visit(no);
            }
            ExprKind::Compare { left, right, .. } | ExprKind::In { left, right } => {
                visit(left);
                visit(right);
            }
            ExprKind::Has { target, .. }
            | ExprKind::Like { target, .. }
            | ExprKind::Attr { target, .. } => visit(target),
            ExprKind::Is { target, within, .. } => {
                visit(target);
                if let Some(within) = within {
                    visit(within);
                }
            }
            ExprKind::Sum { first, rest } => {
                visit(first);
                rest.iter().for_each(|(_, item)| visit(item));
            }
            ExprKind::Not(inner) | ExprKind::Neg(inner) => visit(inner),
            ExprKind::Method { target, args, .. } => {
                visit(target);
                args.iter().for_each(visit);
            }
        }
    }
}
