//! Generated policy trees.

use crate::ast::*;
use crate::span::Span;
use crate::tree::Cx;
use proptest::prelude::*;
use proptest::sample::select;
use smol_str::SmolStr;

const NOWHERE: Span = Span { start: 0, end: 0 };

pub(super) fn ident(text: impl Into<SmolStr>) -> Ident {
    Ident {
        text: text.into(),
        span: NOWHERE,
    }
}

pub(super) fn string() -> impl Strategy<Value = Str> {
    "(?s).{0,5}".prop_map(|value| Str {
        value: value.into(),
        span: NOWHERE,
    })
}

/// Any word, keywords above all.
pub(super) fn word() -> impl Strategy<Value = Ident> {
    prop_oneof![
        "[A-Za-z_][A-Za-z0-9_]{0,4}",
        select(vec![
            "permit",
            "forbid",
            "when",
            "unless",
            "guardrails",
            "temporal",
            "def",
            "cedar",
            "if",
            "then",
            "else",
            "has",
            "like",
            "is",
            "in",
            "formerly",
            "previous",
            "since",
            "within",
            "exists",
            "for",
            "where",
            "count",
            "sum",
            "tp",
            "let",
            "true",
            "false",
            "principal",
            "action",
            "resource",
            "context",
            "namespace",
            "entity",
            "type",
            "tags",
            "enum",
            "appliesTo",
            "attributes",
            "Set",
            "max_window",
            "decision",
            "event",
            "pin",
            "decimal",
            "_",
        ])
        .prop_map(str::to_owned),
    ]
    .prop_map(ident)
}

pub(super) fn words() -> impl Strategy<Value = Vec<Ident>> {
    prop::collection::vec(word(), 1..3)
}

pub(super) fn name() -> impl Strategy<Value = Name> {
    words().prop_map(|path| Name {
        path,
        span: NOWHERE,
    })
}

fn entity() -> impl Strategy<Value = EntityRef> {
    (name(), string()).prop_map(|(ty, id)| EntityRef {
        ty,
        id,
        span: NOWHERE,
    })
}

pub(super) fn annotations() -> impl Strategy<Value = Vec<Annotation>> {
    let one = (word(), prop::option::of(string())).prop_map(|(key, value)| Annotation {
        key,
        value,
        span: NOWHERE,
    });
    prop::collection::vec(one, 0..2)
}

/// A name for a function, method or macro that the language does not know.
fn own_name() -> impl Strategy<Value = Ident> {
    prop_oneof![
        "f[a-z]{0,3}0",
        select(vec!["when", "then", "permit", "in", "within", "has"]).prop_map(str::to_owned)
    ]
    .prop_map(ident)
}

// ------------------------------------------------------------------------------------ expressions

fn make_expr(kind: ExprKind) -> Expr {
    Cx::new("").expr(kind, NOWHERE)
}

fn attr() -> impl Strategy<Value = Attr> {
    prop_oneof![
        word().prop_map(|word| Attr {
            name: word.text,
            quoted: false,
            span: NOWHERE
        }),
        string().prop_map(|text| Attr {
            name: text.value,
            quoted: true,
            span: NOWHERE
        }),
    ]
}

fn has_path() -> impl Strategy<Value = Vec<Attr>> {
    prop_oneof![
        words().prop_map(|path| {
            path.into_iter()
                .map(|word| Attr {
                    name: word.text,
                    quoted: false,
                    span: NOWHERE,
                })
                .collect()
        }),
        string().prop_map(|text| vec![Attr {
            name: text.value,
            quoted: true,
            span: NOWHERE
        }]),
    ]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop::collection::vec(prop::option::of("(?s).{1,3}"), 0..4).prop_map(|raw| {
        let mut parts: Vec<PatternPart> = Vec::new();
        for part in raw {
            match (part, parts.last_mut()) {
                (Some(more), Some(PatternPart::Text(text))) => {
                    *text = SmolStr::new(format!("{text}{more}"));
                }
                (Some(text), _) => parts.push(PatternPart::Text(text.into())),
                (None, Some(PatternPart::Any)) => {}
                (None, _) => parts.push(PatternPart::Any),
            }
        }
        Pattern {
            parts,
            span: NOWHERE,
        }
    })
}

fn compare_op() -> impl Strategy<Value = CompareOp> {
    select(vec![
        CompareOp::Eq,
        CompareOp::Ne,
        CompareOp::Lt,
        CompareOp::Le,
        CompareOp::Gt,
        CompareOp::Ge,
    ])
}

fn sum_op() -> impl Strategy<Value = SumOp> {
    select(vec![SumOp::Add, SumOp::Sub])
}

fn long() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -2..3i64, Just(i64::MIN)]
}

pub(super) fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(ExprKind::Bool),
        long().prop_map(ExprKind::Long),
        string().prop_map(|text| ExprKind::Str(text.value)),
        select(vec![
            Var::Principal,
            Var::Action,
            Var::Resource,
            Var::Context
        ])
        .prop_map(ExprKind::Var),
        entity().prop_map(ExprKind::Entity),
        word().prop_map(ExprKind::Slot),
    ]
    .prop_map(make_expr);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new).boxed();
        let some = prop::collection::vec(inner.clone(), 0..3).boxed();
        let two = prop::collection::vec(inner.clone(), 2..4).boxed();
        let fields = prop::collection::vec((attr(), inner.clone()), 0..3);
        prop_oneof![
            some.clone().prop_map(ExprKind::Set),
            fields.prop_map(|fields| {
                let mut record: Vec<RecordField> = Vec::new();
                for (key, value) in fields {
                    if record.iter().all(|field| field.key.name != key.name) {
                        record.push(RecordField { key, value });
                    }
                }
                ExprKind::Record(record)
            }),
            (boxed.clone(), boxed.clone(), boxed.clone())
                .prop_map(|(test, yes, no)| ExprKind::If { test, yes, no }),
            two.clone().prop_map(ExprKind::Or),
            two.clone().prop_map(ExprKind::And),
            two.prop_map(ExprKind::Product),
            (compare_op(), boxed.clone(), boxed.clone())
                .prop_map(|(op, left, right)| ExprKind::Compare { op, left, right }),
            (boxed.clone(), boxed.clone()).prop_map(|(left, right)| ExprKind::In { left, right }),
            (boxed.clone(), has_path()).prop_map(|(target, path)| ExprKind::Has { target, path }),
            (boxed.clone(), pattern())
                .prop_map(|(target, pattern)| ExprKind::Like { target, pattern }),
            (boxed.clone(), name(), prop::option::of(boxed.clone()))
                .prop_map(|(target, ty, within)| ExprKind::Is { target, ty, within }),
            (
                boxed.clone(),
                prop::collection::vec((sum_op(), inner.clone()), 1..3)
            )
                .prop_map(|(first, rest)| ExprKind::Sum { first, rest }),
            boxed.clone().prop_map(ExprKind::Not),
            boxed.clone().prop_map(ExprKind::Neg),
            (boxed.clone(), attr()).prop_map(|(target, attr)| ExprKind::Attr { target, attr }),
            (boxed.clone(), own_name(), some.clone())
                .prop_map(|(target, name, args)| ExprKind::Method { target, name, args }),
            (prop::collection::vec(word(), 0..2), own_name(), some).prop_map(
                |(mut path, last, args)| {
                    path.push(last);
                    ExprKind::Call {
                        name: Name {
                            path,
                            span: NOWHERE,
                        },
                        args,
                    }
                }
            ),
            cond().prop_map(|body| {
                ExprKind::Temporal(Box::new(Temporal {
                    keyword: NOWHERE,
                    body,
                    span: NOWHERE,
                }))
            }),
        ]
        .prop_map(make_expr)
    })
}

// ------------------------------------------------------------------------------ temporal language

fn make_cond(kind: CondKind) -> Cond {
    Cx::new("").cond(kind, NOWHERE)
}

fn make_term(kind: TermKind) -> Term {
    Cx::new("").term(kind, NOWHERE)
}

fn var(keywords: &'static [&'static str]) -> impl Strategy<Value = VarRef> {
    let plain = prop_oneof![
        "[a-z]{1,2}0",
        select(keywords.to_vec()).prop_map(str::to_owned)
    ]
    .prop_map(|name| (Sigil::Plain, name));
    let sigil = (select(vec![Sigil::Param, Sigil::Fresh]), word())
        .prop_map(|(sigil, name)| (sigil, name.text.to_string()));
    prop_oneof![plain, sigil].prop_map(|(sigil, name)| VarRef {
        sigil,
        name: name.into(),
        span: NOWHERE,
    })
}

fn any_var() -> impl Strategy<Value = VarRef> {
    var(&[
        "since", "for", "where", "count", "sum", "tp", "exists", "if", "within", "has", "when",
    ])
}

fn binder() -> impl Strategy<Value = Binder> {
    (any_var(), name()).prop_map(|(var, ty)| Binder {
        var,
        ty,
        span: NOWHERE,
    })
}

pub(super) fn amount() -> impl Strategy<Value = Window> {
    let units = select(vec![Unit::Second, Unit::Minute, Unit::Hour, Unit::Day]);
    (1..=i64::MAX as u64, units).prop_map(|(amount, unit)| Window {
        kind: WindowKind::Amount { amount, unit },
        span: NOWHERE,
    })
}

fn window() -> impl Strategy<Value = Window> {
    prop_oneof![
        amount(),
        word().prop_map(|word| Window {
            kind: WindowKind::Param(word),
            span: NOWHERE
        })
    ]
}

fn leaf_term() -> impl Strategy<Value = Term> {
    prop_oneof![
        long().prop_map(TermKind::Int),
        string().prop_map(|text| TermKind::Str(text.value)),
        any::<bool>().prop_map(TermKind::Bool),
        string().prop_map(TermKind::Decimal),
        entity().prop_map(TermKind::Entity),
        words().prop_map(TermKind::Context),
        (
            select(vec![ScopeRoot::Principal, ScopeRoot::Resource]),
            prop::collection::vec(word(), 0..3)
        )
            .prop_map(|(root, path)| TermKind::Scope { root, path }),
        Just(TermKind::Wildcard),
        any_var().prop_map(TermKind::Var),
    ]
    .prop_map(make_term)
}

fn fields(term: impl Strategy<Value = Term>) -> impl Strategy<Value = Vec<FieldPattern>> {
    let one = (words(), term).prop_map(|(path, term)| FieldPattern {
        path,
        term,
        span: NOWHERE,
    });
    prop::collection::vec(one, 0..3)
}

fn matcher(term: impl Strategy<Value = Term>) -> impl Strategy<Value = Matcher> {
    (
        name(),
        string(),
        word(),
        prop::collection::vec(fields(term), 1..3),
    )
        .prop_map(|(ty, action, kind, groups)| Matcher {
            event: EventName {
                ty,
                action,
                kind,
                span: NOWHERE,
            },
            groups,
            span: NOWHERE,
        })
}

/// A term over conditions: aggregates, arithmetic and calls.
fn term(cond: BoxedStrategy<Cond>) -> BoxedStrategy<Term> {
    leaf_term()
        .prop_recursive(2, 8, 3, move |inner| {
            let two = prop::collection::vec(inner.clone(), 2..4);
            let sum = prop::collection::vec((sum_op(), inner.clone()), 1..3);
            prop_oneof![
                aggregate(cond.clone()).prop_map(|one| TermKind::Aggregate(Box::new(one))),
                two.prop_map(TermKind::Product),
                (inner.clone().prop_map(Box::new), sum)
                    .prop_map(|(first, rest)| TermKind::Sum { first, rest }),
                macro_call(cond.clone(), inner.boxed()).prop_map(TermKind::Call),
            ]
            .prop_map(make_term)
        })
        .boxed()
}

fn aggregate(cond: BoxedStrategy<Cond>) -> impl Strategy<Value = Aggregate> {
    let op = prop_oneof![
        Just(AggregateOp::Count),
        var(&[
            "where", "count", "sum", "tp", "exists", "if", "within", "has"
        ])
        .prop_map(AggregateOp::Sum),
    ];
    (op, prop::collection::vec(binder(), 1..3), cond).prop_map(|(op, binders, body)| Aggregate {
        op,
        binders,
        body,
        span: NOWHERE,
    })
}

fn macro_call(
    cond: BoxedStrategy<Cond>,
    term: BoxedStrategy<Term>,
) -> impl Strategy<Value = MacroCall> {
    // A call or `?x` alone is read as a term.
    let cond = cond.prop_filter("reads as a term", |cond| {
        !matches!(&cond.kind, CondKind::Call(_))
            && !matches!(&cond.kind, CondKind::Param { injected, .. } if injected.is_empty())
    });
    let array = prop::collection::vec(term.clone(), 0..3).prop_map(TermKind::Array);
    let arg = prop_oneof![
        amount().prop_map(CallArg::Window),
        cond.prop_map(CallArg::Cond),
        term.prop_map(CallArg::Term),
        array.prop_map(|array| CallArg::Term(make_term(array))),
    ];
    (own_name(), prop::collection::vec(arg, 0..3)).prop_map(|(name, args)| MacroCall {
        name,
        args,
        span: NOWHERE,
    })
}

pub(super) fn cond() -> impl Strategy<Value = Cond> {
    let leaf =
        prop_oneof![
            any_var().prop_map(CondKind::Tp),
            (compare_op(), leaf_term(), leaf_term())
                .prop_map(|(op, left, right)| CondKind::Compare { op, left, right }),
            matcher(leaf_term()).prop_map(CondKind::Match),
            (word(), fields(leaf_term()))
                .prop_map(|(name, injected)| CondKind::Param { name, injected }),
        ]
        .prop_map(make_cond);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new).boxed();
        let terms = term(inner.clone().boxed());
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(CondKind::And),
            (boxed.clone(), window(), boxed.clone()).prop_map(|(left, window, right)| {
                CondKind::Since {
                    left,
                    window,
                    right,
                }
            }),
            boxed.clone().prop_map(CondKind::Not),
            (window(), boxed.clone())
                .prop_map(|(window, body)| CondKind::Formerly { window, body }),
            (window(), boxed.clone())
                .prop_map(|(window, body)| CondKind::Previous { window, body }),
            (binder(), boxed).prop_map(|(binder, body)| CondKind::Exists { binder, body }),
            (compare_op(), terms.clone(), terms.clone())
                .prop_map(|(op, left, right)| CondKind::Compare { op, left, right }),
            matcher(terms.clone()).prop_map(CondKind::Match),
            macro_call(inner.boxed(), terms).prop_map(CondKind::Call),
        ]
        .prop_map(make_cond)
    })
}

// ---------------------------------------------------------------------------------------- policies

fn head(var: ScopeVar) -> impl Strategy<Value = Head> {
    let slot = match var {
        ScopeVar::Principal => Some("principal"),
        ScopeVar::Action => None,
        ScopeVar::Resource => Some("resource"),
    };
    let target = (entity(), any::<bool>()).prop_map(move |(entity, use_slot)| match slot {
        Some(slot) if use_slot => HeadRef::Slot(ident(slot)),
        _ => HeadRef::Entity(entity),
    });
    let target = target.boxed();
    let is = (name(), prop::option::of(target.clone()))
        .prop_map(|(ty, within)| Constraint::Is { ty, within });
    let any = prop::collection::vec(entity(), 0..3).prop_map(Constraint::InAny);
    let last = if var == ScopeVar::Action {
        any.boxed()
    } else {
        is.boxed()
    };
    prop_oneof![
        Just(Constraint::Any),
        target.clone().prop_map(Constraint::Eq),
        target.prop_map(Constraint::In),
        last,
    ]
    .prop_map(move |constraint| Head {
        var,
        constraint,
        span: NOWHERE,
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let heads = (
        head(ScopeVar::Principal),
        head(ScopeVar::Action),
        head(ScopeVar::Resource),
    )
        .prop_map(|(principal, action, resource)| vec![principal, action, resource])
        .prop_shuffle()
        .prop_flat_map(|heads| prop::sample::subsequence(heads, 0..=3));
    let body = prop_oneof![
        expr().prop_map(ClauseBody::Expr),
        cond().prop_map(|body| ClauseBody::Temporal(Temporal {
            keyword: NOWHERE,
            body,
            span: NOWHERE
        })),
    ];
    let clause = (
        select(vec![ClauseKind::When, ClauseKind::Unless]),
        any::<bool>(),
        body,
    )
        .prop_map(|(kind, tag, body)| Clause {
            kind,
            keyword: NOWHERE,
            guardrails: tag && matches!(body, ClauseBody::Expr(_)),
            body,
            span: NOWHERE,
        });
    (
        annotations(),
        select(vec![Effect::Permit, Effect::Forbid]),
        heads,
        prop::collection::vec(clause, 0..3),
    )
        .prop_map(|(annotations, effect, heads, clauses)| Rule {
            annotations,
            effect,
            effect_span: NOWHERE,
            scope: Scope {
                heads,
                span: NOWHERE,
            },
            clauses,
            span: NOWHERE,
        })
}

fn macro_def() -> impl Strategy<Value = MacroDef> {
    let total = aggregate(cond().boxed())
        .prop_map(|one| make_term(TermKind::Aggregate(Box::new(one))))
        .boxed();
    let arithmetic = (
        total.clone(),
        prop::collection::vec((sum_op(), total.clone()), 1..3),
    )
        .prop_map(|(first, rest)| {
            make_term(TermKind::Sum {
                first: Box::new(first),
                rest,
            })
        });
    let body = prop_oneof![
        expr().prop_map(|expr| (MacroKind::Cedar, MacroBody::Expr(expr))),
        cond().prop_map(|cond| (MacroKind::Temporal, MacroBody::Cond(cond))),
        prop_oneof![total, arithmetic.boxed()]
            .prop_map(|term| (MacroKind::Temporal, MacroBody::Value(term))),
    ];
    (word(), prop::collection::vec(word(), 0..3), body).prop_map(|(name, params, (kind, body))| {
        MacroDef {
            kind,
            name,
            params,
            body,
            span: NOWHERE,
        }
    })
}

pub(super) fn policy() -> impl Strategy<Value = PolicyFile> {
    let item = prop_oneof![
        rule().prop_map(Item::Rule),
        macro_def().prop_map(Item::Macro)
    ];
    prop::collection::vec(item, 0..4).prop_map(|items| PolicyFile { items })
}
