//! Completion in policies and macro libraries.

use super::idioms::{IDIOMS, plain};
use super::{ItemKind, Items, escaped};
use crate::cursor::Cursor;
use crate::feature::{hover, words};
use crate::mark::Root;
use crate::snapshot::Snapshot;
use dogwood_compiler::diagnostic::codes::CODES;
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::ast::{MacroKind, Rule};
use dogwood_compiler::schema::{DerivedEvent, EventId, FieldType, RecordType, Type};
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;

const SET_METHODS: &[&str] = &["contains", "containsAll", "containsAny", "isEmpty"];
const ENTITY_METHODS: &[&str] = &["hasTag", "getTag"];
/// Types a variable of a temporal condition may have beside entities.
const VARIABLE_TYPES: [&str; 5] = ["Timepoint", "String", "Long", "Bool", "decimal"];

pub fn complete(snapshot: &Snapshot, offset: usize, cursor: &Cursor, items: &mut Items) {
    let here = Here {
        snapshot,
        rule: snapshot.rule_at(offset).map(|(_, rule)| rule),
        cursor,
    };
    here.complete(items);
}

struct Here<'a> {
    snapshot: &'a Snapshot,
    rule: Option<&'a Rule>,
    cursor: &'a Cursor<'a>,
}

fn root(word: &str) -> Option<Root> {
    Some(match word {
        "principal" => Root::Principal,
        "action" => Root::Action,
        "resource" => Root::Resource,
        "context" => Root::Context,
        _ => return None,
    })
}

impl<'a> Here<'a> {
    fn complete(&self, items: &mut Items) {
        let cursor = self.cursor;
        let inside = cursor.inside().map_or("", |(bracket, _)| bracket);
        if let Some(path) = cursor.path() {
            return self.qualified(&path, items);
        }
        if cursor.in_string {
            return self.in_string(items);
        }
        match cursor.back(1) {
            "::" => return self.kinds(items),
            "@" => {
                for key in ["id", "description", "allow"] {
                    let about = words::annotation(key).map(|about| about.meaning.to_owned());
                    let insert = format!("{key}(\"${{1}}\")");
                    items.snippet(ItemKind::Keyword, key, "", about, insert);
                }
                return;
            }
            "." => {
                let introduces = cursor.back(2) == ")" && cursor.temporal();
                if !introduces {
                    return self.members(items);
                }
            }
            "within" => {
                for window in ["1m", "15m", "1h", "24h"] {
                    items.word(ItemKind::Value, window, "", None);
                }
                self.parameters(items);
                return;
            }
            "has" => {
                let path = cursor.dotted_name(1);
                return self.fields_of(&path, items);
            }
            "is" => return self.types(items),
            ":" if inside == "(" => {
                for ty in VARIABLE_TYPES {
                    let about = words::type_name(ty).map(|about| about.meaning.to_owned());
                    items.word(ItemKind::Type, ty, "", about);
                }
                return self.types(items);
            }
            _ => {}
        }
        if let Some((ty, id, kind)) = cursor.matcher() {
            let value = cursor.back(1) == ":";
            if let Some(event) = self.event(&ty, &id, kind) {
                if value {
                    self.value_of(event, items);
                } else {
                    self.event_fields(event, items);
                }
            }
            return;
        }
        if cursor.open.is_empty() {
            return self.outside(items);
        }
        if cursor.in_head() {
            return self.head(items);
        }
        if let "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" = cursor.back(1) {
            self.compared(items);
        }
        if cursor.temporal() {
            self.condition(items);
        } else if cursor.in_body() {
            self.expression(items);
        }
    }

    /// Behind `Ns::…::`.
    fn qualified(&self, path: &str, items: &mut Items) {
        let schema = &self.snapshot.setup.service.actions;
        let quoted = |id: &str| {
            if self.cursor.in_string {
                id.to_owned()
            } else {
                format!("\"{id}\"")
            }
        };
        for action in schema
            .actions
            .values()
            .filter(|action| action.uid.ty == path)
        {
            let about = self.about_action(&action.uid);
            let matcher = self.cursor.temporal() && action.applies_to.is_some();
            if matcher && !self.cursor.in_string {
                let insert = format!(
                    "\"{}\"::{}{{ $0 }}",
                    escaped(&action.uid.id),
                    self.kind_choice(&action.uid)
                );
                let label = quoted(&action.uid.id);
                items.snippet(ItemKind::Action, &label, "action", about, insert);
            } else {
                items.word(ItemKind::Action, &quoted(&action.uid.id), "action", about);
            }
        }
        if let Some(entity) = schema.entity_types.get(path) {
            for choice in entity.choices.iter().flatten() {
                items.word(ItemKind::Value, &quoted(choice), path, None);
            }
        }
        if self.cursor.in_string {
            return;
        }
        let prefix = format!("{path}::");
        let providers = self.snapshot.setup.service.providers.names();
        let types = schema.entity_types.keys();
        let actions = schema.actions.keys().map(|uid| &uid.ty);
        for name in types.chain(actions).chain(providers) {
            if let Some(rest) = name.strip_prefix(&prefix) {
                let next = rest.split("::").next().unwrap_or(rest);
                items.word(ItemKind::Type, next, name, None);
            }
        }
    }

    fn in_string(&self, items: &mut Items) {
        let cursor = self.cursor;
        if cursor.back(1) == "(" && cursor.back(2) == "allow" && cursor.back(3) == "@" {
            for (code, meaning) in CODES {
                items.word(ItemKind::Code, code, "", Some((*meaning).to_owned()));
            }
        }
    }

    /// Behind `Ns::Action::"id"::`.
    fn kinds(&self, items: &mut Items) {
        let Some((ty, id)) = self.cursor.action(1) else {
            return;
        };
        let uid = EntityUid::new(ty, id);
        let events = &self.snapshot.setup.service.events;
        for event in events.events.keys().filter(|event| event.action == uid) {
            let decided = events.decision_kinds.contains(&event.kind);
            let detail = if decided { "is decided" } else { "happened" };
            let insert = format!("{}{{ $0 }}", event.kind);
            items.snippet(ItemKind::EventKind, &event.kind, detail, None, insert);
        }
    }

    fn kind_choice(&self, uid: &EntityUid) -> String {
        let events = self.snapshot.setup.service.events.events.keys();
        let kinds: Vec<&str> = events
            .filter(|event| event.action == *uid)
            .map(|event| event.kind.as_str())
            .collect();
        format!("${{1|{}|}}", kinds.join(","))
    }

    fn about_action(&self, uid: &EntityUid) -> Option<String> {
        let built_in = self.snapshot.setup.action_schema.is_none();
        let about = words::action(&uid.id).filter(|_| built_in)?;
        Some(about.to_owned())
    }

    /// Behind a dot.
    fn members(&self, items: &mut Items) {
        let words = self.cursor.dotted(0);
        if let Some((ty, id, kind)) = self.cursor.matcher()
            && root(words.first().copied().unwrap_or_default()).is_none()
        {
            if let Some(event) = self.event(&ty, &id, kind) {
                self.event_fields(event, items);
            }
            return;
        }
        self.fields_of(&words, items);
        if self.cursor.temporal() {
            return;
        }
        let path: Vec<SmolStr> = words.iter().skip(1).map(SmolStr::new).collect();
        let root = words.first().and_then(|word| root(word));
        let names = match root {
            Some(Root::Context | Root::Action) if path.is_empty() => &[][..],
            Some(_) if path.is_empty() => ENTITY_METHODS,
            Some(root) => methods(&self.snapshot.field_types(self.rule, root, &path)),
            None => SET_METHODS,
        };
        for name in names {
            let about = words::method(name).map(|about| about.meaning.to_owned());
            let bare = name.starts_with("is") && *name != "isInRange" || name.starts_with("to");
            let insert = if bare {
                format!("{name}()")
            } else {
                format!("{name}($0)")
            };
            items.snippet(ItemKind::Function, name, "method", about, insert);
        }
    }

    /// The fields below a path of the request.
    fn fields_of(&self, words: &[&str], items: &mut Items) {
        let Some(root) = words.first().and_then(|word| root(word)) else {
            return;
        };
        let way: Vec<SmolStr> = words.iter().skip(1).map(SmolStr::new).collect();
        for record in self.snapshot.records_of(self.rule, root) {
            let Some(record) = self.snapshot.inside(&record, &way) else {
                continue;
            };
            self.record(record, root, &way, items);
        }
    }

    fn record(&self, record: &RecordType, root: Root, way: &[SmolStr], items: &mut Items) {
        for (name, attr) in &record.attrs {
            let optional = if attr.required {
                ""
            } else {
                " (may be absent)"
            };
            let mut path = way.to_vec();
            path.push(name.clone());
            let about = match root {
                Root::Context => self
                    .snapshot
                    .actions_of(self.rule)
                    .first()
                    .and_then(|action| hover::field_comment(self.snapshot, &action.uid, &path)),
                _ => None,
            };
            items.word(
                ItemKind::Field,
                name,
                &format!("{}{optional}", attr.ty),
                about,
            );
        }
    }

    fn event(&self, ty: &str, id: &str, kind: &str) -> Option<&'a DerivedEvent> {
        let id = EventId {
            action: EntityUid::new(ty, id),
            kind: SmolStr::new(kind),
        };
        self.snapshot.setup.service.events.events.get(&id)
    }

    /// The fields of an event, whole paths at once; behind a dot, what is left of them.
    fn event_fields(&self, event: &DerivedEvent, items: &mut Items) {
        let way = self.cursor.dotted(0);
        for (path, ty) in &event.fields {
            let begins = path.iter().zip(&way).all(|(word, way)| word == way);
            let Some(rest) = path
                .get(way.len()..)
                .filter(|rest| begins && !rest.is_empty())
            else {
                continue;
            };
            let label = rest.join(".");
            let about = hover::field_comment(self.snapshot, &event.id.action, path);
            let insert = format!("{}: $0", escaped(&label));
            items.snippet(
                ItemKind::Field,
                &label,
                &hover::field_type(ty),
                about,
                insert,
            );
        }
    }

    /// What a field of an event may be compared with.
    fn value_of(&self, event: &DerivedEvent, items: &mut Items) {
        let field = self.cursor.back(2);
        let mut path = self.cursor.dotted(2);
        path.push(field);
        let path: Vec<SmolStr> = path.into_iter().map(SmolStr::new).collect();
        match event.fields.get(&path) {
            Some(FieldType::Declared { ty, .. }) => self.values(ty, items),
            Some(FieldType::Scope(_)) => {
                let word = if field.to_ascii_lowercase().contains("resource") {
                    "resource"
                } else {
                    "principal"
                };
                items.word(ItemKind::Variable, word, "", None);
            }
            _ => {}
        }
        if let Some(action) = self.snapshot.actions_of(self.rule).first()
            && let Some(applies_to) = &action.applies_to
            && self
                .snapshot
                .inside(
                    &applies_to.context,
                    path.get(..path.len() - 1).unwrap_or_default(),
                )
                .is_some_and(|record| {
                    path.last()
                        .is_some_and(|last| record.attrs.contains_key(last))
                })
        {
            let label = format!("context.{}", path.join("."));
            let about = Some("The same as in the request being decided.".to_owned());
            items.word(ItemKind::Field, &label, "", about);
        }
        self.variables(items);
        items.word(
            ItemKind::Value,
            "*",
            "present",
            words::operator("*").map(|about| about.meaning.to_owned()),
        );
    }

    /// The values of an enumerated type, and of `Bool`.
    fn values(&self, ty: &Type, items: &mut Items) {
        match ty {
            Type::Entity(name) => {
                let types = &self.snapshot.setup.service.actions.entity_types;
                let choices = types.get(name).and_then(|entity| entity.choices.as_ref());
                for choice in choices.into_iter().flatten() {
                    let label = format!("{name}::\"{choice}\"");
                    items.word(ItemKind::Value, &label, "", None);
                }
            }
            Type::Bool => {
                items.word(ItemKind::Value, "true", "", None);
                items.word(ItemKind::Value, "false", "", None);
            }
            _ => {}
        }
    }

    /// What the left side of a comparison is compared with.
    fn compared(&self, items: &mut Items) {
        let words = self.cursor.dotted_name(1);
        let Some(root) = words.first().and_then(|word| root(word)) else {
            return;
        };
        if root == Root::Action && words.len() == 1 {
            return self.actions(items);
        }
        let path: Vec<SmolStr> = words.iter().skip(1).map(SmolStr::new).collect();
        for (ty, _) in self.snapshot.field_types(self.rule, root, &path) {
            self.values(&ty, items);
        }
    }

    /// Outside all brackets: between rules, or between the clauses of one.
    fn outside(&self, items: &mut Items) {
        if self.cursor.before.is_empty() || self.cursor.back(1) == ")" && self.noted() {
            if self.cursor.before.is_empty() && self.snapshot.setup.action_schema.is_none() {
                for idiom in IDIOMS {
                    let about =
                        format!("{}\n\n```dogwood\n{}\n```", idiom.about, plain(idiom.body));
                    items.snippet(
                        ItemKind::Snippet,
                        idiom.label,
                        "idiom",
                        Some(about),
                        idiom.body.to_owned(),
                    );
                }
            }
            for effect in ["permit", "forbid"] {
                let about = words::keyword(effect).map(|about| about.meaning.to_owned());
                let insert = format!("{effect} (principal, action == ${{1}}, resource)$0;");
                items.snippet(ItemKind::Keyword, effect, "", about, insert);
            }
            for kind in ["temporal", "cedar"] {
                let label = format!("def {kind}");
                let about = words::keyword("def").map(|about| about.meaning.to_owned());
                let insert = format!("def {kind} ${{1:name}}(${{2:?param}}) {{\n  $0\n}};");
                items.snippet(ItemKind::Keyword, &label, "", about, insert);
            }
            let insert = "@id(\"${1}\")".to_owned();
            items.snippet(ItemKind::Keyword, "@id", "", None, insert);
            return;
        }
        match self.cursor.back(1) {
            "when" | "unless" => {
                let insert = "temporal { $0 }".to_owned();
                let about = words::keyword("temporal").map(|about| about.meaning.to_owned());
                items.snippet(ItemKind::Keyword, "temporal", "", about, insert);
            }
            ")" | "}" => {
                for clause in ["when", "unless"] {
                    let about = words::keyword(clause).map(|about| about.meaning.to_owned());
                    let insert = format!("{clause} {{ $0 }}");
                    items.snippet(ItemKind::Keyword, clause, "", about.clone(), insert);
                    let insert = format!("{clause} temporal {{ $0 }}");
                    let label = format!("{clause} temporal");
                    items.snippet(ItemKind::Keyword, &label, "", about, insert);
                }
            }
            "def" => items.keywords(&["temporal", "cedar"]),
            _ => {}
        }
    }

    /// Whether only annotations stand before the cursor.
    fn noted(&self) -> bool {
        self.cursor
            .before
            .first()
            .is_some_and(|word| word.text == "@")
            && !self
                .cursor
                .before
                .iter()
                .any(|word| matches!(word.text, "permit" | "forbid"))
    }

    fn head(&self, items: &mut Items) {
        let cursor = self.cursor;
        match cursor.back(1) {
            "(" | "," if cursor.open.len() == 1 => {
                for word in ["principal", "action", "resource"] {
                    items.word(ItemKind::Variable, word, "", None);
                }
            }
            "principal" | "resource" => items.keywords(&["is", "in", "=="]),
            "action" => items.keywords(&["==", "in"]),
            "==" | "in" | "[" | "," => {
                let of_action = cursor
                    .before
                    .iter()
                    .rev()
                    .find(|word| matches!(word.text, "principal" | "action" | "resource"))
                    .is_some_and(|word| word.text == "action");
                if of_action {
                    self.actions(items);
                } else {
                    self.types(items);
                }
            }
            _ => {}
        }
    }

    /// Every action, written out.
    fn actions(&self, items: &mut Items) {
        for action in self.snapshot.setup.service.actions.actions.values() {
            let uid = &action.uid;
            let label = format!("{}::\"{}\"", uid.ty, uid.id);
            let detail = if action.applies_to.is_some() {
                "action"
            } else {
                "group of actions"
            };
            items.word(ItemKind::Action, &label, detail, self.about_action(uid));
        }
    }

    fn types(&self, items: &mut Items) {
        for entity in self.snapshot.setup.service.actions.entity_types.values() {
            let detail = if entity.choices.is_some() {
                "enumerated"
            } else {
                "entity type"
            };
            items.word(ItemKind::Type, &entity.name, detail, None);
        }
    }

    fn parameters(&self, items: &mut Items) {
        for name in self.cursor.parameters() {
            items.word(ItemKind::Variable, name, "parameter", None);
        }
    }

    fn variables(&self, items: &mut Items) {
        for (name, ty) in self.cursor.variables() {
            items.word(ItemKind::Variable, name, ty, None);
        }
        self.parameters(items);
    }

    fn condition(&self, items: &mut Items) {
        self.variables(items);
        self.macros(MacroKind::Temporal, items);
        for (label, insert) in [
            ("formerly", "formerly within ${1:1h} $0"),
            ("previous", "previous within ${1:1h} $0"),
            ("since", "since within ${1:1h} $0"),
            ("exists", "exists (${1:x}: ${2:String}). ($0)"),
            (
                "count",
                "(count for (${1:t}: Timepoint). where (formerly within ${2:1h} ($0 && tp(${1:t}))))",
            ),
            (
                "sum",
                "(sum ${1:n} for (${1:n}: Long), (${2:t}: Timepoint). where (formerly within ${3:1h} ($0 && tp(${2:t}))))",
            ),
            ("tp", "tp(${1:t})"),
        ] {
            let about = words::keyword(label).map(|about| about.meaning.to_owned());
            items.snippet(ItemKind::Keyword, label, "", about, insert.to_owned());
        }
        for action in self.snapshot.setup.service.actions.actions.values() {
            if action.applies_to.is_none() {
                continue;
            }
            let uid = &action.uid;
            let insert = format!(
                "{}::\"{}\"::{}{{ $0 }}",
                uid.ty,
                escaped(&uid.id),
                self.kind_choice(uid)
            );
            let label = format!("{}::\"{}\"", uid.ty, uid.id);
            items.snippet(
                ItemKind::Action,
                &label,
                &short_name(uid),
                self.about_action(uid),
                insert,
            );
        }
        for word in ["context", "principal", "resource"] {
            items.word(ItemKind::Variable, word, "", None);
        }
    }

    fn expression(&self, items: &mut Items) {
        for word in ["context", "principal", "action", "resource"] {
            items.word(ItemKind::Variable, word, "", None);
        }
        items.keywords(&["has", "like", "is", "in", "if", "then", "else"]);
        items.word(ItemKind::Value, "true", "", None);
        items.word(ItemKind::Value, "false", "", None);
        let about = words::keyword("temporal").map(|about| about.meaning.to_owned());
        let insert = "temporal { $0 }".to_owned();
        items.snippet(ItemKind::Keyword, "temporal", "", about, insert);
        self.macros(MacroKind::Cedar, items);
        for name in ["decimal", "datetime", "duration", "ip"] {
            let about = words::constructor(name).map(|about| about.meaning.to_owned());
            let insert = format!("{name}(\"$0\")");
            items.snippet(ItemKind::Function, name, "", about, insert);
        }
        for name in self.snapshot.setup.service.providers.names() {
            let insert = format!("{name}($0)");
            items.snippet(ItemKind::Function, name, "provider", None, insert);
        }
        self.parameters(items);
    }

    fn macros(&self, kind: MacroKind, items: &mut Items) {
        for (def, document) in self.snapshot.all_macros() {
            if def.kind != kind {
                continue;
            }
            let params: Vec<String> = def
                .params
                .iter()
                .enumerate()
                .map(|(at, param)| format!("${{{}:{}}}", at + 1, param.text))
                .collect();
            let insert = format!("{}({})", def.name.text, params.join(", "));
            let about = document.comment_above(def.span.start as usize);
            items.snippet(
                ItemKind::Macro,
                &def.name.text,
                &hover::signature(def),
                about,
                insert,
            );
        }
    }
}

/// The methods that values of these types have; those of sets where nothing is known.
fn methods(types: &[(Type, bool)]) -> &'static [&'static str] {
    use dogwood_compiler::schema::Extension;
    match types.first().map(|(ty, _)| ty) {
        Some(Type::Set(_)) => SET_METHODS,
        Some(Type::Entity(_)) => ENTITY_METHODS,
        Some(Type::Ext(Extension::Decimal)) => &[
            "lessThan",
            "lessThanOrEqual",
            "greaterThan",
            "greaterThanOrEqual",
        ],
        Some(Type::Ext(Extension::IpAddr)) => {
            &["isIpv4", "isIpv6", "isLoopback", "isMulticast", "isInRange"]
        }
        Some(Type::Ext(Extension::Datetime)) => &["offset", "durationSince", "toDate", "toTime"],
        Some(Type::Ext(Extension::Duration)) => &[
            "toMilliseconds",
            "toSeconds",
            "toMinutes",
            "toHours",
            "toDays",
        ],
        Some(Type::Bool | Type::Long | Type::String | Type::Record(_)) => &[],
        None => SET_METHODS,
    }
}
