//! Temporal conditions in words.

use super::claim::Group;
use super::noun::{Noun, Own};
use super::scene::{Meaning, Scene, open, settle};
use super::{Speech, code, words};
use crate::grammar::ast::*;
use smol_str::SmolStr;

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
            CondKind::Call(call) => self.call(call, holds, scene),
            CondKind::Param { .. } | CondKind::Error => as_code(cond, holds),
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
        let age = match window.seconds() {
            Some(seconds) => words::span(seconds),
            None => unknown(window),
        };
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
        // All that an equation with nothing else to its variable says is that there is a value.
        if let (CompareOp::Eq, Some(value)) = (op, scene.defined(left, right)) {
            if is_plain(value) {
                return if holds {
                    Group::All(Vec::new())
                } else {
                    Group::Any(Vec::new())
                };
            }
            let given = if holds { "is given" } else { "is not given" };
            return Group::claim(self.term(value, scene), given);
        }
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

    // ------------------------------------------------------------------------------------- terms

    pub(super) fn term<'t>(&self, term: &'t Term, scene: &mut Scene<'t>) -> String {
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
                Some(Meaning::Asked(field)) => format!("this request's {field}"),
                Some(Meaning::Now) => "this moment".to_owned(),
                _ => format!("`{}`", name(var)),
            },
            TermKind::Call(call) => self.call_value(call, scene),
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
            TermKind::Array(_) | TermKind::Error => {
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
        let then = in_the_last(window, scene.then);
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
                format!("the number of {} {then}{own}", noun.many())
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
                    "the number of {values} among the {} {then}{own}",
                    noun.many()
                )
            }
            AggregateOp::Sum(summed) => {
                let field = field_of(&summed.name)?;
                let many = noun.many();
                if each_event {
                    format!("the sum of {field} over the {many} {then}{own}")
                } else {
                    format!("the sum of the different {field} values among the {many} {then}{own}")
                }
            }
        };
        Some(said)
    }
}

/// A window that only a call of the macro says.
fn unknown(window: &Window) -> String {
    match &window.kind {
        WindowKind::Param(name) => format!("`?{}`", name.text),
        _ => "window".to_owned(),
    }
}

/// A variable as it is written.
pub(super) fn name(var: &VarRef) -> String {
    match var.sigil {
        Sigil::Param => format!("?{}", var.name),
        Sigil::Plain | Sigil::Fresh => var.name.to_string(),
    }
}

fn this_is(noun: &Noun, holds: bool, then: bool) -> Group {
    let (subject, is) = match then {
        false => ("this event", if holds { "is" } else { "is not" }),
        true => ("the event", if holds { "was" } else { "was not" }),
    };
    Group::claim(subject, format!("{is} {}", noun.one()))
}

fn in_the_last(window: &Window, then: bool) -> String {
    match window.seconds() {
        Some(seconds) if then => format!("in the {} up to then", words::length(seconds)),
        Some(seconds) => format!("in {}", words::last(seconds)),
        None if then => format!("in the {} up to then", unknown(window)),
        None => format!("in the last {}", unknown(window)),
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

pub(super) fn is_timepoint(ty: &Name) -> bool {
    matches!(ty.path.as_slice(), [word] if word.text == "Timepoint")
}
