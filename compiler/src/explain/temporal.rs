//! Temporal conditions in words.
//!
//! A variable has no name in English. `exists (c: String). (formerly within 1h Q{ crate: c } && M{ crate: c })`
//! becomes "in the last hour there was a `Q` with a `crate`, and this event is an `M` with the same
//! `crate`": the first place a variable is matched introduces it, later ones refer back. What that does
//! not cover keeps its variables by name.

use super::claim::Group;
use super::{Speech, code, words};
use crate::grammar::ast::*;
use crate::schema::{EventId, FieldType};
use crate::value::EntityUid;
use smol_str::SmolStr;

/// The variables in view and the time point spoken about.
#[derive(Default)]
pub(super) struct Scene<'t> {
    vars: Vec<Variable<'t>>,
    /// Speaking of an earlier time point, no longer of the event being decided.
    then: bool,
}

struct Variable<'t> {
    name: SmolStr,
    meaning: Meaning<'t>,
}

enum Meaning<'t> {
    /// Not spoken of yet; what is demanded of it: "more than 0".
    New { demands: Vec<String> },
    /// The same, but it is compared with another variable later and needs its name.
    NewNamed,
    /// Introduced under its name.
    Named,
    /// The value of this field, where it was first matched.
    Field(String),
    /// Another spelling of a term.
    Is(&'t Term),
    /// The time point spoken about.
    Now,
    /// A time point other than the one spoken about.
    Earlier,
}

/// A description of events: "`shell:spawn` response" and what it comes "with".
struct Noun {
    head: String,
    plural: String,
    with: Vec<String>,
    by: Vec<String>,
    earlier: bool,
    /// Whether the event being decided is one of them: surely, perhaps or not.
    own: Own,
}

#[derive(Clone, Copy, PartialEq)]
enum Own {
    Yes,
    Perhaps,
    No,
}

impl Noun {
    fn tail(&self) -> String {
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
    fn one(&self) -> String {
        let article = if self.earlier {
            "an earlier"
        } else {
            words::article(self.head.trim_start_matches('`'))
        };
        format!("{article} {}{}", self.head, self.tail())
    }

    fn none(&self) -> String {
        let earlier = if self.earlier { "earlier " } else { "" };
        format!("no {earlier}{}{}", self.head, self.tail())
    }

    fn many(&self) -> String {
        let earlier = if self.earlier { "earlier " } else { "" };
        format!("{earlier}{}{}", self.plural, self.tail())
    }
}

impl Speech<'_> {
    /// What the condition says, or, with `holds` false, what its negation says.
    pub(super) fn cond<'t>(&self, cond: &'t Cond, holds: bool, scene: &mut Scene<'t>) -> Group {
        match &cond.kind {
            CondKind::And(_) | CondKind::Exists { .. } => self.chain(cond, holds, scene),
            CondKind::Not(inner) => self.cond(inner, !holds, scene),
            CondKind::Match(_) => match self.noun_of(cond, scene) {
                Some(noun) => this_is(&noun, holds, scene.then),
                None => as_code(cond, holds),
            },
            CondKind::Formerly { window, body } => self.formerly(window, body, holds, scene),
            CondKind::Previous { window, body } => self.previous(window, body, holds, scene),
            CondKind::Since {
                left,
                window,
                right,
            } => {
                let said = self.since(left, window, right, scene);
                if holds {
                    Group::text(said)
                } else {
                    Group::text(format!("it is not so that {said}"))
                }
            }
            CondKind::Compare { op, left, right } => self.compare(*op, left, right, holds, scene),
            CondKind::Tp(var) => {
                let is = if holds { "is" } else { "is not" };
                let moment = if scene.then {
                    "that moment"
                } else {
                    "this moment"
                };
                Group::claim(format!("`{}`", var.name), format!("{is} {moment}"))
            }
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => as_code(cond, holds),
        }
    }

    /// A conjunction, with the variables it introduces.
    fn chain<'t>(&self, cond: &'t Cond, holds: bool, scene: &mut Scene<'t>) -> Group {
        let depth = scene.vars.len();
        if let Some(noun) = self.noun_of(cond, scene) {
            scene.vars.truncate(depth);
            return this_is(&noun, holds, scene.then);
        }
        let mut parts = Vec::new();
        open(cond, depth, scene, &mut parts);
        let parts = settle(self, parts, depth, true, scene);
        scene.name_compared(&parts, depth);
        // Without variables the negation goes to each part; with them it stays in front of the whole.
        let each = holds || parts.len() == 1 || scene.vars.is_empty();
        let said = parts
            .iter()
            .map(|part| self.cond(part, holds || !each, scene))
            .collect();
        let said = if each && !holds {
            Group::any(said)
        } else {
            Group::all(said)
        };
        let unspoken = scene.unspoken(depth);
        scene.vars.truncate(depth);
        match (unspoken, holds) {
            (None, _) if each => said,
            (None, _) => Group::text(format!("it is not so that {}", said.say())),
            (Some(some), true) => Group::text(format!("for {some}: {}", said.say())),
            (Some(_), false) => as_code(cond, holds),
        }
    }

    fn formerly<'t>(
        &self,
        window: &Window,
        body: &'t Cond,
        holds: bool,
        scene: &mut Scene<'t>,
    ) -> Group {
        let when = in_the_last(window, scene.then);
        let depth = scene.vars.len();
        let noun = self.noun_of(body, scene);
        scene.vars.truncate(depth);
        if let Some(noun) = noun {
            let counts = match noun.own {
                Own::Yes if !scene.then && !noun.earlier => " (this one counts)",
                _ => "",
            };
            return Group::text(if holds {
                format!("{when} there was {}{counts}", noun.one())
            } else {
                format!("{when} there was {}{counts}", noun.none())
            });
        }
        let said = self.at_an_earlier_point(body, scene);
        Group::text(if holds {
            format!("at some moment {when}, {said}")
        } else {
            format!("at no moment {when} was it so that {said}")
        })
    }

    fn previous<'t>(
        &self,
        window: &Window,
        body: &'t Cond,
        holds: bool,
        scene: &mut Scene<'t>,
    ) -> Group {
        let this = if scene.then { "it" } else { "this one" };
        let age = window
            .seconds()
            .map_or_else(|| "the window".to_owned(), words::span);
        let depth = scene.vars.len();
        let noun = self.noun_of(body, scene);
        scene.vars.truncate(depth);
        let was = noun.map(|noun| noun.one());
        Group::text(match (was, holds) {
            (Some(was), true) => {
                format!("the event just before {this} was {was}, at most {age} earlier")
            }
            (Some(was), false) => {
                format!("the event just before {this}, if at most {age} earlier, was not {was}")
            }
            (None, _) => {
                let said = self.at_an_earlier_point(body, scene);
                let not = if holds { "" } else { "it is not so that " };
                format!(
                    "{not}the event just before {this} came at most {age} earlier, and at that moment {said}"
                )
            }
        })
    }

    fn since<'t>(
        &self,
        left: &'t Cond,
        window: &Window,
        right: &'t Cond,
        scene: &mut Scene<'t>,
    ) -> String {
        let when = in_the_last(window, scene.then);
        let depth = scene.vars.len();
        let anchor = match self.noun_of(right, scene) {
            Some(noun) => format!("{when} there was {}", noun.one()),
            None => {
                let said = self.at_an_earlier_point(right, scene);
                format!("at some moment {when}, {said}")
            }
        };
        // Variables that the anchor introduced stay in view of the left side.
        let inner = scene.vars.len();
        let since = match &left.kind {
            CondKind::Not(broken_by) => match self.noun_of(broken_by, scene) {
                Some(noun) => format!("{} has come since", noun.none()),
                None => {
                    let said = self.at_an_earlier_point(broken_by, scene);
                    format!("at no moment since was it so that {said}")
                }
            },
            _ => match self.noun_of(left, scene) {
                Some(noun) => format!("every event since was {}", noun.one()),
                None => format!(
                    "at every moment since, {}",
                    self.at_an_earlier_point(left, scene)
                ),
            },
        };
        scene.vars.truncate(inner.min(depth));
        format!("{anchor}, and {since}")
    }

    fn at_an_earlier_point<'t>(&self, body: &'t Cond, scene: &mut Scene<'t>) -> String {
        let before = std::mem::replace(&mut scene.then, true);
        let said = self.cond(body, true, scene).say();
        scene.then = before;
        said
    }

    fn compare<'t>(
        &self,
        op: CompareOp,
        left: &'t Term,
        right: &'t Term,
        holds: bool,
        scene: &mut Scene<'t>,
    ) -> Group {
        let swap = is_plain(left) && !is_plain(right);
        let (op, left, right) = if swap {
            (words::mirrored(op), right, left)
        } else {
            (op, left, right)
        };
        let op = if holds { op } else { words::negated(op) };
        // `!=` is false where the value is absent, unlike the negation of `==`.
        let given = op == CompareOp::Ne
            && holds
            && matches!(left.kind, TermKind::Context(_) | TermKind::Scope { .. });
        let verb = if given {
            "is given and is not"
        } else {
            words::compared(op)
        };
        let verb = if scene.then {
            verb.replacen("is", "was", 1)
        } else {
            verb.to_owned()
        };
        let subject = self.term(left, scene);
        Group::claim(subject, format!("{verb} {}", self.term(right, scene)))
    }

    /// The condition as a description of one event, if it is one: a predicate, conditions on its
    /// variables, and time point marks.
    fn noun_of<'t>(&self, cond: &'t Cond, scene: &mut Scene<'t>) -> Option<Noun> {
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
        let mut matcher = None;
        let mut earlier = false;
        for part in parts {
            match &part.kind {
                CondKind::Match(found) if matcher.is_none() => matcher = Some(found),
                CondKind::Tp(var) => match scene.find(&var.name).map(|var| &var.meaning) {
                    Some(Meaning::Earlier) => earlier = true,
                    Some(Meaning::New { demands }) if demands.is_empty() => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
        matcher.map(|matcher| self.describe(matcher, earlier, scene))
    }

    fn describe<'t>(&self, matcher: &'t Matcher, earlier: bool, scene: &mut Scene<'t>) -> Noun {
        let action = self.action(&matcher.event);
        let kind = &matcher.event.kind.text;
        let own = self.matches_itself(matcher, scene);
        let (mut with, mut by) = (Vec::new(), Vec::new());
        for field in matcher.fields() {
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
            head: format!("`{action}` {kind}"),
            plural: format!("`{action}` {kind}s"),
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
                    return format!("{field} `{}`", var.name);
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

    // ------------------------------------------------------------------------------------- terms

    fn term<'t>(&self, term: &'t Term, scene: &mut Scene<'t>) -> String {
        match &term.kind {
            TermKind::Int(value) => value.to_string(),
            TermKind::Str(text) => code::string(text),
            TermKind::Bool(value) => value.to_string(),
            TermKind::Decimal(text) => text.value.to_string(),
            TermKind::Entity(uid) => self.entity(uid),
            TermKind::Context(words) => {
                let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                format!("this request's {}", super::field(&words))
            }
            TermKind::Scope { root, path } => {
                let root = match root {
                    ScopeRoot::Principal => "the principal",
                    ScopeRoot::Resource => "the resource",
                };
                if path.is_empty() {
                    root.to_owned()
                } else {
                    format!("{root}'s `{}`", code::path(path))
                }
            }
            TermKind::Wildcard => "anything".to_owned(),
            TermKind::Var(var) => match scene.find_mut(&var.name).map(|var| &mut var.meaning) {
                Some(meaning @ Meaning::Is(_)) => {
                    let meaning = std::mem::replace(meaning, Meaning::Earlier);
                    let said = match &meaning {
                        Meaning::Is(term) => self.term(term, scene),
                        _ => String::new(),
                    };
                    scene.restore(&var.name, meaning);
                    said
                }
                Some(Meaning::Field(field)) => format!("that {field}"),
                Some(Meaning::Now) => "this moment".to_owned(),
                _ => format!("`{}`", var.name),
            },
            TermKind::Aggregate(aggregate) => self.aggregate(aggregate, scene),
            TermKind::Sum { first, rest } => {
                let mut out = self.term(first, scene);
                for (op, part) in rest {
                    out.push_str(if *op == SumOp::Add {
                        " plus "
                    } else {
                        " minus "
                    });
                    out.push_str(&self.term(part, scene));
                }
                out
            }
            TermKind::Product(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.term(part, scene)).collect();
                parts.join(" times ")
            }
            TermKind::Array(_) | TermKind::Call(_) | TermKind::Error => {
                format!("`{}`", code::term(term))
            }
        }
    }

    fn aggregate<'t>(&self, aggregate: &'t Aggregate, scene: &mut Scene<'t>) -> String {
        let depth = scene.vars.len();
        for binder in &aggregate.binders {
            scene.add(&binder.var.name);
        }
        let said = self.tally(aggregate, depth, scene);
        scene.vars.truncate(depth);
        said.unwrap_or_else(|| {
            let names: Vec<String> = aggregate
                .binders
                .iter()
                .map(|binder| format!("`{}`", binder.var.name))
                .collect();
            let what = match &aggregate.op {
                AggregateOp::Count => {
                    format!("the number of different {}", words::list(&names, "and"))
                }
                AggregateOp::Sum(summed) => format!(
                    "the sum of `{}` over all {}",
                    summed.name,
                    words::list(&names, "and")
                ),
            };
            format!("{what} for which `{}`", code::cond(&aggregate.body))
        })
    }

    /// The aggregate over events of one kind in one window.
    fn tally<'t>(
        &self,
        aggregate: &'t Aggregate,
        depth: usize,
        scene: &mut Scene<'t>,
    ) -> Option<String> {
        let mut parts = Vec::new();
        open(&aggregate.body, depth, scene, &mut parts);
        let parts = settle(self, parts, depth, true, scene);
        let [
            Cond {
                kind: CondKind::Formerly { window, body },
                ..
            },
        ] = parts.as_slice()
        else {
            return None;
        };
        let mut noun = self.noun_of(body, scene)?;
        let seconds = window.seconds()?;
        let then = if scene.then {
            format!("the {} up to then", words::length(seconds))
        } else {
            words::last(seconds)
        };
        let own = match noun.own {
            _ if scene.then || noun.earlier => "",
            Own::Yes => ", this one included,",
            Own::Perhaps => ", this one included if it is one,",
            Own::No => "",
        };
        // A time point among the counted variables makes every event count for itself.
        let each_event = aggregate
            .binders
            .iter()
            .any(|binder| is_timepoint(&binder.ty));
        let field_of = |name: &SmolStr| match scene.find(name).map(|var| &var.meaning) {
            Some(Meaning::Field(field)) => Some(field.clone()),
            _ => None,
        };
        // That the values looked at are there goes without saying.
        let looked_at: Vec<String> = aggregate
            .binders
            .iter()
            .filter_map(|binder| field_of(&binder.var.name))
            .map(|field| format!("{} {field}", words::article(field.trim_start_matches('`'))))
            .collect();
        noun.with.retain(|with| !looked_at.contains(with));
        let said = match &aggregate.op {
            AggregateOp::Count if each_event => {
                format!("the number of {} in {then}{own}", noun.many())
            }
            AggregateOp::Count => {
                let fields: Option<Vec<String>> = aggregate
                    .binders
                    .iter()
                    .map(|binder| field_of(&binder.var.name))
                    .collect();
                let fields = fields?;
                let values = match fields.as_slice() {
                    [field] => format!("different {field} values"),
                    _ => format!("different combinations of {}", words::list(&fields, "and")),
                };
                format!(
                    "the number of {values} among the {} in {then}{own}",
                    noun.many()
                )
            }
            AggregateOp::Sum(summed) => {
                let field = field_of(&summed.name)?;
                let many = noun.many();
                if each_event {
                    format!("the sum of {field} over the {many} in {then}{own}")
                } else {
                    format!(
                        "the sum of the different {field} values among the {many} in {then}{own}"
                    )
                }
            }
        };
        Some(said)
    }
}

impl<'t> Scene<'t> {
    fn add(&mut self, name: &SmolStr) {
        let meaning = Meaning::New {
            demands: Vec::new(),
        };
        self.vars.push(Variable {
            name: name.clone(),
            meaning,
        });
    }

    fn find(&self, name: &SmolStr) -> Option<&Variable<'t>> {
        self.vars.iter().rev().find(|var| var.name == *name)
    }

    fn find_mut(&mut self, name: &SmolStr) -> Option<&mut Variable<'t>> {
        self.vars.iter_mut().rev().find(|var| var.name == *name)
    }

    fn restore(&mut self, name: &SmolStr, meaning: Meaning<'t>) {
        if let Some(known) = self.find_mut(name) {
            known.meaning = meaning;
        }
    }

    /// Variables of the chain that are still compared with one another keep their names.
    fn name_compared(&mut self, parts: &[&Cond], depth: usize) {
        for part in parts {
            let CondKind::Compare { left, right, .. } = &part.kind else {
                continue;
            };
            for side in [left, right] {
                let TermKind::Var(var) = &side.kind else {
                    continue;
                };
                let known = self
                    .vars
                    .iter_mut()
                    .skip(depth)
                    .rev()
                    .find(|known| known.name == var.name);
                if let Some(known) = known
                    && matches!(&known.meaning, Meaning::New { demands } if demands.is_empty())
                {
                    known.meaning = Meaning::NewNamed;
                }
            }
        }
    }

    /// "some `x` of more than 3", for variables with demands that no event description has introduced.
    fn unspoken(&self, depth: usize) -> Option<String> {
        let some: Vec<String> = self
            .vars
            .iter()
            .skip(depth)
            .filter_map(|var| match &var.meaning {
                Meaning::New { demands } if !demands.is_empty() => Some(format!(
                    "some `{}` {}",
                    var.name,
                    words::list(demands, "and")
                )),
                _ => None,
            })
            .collect();
        (!some.is_empty()).then(|| words::list(&some, "and"))
    }

    /// Whether the term names a variable that has been introduced by nothing but its binder.
    fn is_new(&self, term: &Term) -> bool {
        match &term.kind {
            TermKind::Var(var) => {
                let new =
                    |var: &Variable| matches!(var.meaning, Meaning::New { .. } | Meaning::NewNamed);
                self.find(&var.name).is_some_and(new)
            }
            TermKind::Sum { first, rest } => {
                self.is_new(first) || rest.iter().any(|(_, part)| self.is_new(part))
            }
            TermKind::Product(parts) => parts.iter().any(|part| self.is_new(part)),
            _ => false,
        }
    }
}

/// The conjuncts of a condition, with the variables of its own `exists` added to the scene. An `exists`
/// that hides a variable opened just now stays closed.
fn open<'t>(cond: &'t Cond, depth: usize, scene: &mut Scene<'t>, parts: &mut Vec<&'t Cond>) {
    match &cond.kind {
        CondKind::And(conjuncts) => conjuncts
            .iter()
            .for_each(|part| open(part, depth, scene, parts)),
        CondKind::Exists { binder, body } => {
            let hides = scene
                .vars
                .iter()
                .skip(depth)
                .any(|var| var.name == binder.var.name);
            if hides && !parts.is_empty() {
                parts.push(cond);
            } else {
                scene.add(&binder.var.name);
                open(body, depth, scene, parts);
            }
        }
        _ => parts.push(cond),
    }
}

/// Takes out the conjuncts that only say something about variables, and notes what they say. With
/// `marks_now`, `tp(t)` is one of them: it calls the time point spoken about `t`.
fn settle<'t>(
    speech: &Speech<'_>,
    parts: Vec<&'t Cond>,
    depth: usize,
    marks_now: bool,
    scene: &mut Scene<'t>,
) -> Vec<&'t Cond> {
    let own = |scene: &Scene<'t>, name: &SmolStr| {
        scene.vars.iter().skip(depth).any(|var| var.name == *name)
    };
    // Equations first: they say what a variable is, wherever they stand.
    let mut rest = Vec::new();
    for part in parts {
        if let CondKind::Compare {
            op: CompareOp::Eq,
            left,
            right,
        } = &part.kind
        {
            let mut solved = false;
            for (side, value) in [(left, right), (right, left)] {
                if let TermKind::Var(var) = &side.kind
                    && own(scene, &var.name)
                    && scene.is_new(side)
                    && !scene.is_new(value)
                    && let Some(known) = scene.find_mut(&var.name)
                {
                    known.meaning = Meaning::Is(value);
                    solved = true;
                    break;
                }
            }
            if solved {
                continue;
            }
        }
        rest.push(part);
    }
    let mut kept = Vec::new();
    for part in rest {
        match &part.kind {
            CondKind::Tp(var) if marks_now && own(scene, &var.name) => {
                match scene.find_mut(&var.name) {
                    Some(
                        known @ Variable {
                            meaning: Meaning::New { .. },
                            ..
                        },
                    ) => known.meaning = Meaning::Now,
                    _ => kept.push(part),
                }
            }
            CondKind::Compare { op, left, right } => {
                let is_now = |scene: &Scene<'t>, term: &Term| match &term.kind {
                    TermKind::Var(var) => matches!(
                        scene.find(&var.name),
                        Some(Variable {
                            meaning: Meaning::Now,
                            ..
                        })
                    ),
                    _ => false,
                };
                let mut noted = false;
                for (side, value, op) in [(left, right, *op), (right, left, words::mirrored(*op))] {
                    let TermKind::Var(var) = &side.kind else {
                        continue;
                    };
                    // A variable of an outer `exists` may be spoken of here for the first time, too.
                    if !scene.is_new(side) || scene.is_new(value) {
                        continue;
                    }
                    let now = is_now(scene, value);
                    let said = speech.term(value, scene);
                    let Some(known) = scene.find_mut(&var.name) else {
                        continue;
                    };
                    if now && op == CompareOp::Ne {
                        known.meaning = Meaning::Earlier;
                        noted = true;
                        break;
                    }
                    if let Meaning::New { demands } = &mut known.meaning {
                        demands.push(demanded(op, &said));
                        noted = true;
                        break;
                    }
                }
                if !noted {
                    kept.push(part);
                }
            }
            _ => kept.push(part),
        }
    }
    kept
}

fn this_is(noun: &Noun, holds: bool, then: bool) -> Group {
    let (subject, is) = match then {
        false => ("this event", if holds { "is" } else { "is not" }),
        true => ("the event", if holds { "was" } else { "was not" }),
    };
    Group::claim(subject, format!("{is} {}", noun.one()))
}

/// "more than 0", as said after a field's name.
fn demanded(op: CompareOp, value: &str) -> String {
    match op {
        CompareOp::Eq => format!("equal to {value}"),
        CompareOp::Ne => format!("other than {value}"),
        CompareOp::Lt => format!("less than {value}"),
        CompareOp::Le => format!("of at most {value}"),
        CompareOp::Gt => format!("of more than {value}"),
        CompareOp::Ge => format!("of at least {value}"),
    }
}

fn in_the_last(window: &Window, then: bool) -> String {
    match window.seconds() {
        Some(seconds) if then => format!("in the {} up to then", words::length(seconds)),
        Some(seconds) => format!("in {}", words::last(seconds)),
        None => "in the window".to_owned(),
    }
}

fn as_code(cond: &Cond, holds: bool) -> Group {
    Group::claim(
        format!("`{}`", code::cond(cond)),
        if holds { "holds" } else { "does not hold" },
    )
}

fn is_plain(term: &Term) -> bool {
    matches!(
        term.kind,
        TermKind::Int(_)
            | TermKind::Str(_)
            | TermKind::Bool(_)
            | TermKind::Decimal(_)
            | TermKind::Entity(_)
    )
}

fn is_timepoint(ty: &Name) -> bool {
    matches!(ty.path.as_slice(), [word] if word.text == "Timepoint")
}
