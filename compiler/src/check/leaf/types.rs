//! Types and request paths of a temporal block, for every action the rule can decide (language
//! reference, 3.3 and 3.10).

use crate::automaton::parse_decimal;
use crate::check::Report;
use crate::check::guard::literal_of;
use crate::check::problem::Problem;
use crate::check::scope::{Scope, Target};
use crate::nearest::{last_segment, nearest};
use crate::schema::{Extension, FieldType, RecordType, Service, Type};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    AggregateOp, CompareOp, Cond, CondKind, Ident, Name, ScopeRoot, Temporal, Term, TermKind,
    VarRef,
};
use smol_str::{SmolStr, format_smolstr};

/// The types of the temporal language. Optional attributes count as required ones; `datetime`,
/// `duration` and `ipaddr` as strings.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// Not known, or reported already: fits everything.
    Any,
    Int,
    Str,
    Decimal,
    Bool,
    Timepoint,
    Array(Box<Kind>),
    Object,
    /// By the last segment of the type name, where there is just one.
    Entity(Option<SmolStr>),
}

impl Kind {
    fn of(ty: &Type) -> Kind {
        match ty {
            Type::Bool => Kind::Bool,
            Type::Long => Kind::Int,
            Type::String => Kind::Str,
            Type::Ext(Extension::Decimal) => Kind::Decimal,
            Type::Ext(_) => Kind::Str,
            Type::Entity(name) => Kind::Entity(Some(SmolStr::new(last_segment(name)))),
            Type::Set(element) => Kind::Array(Box::new(Kind::of(element))),
            Type::Record(_) => Kind::Object,
        }
    }

    fn declared(name: &Name) -> Kind {
        match name.text().as_str() {
            "Timepoint" => Kind::Timepoint,
            "Long" => Kind::Int,
            "String" => Kind::Str,
            "Bool" | "Boolean" => Kind::Bool,
            "decimal" | "Decimal" => Kind::Decimal,
            other => Kind::Entity(Some(SmolStr::new(last_segment(other)))),
        }
    }

    /// Whether a field of the one type can hold a value of the other.
    fn fits(&self, other: &Kind) -> bool {
        match (self, other) {
            (Kind::Any, _) | (_, Kind::Any) => true,
            (Kind::Entity(a), Kind::Entity(b)) => a.is_none() || b.is_none() || a == b,
            (Kind::Array(a), Kind::Array(b)) => a.fits(b),
            (a, b) => a == b,
        }
    }

    /// Whether `==` between the two can ever hold.
    fn comparable(&self, other: &Kind) -> bool {
        matches!((self, other), (Kind::Entity(_), Kind::Entity(_))) || self.fits(other)
    }

    fn text(&self) -> SmolStr {
        match self {
            Kind::Any => SmolStr::new("anything"),
            Kind::Int => SmolStr::new("a Long"),
            Kind::Str => SmolStr::new("a String"),
            Kind::Decimal => SmolStr::new("a decimal"),
            Kind::Bool => SmolStr::new("a Bool"),
            Kind::Timepoint => SmolStr::new("a Timepoint"),
            Kind::Array(element) => format_smolstr!("a set, each {}", element.text()),
            Kind::Object => SmolStr::new("a record"),
            Kind::Entity(None) => SmolStr::new("an entity"),
            Kind::Entity(Some(name)) => format_smolstr!("an entity of type {name}"),
        }
    }
}

pub fn check(leaf: &Temporal, service: &Service, scope: &Scope, report: &mut Report) {
    for target in &scope.targets {
        let several = scope.targets.len() > 1;
        let mut types = Types {
            service,
            target,
            several,
            vars: Vec::new(),
            report,
        };
        types.cond(&leaf.body);
    }
}

struct Types<'a, 's> {
    service: &'s Service,
    target: &'a Target<'s>,
    /// The rule is about several actions, so a message names the one it is about.
    several: bool,
    /// Declared variables, innermost last.
    vars: Vec<(SmolStr, Kind)>,
    report: &'a mut Report,
}

impl Types<'_, '_> {
    fn cond(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.cond(part)),
            CondKind::Since { left, right, .. } => {
                self.cond(left);
                self.cond(right);
            }
            CondKind::Not(body)
            | CondKind::Formerly { body, .. }
            | CondKind::Previous { body, .. } => self.cond(body),
            CondKind::Exists { binder, body } => {
                self.vars
                    .push((binder.var.name.clone(), Kind::declared(&binder.ty)));
                self.cond(body);
                self.vars.pop();
            }
            CondKind::Tp(var) => self.time_point(var),
            CondKind::Compare { op, left, right } => self.compare(*op, left, right),
            CondKind::Match(matcher) => {
                let event = super::event(self.service, matcher);
                for field in matcher.fields() {
                    let found = self.term(&field.term);
                    let path = super::path_of(&field.path);
                    let declared = event.and_then(|event| event.fields.get(&path));
                    if let Some(FieldType::Declared { ty, .. }) = declared {
                        let wanted = Kind::of(ty);
                        if !wanted.fits(&found) {
                            let replacement = match &field.term.kind {
                                TermKind::Str(text) => literal_of(&self.service.actions, text, ty),
                                _ => None,
                            };
                            let problem = Problem::FieldType {
                                field: SmolStr::new(path.join(".")),
                                wanted: wanted.text(),
                                found: found.text(),
                                replacement,
                            };
                            self.report.add(field.term.span, problem);
                        }
                    }
                }
            }
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {}
        }
    }

    fn time_point(&mut self, var: &VarRef) {
        let declared = self.var(&var.name);
        if !matches!(declared, Kind::Any | Kind::Timepoint) {
            let (name, found) = (var.name.clone(), declared.text());
            self.report
                .add(var.span, Problem::NotTimepoint { name, found });
        }
    }

    fn var(&self, name: &SmolStr) -> Kind {
        let declared = self
            .vars
            .iter()
            .rev()
            .find(|(declared, _)| declared == name);
        declared.map_or(Kind::Any, |(_, kind)| kind.clone())
    }

    fn compare(&mut self, op: CompareOp, left: &Term, right: &Term) {
        let (a, b) = (self.term(left), self.term(right));
        if matches!(op, CompareOp::Eq | CompareOp::Ne) {
            if !a.comparable(&b) {
                let problem = Problem::NeverComparable {
                    left: a.text(),
                    right: b.text(),
                };
                self.report.add(left.span.to(right.span), problem);
            }
            return;
        }
        for (kind, term) in [(a, left), (b, right)] {
            if !matches!(kind, Kind::Any | Kind::Int) {
                self.report
                    .add(term.span, Problem::NotOrdered { found: kind.text() });
            }
        }
    }

    fn term(&mut self, term: &Term) -> Kind {
        match &term.kind {
            TermKind::Int(_) => Kind::Int,
            TermKind::Str(_) => Kind::Str,
            TermKind::Bool(_) => Kind::Bool,
            TermKind::Decimal(text) => {
                if parse_decimal(&text.value).is_none() {
                    let problem = Problem::BadLiteral {
                        function: "decimal",
                        text: text.value.clone(),
                    };
                    self.report.add(text.span, problem);
                }
                Kind::Decimal
            }
            TermKind::Entity(entity) => {
                Kind::Entity(Some(SmolStr::new(last_segment(&entity.ty.text()))))
            }
            TermKind::Array(items) => {
                let kinds: Vec<Kind> = items.iter().map(|item| self.term(item)).collect();
                Kind::Array(Box::new(kinds.into_iter().next().unwrap_or(Kind::Any)))
            }
            TermKind::Context(path) => self.context(path),
            TermKind::Scope { root, path } => self.scope(*root, path),
            TermKind::Wildcard | TermKind::Call(_) | TermKind::Error => Kind::Any,
            TermKind::Var(var) => self.var(&var.name),
            TermKind::Aggregate(aggregate) => {
                let before = self.vars.len();
                for binder in &aggregate.binders {
                    self.vars
                        .push((binder.var.name.clone(), Kind::declared(&binder.ty)));
                }
                if let AggregateOp::Sum(summand) = &aggregate.op {
                    let kind = self.var(&summand.name);
                    if !matches!(kind, Kind::Any | Kind::Int) {
                        let (name, found) = (summand.name.clone(), kind.text());
                        self.report
                            .add(summand.span, Problem::SummandType { name, found });
                    }
                }
                self.cond(&aggregate.body);
                self.vars.truncate(before);
                Kind::Int
            }
            TermKind::Sum { first, rest } => {
                self.number(first);
                rest.iter().for_each(|(_, item)| self.number(item));
                Kind::Int
            }
            TermKind::Product(items) => {
                items.iter().for_each(|item| self.number(item));
                Kind::Int
            }
        }
    }

    fn number(&mut self, term: &Term) {
        let kind = self.term(term);
        let wildcard = matches!(term.kind, TermKind::Wildcard);
        if wildcard || !matches!(kind, Kind::Any | Kind::Int) {
            self.report
                .add(term.span, Problem::NotNumber { found: kind.text() });
        }
    }

    /// The action, where the message must say which one it is about.
    fn about(&self) -> Option<SmolStr> {
        self.several.then(|| self.target.action.uid.id.clone())
    }

    fn context(&mut self, path: &[Ident]) -> Kind {
        match descend(&self.target.applies.context, "context", path) {
            Ok(Some(ty)) => Kind::of(ty),
            Ok(None) => Kind::Object,
            Err(lost) => self.lost(lost),
        }
    }

    fn lost(&mut self, lost: Lost) -> Kind {
        let of = lost.of;
        let problem = match lost.found {
            Some(found) => Problem::NotRecord { of, found },
            None => Problem::UnknownAttr {
                nearest: nearest(&lost.word, &lost.known),
                of,
                name: lost.word,
                known: lost.known,
                action: self.about(),
            },
        };
        self.report.add(lost.span, problem);
        Kind::Any
    }

    fn scope(&mut self, root: ScopeRoot, path: &[Ident]) -> Kind {
        let (word, types) = match root {
            ScopeRoot::Principal => ("principal", &self.target.principals),
            ScopeRoot::Resource => ("resource", &self.target.resources),
        };
        let types = types.clone();
        if path.is_empty() {
            return match types.as_slice() {
                [one] => Kind::Entity(Some(SmolStr::new(last_segment(one)))),
                _ => Kind::Entity(None),
            };
        }
        let mut first: Option<(Kind, &SmolStr)> = None;
        let mut failed = false;
        for name in &types {
            let Some(entity) = self.service.actions.entity_types.get(*name) else {
                continue;
            };
            let kind = match descend(&entity.attrs, word, path) {
                Ok(Some(ty)) => Kind::of(ty),
                Ok(None) => Kind::Object,
                Err(_) if matches!(path, [only] if only.text == "id" || only.text == "type") => {
                    Kind::Str
                }
                Err(mut lost) => {
                    failed = true;
                    lost.of = format_smolstr!("{} of type {name}", lost.of);
                    if types.len() > 1 && lost.found.is_none() {
                        let span = lost.span;
                        let problem = Problem::AttrNotEverywhere {
                            name: lost.word,
                            root: word,
                            missing: (*name).clone(),
                            others: types
                                .iter()
                                .filter(|ty| *ty != name)
                                .map(|ty| (*ty).clone())
                                .collect(),
                        };
                        self.report.add(span, problem);
                    } else {
                        self.lost(lost);
                    }
                    continue;
                }
            };
            match &first {
                Some((earlier, other)) if *earlier != kind => {
                    let span = path
                        .iter()
                        .map(|word| word.span)
                        .reduce(Span::to)
                        .unwrap_or_default();
                    let problem = Problem::AttrTypesDiffer {
                        left: format_smolstr!("{} on {other}", earlier.text()),
                        right: format_smolstr!("{} on {name}", kind.text()),
                    };
                    self.report.add(span, problem);
                    failed = true;
                }
                Some(_) => {}
                None => first = Some((kind, name)),
            }
        }
        match first {
            Some((kind, _)) if !failed => kind,
            _ => Kind::Any,
        }
    }
}

/// A path that leads nowhere.
struct Lost {
    /// The record that lacks the word.
    of: SmolStr,
    word: SmolStr,
    span: Span,
    known: Vec<SmolStr>,
    /// The type that has no parts, if that is the trouble.
    found: Option<SmolStr>,
}

/// The type at a path; nothing for the record itself.
fn descend<'t>(
    record: &'t RecordType,
    root: &str,
    path: &[Ident],
) -> Result<Option<&'t Type>, Lost> {
    let mut here = record;
    let mut found: Option<&Type> = None;
    let mut so_far = SmolStr::new(root);
    for word in path {
        let mut lost = Lost {
            of: format_smolstr!("`{so_far}`"),
            word: word.text.clone(),
            span: word.span,
            known: Vec::new(),
            found: None,
        };
        match found {
            None => {}
            Some(Type::Record(inner)) => here = inner,
            Some(other) => {
                lost.found = Some(SmolStr::new(other.to_string()));
                return Err(lost);
            }
        }
        let Some(attr) = here.attrs.get(&word.text) else {
            lost.known = here.attrs.keys().cloned().collect();
            return Err(lost);
        };
        found = Some(&attr.ty);
        so_far = format_smolstr!("{so_far}.{}", word.text);
    }
    Ok(found)
}
