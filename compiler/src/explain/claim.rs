//! Propositions in English: single claims, and how several are put together.

use super::words;
use std::collections::BTreeSet;

/// `subject predicate`: "`arg1`" "is \"push\"".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub subject: String,
    pub predicate: String,
    /// The field whose presence is all the claim says (`has`).
    pub presence_of: Option<String>,
    /// Fields that are certainly there when the claim holds.
    pub implies: Vec<String>,
}

impl Claim {
    pub fn new(subject: impl Into<String>, predicate: impl Into<String>) -> Claim {
        Claim {
            subject: subject.into(),
            predicate: predicate.into(),
            presence_of: None,
            implies: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    Claim(Claim),
    /// A proposition without a subject to share.
    Text(String),
    /// Empty means "always".
    All(Vec<Group>),
    /// Empty means "never".
    Any(Vec<Group>),
}

impl Group {
    pub fn claim(subject: impl Into<String>, predicate: impl Into<String>) -> Group {
        Group::Claim(Claim::new(subject, predicate))
    }

    pub fn text(text: impl Into<String>) -> Group {
        Group::Text(text.into())
    }

    /// All parts hold. Presence tests that another part makes superfluous are left out.
    pub fn all(parts: Vec<Group>) -> Group {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Group::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let implied: BTreeSet<String> = flat.iter().flat_map(Group::implies).collect();
        flat.retain(|part| match part {
            Group::Claim(Claim {
                presence_of: Some(field),
                ..
            }) => !implied.contains(field),
            _ => true,
        });
        flat.dedup();
        single(flat, Group::All)
    }

    pub fn any(parts: Vec<Group>) -> Group {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Group::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        flat.dedup();
        single(flat, Group::Any)
    }

    /// Fields that are certainly there when the group holds.
    fn implies(&self) -> Vec<String> {
        match self {
            Group::Claim(claim) => claim.implies.clone(),
            Group::Text(_) => Vec::new(),
            Group::All(parts) => parts.iter().flat_map(Group::implies).collect(),
            Group::Any(parts) => {
                let mut sets = parts.iter().map(Group::implies);
                let first = sets.next().unwrap_or_default();
                sets.fold(first, |kept, set| {
                    kept.into_iter().filter(|f| set.contains(f)).collect()
                })
            }
        }
    }

    /// The proposition as a clause of a sentence.
    pub fn say(&self) -> String {
        self.say_at(0)
    }

    fn say_at(&self, depth: usize) -> String {
        let (parts, word, both) = match self {
            Group::Claim(claim) => return format!("{} {}", claim.subject, claim.predicate),
            Group::Text(text) => return text.clone(),
            Group::All(parts) if parts.is_empty() => return "always".to_owned(),
            Group::Any(parts) if parts.is_empty() => return "never".to_owned(),
            Group::All(parts) => (parts, "and", "both"),
            Group::Any(parts) => (parts, "or", "either"),
        };
        let items = merged(parts, word, depth);
        let long = parts.iter().any(|part| matches!(part, Group::Text(_)));
        let text = if long {
            words::clauses(&items, word, true)
        } else {
            words::list(&items, word)
        };
        match (depth, items.as_slice()) {
            (0, _) | (_, [_]) => text,
            (1, [_, _]) => format!("{both} {text}"),
            (1, _) if word == "or" => format!("{both} {text}"),
            // Further down English has no brackets of its own.
            _ => format!("({text})"),
        }
    }
}

fn single(mut parts: Vec<Group>, many: fn(Vec<Group>) -> Group) -> Group {
    match parts.len() {
        1 => parts.pop().unwrap_or_else(|| many(Vec::new())),
        _ => many(parts),
    }
}

/// The parts as texts, neighbours with one subject drawn together.
fn merged(parts: &[Group], word: &str, depth: usize) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = parts.iter().peekable();
    while let Some(part) = rest.next() {
        let Group::Claim(first) = part else {
            items.push(part.say_at(depth + 1));
            continue;
        };
        let mut predicates = vec![first.predicate.clone()];
        while let Some(Group::Claim(next)) = rest.peek() {
            if next.subject != first.subject {
                break;
            }
            predicates.push(shortened(&next.predicate, &first.predicate, word));
            rest.next();
        }
        items.push(format!(
            "{} {}",
            first.subject,
            words::list(&predicates, word)
        ));
    }
    items
}

/// `is more than 0 and at most 9`: a verb said once is not said again, unless `or` meets a negation.
fn shortened(predicate: &str, first: &str, word: &str) -> String {
    let negations = predicate.starts_with("is not ") || first.starts_with("is not ");
    match predicate.strip_prefix("is ") {
        Some(rest) if first.starts_with("is ") && !(word == "or" && negations) => rest.to_owned(),
        _ => predicate.to_owned(),
    }
}
