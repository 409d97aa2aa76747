//! The TOML of a test file as a tree with places, and the words of a table case put into it.

use crate::grammar::Span;
use crate::grammar::ast::Str;
use crate::grammar::diagnostic::Diagnostic;
use crate::json::{Json, JsonKind, MAX_DEPTH, Member};
use crate::nearest::nearest;
use smol_str::SmolStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The tree of a file, or why it is no TOML.
pub fn parse(text: &str) -> Result<Json, Diagnostic> {
    let (root, errors) = DeTable::parse_recoverable(text);
    // What comes after the first error is mostly its echo.
    let first = errors
        .iter()
        .min_by_key(|error| error.span().map_or(0, |span| span.start));
    if let Some(error) = first {
        let at = error
            .span()
            .map_or(Span::at(0), |span| Span::new(span.start, span.end));
        let message = format!("this is not TOML: {}", error.message());
        return Err(Diagnostic::error("test-syntax", at, message).help(
            "a test file is TOML; strings stand in quotes, and a test begins with `[[test]]`",
        ));
    }
    let whole = Span::new(0, text.len());
    Ok(Json {
        kind: table(root.get_ref(), 0),
        span: whole,
    })
}

/// Why a file is no TOML, if it is none.
pub fn syntax(text: &str) -> Result<(), Diagnostic> {
    parse(text).map(drop)
}

/// As much of the tree of a file as can be read, whatever is wrong with it.
pub fn outline(text: &str) -> Json {
    let (root, _) = DeTable::parse_recoverable(text);
    Json {
        kind: table(root.get_ref(), 0),
        span: Span::new(0, text.len()),
    }
}

fn table(table: &DeTable<'_>, depth: usize) -> JsonKind {
    let mut members: Vec<Member> = table
        .iter()
        .map(|(key, entry)| Member {
            key: Str {
                value: SmolStr::new(key.get_ref()),
                span: Span::new(key.span().start, key.span().end),
            },
            value: value(entry, depth + 1),
        })
        .collect();
    members.sort_by_key(|member| member.key.span.start);
    JsonKind::Object(members)
}

fn value(entry: &Spanned<DeValue<'_>>, depth: usize) -> Json {
    let span = Span::new(entry.span().start, entry.span().end);
    let kind = match entry.get_ref() {
        // The TOML reader bounds the nesting as well.
        _ if depth > MAX_DEPTH => JsonKind::Null,
        DeValue::String(text) => JsonKind::String(SmolStr::new(text)),
        DeValue::Integer(number) => {
            let digits = number.as_str();
            match i64::from_str_radix(digits, number.radix()) {
                Ok(number) => JsonKind::Number(SmolStr::new(number.to_string())),
                Err(_) => JsonKind::Number(SmolStr::new(digits)),
            }
        }
        DeValue::Float(number) => JsonKind::Number(SmolStr::new(number.as_str())),
        DeValue::Boolean(yes) => JsonKind::Bool(*yes),
        DeValue::Datetime(time) => JsonKind::String(SmolStr::new(time.to_string())),
        DeValue::Array(items) => {
            JsonKind::Array(items.iter().map(|item| value(item, depth + 1)).collect())
        }
        DeValue::Table(inner) => table(inner, depth),
    };
    Json { kind, span }
}

/// `what`, as a word of TOML.
pub fn what(node: &Json) -> &'static str {
    match node.kind {
        JsonKind::Object(_) => "a table",
        JsonKind::Null => "nested too deeply",
        _ => node.what(),
    }
}

/// The tree with `${name}` replaced by what a row says: a string that is only the name becomes the value
/// itself. A name the row lacks is a problem.
pub fn substituted(node: &Json, row: &[Member], problems: &mut Vec<Diagnostic>) -> Json {
    let kind = match &node.kind {
        JsonKind::String(text) => return in_string(text, node.span, row, problems),
        JsonKind::Array(items) => JsonKind::Array(
            items
                .iter()
                .map(|item| substituted(item, row, problems))
                .collect(),
        ),
        JsonKind::Object(members) => JsonKind::Object(
            members
                .iter()
                .map(|member| Member {
                    key: member.key.clone(),
                    value: substituted(&member.value, row, problems),
                })
                .collect(),
        ),
        other => other.clone(),
    };
    Json {
        kind,
        span: node.span,
    }
}

fn in_string(text: &str, span: Span, row: &[Member], problems: &mut Vec<Diagnostic>) -> Json {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        let Some(member) = row.iter().find(|member| member.key.value == name) else {
            let known: Vec<SmolStr> = row.iter().map(|member| member.key.value.clone()).collect();
            let mut problem = Diagnostic::error(
                "test-case-word",
                span,
                format!("this row of the table has no `{name}`"),
            );
            if let Some(near) = nearest(name, &known) {
                problem = problem.label(format!("did you mean `{near}`?"));
            }
            problems.push(problem);
            return Json {
                kind: JsonKind::String(SmolStr::new(text)),
                span,
            };
        };
        if before.is_empty() && out.is_empty() && behind.is_empty() {
            return Json {
                kind: member.value.kind.clone(),
                span,
            };
        }
        out.push_str(before);
        out.push_str(&plain(&member.value));
        rest = behind;
    }
    out.push_str(rest);
    Json {
        kind: JsonKind::String(SmolStr::new(out)),
        span,
    }
}

/// A value as it stands inside a string.
pub fn plain(node: &Json) -> String {
    match &node.kind {
        JsonKind::String(text) | JsonKind::Number(text) => text.to_string(),
        JsonKind::Bool(yes) => yes.to_string(),
        JsonKind::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        JsonKind::Object(_) | JsonKind::Null => String::new(),
    }
}

/// Says that a key is none of the accepted ones.
pub fn unknown(key: &Str, place: &str, accepted: &[&str]) -> Diagnostic {
    let name = key.value.as_str();
    let known: Vec<SmolStr> = accepted.iter().map(SmolStr::new).collect();
    let listed: Vec<String> = accepted.iter().map(|key| format!("`{key}`")).collect();
    let problem = Diagnostic::error("unknown-key", key.span, format!("{place} has no `{name}`"))
        .help(format!("accepted here: {}", listed.join(", ")));
    match nearest(name, &known) {
        Some(near) => problem.label(format!("did you mean `{near}`?")).fix(
            format!("change to `{near}`"),
            key.span,
            near.as_str(),
        ),
        None => problem,
    }
}

/// Says that a value has the wrong shape.
pub fn wrong(key: &str, node: &Json, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "wrong-shape",
        node.span,
        format!("`{key}` wants {wanted}, and this is {}", what(node)),
    )
}
