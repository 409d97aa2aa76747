//! Permits of a box that give away more than their author sees.

use super::{Set, Subject};
use crate::value::EntityUid;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

/// Addresses and names under which clouds answer with credentials.
const METADATA: [&str; 4] = [
    "169.254.169.254",
    "169.254.",
    "metadata.google.internal",
    "fd00:ec2::254",
];

pub fn check(set: &mut Set, subject: &Subject) {
    if !subject.permits() {
        return;
    }
    let decides = |id: &str| subject.decides(&EntityUid::new("Box::Action", id));
    let span = subject.checked.rule.effect_span;
    if decides("fs:read") && !reads(subject, &["path"]) {
        let said = Diagnostic::warning(
            "unbounded-read",
            span,
            "this permits reading every file the box can see, keys and tokens included",
        )
        .help("add `when { context.input.path like \"~/project/*\" }`");
        set.say(subject, said);
    }
    let broad = decides("net:connect") && !reads(subject, &["host", "ip"]);
    if broad && !guarded(set) {
        let said = Diagnostic::warning(
            "open-metadata",
            span,
            "this permits connections to any host, and no rule names the cloud's metadata service",
        )
        .help("name the hosts that are needed, or forbid `net:connect` to \"169.254.169.254\": it hands out credentials");
        set.say(subject, said);
    }
}

/// Whether a condition of the rule looks at one of these inputs.
fn reads(subject: &Subject, inputs: &[&str]) -> bool {
    subject
        .facts
        .reads
        .iter()
        .any(|path| match path.as_slice() {
            [group, input] => group == "input" && inputs.contains(&input.as_str()),
            _ => false,
        })
}

fn guarded(set: &Set) -> bool {
    let action = EntityUid::new("Box::Action", SmolStr::new_static("net:connect"));
    set.subjects
        .iter()
        .filter(|rule| !rule.permits() && rule.decides(&action))
        .any(|rule| {
            rule.facts
                .texts
                .iter()
                .any(|text| METADATA.iter().any(|address| text.contains(address)))
        })
}
