//! Coverage of policies by tests: as text, JSON, lcov and a page.

use super::super::escaped;
use super::{Covered, FileOutcome, counted, line, shown};
use dogwood_compiler::suite::coverage::{Part, PartKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One policy file with the parts in it, counted over all test files.
pub struct PolicyCoverage {
    name: String,
    text: String,
    rules: Vec<RuleCoverage>,
}

struct RuleCoverage {
    name: String,
    parts: Vec<Part>,
}

/// Adds up what several test files saw of one policy.
pub fn merged(outcomes: &[FileOutcome]) -> Vec<PolicyCoverage> {
    let mut policies: BTreeMap<&str, PolicyCoverage> = BTreeMap::new();
    for covered in outcomes.iter().filter_map(|file| file.coverage.as_ref()) {
        for (number, source) in covered.policies.iter().enumerate() {
            let policy = policies
                .entry(&source.name)
                .or_insert_with(|| PolicyCoverage::new(covered, number));
            policy.add(covered, number);
        }
    }
    policies.into_values().collect()
}

impl PolicyCoverage {
    fn new(covered: &Covered, number: usize) -> PolicyCoverage {
        let source = covered.policies.get(number);
        let rules = own(covered, number).map(|(name, parts)| RuleCoverage {
            name: name.to_owned(),
            parts: parts
                .map(|part| Part {
                    held: 0,
                    failed: 0,
                    ..part.clone()
                })
                .collect(),
        });
        PolicyCoverage {
            name: source.map(|source| source.name.clone()).unwrap_or_default(),
            text: source.map(|source| source.text.clone()).unwrap_or_default(),
            rules: rules.collect(),
        }
    }

    fn add(&mut self, covered: &Covered, number: usize) {
        for (rule, (_, parts)) in self.rules.iter_mut().zip(own(covered, number)) {
            for (sum, part) in rule.parts.iter_mut().zip(parts) {
                sum.held += part.held;
                sum.failed += part.failed;
            }
        }
    }

    fn source(&self, part: &Part) -> String {
        let span = part.span.start as usize..part.span.end as usize;
        let text = self.text.get(span).unwrap_or_default();
        let text: Vec<&str> = text.split_whitespace().collect();
        let text = text.join(" ");
        match text.char_indices().nth(70) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    fn tally(&self) -> (usize, usize) {
        let parts = self.rules.iter().flat_map(|rule| &rule.parts);
        parts.fold((0, 0), |(seen, all), part| {
            let both = usize::from(part.held > 0) + usize::from(part.failed > 0);
            (seen + both, all + 2)
        })
    }
}

/// The rules of one source of a policy set, each with its parts.
fn own(
    covered: &Covered,
    number: usize,
) -> impl Iterator<Item = (&str, impl Iterator<Item = &Part>)> {
    let rules = covered.rules.iter().enumerate();
    rules
        .filter(move |(_, (_, source))| *source == number)
        .map(|(rule, (name, _))| {
            let parts = covered.parts.iter().filter(move |part| part.rule == rule);
            (name.as_str(), parts)
        })
}

fn missing(part: &Part) -> Option<&'static str> {
    match (part.held > 0, part.failed > 0) {
        (true, true) => None,
        (true, false) => Some("never false"),
        (false, true) => Some("never true"),
        (false, false) => Some("never reached"),
    }
}

fn what(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Rule => "rule",
        PartKind::Condition => "condition",
        PartKind::Cell => "past",
    }
}

pub fn text(policies: &[PolicyCoverage]) -> String {
    let mut out = String::from("\ncoverage\n");
    for policy in policies {
        let (seen, all) = policy.tally();
        _ = writeln!(
            out,
            "  {}: {seen} of {all} outcomes of {}",
            shown(&policy.name),
            counted(policy.rules.len(), "rule")
        );
        for rule in &policy.rules {
            let gaps: Vec<(&Part, &str)> = rule
                .parts
                .iter()
                .filter_map(|part| Some((part, missing(part)?)))
                .collect();
            if gaps.is_empty() {
                continue;
            }
            _ = writeln!(out, "    {}", shown(&rule.name));
            for (part, gap) in gaps {
                let at = line(&policy.text, part.span);
                let of = match part.kind {
                    PartKind::Rule => "the rule".to_owned(),
                    _ => policy.source(part),
                };
                _ = writeln!(out, "      line {at}, {gap}: {}", shown(&of));
            }
        }
    }
    out
}

pub fn json(policies: &[PolicyCoverage]) -> Value {
    let of_policy = |policy: &PolicyCoverage| {
        let (seen, all) = policy.tally();
        let rules: Vec<Value> = policy
            .rules
            .iter()
            .map(|rule| {
                let parts: Vec<Value> = rule
                    .parts
                    .iter()
                    .map(|part| {
                        json!({
                            "kind": what(part.kind),
                            "line": line(&policy.text, part.span),
                            "text": policy.source(part),
                            "held": part.held,
                            "failed": part.failed,
                        })
                    })
                    .collect();
                json!({ "rule": rule.name, "parts": parts })
            })
            .collect();
        json!({ "policy": policy.name, "outcomes_seen": seen, "outcomes": all, "rules": rules })
    };
    Value::Array(policies.iter().map(of_policy).collect())
}

/// A rule is a function and a line; whether a part held and failed are two branches of its line.
pub fn lcov(policies: &[PolicyCoverage]) -> String {
    let mut out = String::new();
    for policy in policies {
        _ = writeln!(out, "TN:\nSF:{}", policy.name);
        let mut lines: BTreeMap<usize, u64> = BTreeMap::new();
        let (mut hit, mut branches, mut taken) = (0, 0, 0);
        for rule in &policy.rules {
            for (block, part) in rule.parts.iter().enumerate() {
                let at = line(&policy.text, part.span);
                let reached = part.held + part.failed;
                let count = lines.entry(at).or_default();
                *count = (*count).max(reached);
                if part.kind == PartKind::Rule {
                    _ = writeln!(out, "FN:{at},{0}\nFNDA:{1},{0}", rule.name, part.held);
                    hit += usize::from(part.held > 0);
                }
                for (branch, count) in [part.held, part.failed].into_iter().enumerate() {
                    let count_text = match (reached, count) {
                        (0, _) => "-".to_owned(),
                        (_, count) => count.to_string(),
                    };
                    _ = writeln!(out, "BRDA:{at},{block},{branch},{count_text}");
                    branches += 1;
                    taken += usize::from(count > 0);
                }
            }
        }
        _ = writeln!(
            out,
            "FNF:{}\nFNH:{hit}\nBRF:{branches}\nBRH:{taken}",
            policy.rules.len()
        );
        for (at, count) in &lines {
            _ = writeln!(out, "DA:{at},{count}");
        }
        let reached = lines.values().filter(|count| **count > 0).count();
        _ = writeln!(out, "LF:{}\nLH:{reached}\nend_of_record", lines.len());
    }
    out
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;color:#222}\
pre{background:#f7f7f5;padding:1rem;overflow-x:auto}\
mark{background:#d8f0d8}mark.gap{background:#ffe3b0}mark.none{background:#ffd3d3}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #ddd}";

pub fn html(policies: &[PolicyCoverage]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Policy coverage</title>\
         <style>{STYLE}</style></head><body>\n<h1>Policy coverage</h1>\n\
         <p><mark>both outcomes seen</mark> <mark class=\"gap\">only one seen</mark> \
         <mark class=\"none\">never reached</mark></p>\n"
    );
    for policy in policies {
        let (seen, all) = policy.tally();
        _ = writeln!(
            out,
            "<h2>{}</h2>\n<p>{seen} of {all} outcomes of {}</p>\n<pre>{}</pre>",
            escaped(&policy.name),
            counted(policy.rules.len(), "rule"),
            marked(policy)
        );
        out.push_str("<table><tr><th>line</th><th>part</th><th>held</th><th>did not</th></tr>\n");
        for rule in &policy.rules {
            for part in &rule.parts {
                let of = match part.kind {
                    PartKind::Rule => format!("<b>{}</b>", escaped(&rule.name)),
                    _ => format!("<code>{}</code>", escaped(&policy.source(part))),
                };
                _ = writeln!(
                    out,
                    "<tr><td>{}</td><td>{of}</td><td>{}</td><td>{}</td></tr>",
                    line(&policy.text, part.span),
                    part.held,
                    part.failed
                );
            }
        }
        out.push_str("</table>\n");
    }
    out.push_str("</body></html>\n");
    out
}

/// The policy with its conditions coloured; an operator inside one keeps its condition's colour.
fn marked(policy: &PolicyCoverage) -> String {
    let mut out = String::new();
    let mut parts: Vec<&Part> = policy
        .rules
        .iter()
        .flat_map(|rule| &rule.parts)
        .filter(|part| part.kind != PartKind::Cell)
        .collect();
    parts.sort_by_key(|part| part.span.start);
    let mut at = 0;
    for part in parts {
        let (start, end) = (part.span.start as usize, part.span.end as usize);
        if start < at || end <= start {
            continue;
        }
        let class = match missing(part) {
            None => "",
            Some("never reached") => " class=\"none\"",
            Some(_) => " class=\"gap\"",
        };
        let title = missing(part).unwrap_or("seen true and false");
        out.push_str(&escaped(policy.text.get(at..start).unwrap_or_default()));
        _ = write!(
            out,
            "<mark{class} title=\"{title}\">{}</mark>",
            escaped(policy.text.get(start..end).unwrap_or_default())
        );
        at = end;
    }
    out.push_str(&escaped(policy.text.get(at..).unwrap_or_default()));
    out
}
