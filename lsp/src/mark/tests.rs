//! The names of a test file.

use super::{Marks, What};
use dogwood_compiler::json::{Json, JsonKind, Member};
use smol_str::SmolStr;

pub fn collect(root: &Json, marks: &mut Marks) {
    for Member { key, value } in root.as_object().unwrap_or_default() {
        marks.uses(key.span, What::Key(key.value.clone()));
        match key.value.as_str() {
            "policy" | "policy-schema" | "event-schema" | "macros" | "providers" => {
                each_string(value, &mut |node, text| {
                    let span = super::inside(marks.text, node.span, text);
                    marks.uses(span, What::File(text.clone()));
                });
            }
            "test" => value
                .as_array()
                .unwrap_or_default()
                .iter()
                .for_each(|test| self::test(test, marks)),
            _ => {}
        }
    }
}

fn test(test: &Json, marks: &mut Marks) {
    for Member { key, value } in test.as_object().unwrap_or_default() {
        marks.uses(key.span, What::Key(key.value.clone()));
        match key.value.as_str() {
            "name" => {
                if let Some(name) = value.as_str() {
                    let span = super::inside(marks.text, value.span, name);
                    marks.defines(span, What::Test(name.clone()));
                }
            }
            "events" | "cases" => value
                .as_array()
                .unwrap_or_default()
                .iter()
                .for_each(|step| self::step(step, marks)),
            _ => {}
        }
    }
}

fn step(step: &Json, marks: &mut Marks) {
    let action = step.get("action").and_then(Json::as_str);
    if let Some(action) = action {
        for group in ["input", "output", "context"] {
            let path = match group {
                "context" => Vec::new(),
                group => vec![SmolStr::new_static(group)],
            };
            if let Some(given) = step.get(group) {
                fields(given, action, &path, marks);
            }
        }
    }
    for Member { key, value } in step.as_object().unwrap_or_default() {
        marks.uses(key.span, What::Key(key.value.clone()));
        let mut mark = |node: &Json, text: &SmolStr, what: What| {
            marks.uses(super::inside(marks.text, node.span, text), what);
        };
        match key.value.as_str() {
            "by" => each_string(value, &mut |node, text| {
                mark(node, text, What::Rule(text.clone()));
            }),
            "action" => each_string(value, &mut |node, text| {
                mark(node, text, What::ActionId(text.clone()));
            }),
            "kind" => each_string(value, &mut |node, text| {
                let kind = text.clone();
                mark(node, text, What::Kind { action: None, kind });
            }),
            _ => {}
        }
    }
}

/// No schema has longer paths; a text may.
const LONGEST: usize = 64;

fn fields(given: &Json, action: &SmolStr, way: &[SmolStr], marks: &mut Marks) {
    if way.len() >= LONGEST {
        return;
    }
    for Member { key, value } in given.as_object().unwrap_or_default() {
        let mut path = way.to_vec();
        path.push(key.value.clone());
        fields(value, action, &path, marks);
        let action = action.clone();
        marks.uses(key.span, What::GivenField { action, path });
    }
}

/// The strings of a value that is one, or a list of them.
fn each_string(node: &Json, found: &mut dyn FnMut(&Json, &SmolStr)) {
    match &node.kind {
        JsonKind::String(text) => found(node, text),
        JsonKind::Array(items) => {
            for item in items {
                if let Some(text) = item.as_str() {
                    found(item, text);
                }
            }
        }
        _ => {}
    }
}
