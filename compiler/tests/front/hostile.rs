//! Broken and mangled texts: never a panic, and nothing said about a place that is not there.

use super::screen::{DEPOT, EVENTS, apply, depot, source};
use dogwood_compiler::compile::{self, Options};
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use proptest::prelude::*;

const POLICY: &str = r#"
def cedar near(?x, ?y) { ?x == ?y || ?x in [?y] };
def temporal recently(?w, ?c) { formerly within ?w (?c && tp($t)) };
@id("a") permit (principal is Depot::Clerk in Depot::Crew::"é", action in [Depot::Action::"Any"], resource)
when { context has input.kg && context.input.kg > 3 && near(principal, Depot::Clerk::"ann") }
unless { if context.input.crate like "a*" then principal.nick == "x" else [1, 2].contains(principal.rank) };
forbid (principal, action == Depot::Action::"move", resource)
when temporal {
  exists (k: Long). (0 < k && Depot::Action::"move"::request{ input.kg: k, input.crate: context.input.crate })
  && !Depot::Action::"beep"::request{} since within 1h Depot::Action::"weigh"::response{ output.ok: true }
  && (count for (t: Timepoint). where recently(90s, Depot::Action::"move"::request{} && tp(t))) <= 3
  && count_within(48h, Depot::Action::"weigh"::request{ input.tare: decimal("1.5") }) != 2
};
"#;

fn sane(said: &[Diagnostic], text: &str) {
    for diagnostic in said {
        let places = diagnostic
            .labels
            .iter()
            .map(|label| label.span)
            .chain([diagnostic.span]);
        for span in places {
            assert!(text.get(span.range()).is_some(), "{diagnostic:?}");
        }
        if let Some(fix) = &diagnostic.fix {
            apply(text, fix);
        }
    }
    render(said, &[("x", text)], Style::Plain);
}

/// The text with a piece cut out, and a piece of it put in somewhere else.
fn mangled(text: &'static str) -> impl Strategy<Value = String> {
    let chars: Vec<char> = text.chars().collect();
    let n = chars.len();
    let at = move || 0..n;
    (at(), 0..40_usize, at(), 0..40_usize, at(), any::<bool>()).prop_map(
        move |(cut, cut_len, from, from_len, to, cut_too)| {
            let piece: Vec<char> = chars.iter().skip(from).take(from_len).copied().collect();
            let mut out = chars.clone();
            out.splice(to..to, piece);
            if cut_too {
                let end = (cut + cut_len).min(out.len());
                out.drain(cut..end);
            }
            out.into_iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn mangled_policies(text in mangled(POLICY)) {
        let service = depot();
        let policies = [source("x", &text)];
        let options = Options {
        arithmetic: true,
        ..Options::default()
    };
        match compile::check(&policies, None, &service, &options) {
            Ok(checked) => sane(&checked.diagnostics, &text),
            Err(said) => sane(&said, &text),
        }
        if let Err(said) = compile::parse_only(&policies, None, &options) {
            sane(&said, &text);
        }
    }

    #[test]
    fn mangled_action_schemas(text in mangled(DEPOT)) {
        if let Err(said) = compile::load_service(Some(&source("x", &text)), None) {
            sane(&said, &text);
        }
    }

    #[test]
    fn mangled_event_schemas(text in mangled(EVENTS)) {
        if let Err(said) = compile::load_service(None, Some(&source("x", &text))) {
            sane(&said, &text);
        }
    }
}
