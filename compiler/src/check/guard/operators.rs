//! Typing of comparisons, membership, sets and records.

use super::ty::Ty;
use super::{Capabilities, Guard, Place};
use crate::automaton::parse_decimal;
use crate::check::problem::Problem;
use crate::schema::{ActionSchema, Extension, Type};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{CompareOp, EntityRef, Expr, ExprKind, RecordField, Var};

impl<'s> Guard<'_, 's> {
    pub(super) fn want_long(&mut self, expr: &Expr, caps: &Capabilities, place: Place<'_, 's>) {
        match self.expr(expr, caps, place).0 {
            Ty::Long | Ty::Unknown => {}
            other => self.expected("a Long", &other, expr.span),
        }
    }

    pub(super) fn want_string(&mut self, expr: &Expr, caps: &Capabilities, place: Place<'_, 's>) {
        match self.expr(expr, caps, place).0 {
            Ty::Str | Ty::Unknown => {}
            other => self.expected("a String", &other, expr.span),
        }
    }

    pub(super) fn compare(
        &mut self,
        span: Span,
        op: CompareOp,
        left: &Expr,
        right: &Expr,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        match op {
            CompareOp::Eq => self.equal(span, left, right, caps, place),
            CompareOp::Ne => self.equal(span, left, right, caps, place).negated(),
            _ => {
                let (a, _) = self.expr(left, caps, place);
                let (b, _) = self.expr(right, caps, place);
                self.ordered(&a, left.span);
                self.ordered(&b, right.span);
                let ordered = is_ordered(&a) && is_ordered(&b);
                if ordered && a.join(&b).is_none() {
                    self.unlike(span, (left, &a), (right, &b));
                }
                Ty::Bool(None)
            }
        }
    }

    fn ordered(&mut self, ty: &Ty<'s>, span: Span) {
        if !is_ordered(ty) {
            self.expected("a Long, a datetime or a duration", ty, span);
        }
    }

    fn equal(
        &mut self,
        span: Span,
        left: &Expr,
        right: &Expr,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        let (a, _) = self.expr(left, caps, place);
        let (b, _) = self.expr(right, caps, place);
        if let (Ty::Entity(one), Ty::Entity(other)) = (&a, &b)
            && one != other
        {
            // Legal, and false: the other branch of a rule about several types may need it.
            let (left, right) = (a.name(), b.name());
            self.tested(span, false, || Problem::NeverEqual { left, right });
            return Ty::Bool(Some(false));
        }
        if a.join(&b).is_none() {
            if is_literal(left) && is_literal(right) {
                let (left, right) = (a.name(), b.name());
                self.tested(span, false, || Problem::NeverEqual { left, right });
                return Ty::Bool(Some(false));
            }
            self.unlike(span, (left, &a), (right, &b));
            return Ty::Bool(None);
        }
        if matches!((&a, &b), (Ty::Entity(_), Ty::Entity(_))) {
            self.tested(span, true, || Problem::NeverApplies);
        }
        match (self.constant(left, place), self.constant(right, place)) {
            (Some(one), Some(other)) => Ty::Bool(Some(one == other)),
            _ => literals_equal(left, right).map_or(Ty::Bool(None), |same| Ty::Bool(Some(same))),
        }
    }

    /// Says that two sides have different types; of a literal, that it is of the wrong one.
    fn unlike(&mut self, span: Span, left: (&Expr, &Ty<'s>), right: (&Expr, &Ty<'s>)) {
        let (literal, other) = match (is_literal(left.0), is_literal(right.0)) {
            (false, true) => (right, left.1),
            (true, false) => (left, right.1),
            _ => {
                let (left, right) = (left.1.name(), right.1.name());
                let what = "the two sides";
                let problem = Problem::Incompatible { what, left, right };
                return self.report.add(span, problem);
            }
        };
        let problem = Problem::WrongLiteral {
            other: other.name(),
            found: literal.1.name(),
            replacement: self.replacement(literal.0, other),
        };
        self.report.add(literal.0.span, problem);
    }

    /// The literal of type `wanted` that was probably meant by this one.
    fn replacement(&self, literal: &Expr, wanted: &Ty<'s>) -> Option<String> {
        let wanted = wanted.to_type()?;
        match &literal.kind {
            ExprKind::Str(text) => literal_of(self.schema, text, &wanted),
            ExprKind::Long(number) if wanted == Type::String => Some(format!("\"{number}\"")),
            _ => None,
        }
    }

    /// The entity an expression stands for whatever the request: a literal, or the action.
    fn constant(&self, expr: &Expr, place: Place<'_, 's>) -> Option<EntityUid> {
        match &expr.kind {
            ExprKind::Entity(entity) => Some(uid(entity)),
            ExprKind::Var(Var::Action) => Some(place.request.action.uid.clone()),
            _ => None,
        }
    }

    /// `left in right`.
    pub(super) fn member(
        &mut self,
        span: Span,
        left: &Expr,
        right: &Expr,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        let (a, _) = self.expr(left, caps, place);
        let (b, _) = self.expr(right, caps, place);
        let below = match &a {
            Ty::Entity(ty) => Some(ty),
            Ty::Unknown => None,
            other => {
                self.expected("an entity", other, left.span);
                None
            }
        };
        let above = match &b {
            Ty::Entity(ty) => Some(ty),
            Ty::Set(element) => match element.as_ref() {
                Ty::Entity(ty) => Some(ty),
                Ty::Unknown => None,
                _ => {
                    self.expected("an entity or a set of entities", &b, right.span);
                    None
                }
            },
            Ty::Unknown => None,
            other => {
                self.expected("an entity or a set of entities", other, right.span);
                None
            }
        };
        let (Some(below), Some(above)) = (below, above) else {
            return Ty::Bool(None);
        };
        if let (Some(one), Some(groups)) = (self.action(left, place), self.actions(right, place)) {
            let action = self.schema.actions.get(&one);
            let within = groups.iter().any(|group| {
                *group == one || action.is_some_and(|action| action.ancestors.contains(group))
            });
            return Ty::Bool(Some(within));
        }
        let possible = below == above
            || self
                .schema
                .entity_types
                .get(below)
                .is_some_and(|ty| ty.ancestors.contains(above))
            || (self.schema.is_action_type(below) && self.schema.is_action_type(above));
        let (left, right) = (below.clone(), above.clone());
        self.tested(span, possible, || Problem::NeverIn { left, right });
        if possible {
            Ty::Bool(None)
        } else {
            Ty::Bool(Some(false))
        }
    }

    fn action(&self, expr: &Expr, place: Place<'_, 's>) -> Option<EntityUid> {
        self.constant(expr, place)
            .filter(|uid| self.schema.actions.contains_key(uid))
    }

    fn actions(&self, expr: &Expr, place: Place<'_, 's>) -> Option<Vec<EntityUid>> {
        match &expr.kind {
            ExprKind::Set(items) => items.iter().map(|item| self.action(item, place)).collect(),
            _ => self.action(expr, place).map(|uid| vec![uid]),
        }
    }

    pub(super) fn set(
        &mut self,
        span: Span,
        items: &[Expr],
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        if items.is_empty() {
            self.report.add(span, Problem::EmptySet);
            return Ty::Unknown;
        }
        let mut element = Ty::Unknown;
        for item in items {
            let (ty, _) = self.expr(item, caps, place);
            match element.join(&ty) {
                Some(joined) => element = joined,
                None => {
                    let problem = Problem::MixedSet {
                        first: element.name(),
                        found: ty.name(),
                    };
                    self.report.add(item.span, problem);
                }
            }
        }
        Ty::Set(Box::new(element))
    }

    pub(super) fn record(
        &mut self,
        fields: &[RecordField],
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        let typed: Vec<_> = fields
            .iter()
            .map(|field| {
                (
                    field.key.name.clone(),
                    self.expr(&field.value, caps, place).0,
                )
            })
            .collect();
        Ty::record(typed)
    }
}

/// What an author who wrote `text` between quotes probably meant, where `wanted` is needed.
pub fn literal_of(schema: &ActionSchema, text: &str, wanted: &Type) -> Option<String> {
    match wanted {
        Type::Long => text.parse::<i64>().ok().map(|number| number.to_string()),
        Type::Bool => matches!(text, "true" | "false").then(|| text.to_owned()),
        Type::Entity(name) => {
            let choices = schema.entity_types.get(name)?.choices.as_ref()?;
            let known = choices.iter().any(|choice| choice == text);
            known.then(|| format!("{name}::{text:?}"))
        }
        Type::Ext(Extension::Decimal) => parse_decimal(text).map(|_| format!("decimal({text:?})")),
        _ => None,
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Str(_) | ExprKind::Long(_) | ExprKind::Bool(_) | ExprKind::Entity(_)
    )
}

fn is_ordered(ty: &Ty) -> bool {
    matches!(
        ty,
        Ty::Unknown | Ty::Long | Ty::Ext(Extension::Datetime) | Ty::Ext(Extension::Duration)
    )
}

fn uid(entity: &EntityRef) -> EntityUid {
    EntityUid::new(entity.ty.text(), entity.id.value.clone())
}

fn literals_equal(left: &Expr, right: &Expr) -> Option<bool> {
    match (&left.kind, &right.kind) {
        (ExprKind::Bool(a), ExprKind::Bool(b)) => Some(a == b),
        (ExprKind::Long(a), ExprKind::Long(b)) => Some(a == b),
        (ExprKind::Str(a), ExprKind::Str(b)) => Some(a == b),
        _ => None,
    }
}
