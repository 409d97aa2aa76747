//! Cedar schemas in their JSON syntax, read into the same tree as the human syntax.
//!
//! The JSON syntax says of a type whether it is a common type or an entity type. The tree does not, so
//! such a name is looked up here and put into the tree in full; everything else is left to `resolve`.

mod error;
mod ty;

pub use error::{JsonSchemaError, JsonSchemaProblem};

use super::write::is_word;
use crate::json::{Json, JsonKind, Member};
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{
    ActionRef, ActionSchemaFile, AppliesTo, Decl, DeclKind, EntityBody, Namespace, RecordTy,
};
use dogwood_grammar::ast::{Annotation, Ident, Name, Str};
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// Words that are no names in Cedar.
const KEYWORDS: [&str; 9] = [
    "true", "false", "if", "then", "else", "in", "is", "like", "has",
];

/// Whether a text is a schema in the JSON syntax rather than in the human one.
pub fn is_json(name: &str, text: &str) -> bool {
    let ending = std::path::Path::new(name).extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
        || text.trim_start().starts_with('{')
}

/// Reads what can be read; the tree is to be used only if there are no errors.
pub fn read(text: &str) -> (ActionSchemaFile, Vec<JsonSchemaError>) {
    let mut reader = Reader::default();
    let json = match crate::json::parse(text) {
        Ok(json) => json,
        Err(error) => {
            reader.report(error.span, JsonSchemaProblem::Syntax(error.problem));
            return (ActionSchemaFile::default(), reader.errors);
        }
    };
    let namespaces: Vec<(SmolStr, &Member)> = reader
        .members(&json, "a schema")
        .iter()
        .map(|member| (member.key.value.clone(), member))
        .collect();
    for (name, member) in &namespaces {
        reader.collect(name, &member.value);
    }
    let namespaces = namespaces
        .iter()
        .map(|(_, member)| reader.namespace(member))
        .collect();
    (ActionSchemaFile { namespaces }, reader.errors)
}

#[derive(Default)]
struct Reader<'a> {
    /// Common types by full name: their namespace and what they stand for.
    common: BTreeMap<SmolStr, (SmolStr, &'a Json)>,
    entities: BTreeSet<SmolStr>,
    /// The types of actions, `N::Action`.
    actions: BTreeSet<SmolStr>,
    errors: Vec<JsonSchemaError>,
}

fn qualified(namespace: &str, name: &str) -> SmolStr {
    if namespace.is_empty() {
        SmolStr::new(name)
    } else {
        format_smolstr!("{namespace}::{name}")
    }
}

impl<'a> Reader<'a> {
    fn report(&mut self, span: Span, problem: JsonSchemaProblem) {
        self.errors.push(JsonSchemaError { span, problem });
    }

    fn wrong(&mut self, found: &Json, expected: &'static str) {
        let problem = JsonSchemaProblem::WrongKind {
            found: found.what(),
            expected,
        };
        self.report(found.span, problem);
    }

    /// The members of an object, and an error for each repeated one.
    fn members(&mut self, json: &'a Json, expected: &'static str) -> &'a [Member] {
        let JsonKind::Object(members) = &json.kind else {
            self.wrong(json, expected);
            return &[];
        };
        let mut seen: BTreeMap<&SmolStr, Span> = BTreeMap::new();
        for member in members {
            if let Some(first) = seen.insert(&member.key.value, member.key.span) {
                let name = member.key.value.clone();
                self.report(member.key.span, JsonSchemaProblem::Repeated { name, first });
            }
        }
        members
    }

    /// The members of an object that may only have these.
    fn known(&mut self, json: &'a Json, expected: &'static str, known: &'static [&'static str]) {
        for member in self.members(json, expected) {
            if !known.contains(&member.key.value.as_str()) {
                let problem = JsonSchemaProblem::UnknownKey {
                    name: member.key.value.clone(),
                    nearest: crate::nearest::nearest(
                        &member.key.value,
                        &known.iter().map(SmolStr::new).collect::<Vec<_>>(),
                    ),
                    known,
                };
                self.report(member.key.span, problem);
            }
        }
    }

    fn list(&mut self, json: Option<&'a Json>, expected: &'static str) -> &'a [Json] {
        match json {
            None => &[],
            Some(json) => json.as_array().unwrap_or_else(|| {
                self.wrong(json, expected);
                &[]
            }),
        }
    }

    fn string(&mut self, json: &Json, expected: &'static str) -> Option<Str> {
        let Some(text) = json.as_str() else {
            self.wrong(json, expected);
            return None;
        };
        Some(Str {
            value: text.clone(),
            span: json.span,
        })
    }

    /// `A::B` of words.
    fn name(&mut self, text: &Str) -> Option<Name> {
        let word = |word: &str| is_word(word) && !KEYWORDS.contains(&word);
        if !text.value.split("::").all(word) {
            let name = text.value.clone();
            self.report(text.span, JsonSchemaProblem::NotAName { name });
            return None;
        }
        Some(name_of(&text.value, text.span))
    }

    /// A name that has no namespace.
    fn ident(&mut self, text: &Str) -> Option<Ident> {
        let name = self.name(text)?;
        match name.path.as_slice() {
            [word] => Some(word.clone()),
            _ => {
                let name = text.value.clone();
                self.report(text.span, JsonSchemaProblem::Qualified { name });
                None
            }
        }
    }

    fn annotations(&mut self, json: Option<&'a Json>) -> Vec<Annotation> {
        let Some(json) = json else { return Vec::new() };
        let mut notes = Vec::new();
        for member in self.members(json, "an object of annotations") {
            let value = match member.value.kind {
                JsonKind::Null => None,
                _ => self.string(&member.value, "the text of the annotation"),
            };
            let name = &member.key.value;
            if !is_word(name) {
                let name = name.clone();
                self.report(member.key.span, JsonSchemaProblem::NotAName { name });
                continue;
            }
            notes.push(Annotation {
                key: Ident {
                    text: member.key.value.clone(),
                    span: member.key.span,
                },
                value,
                span: member.key.span.to(member.value.span),
            });
        }
        notes
    }

    // -------------------------------------------------------------------------- declarations

    fn collect(&mut self, namespace: &SmolStr, json: &'a Json) {
        let part = |key: &str| json.get(key).and_then(Json::as_object).unwrap_or_default();
        for member in part("commonTypes") {
            let full = qualified(namespace, &member.key.value);
            self.common
                .entry(full)
                .or_insert((namespace.clone(), &member.value));
        }
        for member in part("entityTypes") {
            self.entities
                .insert(qualified(namespace, &member.key.value));
        }
        if !part("actions").is_empty() {
            self.actions.insert(qualified(namespace, "Action"));
        }
    }

    fn namespace(&mut self, member: &'a Member) -> Namespace {
        let json = &member.value;
        self.known(
            json,
            "a namespace",
            &["commonTypes", "entityTypes", "actions", "annotations"],
        );
        if json.as_object().is_some() {
            for part in ["entityTypes", "actions"] {
                if json.get(part).is_none() {
                    self.report(member.key.span, JsonSchemaProblem::Missing { key: part });
                }
            }
        }
        let ns = &member.key.value;
        let name = if ns.is_empty() {
            None
        } else {
            self.name(&member.key)
        };
        let mut decls = Vec::new();
        if let Some(types) = json.get("commonTypes") {
            for member in self.members(types, "an object of common types") {
                if let Some(name) = self.ident(&member.key) {
                    let ty = self.ty(ns, &member.value);
                    let notes = self.annotations(member.value.get("annotations"));
                    decls.push(decl(member, notes, DeclKind::Type { name, ty }));
                }
            }
        }
        if let Some(types) = json.get("entityTypes") {
            for member in self.members(types, "an object of entity types") {
                if let Some(name) = self.ident(&member.key) {
                    let body = self.entity(ns, &member.value);
                    let notes = self.annotations(member.value.get("annotations"));
                    let names = vec![name];
                    decls.push(decl(member, notes, DeclKind::Entity { names, body }));
                }
            }
        }
        if let Some(actions) = json.get("actions") {
            for member in self.members(actions, "an object of actions") {
                let kind = self.action(ns, member);
                let notes = self.annotations(member.value.get("annotations"));
                decls.push(decl(member, notes, kind));
            }
        }
        Namespace {
            annotations: self.annotations(json.get("annotations")),
            name,
            decls,
            span: member.key.span.to(json.span),
        }
    }

    fn entity(&mut self, ns: &str, json: &'a Json) -> EntityBody {
        if let Some(choices) = json.get("enum") {
            self.known(json, "an entity type", &["enum", "annotations"]);
            let mut ids = Vec::new();
            for choice in self.list(Some(choices), "an array of ids") {
                ids.extend(self.string(choice, "an id"));
            }
            return EntityBody::Enum(ids);
        }
        self.known(
            json,
            "an entity type",
            &["memberOfTypes", "shape", "tags", "enum", "annotations"],
        );
        let mut parents = Vec::new();
        for parent in self.list(json.get("memberOfTypes"), "an array of entity types") {
            parents.extend(self.entity_name(ns, parent));
        }
        let attrs: Option<RecordTy> = json.get("shape").and_then(|shape| self.shape(ns, shape));
        let tags = json.get("tags").map(|tags| self.ty(ns, tags));
        EntityBody::Standard {
            parents,
            attrs,
            tags,
        }
    }

    fn entity_name(&mut self, ns: &str, json: &Json) -> Option<Name> {
        let text = self.string(json, "the name of an entity type")?;
        let name = self.name(&text)?;
        Some(self.full(ns, &name, |reader, full| reader.entities.contains(full)))
    }

    /// The name in full, where one of its two meanings is what is looked for.
    fn full(&self, ns: &str, name: &Name, is: impl Fn(&Self, &SmolStr) -> bool) -> Name {
        let inner = qualified(ns, &name.text());
        if name.path.len() == 1 && is(self, &inner) {
            name_of(&inner, name.span)
        } else {
            name.clone()
        }
    }

    fn action(&mut self, ns: &str, member: &'a Member) -> DeclKind {
        let json = &member.value;
        self.known(
            json,
            "an action",
            &["memberOf", "appliesTo", "attributes", "annotations"],
        );
        if let Some(attributes) = json.get("attributes")
            && !matches!(attributes.kind, JsonKind::Null)
            && !self.members(attributes, "an object").is_empty()
        {
            self.report(attributes.span, JsonSchemaProblem::ActionAttributes);
        }
        let mut parents = Vec::new();
        let groups = json.get("memberOf").filter(|j| j.kind != JsonKind::Null);
        for group in self.list(groups, "an array of action groups") {
            self.known(group, "an action group, `{ \"id\": … }`", &["id", "type"]);
            let Some(id) = group.get("id") else {
                if group.as_object().is_some() {
                    self.report(group.span, JsonSchemaProblem::Missing { key: "id" });
                }
                continue;
            };
            let id = self.string(id, "the id of an action");
            let ty = group
                .get("type")
                .filter(|ty| ty.kind != JsonKind::Null)
                .and_then(|ty| self.string(ty, "the type of an action"));
            let ty = ty.and_then(|ty| self.name(&ty));
            if let Some(id) = id {
                let span = group.span;
                parents.push(ActionRef { ty, id, span });
            }
        }
        let applies_to = json
            .get("appliesTo")
            .filter(|j| j.kind != JsonKind::Null)
            .and_then(|applies| self.applies_to(ns, applies));
        DeclKind::Action {
            names: vec![member.key.clone()],
            parents,
            applies_to,
        }
    }

    /// Nothing where there is no principal or no resource: nobody can ask for such an action.
    fn applies_to(&mut self, ns: &str, json: &'a Json) -> Option<AppliesTo> {
        self.known(
            json,
            "what the action applies to",
            &["principalTypes", "resourceTypes", "context"],
        );
        let types = |reader: &mut Self, key: &'static str| {
            if json.get(key).is_none() && json.as_object().is_some() {
                reader.report(json.span, JsonSchemaProblem::Missing { key });
            }
            let mut names = Vec::new();
            for ty in reader.list(json.get(key), "an array of entity types") {
                names.extend(reader.entity_name(ns, ty));
            }
            names
        };
        let principals = types(self, "principalTypes");
        let resources = types(self, "resourceTypes");
        let context = json.get("context").map(|context| self.ty(ns, context));
        let applies = AppliesTo {
            principals,
            resources,
            context,
            span: json.span,
        };
        let asked = !applies.principals.is_empty() && !applies.resources.is_empty();
        asked.then_some(applies)
    }
}

fn decl(member: &Member, annotations: Vec<Annotation>, kind: DeclKind) -> Decl {
    Decl {
        annotations,
        kind,
        span: member.key.span.to(member.value.span),
    }
}

fn name_of(text: &str, span: Span) -> Name {
    let path = text
        .split("::")
        .map(|word| Ident {
            text: SmolStr::new(word),
            span,
        })
        .collect();
    Name { path, span }
}

#[cfg(test)]
mod tests;
