//! From the JSON of a declaration file to providers.

use super::error::{DeclarationError, DeclarationProblem as Problem};
use super::script::{self, Script};
use super::{EnumType, Provider, ProviderMethod, Providers, ReadScript};
use crate::eval::is_method;
use crate::json::{Json, JsonKind, Member};
use crate::nearest::nearest;
use crate::schema::{AttrType, Extension, RecordType, Type};
use dogwood_grammar::Span;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn providers(root: &Json, scripts: ReadScript) -> (Providers, Vec<DeclarationError>) {
    let mut reader = Reader {
        scripts,
        compiled: BTreeMap::new(),
        errors: Vec::new(),
        enums: BTreeMap::new(),
    };
    let providers = reader.file(root);
    let found = Providers {
        providers,
        enums: reader.enums,
        resolver: None,
    };
    (found, reader.errors)
}

struct Reader<'a> {
    scripts: ReadScript<'a>,
    /// By their text: several providers may share one.
    compiled: BTreeMap<String, Arc<dyn Script>>,
    errors: Vec<DeclarationError>,
    enums: BTreeMap<SmolStr, EnumType>,
}

/// A type as declared, with what was found while reading it.
struct Read {
    ty: Type,
    /// Unknown `paramType`s inside, which count as strings unless they hide an entity.
    unknown: Vec<(Span, SmolStr, bool)>,
    /// Entity types named inside, with their places.
    entities: Vec<(Span, SmolStr)>,
}

const PARAM_TYPES: [&str; 9] = [
    "string", "integer", "long", "bool", "boolean", "decimal", "set", "record", "entity",
];

impl Reader<'_> {
    fn report(&mut self, span: Span, problem: Problem) {
        self.errors.push(DeclarationError { span, problem });
    }

    // ------------------------------------------------------------------------------ JSON shapes

    /// The members of an object, a repeated key being wrong.
    fn object<'n>(&mut self, node: &'n Json) -> Option<&'n [Member]> {
        let JsonKind::Object(members) = &node.kind else {
            self.wrong_shape(node, "an object");
            return None;
        };
        let mut seen: BTreeMap<&SmolStr, Span> = BTreeMap::new();
        for member in members {
            match seen.get(&member.key.value) {
                Some(first) => {
                    let (name, first) = (member.key.value.clone(), *first);
                    self.report(member.key.span, Problem::Repeated { name, first });
                }
                None => {
                    seen.insert(&member.key.value, member.key.span);
                }
            }
        }
        Some(members)
    }

    fn array<'n>(&mut self, node: &'n Json) -> Option<&'n [Json]> {
        match &node.kind {
            JsonKind::Array(items) => Some(items),
            _ => {
                self.wrong_shape(node, "an array");
                None
            }
        }
    }

    fn string<'n>(&mut self, node: &'n Json) -> Option<&'n SmolStr> {
        let text = node.as_str();
        if text.is_none() {
            self.wrong_shape(node, "a string");
        }
        text
    }

    fn strings(&mut self, node: &Json) -> Vec<(Span, SmolStr)> {
        let items = self.array(node).unwrap_or_default();
        let mut found = Vec::new();
        for item in items {
            if let Some(text) = self.string(item) {
                found.push((item.span, text.clone()));
            }
        }
        found
    }

    fn wrong_shape(&mut self, node: &Json, wanted: &'static str) {
        let found = node.what();
        self.report(node.span, Problem::WrongShape { wanted, found });
    }

    /// Other keys are passed over, but one that is nearly a known one was probably meant to be it.
    fn misspelled(&mut self, members: &[Member], known: &[&str]) {
        let names: Vec<SmolStr> = known.iter().map(SmolStr::new).collect();
        for member in members.iter().filter(|m| !names.contains(&m.key.value)) {
            if let Some(nearest) = nearest(&member.key.value, &names) {
                let name = member.key.value.clone();
                self.report(member.key.span, Problem::MisspelledKey { name, nearest });
            }
        }
    }

    // --------------------------------------------------------------------------------- the file

    fn file(&mut self, root: &Json) -> BTreeMap<SmolStr, Provider> {
        let Some(members) = self.object(root) else {
            return BTreeMap::new();
        };
        self.misspelled(members, &["availableProviders", "entityTypes"]);
        let declared = field(members, "availableProviders").and_then(|node| self.object(node));
        if field(members, "availableProviders").is_none() {
            self.report(root.span, Problem::NoProviders);
        }
        let declared = declared.unwrap_or_default();
        if let Some(types) = field(members, "entityTypes").and_then(|node| self.object(node)) {
            self.enum_types(types, declared);
        }
        let mut providers = BTreeMap::new();
        for member in declared {
            if !is_qualified(&member.key.value) {
                let name = member.key.value.clone();
                self.report(member.key.span, Problem::ProviderName { name });
            }
            if let Some(provider) = self.provider(member) {
                providers.insert(member.key.value.clone(), provider);
            }
        }
        providers
    }

    fn enum_types(&mut self, types: &[Member], providers: &[Member]) {
        let namespaces: BTreeSet<&str> = providers
            .iter()
            .filter_map(|member| member.key.value.rsplit_once("::").map(|(ns, _)| ns))
            .collect();
        let mut exported: BTreeMap<SmolStr, &Member> = BTreeMap::new();
        for member in types {
            let before = self.errors.len();
            let name = &member.key.value;
            let span = member.key.span;
            if !name.split("::").all(is_word) {
                self.report(span, Problem::EnumName { name: name.clone() });
            } else if name.split("::").any(|word| word == "__cedar") {
                self.report(span, Problem::ReservedNamespace { name: name.clone() });
            } else if let Some((namespace, _)) = name.rsplit_once("::") {
                if !namespaces.contains(namespace) {
                    let problem = Problem::NamespaceWithoutProvider {
                        name: name.clone(),
                        namespace: namespace.into(),
                        nearest: nearest(
                            namespace,
                            &namespaces.iter().map(SmolStr::new).collect::<Vec<_>>(),
                        ),
                    };
                    self.report(span, problem);
                }
            } else {
                self.report(span, Problem::UnqualifiedEnum { name: name.clone() });
            }
            let export = super::export::flattened(name);
            match exported.get(&export) {
                Some(first) if first.key.value != *name => {
                    let problem = Problem::SameExport {
                        name: name.clone(),
                        other: first.key.value.clone(),
                        export,
                        first: first.key.span,
                    };
                    self.report(span, problem);
                }
                _ => {
                    exported.insert(export, member);
                }
            }
            let declared = self.enum_type(member);
            // Declared all the same, so that its uses are not wrong too.
            if let Some(declared) = declared {
                self.enums.insert(name.clone(), declared);
            } else if self.errors.len() > before {
                let nothing = EnumType {
                    choices: Vec::new(),
                    annotations: BTreeMap::new(),
                    span,
                };
                self.enums.insert(name.clone(), nothing);
            }
        }
    }

    fn enum_type(&mut self, member: &Member) -> Option<EnumType> {
        let parts = self.object(&member.value)?;
        for part in parts {
            if !["enum", "annotations"].contains(&part.key.value.as_str()) {
                let name = part.key.value.clone();
                self.report(part.key.span, Problem::EnumKey { name });
            }
        }
        let annotations = match field(parts, "annotations").and_then(|node| self.object(node)) {
            None => BTreeMap::new(),
            Some(notes) => notes
                .iter()
                .filter_map(|note| {
                    Some((note.key.value.clone(), self.string(&note.value)?.clone()))
                })
                .collect(),
        };
        let Some(choices) = field(parts, "enum") else {
            let problem = Problem::MissingKey {
                of: member.key.value.clone(),
                key: "enum",
            };
            self.report(member.key.span, problem);
            return None;
        };
        let values = self.strings(choices);
        if matches!(&choices.kind, JsonKind::Array(items) if items.is_empty()) {
            let name = member.key.value.clone();
            self.report(choices.span, Problem::NoChoices { name });
        }
        let mut seen: BTreeMap<&SmolStr, Span> = BTreeMap::new();
        for (span, value) in &values {
            match seen.get(value) {
                Some(first) => {
                    let (name, first) = (value.clone(), *first);
                    self.report(*span, Problem::Repeated { name, first });
                }
                None => {
                    seen.insert(value, *span);
                }
            }
        }
        Some(EnumType {
            choices: values.into_iter().map(|(_, value)| value).collect(),
            annotations,
            span: member.key.span,
        })
    }

    // ------------------------------------------------------------------------------- providers

    fn provider(&mut self, member: &Member) -> Option<Provider> {
        let parts = self.object(&member.value)?;
        self.misspelled(
            parts,
            &[
                "argumentTypes",
                "outputType",
                "availableMethods",
                "implementation",
            ],
        );
        let args = self.arguments(parts);
        let output = self.output(member, parts);
        let mut methods = BTreeMap::new();
        let declared = field(parts, "availableMethods").and_then(|node| self.object(node));
        for method in declared.unwrap_or_default() {
            if is_method(&method.key.value) {
                let name = method.key.value.clone();
                self.report(method.key.span, Problem::MethodOfCedar { name });
            }
            if let Some(declared) = self.method(method) {
                methods.insert(method.key.value.clone(), declared);
            }
        }
        let script = match field(parts, "implementation") {
            Some(implementation) => self.implementation(implementation, args.len(), &methods),
            None => None,
        };
        Some(Provider {
            args,
            output: output?,
            methods,
            span: member.key.span,
            script,
        })
    }

    fn method(&mut self, member: &Member) -> Option<ProviderMethod> {
        let parts = self.object(&member.value)?;
        self.misspelled(parts, &["argumentTypes", "outputType", "inputType"]);
        let args = self.arguments(parts);
        let input = field(parts, "inputType").and_then(|node| self.whole_type(node, true));
        Some(ProviderMethod {
            args,
            output: self.output(member, parts)?,
            input,
        })
    }

    fn arguments(&mut self, parts: &[Member]) -> Vec<Type> {
        let Some(node) = field(parts, "argumentTypes") else {
            return Vec::new();
        };
        let mut types = Vec::new();
        for item in self.array(node).unwrap_or_default() {
            // One that cannot be read still counts.
            let ty = self.whole_type(item, false).unwrap_or(Type::String);
            types.push(ty);
        }
        types
    }

    fn output(&mut self, of: &Member, parts: &[Member]) -> Option<Type> {
        match field(parts, "outputType") {
            Some(node) => self.whole_type(node, true),
            None => {
                let problem = Problem::MissingKey {
                    of: of.key.value.clone(),
                    key: "outputType",
                };
                self.report(of.key.span, problem);
                None
            }
        }
    }

    /// A type with everything that can be said of it as a whole. The entity types a provider gives must
    /// be declared here; those it takes may be the application's.
    fn whole_type(&mut self, node: &Json, declared_here: bool) -> Option<Type> {
        let read = self.read_type(node)?;
        for (span, name, refused) in read.unknown {
            let known: Vec<SmolStr> = PARAM_TYPES.iter().map(SmolStr::new).collect();
            let nearest = nearest(&name, &known);
            let problem = Problem::UnknownParamType {
                name,
                nearest,
                refused,
            };
            self.report(span, problem);
        }
        for (span, name) in read.entities {
            if !is_qualified(&name) {
                self.report(span, Problem::UnqualifiedEntity { name });
            } else if declared_here && !self.enums.contains_key(&name) {
                let nearest = nearest(&name, self.enums.keys());
                self.report(span, Problem::UndeclaredOutput { name, nearest });
            }
        }
        Some(read.ty)
    }

    fn read_type(&mut self, node: &Json) -> Option<Read> {
        let parts = self.object(node)?;
        self.misspelled(
            parts,
            &["paramType", "items", "fields", "required", "entityType"],
        );
        let Some(kind) = field(parts, "paramType") else {
            self.report(
                node.span,
                Problem::MissingKey {
                    of: SmolStr::default(),
                    key: "paramType",
                },
            );
            return None;
        };
        let name = self.string(kind)?.clone();
        let mut read = Read {
            ty: Type::String,
            unknown: Vec::new(),
            entities: Vec::new(),
        };
        let entity = field(parts, "entityType");
        let entity = entity.and_then(|node| Some((node.span, self.string(node)?.clone())));
        let known = PARAM_TYPES.contains(&name.as_str());
        if name == "entity" {
            for key in ["fields", "items", "required"] {
                if let Some(member) = parts.iter().find(|member| member.key.value == key) {
                    self.report(member.key.span, Problem::KeyOnEntity { key });
                }
            }
            match entity {
                Some((span, name)) => {
                    read.ty = Type::Entity(name.clone());
                    read.entities.push((span, name));
                }
                None if field(parts, "entityType").is_none() => {
                    self.report(node.span, Problem::EntityWithoutType);
                }
                None => {}
            }
            return Some(read);
        }
        if let Some((span, name)) = entity {
            if known {
                self.report(span, Problem::EntityTypeElsewhere);
            } else {
                read.entities.push((span, name));
            }
        }
        let inner = |read: &mut Read, inner: Read| {
            read.unknown.extend(inner.unknown);
            read.entities.extend(inner.entities);
            inner.ty
        };
        let items = match field(parts, "items") {
            Some(node) => self
                .read_type(node)
                .map_or(Type::String, |found| inner(&mut read, found)),
            None => Type::String,
        };
        let required: BTreeSet<SmolStr> = match field(parts, "required") {
            Some(node) => self.strings(node).into_iter().map(|(_, s)| s).collect(),
            None => BTreeSet::new(),
        };
        let mut record = RecordType::default();
        for member in field(parts, "fields")
            .and_then(|node| self.object(node))
            .unwrap_or_default()
        {
            let ty = self
                .read_type(&member.value)
                .map_or(Type::String, |found| inner(&mut read, found));
            let required = required.contains(&member.key.value);
            record
                .attrs
                .insert(member.key.value.clone(), AttrType { ty, required });
        }
        read.ty = match name.as_str() {
            "string" => Type::String,
            "integer" | "long" => Type::Long,
            "bool" | "boolean" => Type::Bool,
            "decimal" => Type::Ext(Extension::Decimal),
            "set" => Type::Set(Box::new(items)),
            "record" => Type::Record(record),
            _ => {
                let hides = !read.entities.is_empty();
                read.unknown.push((kind.span, name, hides));
                Type::String
            }
        };
        Some(read)
    }

    fn implementation(
        &mut self,
        node: &Json,
        args: usize,
        methods: &BTreeMap<SmolStr, ProviderMethod>,
    ) -> Option<Arc<dyn Script>> {
        let parts = self.object(node)?;
        self.misspelled(parts, &["kind", "script", "scriptFile"]);
        match field(parts, "kind") {
            Some(kind) => match self.string(kind)?.as_str() {
                "rhai" => {}
                other => {
                    let name = other.into();
                    self.report(kind.span, Problem::ScriptKind { name });
                    return None;
                }
            },
            None => {
                let problem = Problem::MissingKey {
                    of: SmolStr::new("implementation"),
                    key: "kind",
                };
                self.report(node.span, problem);
                return None;
            }
        }
        let (span, text) = match (field(parts, "script"), field(parts, "scriptFile")) {
            (Some(script), None) => (script.span, self.string(script)?.to_string()),
            (None, Some(file)) => {
                let name = self.string(file)?;
                match self.scripts?(name) {
                    Ok(text) => (file.span, text),
                    Err(why) => {
                        let name = name.clone();
                        self.report(file.span, Problem::ScriptFile { name, why });
                        return None;
                    }
                }
            }
            _ => {
                self.report(node.span, Problem::ScriptOrFile);
                return None;
            }
        };
        let script = match self.compiled.get(&text) {
            Some(script) => Arc::clone(script),
            None => match script::compile(&text) {
                Ok(script) => {
                    self.compiled.insert(text, Arc::clone(&script));
                    script
                }
                Err(error) => {
                    self.report(span, Problem::Script { error });
                    return None;
                }
            },
        };
        let methods = methods
            .iter()
            .map(|(name, method)| (name.clone(), 1 + method.args.len()));
        for (name, takes) in [(SmolStr::new("evaluate"), args)]
            .into_iter()
            .chain(methods)
        {
            if !script.has(&name, takes) {
                self.report(span, Problem::NoFunction { name, takes });
            }
        }
        Some(script)
    }
}

fn field<'n>(members: &'n [Member], key: &str) -> Option<&'n Json> {
    let found = members.iter().find(|member| member.key.value == key);
    found
        .map(|member| &member.value)
        .filter(|node| node.kind != JsonKind::Null)
}

fn is_qualified(name: &str) -> bool {
    name.contains("::") && name.split("::").all(is_word)
}

fn is_word(word: &str) -> bool {
    let mut chars = word.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
