//! Decision records of a box as a test file: OTLP-JSON, one export a line.

use super::{RecordFault, braced, header, key, string};
use crate::suite::time;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One log record, as far as a test needs it.
struct Logged<'j> {
    time: i64,
    event: &'j str,
    attributes: &'j [Json],
}

impl Logged<'_> {
    fn attribute(&self, name: &str) -> Option<&Json> {
        let found = self
            .attributes
            .iter()
            .find(|attribute| attribute["key"] == name);
        found.map(|attribute| &attribute["value"])
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name)?.get("stringValue")?.as_str()
    }

    fn whole(&self, name: &str) -> Option<i64> {
        let value = self.attribute(name)?.get("intValue")?;
        value
            .as_str()
            .map_or_else(|| value.as_i64(), |digits| digits.parse().ok())
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        let values = self
            .attribute(name)
            .and_then(|value| value["arrayValue"]["values"].as_array());
        let texts = values.into_iter().flatten();
        texts
            .filter_map(|value| value["stringValue"].as_str())
            .collect()
    }
}

/// The text of a test file with one test: every decision of the records, as it was. Words that a record hides
/// stay hidden, so a rule that looks at them may decide otherwise.
pub fn from_decisions(text: &str, policies: &[String], title: &str) -> Result<String, RecordFault> {
    let mut out = header(policies, title);
    out.insert_str(
        0,
        "# Fields that records do not hold are plain here, and words they hide are `<redacted>`.\n",
    );
    let mut now: Option<i64> = None;
    let mut decisions = 0;
    // What each request was about, for its outcome.
    let mut asked = BTreeMap::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let fault = RecordFault::NotARecord { line: number + 1 };
        let export: Json = serde_json::from_str(line).map_err(|_| fault.clone())?;
        let records = logged(&export).ok_or(fault)?;
        for record in records {
            let Some(step) = step(&record, &mut asked) else {
                continue;
            };
            let later = record.time - now.unwrap_or(record.time);
            if later < 0 {
                return Err(RecordFault::BackInTime(number));
            }
            now = Some(record.time);
            let at = match later {
                0 => String::new(),
                later => format!("at = \"+{}\", ", time::text(later)),
            };
            decisions += 1;
            _ = writeln!(out, "  {{ {at}{} }},", step.join(", "));
        }
    }
    if decisions == 0 {
        return Err(RecordFault::NoDecisions);
    }
    out.push_str("]\n");
    Ok(out)
}

fn logged(export: &Json) -> Option<Vec<Logged<'_>>> {
    let mut found = Vec::new();
    for resource in export["resourceLogs"].as_array()? {
        for scope in resource["scopeLogs"].as_array()? {
            for record in scope["logRecords"].as_array()? {
                let nanoseconds: i64 = record["timeUnixNano"].as_str()?.parse().ok()?;
                found.push(Logged {
                    time: nanoseconds / 1_000_000_000,
                    event: record["eventName"].as_str().unwrap_or_default(),
                    attributes: record["attributes"].as_array().map_or(&[], Vec::as_slice),
                });
            }
        }
    }
    Some(found)
}

/// The keys of the step a record stands for; nothing for one that is neither decision nor outcome.
fn step(record: &Logged<'_>, asked: &mut BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    let request = record.text("strands.box.request.id");
    let action = record.text("strands.box.policy.action")?;
    let mut parts = vec![format!("action = {}", string(action))];
    match record.event {
        "strands.box.policy.decision" => {
            let said = about(record);
            parts.extend(said.iter().cloned());
            if let Some(request) = request {
                asked.insert(request.to_owned(), said);
            }
            let permitted = record.text("strands.box.policy.verdict")? == "permit";
            let by: Vec<String> = record
                .texts("strands.box.policy.determining.ids")
                .into_iter()
                .map(string)
                .collect();
            let verdict = if permitted { "allow" } else { "deny" };
            parts.push(format!("expect = \"{verdict}\""));
            match by.as_slice() {
                [] if permitted => {}
                [one] => parts.push(format!("by = {one}")),
                several => parts.push(format!("by = [{}]", several.join(", "))),
            }
        }
        "strands.box.policy.outcome" => {
            parts.push(format!(
                "kind = {}",
                string(record.text("strands.box.outcome.kind")?)
            ));
            parts.extend(
                request
                    .and_then(|id| asked.remove(id))
                    .into_iter()
                    .flatten(),
            );
            let output = record.attributes.iter().filter_map(|attribute| {
                let name = attribute["key"]
                    .as_str()?
                    .strip_prefix("strands.box.outcome.")?;
                let value = attribute["value"]["stringValue"].as_str()?;
                (name != "kind").then(|| match value.parse::<i64>() {
                    Ok(number) => format!("{} = {number}", key(name)),
                    Err(_) => format!("{} = {}", key(name), string(value)),
                })
            });
            let output: Vec<String> = output.collect();
            if !output.is_empty() {
                parts.push(format!("output = {}", braced(&output)));
            }
        }
        _ => return None,
    }
    Some(parts)
}

/// What a decision was about, as keys of a step.
fn about(record: &Logged<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut input = Vec::new();
    if let Some(program) = record.text("process.command") {
        let mut words = vec![program];
        words.extend(record.texts("process.command_args"));
        let line = shlex::try_join(words).unwrap_or_else(|_| program.to_owned());
        parts.push(format!("command = {}", string(&line)));
    }
    for (attribute, field) in [
        ("process.working_directory", "cwd"),
        ("file.path", "path"),
        ("server.address", "host"),
        ("http.request.method", "method"),
    ] {
        if let Some(text) = record.text(attribute) {
            input.push(format!("{field} = {}", string(text)));
        }
    }
    if let Some(port) = record.whole("server.port") {
        input.push(format!("port = {port}"));
    }
    if !input.is_empty() {
        parts.push(format!("input = {}", braced(&input)));
    }
    parts
}
