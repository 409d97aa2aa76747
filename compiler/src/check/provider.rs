//! Calls of information providers against their declarations (language reference, 5.5): what is asked,
//! what it is given, and its methods. A call runs for every request, so that its arguments must be there
//! for every kind of request the head of the rule admits.

use super::Report;
use super::problem::Problem;
use super::scope::{Scope, Target};
use crate::eval::is_method;
use crate::nearest::nearest;
use crate::providers::{Arg, Chain, argument, chain};
use crate::schema::{AttrType, Extension, PinValue, RecordType, Service, Type};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{ClauseBody, Expr, ExprKind, Rule};
use smol_str::{SmolStr, format_smolstr};

pub fn check(rule: &Rule, service: &Service, scope: &Scope, report: &mut Report) {
    let mut calls = Calls {
        service,
        scope,
        report,
    };
    for clause in &rule.clauses {
        if let ClauseBody::Expr(expr) = &clause.body {
            calls.expr(expr);
        }
    }
}

struct Calls<'a> {
    service: &'a Service,
    scope: &'a Scope<'a>,
    report: &'a mut Report,
}

/// What a path finds in one kind of request.
enum Found {
    Type(Type),
    /// Nothing at this word of the path.
    Missing,
}

impl Calls<'_> {
    fn expr(&mut self, expr: &Expr) {
        if let Some(call) = chain(expr) {
            self.call(&call);
            return;
        }
        // A method of the language right behind a call, where the provider has one of that name.
        if let ExprKind::Method { target, name, .. } = &expr.kind
            && is_method(&name.text)
            && let Some(call) = chain(target)
            && let Some(provider) = self.service.providers.get(&call.name.text())
            && provider.methods.contains_key(&name.text)
        {
            let problem = Problem::ShadowedMethod {
                name: name.text.clone(),
                provider: call.name.text(),
            };
            self.report.add(name.span, problem);
        }
        expr.kind.each_part(&mut |part| self.expr(part));
    }

    fn call(&mut self, call: &Chain<'_>) {
        let name = call.name.text();
        let providers = &self.service.providers;
        let Some(provider) = providers.get(&name) else {
            let known: Vec<SmolStr> = providers.names().cloned().collect();
            let problem = Problem::UnknownProvider {
                nearest: nearest(&name, &known),
                any: !known.is_empty(),
                name,
            };
            self.report.add(call.name.span, problem);
            return;
        };
        self.arguments(&name, call.name.span, call.args, &provider.args);
        let mut stage = &provider.output;
        for (method, args) in &call.methods {
            let Some(declared) = provider.methods.get(&method.text) else {
                let known: Vec<SmolStr> = provider.methods.keys().cloned().collect();
                let problem = Problem::UnknownProviderMethod {
                    name: method.text.clone(),
                    provider: name.clone(),
                    nearest: nearest(&method.text, &known),
                    known,
                };
                self.report.add(method.span, problem);
                return;
            };
            if let Some(wanted) = &declared.input
                && !fits(stage, wanted)
            {
                let problem = Problem::MethodInput {
                    name: method.text.clone(),
                    wanted: described(wanted),
                    found: described(stage),
                };
                self.report.add(method.span, problem);
            }
            self.arguments(&method.text, method.span, args, &declared.args);
            stage = &declared.output;
        }
    }

    fn arguments(&mut self, of: &SmolStr, span: Span, args: &[Expr], wanted: &[Type]) {
        if args.len() != wanted.len() {
            let problem = Problem::ProviderArity {
                of: of.clone(),
                wanted: wanted.len(),
                found: args.len(),
            };
            self.report.add(span, problem);
        }
        for (arg, wanted) in args.iter().zip(wanted) {
            self.argument(arg, wanted);
        }
        // Whatever is too much can still be wrong by itself.
        for arg in args.iter().skip(wanted.len()) {
            if argument(arg).is_none() && !has_error(arg) {
                self.report.add(arg.span, Problem::ProviderArgument);
            }
        }
    }

    fn argument(&mut self, arg: &Expr, wanted: &Type) {
        match (&arg.kind, argument(arg)) {
            _ if has_error(arg) => {}
            (ExprKind::Set(items), _) => match wanted {
                Type::Set(element) => items.iter().for_each(|item| self.argument(item, element)),
                _ => self.wrong_literal(arg.span, wanted, &SmolStr::new("a set")),
            },
            (_, Some(Arg::Path(path))) => self.path(arg.span, &path, wanted),
            (_, Some(_)) => self.literal(arg, wanted),
            // A `decimal` of something that is no decimal is a literal, too.
            (ExprKind::Call { name, .. }, None) if name.text() == "decimal" => {
                self.literal(arg, wanted);
                self.decimal(arg);
            }
            (_, None) => self.report.add(arg.span, Problem::ProviderArgument),
        }
    }

    fn literal(&mut self, arg: &Expr, wanted: &Type) {
        let found = match &arg.kind {
            ExprKind::Str(_) => Type::String,
            ExprKind::Long(_) => Type::Long,
            ExprKind::Bool(_) => Type::Bool,
            _ => Type::Ext(Extension::Decimal),
        };
        if found != *wanted {
            self.wrong_literal(arg.span, wanted, &described(&found));
        }
    }

    fn wrong_literal(&mut self, span: Span, wanted: &Type, found: &SmolStr) {
        let problem = Problem::ProviderLiteral {
            wanted: described(wanted),
            found: found.clone(),
        };
        self.report.add(span, problem);
    }

    fn decimal(&mut self, arg: &Expr) {
        let ExprKind::Call { args, .. } = &arg.kind else {
            return;
        };
        let problem = match args.as_slice() {
            [
                Expr {
                    kind: ExprKind::Str(text),
                    ..
                },
            ] => Problem::BadLiteral {
                function: "decimal",
                text: text.clone(),
            },
            _ => Problem::NotLiteral {
                function: "decimal",
            },
        };
        let span = args.first().map_or(arg.span, |text| text.span);
        self.report.add(span, problem);
    }

    /// The path must lead to something of the type in every kind of request.
    fn path(&mut self, span: Span, path: &PinValue, wanted: &Type) {
        let mut types: Vec<(SmolStr, Type)> = Vec::new();
        for target in &self.scope.targets {
            let action = &target.action.uid.id;
            for (of, found) in self.find(target, path) {
                match found {
                    Found::Missing => {
                        let problem = Problem::ProviderPathMissing {
                            path: written(path),
                            of: of.unwrap_or_else(|| format_smolstr!("the action `{action}`")),
                        };
                        self.report.add(span, problem);
                    }
                    Found::Type(ty) => {
                        let of = of.unwrap_or_else(|| format_smolstr!("`{action}`"));
                        types.push((of, ty));
                    }
                }
            }
        }
        let Some((of, wrong)) = types.iter().find(|(_, ty)| !fits(ty, wanted)) else {
            return;
        };
        let problem = match types.iter().find(|(_, ty)| fits(ty, wanted)) {
            Some((other, right)) => Problem::AttrTypesDiffer {
                left: format_smolstr!("{} for {other}", described(right)),
                right: format_smolstr!("{} for {of}", described(wrong)),
            },
            None => Problem::ProviderPathType {
                path: written(path),
                wanted: described(wanted),
                found: described(wrong),
            },
        };
        self.report.add(span, problem);
    }

    /// What the path finds, once for each entity type it can begin at.
    fn find(&self, target: &Target<'_>, path: &PinValue) -> Vec<(Option<SmolStr>, Found)> {
        let (types, words) = match path {
            PinValue::Context(words) => {
                let whole = Type::Record(target.applies.context.clone());
                return vec![(None, self.follow(whole, words))];
            }
            PinValue::Principal(words) => (&target.principals, words),
            PinValue::Resource(words) => (&target.resources, words),
        };
        let found = types.iter().map(|ty| {
            let of = format_smolstr!("`{ty}`");
            let own = self.service.actions.entity_types.get(*ty);
            let declared = |word: &SmolStr| own.is_some_and(|ty| ty.attrs.attrs.contains_key(word));
            match words.as_slice() {
                // What every entity has, if its type does not say otherwise.
                [word] if ["id", "type"].contains(&word.as_str()) && !declared(word) => {
                    (Some(of), Found::Type(Type::String))
                }
                words => (Some(of), self.follow(Type::Entity((*ty).clone()), words)),
            }
        });
        found.collect()
    }

    fn follow(&self, from: Type, words: &[SmolStr]) -> Found {
        let mut at = from;
        for (n, word) in words.iter().enumerate() {
            let record: Option<&RecordType> = match &at {
                Type::Record(record) => Some(record),
                // Only what begins at an entity of the scope can be looked up there.
                Type::Entity(name) if n == 0 => {
                    let entity = self.service.actions.entity_types.get(name);
                    entity.map(|entity| &entity.attrs)
                }
                _ => None,
            };
            match record.and_then(|record| record.attrs.get(word)) {
                Some(AttrType { ty, .. }) => at = ty.clone(),
                None => return Found::Missing,
            }
        }
        Found::Type(at)
    }
}

/// Whether a value of this type can be given where the other is declared. A script sees addresses, dates
/// and durations as text.
fn fits(found: &Type, wanted: &Type) -> bool {
    match (found, wanted) {
        (
            Type::Ext(Extension::IpAddr | Extension::Datetime | Extension::Duration),
            Type::String,
        ) => true,
        (Type::Set(found), Type::Set(wanted)) => fits(found, wanted),
        (Type::Record(found), Type::Record(wanted)) => {
            let there = |(name, attr): (&SmolStr, &AttrType)| match found.attrs.get(name) {
                Some(given) => fits(&given.ty, &attr.ty),
                None => !attr.required,
            };
            wanted.attrs.iter().all(there)
        }
        (found, wanted) => found == wanted,
    }
}

fn has_error(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Error);
    expr.kind.each_part(&mut |part| found |= has_error(part));
    found
}

/// `context.input.path`.
fn written(path: &PinValue) -> SmolStr {
    let (root, words) = match path {
        PinValue::Principal(words) => ("principal", words),
        PinValue::Resource(words) => ("resource", words),
        PinValue::Context(words) => ("context", words),
    };
    let mut text = root.to_owned();
    for word in words {
        text.push('.');
        text.push_str(word);
    }
    text.into()
}

/// `a String`, as a message names it.
fn described(ty: &Type) -> SmolStr {
    match ty {
        Type::Bool => "a Bool".into(),
        Type::Long => "a Long".into(),
        Type::String => "a String".into(),
        Type::Ext(Extension::IpAddr) => "an ipaddr".into(),
        Type::Ext(extension) => format_smolstr!("a {}", extension.name()),
        Type::Entity(name) => format_smolstr!("an entity of type {name}"),
        Type::Set(element) => format_smolstr!("a set, each element {}", described(element)),
        Type::Record(_) => "a record".into(),
    }
}
