//! Where every tree node is made: the one place that bounds depth, and the parser's error list.

use crate::ast::action_schema::{Ty, TyKind};
use crate::ast::event_schema::{FieldTy, FieldTyKind, Member};
use crate::ast::*;
use crate::error::{SyntaxError, SyntaxErrorKind};
use crate::literal::{self, EscapeFault};
use crate::span::Span;
use crate::token::{Lexeme, Start, Token};
use smol_str::SmolStr;

/// What the semantic actions of the grammars write to.
#[derive(Debug)]
pub(crate) struct Cx<'s> {
    pub(crate) source: &'s str,
    pub(crate) errors: Vec<SyntaxError>,
    /// The tokens of the running parse, to see what stands before a wrong one.
    pub(crate) lexemes: Vec<Lexeme<'s>>,
    /// Up to here the parse is out of step with the text, and its complaints are not passed on.
    muted: usize,
    /// The last part reported as too deep; a part around it is not reported again.
    deep: Option<Span>,
}

impl<'s> Cx<'s> {
    pub(crate) fn new(source: &'s str) -> Cx<'s> {
        Cx {
            source,
            errors: Vec::new(),
            lexemes: Vec::new(),
            muted: 0,
            deep: None,
        }
    }

    /// Starts the parse of one part of the text; gives its tokens as the parsers take them.
    pub(crate) fn begin(
        &mut self,
        start: Start,
        lexemes: Vec<Lexeme<'s>>,
    ) -> Vec<Result<(usize, Token<'s>, usize), ()>> {
        let at = lexemes.first().map_or(0, |first| first.span.start as usize);
        let mut tokens = Vec::with_capacity(lexemes.len() + 1);
        tokens.push(Ok((at, Token::Start(start), at)));
        tokens.extend(lexemes.iter().map(|lexeme| {
            Ok((
                lexeme.span.start as usize,
                lexeme.token,
                lexeme.span.end as usize,
            ))
        }));
        self.lexemes = lexemes;
        tokens
    }

    pub(crate) fn error(&mut self, kind: SyntaxErrorKind, span: Span) {
        self.errors.push(SyntaxError { kind, span });
    }

    /// Takes back what was said about `span`, once its surroundings show that it was right.
    pub(crate) fn retract(&mut self, span: Span, matching: impl Fn(&SyntaxErrorKind) -> bool) {
        let before = self
            .errors
            .iter()
            .rposition(|error| error.span.end <= span.start);
        let recent = self.errors.split_off(before.map_or(0, |before| before + 1));
        self.errors.extend(recent.into_iter().filter(|error| {
            !(matching(&error.kind) && span.start <= error.span.start && error.span.end <= span.end)
        }));
    }

    /// Passes on no parse error from here to the end of the clause at `from`.
    pub(crate) fn mute_clause(&mut self, from: usize) {
        if from < self.muted {
            return;
        }
        let end = self.lexemes.iter().find(|lexeme| {
            let outer = matches!(
                lexeme.token,
                Token::OuterBraceClose | Token::OuterParenClose
            );
            outer && lexeme.span.start as usize >= from
        });
        let end = end.or(self.lexemes.last());
        self.muted = end.map_or(0, |lexeme| lexeme.span.end as usize);
    }

    pub(crate) fn muted(&self, span: Span) -> bool {
        (span.start as usize) < self.muted
    }

    /// Reports at `place` that the part `whole` nests too deeply, unless something in it was reported.
    pub(crate) fn too_deep(&mut self, place: Span, whole: Span) {
        match self
            .deep
            .filter(|deep| whole.start <= deep.end && deep.start <= whole.end)
        {
            Some(deep) => self.deep = Some(deep.to(whole)),
            None => {
                self.error(SyntaxErrorKind::TooDeep, place);
                self.deep = Some(whole);
            }
        }
    }

    pub(crate) fn text(&self, span: Span) -> &'s str {
        self.source.get(span.range()).unwrap_or("")
    }

    // ------------------------------------------------------------------------------------ leaves

    pub(crate) fn ident(&self, l: usize, r: usize) -> Ident {
        let span = Span::new(l, r);
        Ident {
            text: SmolStr::new(self.text(span)),
            span,
        }
    }

    /// A word behind a one-character sigil; the span covers the sigil.
    pub(crate) fn sigil_ident(&self, l: usize, r: usize) -> Ident {
        let text = self.text(Span::new(l + 1, r));
        Ident {
            text: SmolStr::new(text),
            span: Span::new(l, r),
        }
    }

    pub(crate) fn str(&mut self, raw: &str, l: usize, r: usize) -> Str {
        let span = Span::new(l, r);
        let errors = &mut self.errors;
        let value = literal::string(raw, span, &mut |fault, span| {
            let kind = match fault {
                EscapeFault::Unknown => SyntaxErrorKind::InvalidEscape,
                EscapeFault::Star => SyntaxErrorKind::StarEscape,
            };
            errors.push(SyntaxError { kind, span });
        });
        Str { value, span }
    }

    pub(crate) fn int(&mut self, digits: &str, negative: bool, span: Span) -> Option<i64> {
        let value = digits
            .parse::<u64>()
            .ok()
            .and_then(|magnitude| match negative {
                true => 0i64.checked_sub_unsigned(magnitude),
                false => i64::try_from(magnitude).ok(),
            });
        if value.is_none() {
            self.error(SyntaxErrorKind::IntegerRange, span);
        }
        value
    }

    // ------------------------------------------------------------------------------------- nodes

    pub(crate) fn expr(&mut self, kind: ExprKind, span: Span) -> Expr {
        let depth = expr_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span, span);
            return Expr {
                kind: ExprKind::Error,
                span,
                depth: 1,
            };
        }
        Expr { kind, span, depth }
    }

    pub(crate) fn cond(&mut self, kind: CondKind, span: Span) -> Cond {
        let depth = cond_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span, span);
            return Cond {
                kind: CondKind::Error,
                span,
                depth: 1,
            };
        }
        Cond { kind, span, depth }
    }

    pub(crate) fn term(&mut self, kind: TermKind, span: Span) -> Term {
        let depth = term_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span, span);
            return Term {
                kind: TermKind::Error,
                span,
                depth: 1,
            };
        }
        Term { kind, span, depth }
    }

    pub(crate) fn ty(&mut self, kind: TyKind, span: Span) -> Ty {
        let depth = ty_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span, span);
            return Ty {
                kind: TyKind::Error,
                span,
                depth: 1,
            };
        }
        Ty { kind, span, depth }
    }

    pub(crate) fn field_ty(&mut self, kind: FieldTyKind, span: Span) -> FieldTy {
        let depth = field_ty_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span, span);
            return FieldTy {
                kind: FieldTyKind::Error,
                span,
                depth: 1,
            };
        }
        FieldTy { kind, span, depth }
    }
}

fn above(depths: impl IntoIterator<Item = u16>) -> u16 {
    depths.into_iter().max().unwrap_or(0).saturating_add(1)
}

pub(crate) fn expr_depth(kind: &ExprKind) -> u16 {
    match kind {
        ExprKind::Bool(_)
        | ExprKind::Long(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Entity(_)
        | ExprKind::Slot(_)
        | ExprKind::Error => 1,
        ExprKind::Set(all) | ExprKind::Or(all) | ExprKind::And(all) | ExprKind::Product(all) => {
            above(all.iter().map(|e| e.depth))
        }
        ExprKind::Record(fields) => above(fields.iter().map(|field| field.value.depth)),
        ExprKind::If { test, yes, no } => above([test.depth, yes.depth, no.depth]),
        ExprKind::Compare { left, right, .. } | ExprKind::In { left, right } => {
            above([left.depth, right.depth])
        }
        ExprKind::Has { target, .. }
        | ExprKind::Like { target, .. }
        | ExprKind::Attr { target, .. } => above([target.depth]),
        ExprKind::Is { target, within, .. } => {
            above([target.depth, within.as_ref().map_or(0, |e| e.depth)])
        }
        ExprKind::Sum { first, rest } => {
            above(rest.iter().map(|(_, e)| e.depth).chain([first.depth]))
        }
        ExprKind::Not(e) | ExprKind::Neg(e) => above([e.depth]),
        ExprKind::Method { target, args, .. } => {
            above(args.iter().map(|e| e.depth).chain([target.depth]))
        }
        ExprKind::Call { args, .. } => above(args.iter().map(|e| e.depth)),
        ExprKind::Temporal(block) => above([block.body.depth]),
    }
}

pub(crate) fn cond_depth(kind: &CondKind) -> u16 {
    match kind {
        CondKind::And(all) => above(all.iter().map(|c| c.depth)),
        CondKind::Since { left, right, .. } => above([left.depth, right.depth]),
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => above([body.depth]),
        CondKind::Tp(_) | CondKind::Error => 1,
        CondKind::Compare { left, right, .. } => above([left.depth, right.depth]),
        CondKind::Match(matcher) => above(matcher.fields().map(|field| field.term.depth)),
        CondKind::Call(call) => above(call.args.iter().map(arg_depth)),
        CondKind::Param { injected, .. } => above(injected.iter().map(|field| field.term.depth)),
    }
}

pub(crate) fn term_depth(kind: &TermKind) -> u16 {
    match kind {
        TermKind::Int(_)
        | TermKind::Str(_)
        | TermKind::Bool(_)
        | TermKind::Decimal(_)
        | TermKind::Entity(_)
        | TermKind::Context(_)
        | TermKind::Scope { .. }
        | TermKind::Wildcard
        | TermKind::Var(_)
        | TermKind::Error => 1,
        TermKind::Array(all) | TermKind::Product(all) => above(all.iter().map(|t| t.depth)),
        TermKind::Aggregate(aggregate) => above([aggregate.body.depth]),
        TermKind::Sum { first, rest } => {
            above(rest.iter().map(|(_, t)| t.depth).chain([first.depth]))
        }
        TermKind::Call(call) => above(call.args.iter().map(arg_depth)),
    }
}

fn arg_depth(arg: &CallArg) -> u16 {
    match arg {
        CallArg::Window(_) => 0,
        CallArg::Cond(cond) => cond.depth,
        CallArg::Term(term) => term.depth,
    }
}

pub(crate) fn ty_depth(kind: &TyKind) -> u16 {
    match kind {
        TyKind::Name(_) | TyKind::Error => 1,
        TyKind::Set(ty) => above([ty.depth]),
        TyKind::Record(record) => above(record.attrs.iter().map(|attr| attr.ty.depth)),
    }
}

pub(crate) fn field_ty_depth(kind: &FieldTyKind) -> u16 {
    match kind {
        FieldTyKind::Selector { .. } | FieldTyKind::Name(_) | FieldTyKind::Error => 1,
        FieldTyKind::Record(members) => above(members.iter().map(|member| match member {
            Member::Spread(_) => 0,
            Member::Field(field) => field.ty.depth,
        })),
    }
}
