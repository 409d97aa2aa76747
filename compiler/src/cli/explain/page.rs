//! A trace under a policy as one page: the events on a line of time, the windows the rules look back over, the
//! verdicts, and each explanation beside its event.

use super::super::escaped;
use super::super::policy::Set;
use super::verdict::Verdict;
use dogwood_compiler::compile::CheckedRule;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{NamedRule, describe, explain, spoken_span};
use dogwood_compiler::monitor::{self, Policy};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// Events beyond this are not drawn: a page is for reading.
const MOST: usize = 500;
/// Denials beyond this are drawn without their explanation, which means trying.
const EXPLAINED: usize = 100;
const WIDTH: f64 = 1000.0;
const ROW: f64 = 26.0;
const TOP: f64 = 30.0;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}\
svg{width:100%;height:auto;display:block}\
svg text{font:12px system-ui,sans-serif;fill:currentColor}\
.axis{stroke:#8888;stroke-width:1}\
.allow{fill:#2a9d55}.deny{fill:#d03c3c}.past{fill:#7a8793}\
.window{fill:#4a7fd155;stroke:#4a7fd1;stroke-width:1}\
.link{stroke:#d08a3c;stroke-width:1.5;fill:none}\
ol{list-style:none;padding:0}\
li{border-left:4px solid #7a8793;margin:.5rem 0;padding:.2rem .8rem}\
li.allow{border-color:#2a9d55}li.deny{border-color:#d03c3c}\
li:target{background:#8882}\
code{font-size:13px;overflow-wrap:anywhere}\
.why{margin:.2rem 0 0 1rem;white-space:pre-line}";

struct Row {
    at: usize,
    y: f64,
    x: f64,
    class: &'static str,
    title: String,
}

pub fn page(
    set: &Set,
    rules: &[CheckedRule],
    policy: &Arc<Policy>,
    named: &[NamedRule],
    events: &[Event],
    title: &str,
) -> String {
    let decisions = monitor::replay(Arc::clone(policy), events);
    let shown = events.get(..events.len().min(MOST)).unwrap_or(events);
    let mut verdicts = Vec::new();
    let drawn = decisions.iter().filter(|(at, ..)| *at < shown.len());
    for (explained, (at, _, decision)) in drawn.enumerate() {
        let examined = (explained < EXPLAINED)
            .then(|| Verdict::at(policy, rules, named, events, *at))
            .flatten();
        verdicts.push((*at, decision.allowed(), examined));
    }
    let start = shown.iter().map(|event| event.time).min().unwrap_or(0);
    let end = shown.iter().map(|event| event.time).max().unwrap_or(0);
    let length = (end - start).max(1) as f64;
    let x = |time: i64| 10.0 + (time - start) as f64 / length * (WIDTH - 20.0);
    let row: Vec<Row> = shown
        .iter()
        .enumerate()
        .map(|(at, event)| {
            let verdict = verdicts.iter().find(|(number, ..)| *number == at);
            let (class, why) = match verdict {
                Some((_, allowed, examined)) => (
                    if *allowed { "allow" } else { "deny" },
                    examined.as_ref().map(lines).unwrap_or_default(),
                ),
                None => ("past", Vec::new()),
            };
            let mut title = vec![format!(
                "{at}  +{}  {}",
                spoken_span(event.time - start),
                describe(event)
            )];
            title.extend(why);
            Row {
                at,
                y: TOP + ROW * at as f64,
                x: x(event.time),
                class,
                title: title.join("\n"),
            }
        })
        .collect();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n",
        escaped(title)
    );
    let allowed = verdicts.iter().filter(|(_, allowed, _)| *allowed).count();
    _ = writeln!(
        out,
        "<p>{} events over {}; {} allowed, {} denied. Point at an event for its explanation.</p>",
        events.len(),
        spoken_span(end - start),
        allowed,
        verdicts.len() - allowed
    );
    if shown.len() < events.len() {
        _ = writeln!(out, "<p>Only the first {MOST} events are drawn.</p>");
    }
    let height = TOP + ROW * shown.len() as f64 + 10.0;
    _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"events in order of time\">\
         <line class=\"axis\" x1=\"10\" y1=\"20\" x2=\"{}\" y2=\"20\"/>\
         <text x=\"10\" y=\"14\">+0s</text><text x=\"{}\" y=\"14\" text-anchor=\"end\">+{}</text>",
        WIDTH - 10.0,
        WIDTH - 10.0,
        spoken_span(end - start)
    );
    for (at, allowed, examined) in &verdicts {
        let Some(place) = row.get(*at) else { continue };
        let event = shown.get(*at);
        // The windows of the rules that looked back at this decision, as far as the page goes.
        if let Some(event) = event {
            for window in windows(policy, rules, event, *allowed, examined.as_ref()) {
                let from = x(event.time.saturating_sub(window).max(start));
                _ = writeln!(
                    out,
                    "<rect class=\"window\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"6\" rx=\"3\">\
                     <title>looks back {}</title></rect>",
                    place.y + 7.0,
                    (place.x - from).max(1.0),
                    spoken_span(window)
                );
            }
        }
        let causes = examined.iter().flat_map(|verdict| &verdict.cause);
        for cause in causes.flat_map(|cause| &cause.events) {
            if let Some(from) = row.get(*cause) {
                _ = writeln!(
                    out,
                    "<path class=\"link\" d=\"M{:.1} {:.1} L{:.1} {:.1}\"><title>rests on event {cause}</title></path>",
                    from.x, from.y, place.x, place.y
                );
            }
        }
    }
    for place in &row {
        _ = writeln!(
            out,
            "<a href=\"#event-{0}\"><circle class=\"{1}\" cx=\"{2:.1}\" cy=\"{3:.1}\" r=\"6\"><title>{4}</title></circle></a>",
            place.at,
            place.class,
            place.x,
            place.y,
            escaped(&place.title)
        );
        let (anchor, dx) = if place.x > WIDTH / 2.0 {
            ("end", -12.0)
        } else {
            ("start", 12.0)
        };
        let label = shown.get(place.at).map(describe).unwrap_or_default();
        let label: String = label.chars().take(70).collect();
        _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            place.x + dx,
            place.y + 4.0,
            escaped(&label)
        );
    }
    out.push_str("</svg>\n<h2>Events</h2>\n<ol>\n");
    for place in &row {
        let mut lines = place.title.lines();
        let head = lines.next().unwrap_or_default();
        let verdict = match place.class {
            "allow" => " allowed",
            "deny" => " denied",
            _ => "",
        };
        _ = writeln!(
            out,
            "<li id=\"event-{}\" class=\"{}\"><code>{}</code><b>{verdict}</b>",
            place.at,
            place.class,
            escaped(head)
        );
        let rest: Vec<&str> = lines.collect();
        if !rest.is_empty() {
            _ = writeln!(
                out,
                "<div class=\"why\">{}</div>",
                escaped(&rest.join("\n"))
            );
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n<h2>Rules</h2>\n<dl>\n");
    for rule in rules {
        let said = explain(&rule.rule, rule.index, set.place(rule), &set.service);
        let name = said.id.clone().unwrap_or_else(|| said.place.clone());
        _ = writeln!(
            out,
            "<dt><b>{}</b></dt><dd>{}</dd>",
            escaped(&name),
            escaped(&said.sentences.join(" "))
        );
    }
    out.push_str("</dl>\n</body></html>\n");
    out
}

fn lines(verdict: &Verdict<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if !verdict.rules.is_empty() {
        lines.push(format!("by {}", verdict.rules.join(", ")));
    }
    lines.extend(verdict.reasons());
    if let Some(cause) = verdict
        .cause
        .as_ref()
        .filter(|cause| !cause.events.is_empty())
    {
        let events: Vec<String> = cause.events.iter().map(usize::to_string).collect();
        lines.push(format!("rests on event {}", events.join(", ")));
    }
    lines.extend(verdict.turns());
    lines
}

/// How far the rules that determined a decision look back; for a denial nobody forbade, how far any rule of its
/// action does.
fn windows(
    policy: &Policy,
    rules: &[CheckedRule],
    event: &Event,
    allowed: bool,
    examined: Option<&Verdict<'_>>,
) -> BTreeSet<i64> {
    let determining: Vec<usize> = examined
        .map(|verdict| verdict.decision.rules.clone())
        .unwrap_or_default();
    let concerned: Vec<usize> = if determining.is_empty() || allowed {
        rules
            .iter()
            .filter(|rule| rule.targets.contains(&event.action))
            .map(|rule| rule.index)
            .collect()
    } else {
        determining
    };
    policy
        .cells()
        .iter()
        .filter(|cell| cell.rules.iter().any(|rule| concerned.contains(rule)))
        .map(|cell| cell.window)
        .collect()
}
