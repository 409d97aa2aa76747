//! Completion in schemas.

use super::{ItemKind, Items};
use crate::cursor::Cursor;
use crate::feature::words;
use crate::snapshot::Snapshot;
use dogwood_compiler::grammar::TokenKind;
use dogwood_compiler::grammar::ast::Name;
use dogwood_compiler::grammar::ast::action_schema::{ActionSchemaFile, DeclKind, Namespace};
use smol_str::SmolStr;

const PRIMITIVES: [&str; 8] = [
    "Bool", "Long", "String", "decimal", "ipaddr", "datetime", "duration", "Set",
];

pub fn actions(snapshot: &Snapshot, offset: usize, cursor: &Cursor, items: &mut Items) {
    let here = Here {
        tree: &snapshot.document.action_schema().tree,
        offset,
        cursor,
    };
    here.complete(items);
}

struct Here<'a> {
    tree: &'a ActionSchemaFile,
    offset: usize,
    cursor: &'a Cursor<'a>,
}

impl Here<'_> {
    fn complete(&self, items: &mut Items) {
        let cursor = self.cursor;
        let inside = cursor.inside().map_or("", |(bracket, _)| bracket);
        // The tokens in front of the bracket around the cursor.
        let opened_by = |n: usize| {
            let at = cursor.inside().and_then(|(_, at)| at.checked_sub(n));
            at.and_then(|at| cursor.before.get(at))
                .map_or("", |word| word.text)
        };
        let of_action = self.declares() == "action";
        let applies_to = inside == "{" && opened_by(1) == "appliesTo";
        match (cursor.back(1), inside) {
            ("{" | ",", _) if applies_to => parts(items),
            (":", _) if applies_to && cursor.back(2) != "context" => self.entities(items),
            ("[" | ",", "[") => match (opened_by(1), opened_by(2)) {
                ("in", _) if of_action => self.actions(items),
                ("in", _) | (":", "principal" | "resource") => self.entities(items),
                _ => {}
            },
            ("in", _) if of_action => self.actions(items),
            ("in", _) => self.entities(items),
            (":" | "=" | "<" | "tags", _) => self.types(items),
            ("", _) => self.declarations(items),
            ("{" | "}", _) if self.in_namespace() => self.declarations(items),
            // The name of a field is the author's.
            (_, "{") if !self.in_namespace() => {}
            (_, "[") => {}
            _ if of_action => items.keywords(&["in", "appliesTo"]),
            _ if self.declares() == "entity" => items.keywords(&["in", "tags", "enum"]),
            _ => {}
        }
    }

    /// The word that begins the declaration around the cursor.
    fn declares(&self) -> &str {
        let words = self.cursor.before.iter().rev();
        let mut keys = words.filter(|word| word.kind == TokenKind::Keyword);
        keys.find(|word| matches!(word.text, "entity" | "action" | "type" | "namespace"))
            .map_or("", |word| word.text)
    }

    /// Whether the brace around the cursor is that of a namespace, or there is none.
    fn in_namespace(&self) -> bool {
        let Some((bracket, at)) = self.cursor.inside() else {
            return true;
        };
        let before = self.cursor.before.get(..at).unwrap_or_default();
        let head = before
            .iter()
            .rev()
            .find(|word| word.text != "::" && word.kind != TokenKind::Word);
        bracket == "{" && head.is_some_and(|word| word.text == "namespace")
    }

    /// The namespaces with their names, and whether the cursor is in one.
    fn namespaces(&self) -> impl Iterator<Item = (&Namespace, Option<SmolStr>, bool)> {
        self.tree.namespaces.iter().map(|namespace| {
            let name = namespace.name.as_ref().map(Name::text);
            let span = namespace.span.range();
            let here = name.is_none() || span.start < self.offset && self.offset < span.end;
            (namespace, name, here)
        })
    }

    /// Each declaration with its name as it is written at the cursor.
    fn declared(&self, wanted: fn(&DeclKind) -> Vec<&SmolStr>, items: &mut Items) {
        for (namespace, space, here) in self.namespaces() {
            for name in namespace.decls.iter().flat_map(|decl| wanted(&decl.kind)) {
                let full = match &space {
                    Some(space) => format!("{space}::{name}"),
                    None => name.to_string(),
                };
                let label = if here { name.as_str() } else { &full };
                items.word(ItemKind::Type, label, &full, None);
            }
        }
    }

    fn declarations(&self, items: &mut Items) {
        let mut namespaces = self.namespaces();
        let nested = namespaces.any(|(_, name, here)| name.is_some() && here);
        for (word, insert) in [
            ("namespace", "namespace ${1:Name} {\n  $0\n}"),
            ("entity", "entity ${1:Name};"),
            (
                "action",
                "action \"${1:name}\" appliesTo {\n  principal: [${2}],\n  resource: [${3}],\n  context: { input: { $0 } }\n};",
            ),
            ("type", "type ${1:Name} = { $0 };"),
        ] {
            // None is declared inside another.
            if nested && word == "namespace" {
                continue;
            }
            let about = words::keyword(word).map(|about| about.meaning.to_owned());
            items.snippet(ItemKind::Keyword, word, "", about, insert.to_owned());
        }
    }

    fn entities(&self, items: &mut Items) {
        self.declared(entities_of, items);
    }

    fn types(&self, items: &mut Items) {
        for name in PRIMITIVES {
            let about = words::type_name(name).map(|about| about.meaning.to_owned());
            items.word(ItemKind::Type, name, "", about);
        }
        self.declared(types_of, items);
        self.entities(items);
    }

    fn actions(&self, items: &mut Items) {
        for (namespace, space, here) in self.namespaces() {
            for decl in &namespace.decls {
                let DeclKind::Action { names, .. } = &decl.kind else {
                    continue;
                };
                for name in names {
                    let id = format!("\"{}\"", name.value);
                    let label = match &space {
                        Some(space) if !here => format!("{space}::Action::{id}"),
                        _ => id,
                    };
                    items.word(ItemKind::Action, &label, "action", None);
                }
            }
        }
    }
}

fn entities_of(kind: &DeclKind) -> Vec<&SmolStr> {
    match kind {
        DeclKind::Entity { names, .. } => names.iter().map(|name| &name.text).collect(),
        _ => Vec::new(),
    }
}

fn types_of(kind: &DeclKind) -> Vec<&SmolStr> {
    match kind {
        DeclKind::Type { name, .. } => vec![&name.text],
        _ => Vec::new(),
    }
}

/// The parts of `appliesTo`.
fn parts(items: &mut Items) {
    for (part, insert) in [
        ("principal", "principal: [$0]"),
        ("resource", "resource: [$0]"),
        ("context", "context: { $0 }"),
    ] {
        let about = words::applies_to(part).map(|about| about.meaning.to_owned());
        items.snippet(ItemKind::Keyword, part, "", about, insert.to_owned());
    }
}

pub fn events(snapshot: &Snapshot, cursor: &Cursor, items: &mut Items) {
    let about = |word: &str| words::keyword(word).map(|about| about.meaning.to_owned());
    let letter = cursor
        .before
        .iter()
        .rposition(|word| word.text == "<")
        .and_then(|at| cursor.before.get(at + 1))
        .map_or("A", |word| word.text);
    if cursor.open.is_empty() {
        let decision = "decision event <A>::${1:request} {\n  ...inputs(A),\n  $0\n}";
        items.snippet(
            ItemKind::Keyword,
            "decision event",
            "",
            about("decision"),
            decision.to_owned(),
        );
        let event = "event <A>::${1:response} {\n  ...inputs(A),\n  ...outputs(A),\n  $0\n}";
        items.snippet(
            ItemKind::Keyword,
            "event",
            "",
            about("event"),
            event.to_owned(),
        );
        items.snippet(
            ItemKind::Keyword,
            "max_window",
            "",
            about("max_window"),
            "max_window = ${1:24h}".to_owned(),
        );
        return;
    }
    let selectors: &[&str] = match cursor.back(1) {
        "..." => &["inputs", "outputs"],
        ":" => &["principalType", "resourceType"],
        "=" => {
            for root in ["principal", "resource", "context"] {
                items.word(ItemKind::Variable, root, "", None);
            }
            return;
        }
        _ => {
            for name in ["inputs", "outputs"] {
                let label = format!("...{name}({letter})");
                let about = words::selector(name).map(|about| about.meaning.to_owned());
                items.word(ItemKind::Field, &label, "", about);
            }
            items.snippet(
                ItemKind::Keyword,
                "pin",
                "",
                about("pin"),
                format!("pin ${{1:callerPrincipal}}: principalType({letter}) = ${{2:principal}}"),
            );
            return;
        }
    };
    for name in selectors {
        let about = words::selector(name).map(|about| about.meaning.to_owned());
        let label = format!("{name}({letter})");
        items.word(ItemKind::Function, &label, "", about);
    }
    if cursor.back(1) == ":" {
        for name in PRIMITIVES.iter().take(3) {
            items.word(ItemKind::Type, name, "", None);
        }
        for name in snapshot.setup.service.actions.entity_types.keys() {
            items.word(ItemKind::Type, name, "entity type", None);
        }
    }
}
