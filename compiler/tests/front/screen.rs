//! What an author sees: the text, the messages drawn over it, and the text after each fix.

use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Fix, SourceId};
use dogwood_compiler::schema::{Service, box_service};

pub fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

/// The depot of the language reference, section 12.
pub const DEPOT: &str = r#"
namespace Depot {
  entity Crew;
  entity Clerk in [Crew] = { rank: Long, nick?: String };
  entity Drone;
  entity Bay;
  type MoveIn  = { crate: String, kg?: Long };
  type WeighIn = { crate: String, kg: Long, tare: decimal };
  action Any;
  action "move"  in [Any] appliesTo { principal: [Clerk, Drone], resource: [Bay],
                                      context: { input: MoveIn,  output?: { ok: Bool } } };
  action "weigh" in [Any] appliesTo { principal: [Clerk], resource: [Bay],
                                      context: { input: WeighIn, output?: { ok: Bool } } };
  action "beep" appliesTo { principal: [Clerk], resource: [Bay], context: {} };
}
"#;

/// Request, response and error events without a pin.
pub const EVENTS: &str = r#"
decision event <A>::request {
  ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A),
  requestId: String, sessionId: String
}
event <A>::response {
  ...inputs(A), ...outputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A),
  requestId: String, sessionId: String
}
event <A>::error {
  ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A),
  requestId: String, sessionId: String
}
"#;

pub fn depot() -> Service {
    service(DEPOT, EVENTS)
}

pub fn service(actions: &str, events: &str) -> Service {
    let actions = source("actions.cedarschema", actions);
    let events = source("events.dwschema", events);
    match compile::load_service(Some(&actions), Some(&events)) {
        Ok((service, _)) => service,
        Err(diagnostics) => panic!(
            "{}",
            render(
                &diagnostics,
                &[(&actions.name, &actions.text), (&events.name, &events.text)],
                Style::Plain
            )
        ),
    }
}

/// Everything the checks say about a policy, errors and warnings; the lints have tests of their own.
pub fn diagnostics(policy: &str, service: &Service) -> Vec<Diagnostic> {
    match compile::check(
        &[source("policy.dw", policy)],
        None,
        service,
        &Options {
            quiet: true,
            ..Options::default()
        },
    ) {
        Ok(checked) => checked.diagnostics,
        Err(diagnostics) => diagnostics,
    }
}

/// One style for everything that is said: a lower-case beginning, no full stop, one sentence.
pub fn uniform_text(text: &str) -> bool {
    let mut letters = text.chars();
    let capital = letters.next().is_some_and(char::is_uppercase);
    let acronym = letters.next().is_some_and(char::is_uppercase);
    // Code in backticks has its own punctuation.
    let prose: String = text.split('`').step_by(2).collect();
    (!capital || acronym) && !text.ends_with('.') && !prose.contains(". ")
}

/// The texts of a message that are in another style.
pub fn ununiform(said: &Diagnostic) -> Vec<String> {
    let mut all = vec![&said.message, &said.label];
    all.extend(&said.help);
    all.extend(said.fix.as_ref().map(|fix| &fix.title));
    all.extend(said.labels.iter().map(|label| &label.text));
    let other = all.into_iter().filter(|text| !uniform_text(text));
    other.map(|text| format!("another style: {text}")).collect()
}

pub fn in_box(policy: &str) -> String {
    screen(policy, &box_service())
}

pub fn in_depot(policy: &str) -> String {
    screen(policy, &depot())
}

pub fn screen(policy: &str, service: &Service) -> String {
    let said = diagnostics(policy, service);
    let mut out = format!(
        "----- POLICY\n{}\n----- SAYS\n{}",
        policy.trim(),
        draw(policy, &said)
    );
    for diagnostic in said
        .iter()
        .filter(|diagnostic| diagnostic.source == SourceId(0))
    {
        if let Some(fix) = &diagnostic.fix {
            let mended = apply(policy, fix);
            let count = |said: &[Diagnostic]| {
                said.iter()
                    .filter(|other| other.code == diagnostic.code)
                    .count()
            };
            let left = diagnostics(&mended, service);
            assert!(
                count(&left) < count(&said),
                "the fix of `{}` does not mend it: {mended}",
                diagnostic.code
            );
            out.push_str(&format!("\nfix: {}\n", fix.title));
            out.push_str(&changed_lines(policy, &mended));
        }
    }
    out
}

pub fn draw(text: &str, said: &[Diagnostic]) -> String {
    if said.is_empty() {
        return "nothing to say".to_owned();
    }
    for diagnostic in said {
        let other = ununiform(diagnostic);
        assert!(other.is_empty(), "{}: {other:?}", diagnostic.code);
    }
    render(said, &[("policy.dw", text)], Style::Plain)
}

pub fn apply(text: &str, fix: &Fix) -> String {
    let mut edits = fix.edits.clone();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
    let mut text = text.to_owned();
    for edit in edits {
        text.replace_range(edit.span.range(), &edit.text);
    }
    text
}

fn changed_lines(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    new[same..new.len() - tail]
        .iter()
        .map(|line| format!("  | {line}\n"))
        .collect()
}

/// A snapshot of what an author sees, without the escaped source text as its header.
macro_rules! said {
    ($screen:expr) => {
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!($screen)
        })
    };
}
pub(crate) use said;
