//! JSON Schema to types of Cedar.
//!
//! Objects become entity types, so that their attributes can be optional, nested and tagged; a definition
//! becomes a type under its own name, so that it can refer to itself. A record of Cedar cannot.

use super::error::{ManifestError, ManifestProblem as Problem};
use super::names::{NULL, Names, UNKNOWN, word};
use super::{attr, named, record, ty_decl, write};
use crate::json::{Json, JsonKind};
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{
    AttrDecl, Decl, DeclKind, EntityBody, RecordTy, Ty, TyKind,
};
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of schemas.
const MAX_DEPTH: usize = 64;
/// Most schemas of one tool.
const MAX_PARTS: usize = 50_000;

pub struct Converter<'a, 'm> {
    names: &'a mut Names,
    errors: &'a mut Vec<ManifestError>,
    decls: Vec<Decl>,
    /// Where references of the schema at hand lead, and the type each has become.
    defs: BTreeMap<SmolStr, &'m Json>,
    made: BTreeMap<SmolStr, SmolStr>,
    /// `T_Input`, the first part of the names of nested types.
    prefix: SmolStr,
    depth: usize,
    parts: usize,
}

impl<'a, 'm> Converter<'a, 'm> {
    pub fn new(names: &'a mut Names, errors: &'a mut Vec<ManifestError>) -> Converter<'a, 'm> {
        Converter {
            names,
            errors,
            decls: Vec::new(),
            defs: BTreeMap::new(),
            made: BTreeMap::new(),
            prefix: SmolStr::default(),
            depth: 0,
            parts: 0,
        }
    }

    pub fn finish(self) -> Vec<Decl> {
        self.decls
    }

    fn report(&mut self, span: Span, problem: Problem) {
        self.errors.push(ManifestError { span, problem });
    }

    /// Declares the type of a tool's arguments or result, and tells its name.
    pub fn params(
        &mut self,
        tool: &SmolStr,
        side: &'static str,
        span: Span,
        schema: Option<&'m Json>,
    ) -> SmolStr {
        if tool.is_empty() {
            self.report(span, Problem::EmptyName);
        }
        // A name that begins with a digit is no name.
        let mut base = word(tool);
        if base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, '_');
        }
        let name = format_smolstr!("{base}{side}");
        self.names.take(&name, span, self.errors);
        self.prefix = format_smolstr!("{base}_{side}");
        self.made.clear();
        self.defs.clear();
        let attrs = match schema {
            None => Vec::new(),
            Some(schema) => {
                self.collect(schema);
                self.top(tool, schema)
            }
        };
        self.decls.push(ty_decl(&name, record(attrs)));
        name
    }

    /// The definitions that references can lead to.
    fn collect(&mut self, schema: &'m Json) {
        for key in ["$defs", "definitions"] {
            for member in schema
                .get(key)
                .and_then(Json::as_object)
                .unwrap_or_default()
            {
                let target = format_smolstr!("#/{key}/{}", member.key.value);
                self.defs.entry(target).or_insert(&member.value);
            }
        }
    }

    fn top(&mut self, tool: &SmolStr, schema: &'m Json) -> Vec<AttrDecl> {
        if let Some(target) = schema.get("$ref").and_then(Json::as_str) {
            let found = self.defs.get(target).copied();
            // One step is enough for the shape of arguments; more is a type of its own.
            if let Some(schema) = found.filter(|schema| schema.get("$ref").is_none()) {
                return self.top(tool, schema);
            }
        }
        let object = match schema.get("type") {
            None => schema.as_object().is_some(),
            Some(ty) => ty.as_str().is_some_and(|ty| ty == "object"),
        };
        if !object {
            let at = schema.get("type").unwrap_or(schema);
            let found = match at.as_str() {
                Some(ty) => format_smolstr!("`{ty}`"),
                None => SmolStr::new(at.what()),
            };
            let tool = tool.clone();
            self.report(at.span, Problem::NotAnObject { tool, found });
            return Vec::new();
        }
        let prefix = self.prefix.clone();
        self.properties(&prefix, schema)
    }

    /// The properties of an object; nested types are called `<path>_<property>`.
    fn properties(&mut self, path: &SmolStr, schema: &'m Json) -> Vec<AttrDecl> {
        let Some(properties) = schema.get("properties") else {
            return Vec::new();
        };
        let Some(properties) = properties.as_object() else {
            self.wrong("properties", "an object", properties);
            return Vec::new();
        };
        let mut required: BTreeSet<&SmolStr> = BTreeSet::new();
        if let Some(list) = schema.get("required") {
            match list.as_array() {
                Some(items) => required.extend(items.iter().filter_map(Json::as_str)),
                None => self.wrong("required", "an array of names", list),
            }
        }
        let mut attrs = Vec::new();
        let mut first: BTreeMap<&SmolStr, Span> = BTreeMap::new();
        for member in properties {
            let (key, span) = (&member.key.value, member.key.span);
            if let Some(first) = first.insert(key, span) {
                let name = key.clone();
                self.report(span, Problem::RepeatedProperty { name, first });
                continue;
            }
            let path = format_smolstr!("{path}_{}", word(key));
            let ty = self.ty(&path, &member.value, span);
            attrs.push(attr(key, !required.contains(key), ty));
        }
        attrs
    }

    fn wrong(&mut self, key: &'static str, expected: &'static str, found: &Json) {
        let problem = Problem::WrongKind {
            key,
            expected,
            found: found.what(),
        };
        self.report(found.span, problem);
    }

    fn unknown(&mut self) -> Ty {
        named(self.names.use_opaque(UNKNOWN))
    }

    /// `span` is that of the name the type is for.
    fn ty(&mut self, path: &SmolStr, schema: &'m Json, span: Span) -> Ty {
        self.parts += 1;
        if self.depth >= MAX_DEPTH || self.parts > MAX_PARTS {
            let problem = if self.depth >= MAX_DEPTH {
                Problem::TooDeep { limit: MAX_DEPTH }
            } else {
                Problem::TooLarge { limit: MAX_PARTS }
            };
            if self.parts <= MAX_PARTS + 1 {
                self.report(span, problem);
            }
            return self.unknown();
        }
        self.depth += 1;
        let ty = self.ty_inside(path, schema, span);
        self.depth -= 1;
        ty
    }

    fn ty_inside(&mut self, path: &SmolStr, schema: &'m Json, span: Span) -> Ty {
        match schema.kind {
            // `true` admits everything; so does an empty schema.
            JsonKind::Bool(_) => return self.unknown(),
            JsonKind::Object(_) => {}
            _ => {
                self.wrong("a schema", "an object", schema);
                return self.unknown();
            }
        }
        if let Some(target) = schema.get("$ref") {
            return self.reference(target);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key) {
                let Some(items) = choices.as_array() else {
                    self.wrong(key, "an array of schemas", choices);
                    return self.unknown();
                };
                if items.is_empty() {
                    self.report(choices.span, Problem::EmptyUnion { key });
                }
                return self.union(path, items, span);
            }
        }
        if let Some(choices) = schema.get("enum") {
            return self.enumeration(path, schema, choices, span);
        }
        if schema.get("const").is_some() {
            return self.unknown();
        }
        let Some(ty) = schema.get("type") else {
            return self.unknown();
        };
        if let Some(types) = ty.as_array() {
            if types.is_empty() {
                self.report(ty.span, Problem::EmptyUnion { key: "type" });
            }
            let mut attrs = Vec::new();
            for (index, ty) in types.iter().enumerate() {
                let choice = format_smolstr!("typeChoice{index}");
                let path = format_smolstr!("{path}_{choice}");
                let ty = self.plain(&path, ty, schema, span);
                attrs.push(attr(&choice, true, ty));
            }
            return record(attrs);
        }
        self.plain(path, ty, schema, span)
    }

    /// A schema with one `type`.
    fn plain(&mut self, path: &SmolStr, ty: &Json, schema: &'m Json, span: Span) -> Ty {
        let Some(name) = ty.as_str() else {
            self.wrong("type", "a name or an array of names", ty);
            return self.unknown();
        };
        match name.as_str() {
            "boolean" => named("Bool"),
            "integer" => named("Long"),
            "number" => named("decimal"),
            "null" => named(self.names.use_opaque(NULL)),
            "string" => named(match schema.get("format").and_then(Json::as_str) {
                Some(format) => match format.as_str() {
                    "decimal" => "decimal",
                    "date" | "date-time" => "datetime",
                    "duration" => "duration",
                    "ipv4" | "ipv6" => "ipaddr",
                    _ => "String",
                },
                None => "String",
            }),
            "array" => self.array(path, schema, span),
            "object" => self.object(path, schema, span),
            _ => {
                let name = name.clone();
                self.report(ty.span, Problem::UnknownType { name });
                self.unknown()
            }
        }
    }

    /// A record that says which of the choices a value has taken.
    fn union(&mut self, path: &SmolStr, choices: &'m [Json], span: Span) -> Ty {
        let mut attrs = Vec::new();
        for (index, choice) in choices.iter().enumerate() {
            let name = format_smolstr!("typeChoice{index}");
            let path = format_smolstr!("{path}_{name}");
            let ty = self.ty(&path, choice, span);
            attrs.push(attr(&name, true, ty));
        }
        record(attrs)
    }

    fn enumeration(&mut self, path: &SmolStr, schema: &'m Json, choices: &Json, span: Span) -> Ty {
        let Some(items) = choices.as_array() else {
            self.wrong("enum", "an array of values", choices);
            return self.unknown();
        };
        if items.is_empty() {
            self.report(choices.span, Problem::EmptyEnum);
            return self.unknown();
        }
        let ids: Option<Vec<&SmolStr>> = items.iter().map(Json::as_str).collect();
        let ty = schema.get("type").and_then(Json::as_str);
        let Some(ids) = ids.filter(|_| ty.is_none_or(|ty| ty == "string")) else {
            // Numbers stay numbers; a mixture has no type.
            return match ty.map(SmolStr::as_str) {
                Some("integer") => named("Long"),
                Some("number") => named("decimal"),
                Some("boolean") => named("Bool"),
                _ => self.unknown(),
            };
        };
        let mut seen = BTreeSet::new();
        for (id, item) in ids.iter().zip(items) {
            if !seen.insert(*id) {
                let choice = (*id).clone();
                self.report(item.span, Problem::RepeatedChoice { choice });
            }
        }
        self.names.take(path, span, self.errors);
        self.decls.push(write::decl(DeclKind::Entity {
            names: vec![write::ident(path)],
            body: EntityBody::Enum(ids.iter().map(|id| write::string(id)).collect()),
        }));
        named(path)
    }

    fn array(&mut self, path: &SmolStr, schema: &'m Json, span: Span) -> Ty {
        let set = |element: Ty| write::ty_of(TyKind::Set(Box::new(element)));
        let items = schema.get("items");
        if let Some(items) = items
            && items.as_array().is_some()
        {
            self.report(items.span, Problem::ListOfItems);
            return self.unknown();
        }
        let Some(prefix) = schema.get("prefixItems") else {
            let element = match items {
                Some(items) if items.kind != JsonKind::Bool(false) => self.ty(path, items, span),
                _ => self.unknown(),
            };
            return set(element);
        };
        let Some(prefix) = prefix.as_array() else {
            self.wrong("prefixItems", "an array of schemas", prefix);
            return self.unknown();
        };
        if items.is_some_and(|items| items.kind == JsonKind::Bool(false)) {
            let mut attrs = Vec::new();
            for (index, item) in prefix.iter().enumerate() {
                let name = format_smolstr!("proj{index}");
                let path = format_smolstr!("{path}_{name}");
                let ty = self.ty(&path, item, span);
                attrs.push(attr(&name, false, ty));
            }
            return record(attrs);
        }
        // An open tuple is a set only if all elements have one type; types of their own never do.
        let scalar = |node: &Json| {
            let ty = node.get("type").and_then(Json::as_str)?;
            let scalar = ty != "object" && ty != "array" && node.get("enum").is_none();
            scalar.then(|| {
                (
                    ty.clone(),
                    node.get("format").and_then(Json::as_str).cloned(),
                )
            })
        };
        let mut all = prefix.iter().chain(items);
        let first = all.next().and_then(|first| Some((first, scalar(first)?)));
        match first {
            Some((first, kind))
                if items.is_some() && all.all(|i| scalar(i) == Some(kind.clone())) =>
            {
                let element = self.ty(path, first, span);
                set(element)
            }
            _ => set(self.unknown()),
        }
    }

    fn object(&mut self, path: &SmolStr, schema: &'m Json, span: Span) -> Ty {
        self.names.take(path, span, self.errors);
        let attrs = self.properties(path, schema);
        let tags = match schema.get("additionalProperties") {
            None
            | Some(Json {
                kind: JsonKind::Bool(false),
                ..
            }) => None,
            Some(more) => Some(self.ty(&format_smolstr!("{path}_additional"), more, span)),
        };
        self.entity(path, attrs, tags);
        named(path)
    }

    fn entity(&mut self, name: &SmolStr, attrs: Vec<AttrDecl>, tags: Option<Ty>) {
        let span = Span::default();
        self.decls.push(write::decl(DeclKind::Entity {
            names: vec![write::ident(name)],
            body: EntityBody::Standard {
                parents: Vec::new(),
                attrs: (!attrs.is_empty()).then_some(RecordTy { attrs, span }),
                tags,
            },
        }));
    }

    /// The type of a definition; made where it is first referred to.
    fn reference(&mut self, written: &'m Json) -> Ty {
        let Some(target) = written.as_str() else {
            self.wrong("$ref", "a string", written);
            return self.unknown();
        };
        if let Some(name) = self.made.get(target) {
            return named(name);
        }
        let Some(schema) = self.defs.get(target).copied() else {
            let target = target.clone();
            self.report(written.span, Problem::UnknownRef { target });
            return self.unknown();
        };
        let base = target.rsplit('/').next().unwrap_or_default();
        let name = format_smolstr!("{}_{}", self.prefix, word(base));
        self.made.insert(target.clone(), name.clone());
        let object = schema
            .get("type")
            .and_then(Json::as_str)
            .is_some_and(|ty| ty == "object");
        let strings = schema.get("enum").is_some();
        if object || strings {
            // These have the name of the definition themselves.
            return self.ty(&name, schema, written.span);
        }
        let ty = self.ty(&format_smolstr!("{name}_of"), schema, written.span);
        self.names.take(&name, written.span, self.errors);
        self.decls.push(ty_decl(&name, ty));
        named(&name)
    }
}
