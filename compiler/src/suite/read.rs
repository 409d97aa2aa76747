//! From the text of a test file to cases, or to everything that is wrong with it.

mod step;

use super::table::{parse, plain, substituted, unknown, wrong};
use super::{Case, Step};
use crate::grammar::Span;
use crate::grammar::ast::Str;
use crate::grammar::diagnostic::Diagnostic;
use crate::json::{Json, JsonKind, Member};
use crate::schema::Service;
use std::collections::BTreeSet;
use step::Steps;
pub use step::{START, STEP};

/// What a test file says of itself before its tests: paths are relative to its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// None: those that go by the name of the file.
    pub policies: Vec<Str>,
    pub policy_schema: Option<Str>,
    pub event_schema: Option<Str>,
    pub macros: Option<Str>,
    pub providers: Option<Str>,
}

const TOP: &[&str] = &[
    "policy",
    "policy-schema",
    "event-schema",
    "macros",
    "providers",
    "defaults",
    "test",
];
const TEST: &[&str] = &["name", "description", "events", "cases"];

/// Which policy a file tests.
pub fn header(text: &str) -> Result<Header, Vec<Diagnostic>> {
    let root = parse(text).map_err(|problem| vec![problem])?;
    let (header, problems) = header_of(&root);
    if problems.is_empty() {
        Ok(header)
    } else {
        Err(problems)
    }
}

/// Which policy the tree of a file tests, as far as it can be read, and what is wrong with that.
pub fn header_of(root: &Json) -> (Header, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let mut header = Header::default();
    for Member { key, value } in root.as_object().unwrap_or_default() {
        let one = |problems: &mut Vec<Diagnostic>| match &value.kind {
            JsonKind::String(text) => Some(Str {
                value: text.clone(),
                span: value.span,
            }),
            _ => {
                problems.push(wrong(&key.value, value, "a string"));
                None
            }
        };
        match key.value.as_str() {
            "policy" => match value.as_array() {
                None => header.policies.extend(one(&mut problems)),
                Some(items) => {
                    for item in items {
                        match item.as_str() {
                            Some(text) => header.policies.push(Str {
                                value: text.clone(),
                                span: item.span,
                            }),
                            None => problems.push(wrong("policy", item, "names of files")),
                        }
                    }
                }
            },
            "policy-schema" => header.policy_schema = one(&mut problems),
            "event-schema" => header.event_schema = one(&mut problems),
            "macros" => header.macros = one(&mut problems),
            "providers" => header.providers = one(&mut problems),
            _ => {}
        }
    }
    (header, problems)
}

/// Reads the tests, events filled from the schemas. `rules` are the names that a step may expect to decide.
pub fn read(
    text: &str,
    service: &Service,
    rules: &BTreeSet<String>,
) -> Result<Vec<Case>, Vec<Diagnostic>> {
    let root = parse(text).map_err(|problem| vec![problem])?;
    let mut reader = Reader {
        service,
        rules,
        defaults: None,
        problems: Vec::new(),
    };
    let cases = reader.file(&root);
    reader.problems.sort_by_key(|problem| problem.span.start);
    // A table finds the same mistake once a row.
    reader.problems.dedup();
    if reader.problems.is_empty() {
        Ok(cases)
    } else {
        Err(reader.problems)
    }
}

/// One event as a line of a test has it, without its braces, at a time and after so many requests. The text the
/// diagnostics are about comes with them.
pub fn single(
    line: &str,
    service: &Service,
    rules: &BTreeSet<String>,
    now: i64,
    requests: u32,
) -> Result<Step, (String, Vec<Diagnostic>)> {
    let text = format!("event = {{ {line} }}\n");
    let fail = |problems| (text.clone(), problems);
    let root = parse(&text).map_err(|problem| fail(vec![problem]))?;
    let mut reader = Reader {
        service,
        rules,
        defaults: None,
        problems: Vec::new(),
    };
    let event = root.get("event").cloned();
    let mut steps = Steps::new(&mut reader, None)
        .from(now, requests)
        .read(event.as_slice());
    match steps.pop() {
        Some(step) if reader.problems.is_empty() => Ok(step),
        _ => Err(fail(reader.problems)),
    }
}

pub(super) struct Reader<'a> {
    service: &'a Service,
    rules: &'a BTreeSet<String>,
    defaults: Option<Json>,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn file(&mut self, root: &Json) -> Vec<Case> {
        let mut tests = None;
        for Member { key, value } in root.as_object().unwrap_or_default() {
            match key.value.as_str() {
                "test" => tests = Some(value),
                "defaults" => self.defaults = Some(value.clone()),
                name if TOP.contains(&name) => {}
                _ => self.problems.push(unknown(key, "a test file", TOP)),
            }
        }
        let Some(tests) = tests else {
            self.problems.push(
                Diagnostic::error("missing-key", Span::at(0), "this file has no test")
                    .help("a test begins with a line `[[test]]`"),
            );
            return Vec::new();
        };
        let Some(tests) = tests.as_array() else {
            let problem = wrong("test", tests, "a list of tables")
                .help("a test begins with a line `[[test]]`, in double brackets");
            self.problems.push(problem);
            return Vec::new();
        };
        let mut names = BTreeSet::new();
        let mut cases = Vec::new();
        for test in tests {
            self.test(test, &mut names, &mut cases);
        }
        cases
    }

    fn test(&mut self, test: &Json, names: &mut BTreeSet<String>, cases: &mut Vec<Case>) {
        let Some(members) = test.as_object() else {
            self.problems.push(wrong("test", test, "a table"));
            return;
        };
        for member in members {
            if !TEST.contains(&member.key.value.as_str()) {
                self.problems.push(unknown(&member.key, "a test", TEST));
            }
        }
        let head = Span::new(test.span.start as usize, test.span.start as usize);
        let name =
            match test.get("name") {
                Some(node) => match node.as_str() {
                    Some(name) => {
                        if !names.insert(name.to_string()) {
                            self.problems.push(Diagnostic::error(
                                "duplicate",
                                node.span,
                                format!("two tests are called {name:?}"),
                            ));
                        }
                        Some((name.to_string(), node.span))
                    }
                    None => {
                        self.problems.push(wrong("name", node, "a string"));
                        None
                    }
                },
                None => {
                    let problem = Diagnostic::error("missing-key", head, "this test has no `name`");
                    self.problems.push(problem.help(
                        "say what the policy should do: `name = \"push waits for the tests\"`",
                    ));
                    None
                }
            };
        let events = match test.get("events") {
            Some(node) => match node.as_array() {
                Some(events) => events,
                None => {
                    self.problems
                        .push(wrong("events", node, "a list of tables"));
                    return;
                }
            },
            None => {
                let problem = Diagnostic::error("missing-key", head, "this test has no `events`");
                self.problems.push(problem.help(
                    "list what happens: `events = [{ action = \"fs:read\", expect = \"allow\" }]`",
                ));
                return;
            }
        };
        let Some((name, span)) = name else {
            return;
        };
        match test.get("cases") {
            None => {
                let steps = Steps::new(self, None).read(events);
                cases.push(Case { name, span, steps });
            }
            Some(table) => {
                for row in table.as_array().unwrap_or_default() {
                    self.row(row, &name, events, cases);
                }
                if table.as_array().is_none_or(<[Json]>::is_empty) {
                    self.problems
                        .push(wrong("cases", table, "a list of tables, at least one"));
                }
            }
        }
    }

    fn row(&mut self, row: &Json, name: &str, events: &[Json], cases: &mut Vec<Case>) {
        let Some(words) = row.as_object() else {
            self.problems.push(wrong("cases", row, "a list of tables"));
            return;
        };
        let said: Vec<String> = words
            .iter()
            .filter(|word| !matches!(word.key.value.as_str(), "name" | "expect" | "by" | "says"))
            .map(|word| format!("{} = {}", word.key.value, plain(&word.value)))
            .collect();
        let label = row.get("name").map_or_else(|| said.join(", "), plain);
        let events: Vec<Json> = events
            .iter()
            .map(|event| substituted(event, words, &mut self.problems))
            .collect();
        let steps = Steps::new(self, Some(words)).read(&events);
        cases.push(Case {
            name: format!("{name} ({label})"),
            span: row.span,
            steps,
        });
    }
}
