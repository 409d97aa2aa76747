//! Decision records: one OTLP-JSON log export a line, for people and collectors. Nothing is decided from them.

use crate::action::Action;
use crate::denial::{Denial, DenyCause, RuleName};
use crate::gate::Caller;
use serde::Serialize;
use smol_str::{SmolStr, format_smolstr};
use std::borrow::Cow;
use std::io::Write;

/// No attribute is longer, in bytes.
const LONGEST: usize = 4096;
/// No record has more.
const MOST_ATTRIBUTES: usize = 16;
/// No more arguments of a command are recorded.
const MOST_ARGUMENTS: usize = 64;

/// Which box and which run of it.
#[derive(Clone, Debug)]
pub struct RunIdentity {
    /// `box-` and 16 hex digits, the same for every run of one box directory.
    pub box_id: String,
    /// Different for every run.
    pub run_id: u64,
}

/// Where records go: the file of the box, opened for appending.
pub struct Records {
    out: Box<dyn Write + Send>,
    box_id: String,
    /// 16 hex digits.
    run_id: String,
    /// The text of the policy: a word it quotes is no secret of the agent's.
    policy: String,
    /// Decisions and outcomes that are told and not written yet.
    lines: Vec<u8>,
}

/// A decision as it is recorded.
pub struct Decided<'d> {
    pub time: i64,
    pub request_id: &'d str,
    pub caller: &'d Caller,
    pub action: &'d Action,
    pub verdict: Result<(), &'d Denial>,
    /// The rule that governs, if one does.
    pub rule: Option<(&'d RuleName, Option<&'d SmolStr>)>,
    pub determining: Vec<String>,
}

/// The end of a request as it is recorded.
pub struct Ended {
    /// The number of the request.
    pub sequence: u64,
    pub time: i64,
    /// As [`Action::name`] says it.
    pub action: SmolStr,
    pub kind: SmolStr,
    /// The name of what came out, and what it was.
    pub output: Option<(SmolStr, SmolStr)>,
}

impl Records {
    pub fn new(out: Box<dyn Write + Send>, run: RunIdentity) -> Records {
        Records {
            out,
            box_id: run.box_id,
            run_id: format!("{:016x}", run.run_id),
            policy: String::new(),
            lines: Vec::new(),
        }
    }

    /// Arguments that `policy` quotes are recorded as they are from now on.
    pub fn quote(&mut self, policy: String) {
        self.policy = policy;
    }

    /// Written by `flush`.
    pub fn decision(&mut self, sequence: u64, decided: &Decided<'_>) -> std::io::Result<()> {
        let denied = decided.verdict.err();
        let mut attributes = Vec::with_capacity(MOST_ATTRIBUTES);
        attributes.extend([
            text("strands.box.policy.action", decided.action.name()),
            text("strands.box.policy.resource", decided.action.target()),
            text(
                "strands.box.policy.verdict",
                if denied.is_some() { "deny" } else { "permit" },
            ),
            text(
                "strands.box.policy.cause",
                denied.map_or("permitted", |denial| cause(&denial.cause)),
            ),
        ]);
        if let Some(denial) = denied {
            attributes.push(text("strands.box.policy.reason", denial.to_string()));
        }
        attributes.push(text("strands.box.policy.principal", "Box::Agent::\"self\""));
        attributes.push(text("strands.box.policy.rule", governing(decided)));
        if let Some((_, Some(description))) = decided.rule {
            attributes.push(text("strands.box.policy.description", description.as_str()));
        }
        attributes.push(text(
            "strands.box.policy.category",
            category(decided.action),
        ));
        if !decided.determining.is_empty() {
            attributes.push(texts(
                "strands.box.policy.determining.ids",
                decided.determining.iter().map(String::as_str),
            ));
        }
        if let Some(Denial {
            cause: DenyCause::Fault(_),
            ..
        }) = denied
        {
            attributes.push(text("error.type", "strands.box.policy.evaluation_error"));
        }
        if !decided.request_id.is_empty() {
            attributes.push(text("strands.box.request.id", decided.request_id));
        }
        attributes.push(text("strands.box.caller", caller(decided.caller)));
        attributes.extend(about(decided.action, &self.policy));
        let severity = if denied.is_some() {
            ("DENY", 13)
        } else {
            ("PERMIT", 9)
        };
        self.log(
            "strands-box.policy",
            "strands.box.policy.decision",
            sequence,
            decided.time,
            severity,
            attributes,
        )
    }

    /// How a permitted request ended.
    /// Written by `flush`.
    pub fn outcome(&mut self, ended: &Ended) -> std::io::Result<()> {
        let request_id = format_smolstr!("{}", ended.sequence);
        let mut attributes = vec![
            text("strands.box.policy.action", ended.action.as_str()),
            text("strands.box.outcome.kind", ended.kind.as_str()),
            text("strands.box.request.id", request_id.as_str()),
        ];
        if let Some((field, value)) = &ended.output {
            let key = format!("strands.box.outcome.{field}");
            attributes.push(text(key, value.as_str()));
        }
        self.log(
            "strands-box.policy",
            "strands.box.policy.outcome",
            ended.sequence,
            ended.time,
            ("INFO", 9),
            attributes,
        )
    }

    /// What the box itself did: `box_started`, `policy_installed`, `box_stopped`. Written at once.
    pub fn control(
        &mut self,
        time: i64,
        operation: &str,
        outcome: &str,
        subject: &str,
    ) -> std::io::Result<()> {
        let held = std::mem::take(&mut self.lines);
        let told = self.operation(time, operation, outcome, subject);
        let written = told.and_then(|()| self.flush());
        self.lines = held;
        written
    }

    /// An outcome that does not fit the schema. Written by `flush`.
    pub fn misfit(&mut self, time: i64, reason: &str) -> std::io::Result<()> {
        self.operation(time, "outcome_misfit", "refused", reason)
    }

    fn operation(
        &mut self,
        time: i64,
        operation: &str,
        outcome: &str,
        subject: &str,
    ) -> std::io::Result<()> {
        let attributes = vec![
            text("strands.box.control.operation", operation),
            text("strands.box.control.outcome", outcome),
            text("strands.box.control.subject", subject),
        ];
        self.log(
            "strands-box.control",
            "strands.box.control",
            0,
            time,
            ("INFO", 9),
            attributes,
        )
    }

    fn log(
        &mut self,
        scope: &str,
        event: &str,
        sequence: u64,
        time: i64,
        (severity, number): (&str, u8),
        attributes: Vec<Attribute<'_>>,
    ) -> std::io::Result<()> {
        let run_id = &self.run_id;
        let span_id = (sequence > 0).then(|| format!("{sequence:016x}"));
        let export = Export {
            resource_logs: [ResourceLogs {
                resource: Resource {
                    attributes: [
                        text("service.name", "strands-box"),
                        text("strands.box.name", self.box_id.as_str()),
                        text("strands.box.source", "box"),
                        text("strands.box.run.id", run_id.as_str()),
                    ],
                },
                scope_logs: [ScopeLogs {
                    scope: Scope { name: scope },
                    log_records: [LogRecord {
                        time_unix_nano: format!("{time}000000000"),
                        severity_number: number,
                        severity_text: severity,
                        event_name: event,
                        attributes,
                        trace_id: span_id.as_ref().map(|span| format!("{run_id}{span}")),
                        span_id,
                    }],
                }],
            }],
        };
        serde_json::to_writer(&mut self.lines, &export)?;
        self.lines.push(b'\n');
        Ok(())
    }

    /// Writes what was told.
    pub fn flush(&mut self) -> std::io::Result<()> {
        let written = self.out.write_all(&self.lines);
        self.lines.clear();
        written.and_then(|()| self.out.flush())
    }

    /// What was told is not written.
    pub fn forget(&mut self) {
        self.lines.clear();
    }
}

/// One line: an `ExportLogsServiceRequest` of OTLP in its JSON encoding.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Export<'r> {
    resource_logs: [ResourceLogs<'r>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs<'r> {
    resource: Resource<'r>,
    scope_logs: [ScopeLogs<'r>; 1],
}

#[derive(Serialize)]
struct Resource<'r> {
    attributes: [Attribute<'r>; 4],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs<'r> {
    scope: Scope<'r>,
    log_records: [LogRecord<'r>; 1],
}

#[derive(Serialize)]
struct Scope<'r> {
    name: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogRecord<'r> {
    time_unix_nano: String,
    severity_number: u8,
    severity_text: &'r str,
    event_name: &'r str,
    attributes: Vec<Attribute<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
}

#[derive(Serialize)]
struct Attribute<'r> {
    key: Cow<'r, str>,
    value: AnyValue<'r>,
}

/// `AnyValue` of OTLP.
#[derive(Serialize)]
enum AnyValue<'r> {
    #[serde(rename = "stringValue")]
    Text(Cow<'r, str>),
    /// As text: JSON has no 64-bit numbers.
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "arrayValue")]
    Array { values: Vec<AnyValue<'r>> },
}

fn cause(cause: &DenyCause) -> &'static str {
    match cause {
        DenyCause::Forbidden { .. } => "forbidden",
        DenyCause::NoPermit { .. } => "no_match",
        DenyCause::Fault(_) => "internal_fault",
        DenyCause::Enforcement { .. } => "enforcement",
    }
}

fn governing(decided: &Decided<'_>) -> String {
    match (
        decided.verdict.err().map(|denial| &denial.cause),
        decided.rule,
    ) {
        (Some(DenyCause::Enforcement { gate, .. }), _) => format!("enforcement:{gate}"),
        (Some(DenyCause::NoPermit { .. }), _) => "<default-deny>".into(),
        (_, Some((name, _))) => name.to_string(),
        (None, None) => "<no-rule>".into(),
        (Some(_), None) => "<fault>".into(),
    }
}

pub(crate) fn caller(caller: &Caller) -> String {
    match caller {
        Caller::Agent => "agent".into(),
        Caller::Tool(label) => format!("tool.{label}"),
        Caller::McpServer(label) => format!("mcp.{label}"),
    }
}

fn category(action: &Action) -> &str {
    match action {
        Action::Tool { .. } => "tool",
        _ => action.name().split(':').next().unwrap_or_default(),
    }
}

/// The attributes of one family of actions.
fn about<'r>(action: &'r Action, policy: &str) -> Vec<Attribute<'r>> {
    match action {
        Action::FsRead { path, .. }
        | Action::FsWrite { path, .. }
        | Action::FsDelete { path, .. }
        | Action::FsMove { path } => vec![text("file.path", path.as_str())],
        Action::ShellExec(command) | Action::ShellSpawn(crate::action::Spawn { command, .. }) => {
            let arguments = command
                .words
                .iter()
                .skip(1)
                .take(MOST_ARGUMENTS)
                .map(|word| shown(word, policy));
            vec![
                text("process.command", command.program.as_str()),
                texts("process.command_args", arguments),
                text("process.working_directory", command.cwd.as_str()),
            ]
        }
        Action::NetConnect { host, port, .. } => {
            vec![
                text("server.address", host.as_str()),
                whole("server.port", *port),
            ]
        }
        Action::HttpRequest {
            host, port, method, ..
        } => vec![
            text("server.address", host.as_str()),
            whole("server.port", *port),
            text("http.request.method", method.as_str()),
        ],
        Action::McpCall { .. } | Action::Tool { .. } => Vec::new(),
    }
}

/// A word of a command as records show it. Which words stood in the script as written and which came out
/// of a variable is not known here, so every word counts as expanded: flags are shown, and words that the
/// policy itself quotes; other values are not.
fn shown<'w>(word: &'w str, policy: &str) -> Cow<'w, str> {
    if !word.is_empty() && policy.contains(&format!("\"{word}\"")) {
        return word.into();
    }
    const REDACTED: &str = "<redacted>";
    let (name, value) = match word.split_once('=') {
        Some((name, _)) => (name, true),
        None => (word, false),
    };
    let short = name.len() == 2
        && name.starts_with('-')
        && name.bytes().all(|b| b == b'-' || b.is_ascii_alphabetic());
    let long = name.strip_prefix("--").is_some_and(|rest| {
        !rest.is_empty()
            && rest.len() <= 32
            && rest.bytes().all(|b| b == b'-' || b.is_ascii_lowercase())
    });
    match (long, short && !value) {
        (true, _) if value => format!("{name}={REDACTED}").into(),
        (true, _) | (_, true) => name.into(),
        _ => REDACTED.into(),
    }
}

fn text<'r>(key: impl Into<Cow<'r, str>>, value: impl Into<Cow<'r, str>>) -> Attribute<'r> {
    Attribute {
        key: key.into(),
        value: AnyValue::Text(cut(value.into())),
    }
}

fn texts<'r, V: Into<Cow<'r, str>>>(
    key: &'r str,
    values: impl Iterator<Item = V>,
) -> Attribute<'r> {
    let values = values.map(|value| AnyValue::Text(cut(value.into())));
    Attribute {
        key: key.into(),
        value: AnyValue::Array {
            values: values.collect(),
        },
    }
}

fn whole(key: &str, value: i64) -> Attribute<'_> {
    Attribute {
        key: key.into(),
        value: AnyValue::Whole(value.to_string()),
    }
}

fn cut(value: Cow<'_, str>) -> Cow<'_, str> {
    if value.len() <= LONGEST {
        return value;
    }
    let end = (0..=LONGEST)
        .rev()
        .find(|end| value.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}… (truncated)", value.get(..end).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests {
    use super::{cut, shown};

    #[test]
    fn arguments_show_flags_and_words_of_the_policy_and_hide_values() {
        let words = [
            "-v",
            "--force",
            "--token=abc",
            "push",
            "-p5ecret",
            "--Secret",
            "-x=1",
            "--",
            "-",
            "ush",
            "",
        ];
        let policy = r#"context.input.arg1 == "push""#;
        let shown: Vec<_> = words.iter().map(|word| shown(word, policy)).collect();
        insta::assert_snapshot!(shown.join(" "), @"-v --force --token=<redacted> push <redacted> <redacted> <redacted> -- <redacted> <redacted> <redacted>");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let long = "é".repeat(4096);
        let short = cut(long.as_str().into());
        assert!(short.ends_with("… (truncated)"), "{}", short.len());
        assert!(short.len() < 4200);
        assert_eq!(cut("short".into()), "short");
    }
}
