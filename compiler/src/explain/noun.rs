//! Events described by what they are and what they carry.

use super::scene::{Meaning, Scene, open, settle};
use super::{Speech, code, words};
use crate::grammar::ast::*;
use crate::schema::{EventId, FieldType};
use crate::value::EntityUid;
use smol_str::SmolStr;

/// A description of events: "`shell:spawn` response" and what it comes "with".
pub(super) struct Noun {
    pub(super) head: String,
    pub(super) plural: String,
    pub(super) with: Vec<String>,
    pub(super) by: Vec<String>,
    pub(super) earlier: bool,
    /// Whether the event being decided is one of them: surely, perhaps or not.
    pub(super) own: Own,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Own {
    Yes,
    Perhaps,
    No,
}

impl Noun {
    pub(super) fn tail(&self) -> String {
        let mut out = String::new();
        if !self.by.is_empty() {
            out.push(' ');
            out.push_str(&self.by.join(" "));
        }
        if !self.with.is_empty() {
            out.push_str(" with ");
            out.push_str(&words::list(&self.with, "and"));
        }
        out
    }

    /// "a `shell:spawn` response with …"
    pub(super) fn one(&self) -> String {
        let article = if self.earlier {
            "an earlier"
        } else {
            words::article(self.head.trim_start_matches('`'))
        };
        format!("{article} {}{}", self.head, self.tail())
    }

    pub(super) fn none(&self) -> String {
        let earlier = if self.earlier { "earlier " } else { "" };
        format!("no {earlier}{}{}", self.head, self.tail())
    }

    pub(super) fn many(&self) -> String {
        let earlier = if self.earlier { "earlier " } else { "" };
        format!("{earlier}{}{}", self.plural, self.tail())
    }
}

impl Speech<'_> {
    /// The condition as a description of one event, if it is one: a predicate, conditions on its
    /// variables, and time point marks.
    pub(super) fn noun_of<'t>(&self, cond: &'t Cond, scene: &mut Scene<'t>) -> Option<Noun> {
        let depth = scene.vars.len();
        let mut parts = Vec::new();
        open(cond, depth, scene, &mut parts);
        let parts = settle(self, parts, depth, false, scene);
        let noun = self.noun_of_parts(&parts, scene);
        if noun.is_none() || scene.unspoken(depth).is_some() {
            scene.vars.truncate(depth);
            return None;
        }
        noun
    }

    fn noun_of_parts<'t>(&self, parts: &[&'t Cond], scene: &mut Scene<'t>) -> Option<Noun> {
        let mut of = None;
        let mut earlier = false;
        for part in parts {
            match &part.kind {
                CondKind::Match(_) | CondKind::Param { .. } if of.is_none() => {
                    of = Some(&part.kind)
                }
                CondKind::Tp(var) => match scene.find(&var.name).map(|var| &var.meaning) {
                    Some(Meaning::Earlier) => earlier = true,
                    Some(Meaning::New { demands }) if demands.is_empty() => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
        match of? {
            CondKind::Match(matcher) => Some(self.describe(matcher, earlier, scene)),
            CondKind::Param { name, injected } => {
                let with = injected.iter().map(|field| {
                    let words: Vec<&str> =
                        field.path.iter().map(|word| word.text.as_str()).collect();
                    self.field_pattern(&words, &field.term, scene)
                });
                Some(Noun {
                    head: format!("`?{}`", name.text),
                    plural: format!("`?{}` events", name.text),
                    with: with.collect(),
                    by: Vec::new(),
                    earlier,
                    own: Own::No,
                })
            }
            _ => None,
        }
    }

    fn describe<'t>(&self, matcher: &'t Matcher, earlier: bool, scene: &mut Scene<'t>) -> Noun {
        let action = self.action(&matcher.event);
        let kind = &matcher.event.kind.text;
        let own = self.matches_itself(matcher, scene);
        let (mut with, mut by) = (Vec::new(), Vec::new());
        let (of, told) = subject(matcher);
        for (at, field) in matcher.fields().enumerate() {
            if told.contains(&at) {
                continue;
            }
            let words: Vec<&str> = field.path.iter().map(|word| word.text.as_str()).collect();
            if words == ["callerPrincipal"]
                && matches!(&field.term.kind, TermKind::Scope { root: ScopeRoot::Principal, path } if path.is_empty())
            {
                by.push("by the same principal".to_owned());
                continue;
            }
            with.push(self.field_pattern(&words, &field.term, scene));
        }
        Noun {
            head: format!("`{action}` {kind}{of}"),
            plural: format!("`{action}` {kind}s{of}"),
            with,
            by,
            earlier,
            own,
        }
    }

    fn field_pattern<'t>(&self, words: &[&str], term: &'t Term, scene: &mut Scene<'t>) -> String {
        let field = super::field(words);
        let article = words::article(field.trim_start_matches('`'));
        match &term.kind {
            TermKind::Wildcard => format!("{article} {field}"),
            TermKind::Context(path)
                if path
                    .iter()
                    .map(|w| w.text.as_str())
                    .eq(words.iter().copied()) =>
            {
                format!("the same {field} as this request")
            }
            TermKind::Var(var) => {
                let Some(known) = scene.find_mut(&var.name) else {
                    return format!("{field} `{}`", super::temporal::name(var));
                };
                match &known.meaning {
                    Meaning::New { demands } => {
                        let said = if demands.is_empty() {
                            format!("{article} {field}")
                        } else {
                            format!("{article} {field} {}", super::words::list(demands, "and"))
                        };
                        known.meaning = Meaning::Field(field);
                        said
                    }
                    Meaning::NewNamed => {
                        known.meaning = Meaning::Named;
                        format!("{article} {field} (`{}`)", var.name)
                    }
                    Meaning::Named => format!("{field} equal to `{}`", var.name),
                    Meaning::Field(first) if *first == field => format!("the same {field}"),
                    Meaning::Field(first) => format!("{field} equal to that {first}"),
                    Meaning::Asked(first) if *first == field => {
                        format!("the same {field} as this request")
                    }
                    Meaning::Asked(first) => format!("{field} equal to this request's {first}"),
                    Meaning::Is(term) => {
                        // Out of view meanwhile, so that no equation can go round in a circle.
                        let term: &'t Term = term;
                        let meaning = std::mem::replace(&mut known.meaning, Meaning::Earlier);
                        let said = self.field_pattern(words, term, scene);
                        scene.restore(&var.name, meaning);
                        said
                    }
                    Meaning::Now | Meaning::Earlier => format!("{field} `{}`", var.name),
                }
            }
            TermKind::Context(_) | TermKind::Scope { .. } | TermKind::Aggregate(_) => {
                format!("{field} equal to {}", self.term(term, scene))
            }
            _ => format!("{field} {}", self.term(term, scene)),
        }
    }

    /// Whether the event being decided is itself described by the predicate.
    fn matches_itself(&self, matcher: &Matcher, scene: &Scene) -> Own {
        let event = &matcher.event;
        let kind = &event.kind.text;
        let named = self
            .actions
            .iter()
            .any(|(ty, id)| *ty == event.ty.text() && *id == event.action.value);
        let possible = self.decision_kinds.contains(kind) && (named || self.actions.is_empty());
        if !possible {
            return Own::No;
        }
        let sure = named && self.actions.len() == 1 && matcher.fields().all(|field| {
            let path = code::path(&field.path);
            match &field.term.kind {
                TermKind::Context(words) => code::path(words) == path,
                TermKind::Scope { root: ScopeRoot::Principal, path: words } => {
                    path == "callerPrincipal" && words.is_empty()
                }
                TermKind::Wildcard => self.is_required(event, &field.path),
                TermKind::Var(var) => {
                    let free = scene.find(&var.name).is_some_and(
                        |var| matches!(&var.meaning, Meaning::New { demands } if demands.is_empty()),
                    );
                    free && self.is_required(event, &field.path)
                }
                _ => {
                    let value = code::term(&field.term);
                    self.facts.iter().any(|(name, fact)| *name == path && *fact == value)
                }
            }
        });
        if sure { Own::Yes } else { Own::Perhaps }
    }

    fn is_required(&self, event: &EventName, path: &[Ident]) -> bool {
        let action = EntityUid::new(event.ty.text(), event.action.value.clone());
        let id = EventId {
            action,
            kind: event.kind.text.clone(),
        };
        let path: Vec<SmolStr> = path.iter().map(|word| word.text.clone()).collect();
        let declared = self
            .service
            .events
            .events
            .get(&id)
            .and_then(|event| event.fields.get(&path));
        match declared {
            Some(FieldType::Declared { required, .. }) => *required,
            Some(_) => true,
            None => false,
        }
    }
}

/// What an event of a box is about, as people say it: " of `npm test` in `~/my-project`", " of
/// `~/notes.txt`", " to `slack.com/api`". And which of the fields that tells.
fn subject(matcher: &Matcher) -> (String, Vec<usize>) {
    let fields: Vec<&FieldPattern> = matcher.fields().collect();
    let at = |name: &str| {
        fields.iter().position(|field| {
            matches!(field.path.as_slice(), [input, word] if input.text == "input" && word.text == name)
        })
    };
    let literal = |name: &str| {
        let at = at(name)?;
        match &fields.get(at)?.term.kind {
            TermKind::Str(text) if is_plain(text) => Some((at, text.as_str())),
            _ => None,
        }
    };
    let nothing = (String::new(), Vec::new());
    if matcher.event.ty.text() != "Box::Action" {
        return nothing;
    }
    match matcher.event.action.value.as_str() {
        "shell:spawn" | "shell:exec" => {
            let Some((at_program, program)) =
                literal("program_path").or_else(|| literal("program"))
            else {
                return nothing;
            };
            let (mut told, mut command) = (vec![at_program], program.to_owned());
            let mut args = 0;
            for name in ["arg1", "arg2"] {
                let Some((at, arg)) = literal(name).filter(|(_, arg)| !arg.contains(' ')) else {
                    break;
                };
                told.push(at);
                command.push(' ');
                command.push_str(arg);
                args += 1;
            }
            let count = at("arg_count");
            match count.and_then(|at| Some(&fields.get(at)?.term.kind)) {
                Some(TermKind::Int(n)) if *n == args => told.extend(count),
                _ => command.push_str(" …"),
            }
            let mut said = format!(" of `{command}`");
            if let Some((at, cwd)) = literal("cwd") {
                told.push(at);
                said.push_str(&format!(" in `{cwd}`"));
            }
            (said, told)
        }
        "http:request" => match (literal("host"), literal("path")) {
            (Some((host_at, host)), Some((path_at, path))) => {
                (format!(" to `{host}{path}`"), vec![host_at, path_at])
            }
            (Some((host_at, host)), None) => (format!(" to `{host}`"), vec![host_at]),
            _ => nothing,
        },
        action if action.starts_with("fs:") => match literal("path") {
            Some((at, path)) => (format!(" of `{path}`"), vec![at]),
            None => nothing,
        },
        _ => nothing,
    }
}

/// Fit to stand between backquotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c == '`' || c.is_control())
}
