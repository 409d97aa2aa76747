//! Macros by their names: what a call of one says in a sentence, and once for each what it stands for.

use super::claim::Group;
use super::scene::{Meaning, Scene};
use super::{Speech, code, words};
use crate::grammar::ast::*;
use crate::normal;
use crate::schema::Service;
use serde::Serialize;
use std::fmt;

/// A macro that rules call, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MacroExplanation {
    /// With its parameters: `passed(?window)`.
    pub name: String,
    /// `policy.dw:12`.
    pub place: String,
    pub sentence: String,
}

/// Explains what a macro stands for.
pub fn explain_macro(
    def: &MacroDef,
    place: impl Into<String>,
    service: &Service,
) -> MacroExplanation {
    let params: Vec<String> = def
        .params
        .iter()
        .map(|param| format!("?{}", param.text))
        .collect();
    let speech = Speech::anywhere(service);
    let sentence = match &def.body {
        MacroBody::Cond(cond) => {
            let cond = normal::condition(cond);
            let said = speech.cond(&cond, true, &mut Scene::default());
            format!("Holds when {}.", said.say())
        }
        MacroBody::Value(term) => {
            let term = normal::value(term);
            format!("Stands for {}.", speech.term(&term, &mut Scene::default()))
        }
        MacroBody::Expr(expr) => {
            let expr = normal::expression(expr);
            match speech.truth(&expr) {
                Some(said) => format!("Holds when {}.", said.say()),
                None => format!("Stands for {}.", speech.noun(&expr)),
            }
        }
        MacroBody::Broken => "It cannot be read.".to_owned(),
    };
    MacroExplanation {
        name: format!("{}({})", def.name.text, params.join(", ")),
        place: place.into(),
        sentence,
    }
}

impl fmt::Display for MacroExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "macro {} ({})", self.name, self.place)?;
        writeln!(f, "{}", words::wrap(&self.sentence, "  ", 96))
    }
}

impl Speech<'_> {
    /// "`passed` holds for the principal over 15 minutes."
    pub(super) fn call<'t>(
        &self,
        call: &'t MacroCall,
        holds: bool,
        scene: &mut Scene<'t>,
    ) -> Group {
        let verb = match (scene.then, holds) {
            (false, true) => "holds",
            (false, false) => "does not hold",
            (true, true) => "held",
            (true, false) => "did not hold",
        };
        let with = self.arguments(call, scene);
        Group::claim(format!("`{}`", call.name.text), format!("{verb}{with}"))
    }

    /// "`spent` for the principal over 24 hours."
    pub(super) fn call_value<'t>(&self, call: &'t MacroCall, scene: &mut Scene<'t>) -> String {
        format!("`{}`{}", call.name.text, self.arguments(call, scene))
    }

    fn arguments<'t>(&self, call: &'t MacroCall, scene: &mut Scene<'t>) -> String {
        let (mut given, mut windows) = (Vec::new(), Vec::new());
        for arg in &call.args {
            match arg {
                CallArg::Window(window) => windows.extend(window.seconds().map(words::span)),
                CallArg::Cond(cond) => {
                    let depth = scene.vars.len();
                    let noun = self.noun_of(cond, scene);
                    scene.vars.truncate(depth);
                    given.push(match noun {
                        Some(noun) => noun.one(),
                        None => format!("`{}`", code::cond(cond)),
                    });
                }
                CallArg::Term(term) => given.push(self.argument(term, scene)),
            }
        }
        with(&given, &windows)
    }

    /// A value, or a variable that the macro may be the first to speak of.
    fn argument<'t>(&self, term: &'t Term, scene: &mut Scene<'t>) -> String {
        if let TermKind::Var(var) = &term.kind
            && let Some(known) = scene.find_mut(&var.name)
        {
            let demands = match &known.meaning {
                Meaning::New { demands } => demands.clone(),
                Meaning::NewNamed => Vec::new(),
                _ => return self.term(term, scene),
            };
            known.meaning = Meaning::Named;
            let demanded = match demands.as_slice() {
                [] => String::new(),
                some => format!(" {}", words::list(some, "and")),
            };
            return format!("some `{}`{demanded}", var.name);
        }
        self.term(term, scene)
    }

    /// A call in an expression, as the thing that holds or the value it stands for.
    pub(super) fn called(&self, name: &Name, args: &[Expr]) -> Option<(String, String)> {
        let [word] = name.path.as_slice() else {
            return None;
        };
        if crate::macros::is_constructor(&word.text) {
            return None;
        }
        let given: Vec<String> = args.iter().map(|arg| self.noun(arg)).collect();
        Some((format!("`{}`", word.text), with(&given, &[])))
    }
}

/// " for these over so long".
fn with(given: &[String], windows: &[String]) -> String {
    let mut out = String::new();
    if !given.is_empty() {
        out.push_str(" for ");
        out.push_str(&words::list(given, "and"));
    }
    if !windows.is_empty() {
        out.push_str(" over ");
        out.push_str(&words::list(windows, "and"));
    }
    out
}
