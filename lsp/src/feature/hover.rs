//! What stands under the cursor: its type, what it means, and for a rule what it says in plain English.

use super::words;
use crate::document::{Kind, comment_above};
use crate::mark::{Local, Root, What};
use crate::snapshot::Snapshot;
use dogwood_compiler::diagnostic::pages::page;
use dogwood_compiler::explain::{length_in_words, sentences, short_name};
use dogwood_compiler::grammar::ast::{MacroDef, MacroKind, Rule, Sigil};
use dogwood_compiler::grammar::{Span, TokenKind};
use dogwood_compiler::schema::{EventId, FieldType, RecordType, Type};
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    pub span: Span,
    /// Markdown.
    pub text: String,
}

pub fn hover(snapshot: &Snapshot, offset: usize) -> Option<Hover> {
    let document = &snapshot.document;
    if let Some((number, rule)) = snapshot.rule_at(offset)
        && touches(rule.effect_span, offset)
    {
        let text = about_rule(snapshot, number, rule);
        let span = rule.effect_span;
        return Some(Hover { span, text });
    }
    if let Some(mark) = document.mark_at(offset)
        && let Some(text) = about(snapshot, offset, &mark.what)
    {
        let span = mark.span;
        return Some(Hover { span, text });
    }
    let piece = document.piece_at(offset)?;
    let word = piece.span.text(snapshot.text());
    let kind = document.kind;
    let text = match piece.kind {
        TokenKind::Keyword => explained(word, words::keyword(word)?, kind),
        TokenKind::Operator => explained(word, words::operator(word)?, kind),
        TokenKind::Word if kind == Kind::ActionSchema => {
            explained(word, words::applies_to(word)?, kind)
        }
        _ => return None,
    };
    let span = piece.span;
    Some(Hover { span, text })
}

fn touches(span: Span, offset: usize) -> bool {
    span.start as usize <= offset && offset <= span.end as usize
}

/// A word with its meaning and an example.
fn explained(word: &str, about: words::Word, kind: Kind) -> String {
    format!(
        "`{word}`\n\n{}\n\n```{}\n{}\n```",
        about.meaning,
        fence(kind),
        about.example
    )
}

/// What Markdown calls the language of a document.
fn fence(kind: Kind) -> &'static str {
    match kind {
        Kind::Policy => "dogwood",
        Kind::ActionSchema => "cedarschema",
        Kind::EventSchema => "dwschema",
        Kind::Tests => "toml",
        Kind::Other => "text",
    }
}

/// What a rule says, whose verdicts it stands in, and what it tells.
pub fn about_rule(snapshot: &Snapshot, number: usize, rule: &Rule) -> String {
    let mut text = match rule.annotation("id").map(str::trim) {
        Some(id) if !id.is_empty() => format!("**rule {number}: {id}**"),
        _ => format!("**rule {number}**"),
    };
    match snapshot.expanded(rule) {
        Some(expanded) => {
            text.push_str("\n\n");
            text.push_str(&sentences(&expanded, &snapshot.setup.service).join(" "));
        }
        None => text.push_str("\n\nIts macros cannot be written out, so it cannot be explained."),
    }
    if let Some(said) = rule
        .annotation("description")
        .filter(|said| !said.is_empty())
    {
        text.push_str("\n\n> ");
        text.push_str(&said.replace('\n', "\n> "));
    }
    text
}

fn about(snapshot: &Snapshot, offset: usize, what: &What) -> Option<String> {
    let rule = snapshot.rule_at(offset);
    let kind = snapshot.document.kind;
    Some(match what {
        What::Annotation(key) => explained(&format!("@{key}"), words::annotation(key)?, kind),
        What::Rule(id) => rule_named(snapshot, id)?,
        What::Code(code) => format!("```text\n{}\n```", page(code)?.trim_end()),
        What::Type(name) => about_type(snapshot, name)?,
        What::Entity(uid) => format!("an entity of type `{}`", uid.ty),
        What::Action(uid) => about_action(snapshot, uid)?,
        What::ActionId(id) => {
            let uid = snapshot.action_called(id)?;
            about_action(snapshot, uid)?
        }
        What::Kind { action, kind } => about_kind(snapshot, action.as_ref(), kind)?,
        What::EventField { action, kind, path } => event_field(snapshot, action, kind, path)?,
        What::RequestField { root, path } => {
            request_field(snapshot, rule.map(|(_, rule)| rule), *root, path)?
        }
        What::Variable(root) => variable(snapshot, rule.map(|(_, rule)| rule), *root),
        What::Macro(name) => about_macro(snapshot, name)?,
        What::Constructor(name) => explained(name, words::constructor(name)?, kind),
        What::Method(name) => explained(&format!(".{name}()"), words::method(name)?, kind),
        What::Provider(name) => provider(snapshot, name)?,
        What::Local(local) => about_local(local),
        What::Window(Some(seconds)) => format!(
            "{}\n\nBoth ends count: an event exactly this old is still seen.",
            length_in_words(*seconds)
        ),
        What::Selector(name) => explained(name, words::selector(name)?, kind),
        What::Key(key) => explained(key, words::test_key(key)?, kind),
        What::Attribute(_, span) => declared(snapshot, *span),
        What::GivenField { action, path } => {
            let uid = snapshot.action_called(action)?;
            given_field(snapshot, uid, path)?
        }
        What::Window(None) | What::Test(_) | What::File(_) => return None,
    })
}

/// A field as a schema declares it, with the comment above.
fn declared(snapshot: &Snapshot, span: Span) -> String {
    let document = &snapshot.document;
    let mut text = format!(
        "```{}\n{}\n```",
        fence(document.kind),
        span.text(&document.text)
    );
    if let Some(said) = document.comment_above(span.start as usize) {
        text.push_str(&format!("\n\n{said}"));
    }
    text
}

/// A field that a test gives, with its type.
fn given_field(snapshot: &Snapshot, action: &EntityUid, path: &[SmolStr]) -> Option<String> {
    let decl = snapshot.setup.service.actions.actions.get(action)?;
    let (last, way) = path.split_last()?;
    let context = &decl.applies_to.as_ref()?.context;
    let attr = snapshot.inside(context, way)?.attrs.get(last)?;
    let optional = if attr.required {
        ""
    } else {
        " (may be absent)"
    };
    let mut text = format!("`{}: {}`{optional}", path.join("."), attr.ty);
    if let Some(said) = field_comment(snapshot, action, path) {
        text.push_str(&format!("\n\n{said}"));
    }
    if let Some(choices) = choices(snapshot, &attr.ty) {
        text.push_str(&format!("\n\n{choices}"));
    }
    Some(text)
}

/// The values of an enumerated type.
fn choices(snapshot: &Snapshot, ty: &Type) -> Option<String> {
    let Type::Entity(name) = ty else { return None };
    let entity = snapshot.setup.service.actions.entity_types.get(name)?;
    let choices = entity.choices.as_ref()?.iter();
    let choices: Vec<String> = choices.map(|choice| format!("`{choice}`")).collect();
    Some(format!("one of {}", choices.join(", ")))
}

fn rule_named(snapshot: &Snapshot, id: &str) -> Option<String> {
    let paths = match snapshot.document.kind {
        Kind::Tests => snapshot.shelf.tested(&snapshot.document).ok()?.policies,
        _ => vec![snapshot.document.path.clone()],
    };
    paths.iter().find_map(|path| {
        let policy = Snapshot::new(&snapshot.shelf, path)?;
        let (number, rule) = policy
            .rules()
            .enumerate()
            .find(|(_, rule)| rule.annotation("id").map(str::trim) == Some(id))?;
        Some(about_rule(&policy, number, rule))
    })
}

/// The fields of a record, an item each.
fn listed(record: &RecordType) -> String {
    let fields = record.attrs.iter().map(|(name, attr)| {
        let optional = if attr.required { "" } else { "?" };
        format!("- `{name}{optional}: {}`\n", attr.ty)
    });
    fields.collect()
}

fn about_type(snapshot: &Snapshot, name: &str) -> Option<String> {
    if let Some(word) = words::type_name(name) {
        return Some(explained(name, word, snapshot.document.kind));
    }
    let schema = &snapshot.setup.service.actions;
    let Some(entity) = schema.entity_types.get(name) else {
        let known = schema.common_types.contains(name);
        return known.then(|| format!("type `{name}`"));
    };
    let mut text = format!("entity type `{name}`");
    if let Some(said) = declaration_comment(snapshot, &What::Type(SmolStr::new(name))) {
        text.push_str(&format!("\n\n{said}"));
    }
    if !entity.parents.is_empty() {
        let parents: Vec<String> = entity.parents.iter().map(|p| format!("`{p}`")).collect();
        text.push_str(&format!("\n\nin {}", parents.join(", ")));
    }
    if let Some(choices) = &entity.choices {
        let choices: Vec<String> = choices.iter().map(|c| format!("`{c}`")).collect();
        text.push_str(&format!("\n\none of {}", choices.join(", ")));
    }
    if !entity.attrs.attrs.is_empty() {
        text.push_str(&format!("\n\n{}", listed(&entity.attrs)));
    }
    if let Some(tags) = &entity.tags {
        text.push_str(&format!("\n\ntags: `{tags}`"));
    }
    Some(text.trim_end().to_owned())
}

/// The comment above a declaration of a schema.
fn declaration_comment(snapshot: &Snapshot, what: &What) -> Option<String> {
    let document = snapshot.setup.actions();
    let mark = document
        .marks()
        .iter()
        .find(|mark| mark.defines && mark.what == *what)?;
    document.comment_above(mark.span.start as usize)
}

fn about_action(snapshot: &Snapshot, uid: &EntityUid) -> Option<String> {
    let action = snapshot.setup.service.actions.actions.get(uid)?;
    let kind = if action.applies_to.is_some() {
        "action"
    } else {
        "action group"
    };
    let mut text = format!("{kind} `{}`", short_name(uid));
    let built_in = snapshot.setup.action_schema.is_none();
    let said = match words::action(&uid.id) {
        Some(said) if built_in => Some(said.to_owned()),
        _ => declaration_comment(snapshot, &What::Action(uid.clone())),
    };
    if let Some(said) = said {
        text.push_str(&format!("\n\n{said}"));
    }
    if let Some(applies_to) = &action.applies_to {
        let input = match applies_to.context.attrs.get("input").map(|attr| &attr.ty) {
            Some(Type::Record(input)) => Some(("context.input", input)),
            _ => None,
        };
        let (name, record) = input.unwrap_or(("context", &applies_to.context));
        if !record.attrs.is_empty() {
            text.push_str(&format!("\n\n`{name}`:\n\n{}", listed(record)));
        }
    }
    let events = snapshot.setup.service.events.events.keys();
    let kinds: Vec<String> = events
        .filter(|event| event.action == *uid)
        .map(|event| format!("`{}`", event.kind))
        .collect();
    if !kinds.is_empty() {
        text = format!("{}\n\nevents: {}", text.trim_end(), kinds.join(", "));
    }
    Some(text.trim_end().to_owned())
}

fn about_kind(snapshot: &Snapshot, action: Option<&EntityUid>, kind: &str) -> Option<String> {
    let events = &snapshot.setup.service.events;
    let decided = events.decision_kinds.contains(kind);
    let said = match kind {
        "request" if decided => "asked for: recorded for every attempt, allowed or not",
        "response" => "it happened, or may have happened",
        "error" => "it was permitted, and certainly did not happen",
        _ if decided => "a kind of event that is decided",
        _ => "a kind of event that only happens",
    };
    let mut text = format!("`{kind}`: {said}");
    if let Some(action) = action {
        let id = EventId {
            action: action.clone(),
            kind: SmolStr::new(kind),
        };
        let derived = events.events.get(&id)?;
        text.push_str("\n\n");
        for (path, ty) in &derived.fields {
            let path: Vec<&str> = path.iter().map(SmolStr::as_str).collect();
            text.push_str(&format!("- `{}: {}`\n", path.join("."), field_type(ty)));
        }
    }
    Some(text.trim_end().to_owned())
}

/// A field's type as a person would write it.
pub fn field_type(ty: &FieldType) -> String {
    match ty {
        FieldType::Declared { ty, required: true } => ty.to_string(),
        FieldType::Declared { ty, .. } => format!("{ty} (may be absent)"),
        FieldType::Scope(types) => types.join(" or "),
        FieldType::Injected(name) => name.to_string(),
    }
}

fn event_field(
    snapshot: &Snapshot,
    action: &EntityUid,
    kind: &SmolStr,
    path: &[SmolStr],
) -> Option<String> {
    let id = EventId {
        action: action.clone(),
        kind: kind.clone(),
    };
    let derived = snapshot.setup.service.events.events.get(&id)?;
    let mut text = match derived.fields.get(path) {
        Some(ty) => format!("`{}: {}`", path.join("."), field_type(ty)),
        None if derived.groups.contains(path) => format!("`{}`: a group of fields", path.join(".")),
        None => return None,
    };
    text.push_str(&format!(
        "\n\nrecorded with `{}::{kind}`",
        short_name(action)
    ));
    if let Some(said) = field_comment(snapshot, action, path) {
        text.push_str(&format!("\n\n{said}"));
    }
    Some(text)
}

/// What is known about a field: the comment in the schema, or our own words about a box.
pub fn field_comment(snapshot: &Snapshot, action: &EntityUid, path: &[SmolStr]) -> Option<String> {
    match &snapshot.setup.action_schema {
        None => {
            let words: Vec<&str> = path.iter().map(SmolStr::as_str).collect();
            words::field(&action.id, &words).map(str::to_owned)
        }
        Some(document) => {
            let attr = super::definition::attribute(document, action, path)?;
            comment_above(
                &document.text,
                &document.lines,
                attr.name.span.start as usize,
            )
        }
    }
}

fn request_field(
    snapshot: &Snapshot,
    rule: Option<&Rule>,
    root: Root,
    path: &[SmolStr],
) -> Option<String> {
    let types = snapshot.field_types(rule, root, path);
    if types.is_empty() {
        return None;
    }
    let written: Vec<String> = types.iter().map(|(ty, _)| format!("`{ty}`")).collect();
    let mut text = format!(
        "`{}.{}`: {}",
        root.word(),
        path.join("."),
        written.join(" or ")
    );
    if types.iter().any(|(_, required)| !required) {
        text.push_str(" (may be absent: test with `has` first)");
    }
    if root == Root::Context {
        let mut said: Vec<String> = Vec::new();
        for action in snapshot.actions_of(rule) {
            if let Some(comment) = field_comment(snapshot, &action.uid, path)
                && !said.contains(&comment)
            {
                said.push(comment);
            }
        }
        // Over many actions one name means too many things to tell.
        if let [only] = said.as_slice() {
            text.push_str(&format!("\n\n{only}"));
        }
    }
    for (ty, _) in &types {
        if let Some(choices) = choices(snapshot, ty) {
            text.push_str(&format!("\n\n{choices}"));
        }
    }
    Some(text)
}

fn variable(snapshot: &Snapshot, rule: Option<&Rule>, root: Root) -> String {
    let said = match root {
        Root::Principal => "who asks",
        Root::Action => "what is asked for",
        Root::Resource => "what it is asked of",
        Root::Context => "everything else about the request being decided",
    };
    let mut text = format!("`{}`: {said}", root.word());
    let actions = snapshot.actions_of(rule);
    let mut names: Vec<String> = Vec::new();
    for action in actions {
        let Some(applies_to) = &action.applies_to else {
            continue;
        };
        let types: Vec<String> = match root {
            Root::Principal => applies_to
                .principals
                .iter()
                .map(|t| format!("`{t}`"))
                .collect(),
            Root::Resource => applies_to
                .resources
                .iter()
                .map(|t| format!("`{t}`"))
                .collect(),
            Root::Action => vec![format!("`{}`", short_name(&action.uid))],
            Root::Context => Vec::new(),
        };
        for name in types {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if !names.is_empty() {
        text.push_str(&format!("\n\nhere: {}", names.join(", ")));
    }
    text
}

/// `temporal count_within(?span, ?seen)`.
pub fn signature(def: &MacroDef) -> String {
    let kind = match def.kind {
        MacroKind::Cedar => "cedar",
        MacroKind::Temporal => "temporal",
    };
    let params: Vec<String> = def.params.iter().map(|p| format!("?{}", p.text)).collect();
    format!("def {kind} {}({})", def.name.text, params.join(", "))
}

fn about_macro(snapshot: &Snapshot, name: &str) -> Option<String> {
    let (def, document, built_in) = snapshot.macro_named(name)?;
    let mut text = format!("```dogwood\n{}\n```", def.span.text(&document.text).trim());
    if let Some(said) = document.comment_above(def.span.start as usize) {
        text.push_str(&format!("\n\n{said}"));
    }
    if built_in {
        text.push_str("\n\nbuilt in");
    }
    Some(text)
}

fn provider(snapshot: &Snapshot, name: &str) -> Option<String> {
    let provider = snapshot.setup.service.providers.get(name)?;
    let args: Vec<String> = provider.args.iter().map(Type::to_string).collect();
    let mut text = format!(
        "information provider `{name}({}): {}`\n\nA value computed outside the policy when a request is decided.",
        args.join(", "),
        provider.output
    );
    for (name, method) in &provider.methods {
        let args: Vec<String> = method.args.iter().map(Type::to_string).collect();
        text.push_str(&format!(
            "\n- `.{name}({}): {}`",
            args.join(", "),
            method.output
        ));
    }
    Some(text)
}

fn about_local(local: &Local) -> String {
    let sign = match local.sigil {
        Sigil::Plain => "",
        Sigil::Param => "?",
        Sigil::Fresh => "$",
    };
    let name = &local.name;
    match (&local.ty, local.sigil) {
        (Some(ty), Sigil::Fresh) => {
            format!("`{sign}{name}: {ty}`\n\nnew in each call of the macro")
        }
        (Some(ty), _) => format!("`{sign}{name}: {ty}`"),
        (None, Sigil::Param) => format!("`{sign}{name}`: a parameter of the macro"),
        (None, _) => format!("`{sign}{name}`"),
    }
}
