//! The outline of a document, and what a workspace declares.

use crate::document::{Document, Kind};
use crate::shelf::Shelf;
use crate::snapshot::Place;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::action_schema::{Decl, DeclKind, EntityBody, RecordTy, TyKind};
use dogwood_compiler::grammar::ast::event_schema::{FieldTyKind, Member};
use dogwood_compiler::grammar::ast::{Effect, Item, Name, Rule};
use dogwood_compiler::json::Json;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    Rule,
    Macro,
    Namespace,
    Entity,
    Enum,
    Choice,
    Action,
    Type,
    Field,
    Event,
    Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub detail: String,
    pub kind: SymbolKind,
    pub span: Span,
    /// Of the name.
    pub selection: Span,
    pub children: Vec<Symbol>,
}

impl Symbol {
    fn new(name: impl Into<String>, kind: SymbolKind, span: Span, selection: Span) -> Symbol {
        let name: String = name.into();
        Symbol {
            // An editor refuses a symbol without a name.
            name: if name.trim().is_empty() {
                "…".to_owned()
            } else {
                name
            },
            detail: String::new(),
            kind,
            // The name is always within.
            span: span.to(selection),
            selection,
            children: Vec::new(),
        }
    }
}

pub fn symbols(document: &Document) -> Vec<Symbol> {
    match document.kind {
        Kind::Policy => policy(document),
        Kind::ActionSchema => actions(document),
        Kind::EventSchema => {
            let events = document.event_schema().tree.events.iter();
            events
                .map(|event| {
                    let name = format!("<{}>::{}", event.binder.text, event.kind.text);
                    let mut symbol =
                        Symbol::new(name, SymbolKind::Event, event.span, event.kind.span);
                    if event.decision {
                        symbol.detail = "decision".to_owned();
                    }
                    symbol.children = members(&event.members);
                    symbol
                })
                .collect()
        }
        Kind::Tests => tests(document.tests()),
        Kind::Other => Vec::new(),
    }
}

fn policy(document: &Document) -> Vec<Symbol> {
    let mut number = 0;
    let mut found = Vec::new();
    for item in &document.policy().tree.items {
        match item {
            Item::Rule(rule) => {
                found.push(self::rule(rule, number));
                number += 1;
            }
            Item::Macro(def) => {
                let mut symbol = Symbol::new(
                    def.name.text.as_str(),
                    SymbolKind::Macro,
                    def.span,
                    def.name.span,
                );
                symbol.detail = super::hover::signature(def);
                found.push(symbol);
            }
            Item::Broken(_) => {}
        }
    }
    found
}

fn rule(rule: &Rule, number: usize) -> Symbol {
    let id = rule
        .annotations
        .iter()
        .rev()
        .find(|note| note.key.text == "id");
    let value = id.and_then(|note| note.value.as_ref());
    let named = value.filter(|value| !value.value.trim().is_empty());
    let effect = match rule.effect {
        Effect::Permit => "permit",
        Effect::Forbid => "forbid",
    };
    let (name, selection) = match named {
        Some(value) => (value.value.to_string(), value.span),
        None => (format!("rule {number}"), rule.effect_span),
    };
    let mut symbol = Symbol::new(name, SymbolKind::Rule, rule.span, selection);
    symbol.detail = effect.to_owned();
    symbol
}

fn actions(document: &Document) -> Vec<Symbol> {
    let mut found = Vec::new();
    for namespace in &document.action_schema().tree.namespaces {
        let decls: Vec<Symbol> = namespace.decls.iter().flat_map(declared).collect();
        match &namespace.name {
            Some(name) => {
                let mut symbol = Symbol::new(
                    Name::text(name).as_str(),
                    SymbolKind::Namespace,
                    namespace.span,
                    name.span,
                );
                symbol.children = decls;
                found.push(symbol);
            }
            None => found.extend(decls),
        }
    }
    found
}

fn declared(decl: &Decl) -> Vec<Symbol> {
    match &decl.kind {
        DeclKind::Entity { names, body } => names
            .iter()
            .map(|name| {
                let kind = match body {
                    EntityBody::Standard { .. } => SymbolKind::Entity,
                    EntityBody::Enum(_) => SymbolKind::Enum,
                };
                let mut symbol = Symbol::new(name.text.as_str(), kind, decl.span, name.span);
                if let EntityBody::Standard {
                    attrs: Some(record),
                    ..
                } = body
                {
                    symbol.children = attributes(record);
                }
                if let EntityBody::Enum(choices) = body {
                    let choices = choices.iter().map(|choice| {
                        let kind = SymbolKind::Choice;
                        Symbol::new(choice.value.as_str(), kind, choice.span, choice.span)
                    });
                    symbol.children = choices.collect();
                }
                symbol
            })
            .collect(),
        DeclKind::Action { names, .. } => names
            .iter()
            .map(|name| {
                Symbol::new(
                    name.value.as_str(),
                    SymbolKind::Action,
                    decl.span,
                    name.span,
                )
            })
            .collect(),
        DeclKind::Type { name, ty } => {
            let mut symbol =
                Symbol::new(name.text.as_str(), SymbolKind::Type, decl.span, name.span);
            if let TyKind::Record(record) = &ty.kind {
                symbol.children = attributes(record);
            }
            vec![symbol]
        }
        DeclKind::Broken => Vec::new(),
    }
}

/// The fields of a record, with those of records in it.
fn attributes(record: &RecordTy) -> Vec<Symbol> {
    let attrs = record.attrs.iter().map(|attr| {
        let name = attr.name.value.as_str();
        let mut symbol = Symbol::new(name, SymbolKind::Field, attr.span, attr.name.span);
        if let TyKind::Record(inner) = &attr.ty.kind {
            symbol.children = attributes(inner);
        }
        symbol
    });
    attrs.collect()
}

/// The fields of an event, with those of groups in it.
fn members(all: &[Member]) -> Vec<Symbol> {
    let fields = all.iter().filter_map(|member| match member {
        Member::Field(field) => Some(field),
        Member::Spread(_) => None,
    });
    let fields = fields.map(|field| {
        let name = field.name.text.as_str();
        let mut symbol = Symbol::new(name, SymbolKind::Field, field.span, field.name.span);
        if let FieldTyKind::Record(inner) = &field.ty.kind {
            symbol.children = members(inner);
        }
        symbol
    });
    fields.collect()
}

fn tests(root: &Json) -> Vec<Symbol> {
    let tests = root
        .get("test")
        .and_then(Json::as_array)
        .unwrap_or_default();
    tests
        .iter()
        .filter_map(|test| {
            let name = test.get("name")?;
            let text = name.as_str()?;
            let mut symbol = Symbol::new(text.as_str(), SymbolKind::Test, test.span, name.span);
            let events = test
                .get("events")
                .and_then(Json::as_array)
                .unwrap_or_default();
            symbol.detail = match events.len() {
                1 => "1 event".to_owned(),
                n => format!("{n} events"),
            };
            Some(symbol)
        })
        .collect()
}

/// The symbols of all documents whose names contain the letters asked for, in order.
pub fn workspace(shelf: &Shelf, query: &str) -> Vec<(Symbol, Place)> {
    let mut found = Vec::new();
    for path in shelf.all().iter() {
        let Some(document) = shelf.document(path) else {
            continue;
        };
        let mut flat = Vec::new();
        flatten(symbols(&document), &mut flat);
        for symbol in flat {
            if follows(&symbol.name, query) {
                let place = Place {
                    document: Arc::clone(&document),
                    span: symbol.selection,
                };
                found.push((symbol, place));
            }
        }
    }
    found
}

fn flatten(symbols: Vec<Symbol>, flat: &mut Vec<Symbol>) {
    for mut symbol in symbols {
        // Fields are too many, and each is found by way of its record.
        if symbol.kind == SymbolKind::Field {
            continue;
        }
        let children = std::mem::take(&mut symbol.children);
        flat.push(symbol);
        flatten(children, flat);
    }
}

/// Whether the letters of `query` come in `name` in this order, whatever their case.
fn follows(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query
        .chars()
        .flat_map(char::to_lowercase)
        .all(|wanted| letters.any(|letter| letter == wanted))
}
