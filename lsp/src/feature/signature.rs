//! The parameters of the call around the cursor.

use super::{hover, words};
use crate::cursor::Cursor;
use crate::snapshot::Snapshot;
use dogwood_compiler::schema::Type;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub label: String,
    /// Byte ranges of the label.
    pub parameters: Vec<std::ops::Range<usize>>,
    pub active: usize,
    /// Markdown.
    pub about: Option<String>,
}

pub fn signature(snapshot: &Snapshot, offset: usize) -> Option<Signature> {
    let cursor = Cursor::at(&snapshot.document, offset);
    let (name_at, active) = cursor.call()?;
    let name = cursor.before.get(name_at)?.text;
    let previous = |n: usize| {
        let at = name_at.checked_sub(n);
        at.and_then(|at| cursor.before.get(at))
            .map_or("", |word| word.text)
    };
    if previous(1) == "." {
        let about = words::method(name)?;
        let params = match name {
            "contains" => vec!["element".to_owned()],
            "containsAll" | "containsAny" => vec!["set".to_owned()],
            "hasTag" | "getTag" => vec!["tag".to_owned()],
            "isInRange" => vec!["range".to_owned()],
            "offset" => vec!["duration".to_owned()],
            "durationSince" | "lessThan" | "lessThanOrEqual" | "greaterThan"
            | "greaterThanOrEqual" => vec!["other".to_owned()],
            _ => Vec::new(),
        };
        return Some(written(
            name,
            &params,
            active,
            Some(about.meaning.to_owned()),
        ));
    }
    if previous(1) == "::" {
        let mut words = vec![name];
        let mut n = 1;
        while previous(n) == "::" {
            words.push(previous(n + 1));
            n += 2;
        }
        words.reverse();
        let full = words.join("::");
        let provider = snapshot.setup.service.providers.get(&full)?;
        let params: Vec<String> = provider.args.iter().map(Type::to_string).collect();
        let about = format!("gives {}", provider.output);
        return Some(written(&full, &params, active, Some(about)));
    }
    if let Some(about) = words::constructor(name) {
        let params = ["\"literal\"".to_owned()];
        return Some(written(
            name,
            &params,
            active,
            Some(about.meaning.to_owned()),
        ));
    }
    // The head of a definition is no call.
    if matches!(previous(1), "temporal" | "cedar") && previous(2) == "def" {
        return None;
    }
    let (def, document, _) = snapshot.macro_named(name)?;
    let params: Vec<String> = def
        .params
        .iter()
        .map(|param| format!("?{}", param.text))
        .collect();
    let mut about = document
        .comment_above(def.span.start as usize)
        .unwrap_or_default();
    if about.is_empty() {
        about = hover::signature(def);
    }
    Some(written(name, &params, active, Some(about)))
}

fn written(name: &str, params: &[String], active: usize, about: Option<String>) -> Signature {
    let mut label = format!("{name}(");
    let mut parameters = Vec::new();
    for (at, param) in params.iter().enumerate() {
        if at > 0 {
            label.push_str(", ");
        }
        parameters.push(label.len()..label.len() + param.len());
        label.push_str(param);
    }
    label.push(')');
    Signature {
        label,
        parameters,
        active,
        about,
    }
}
