//! `dogwood replay`: what would these rules have decided?
//!
//! The trace is read once and never held: memory follows what the windows of the rules hold. The answer is kept back until the last line has turned out to be an
//! event, too. Where stamps step back in time, the trace is read again, with room for as much.

use super::policy::{Set, remark_drawn, with_first_error};
use super::{Failure, Findings, Format, Outcome, PolicyArgs, input, print_json};
use clap::Args;
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::event::strict::{Strict, StrictError};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::monitor::{Config, Decision, Monitor, RuleError, StepError, Verdict};
use dogwood_compiler::trace::{self, Keep, Lines, Room, TraceError};
use serde::Serialize;
use serde::ser::{Error, SerializeSeq, Serializer};
use serde_json::json;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufRead, BufWriter, Seek, Write};
use std::path::PathBuf;
use tempfile::SpooledTempFile;

#[derive(Args)]
pub struct Replay {
    #[command(flatten)]
    policy: PolicyArgs,

    /// The events, one a line; `-` is standard input, which is held in memory.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,

    /// Decide even where the rules do not fit their schemas.
    #[arg(long)]
    unchecked: bool,

    /// Decide as a box does: only events that are exactly what their schema says, time that never runs back,
    /// and a denial where a rule that could have decided cannot be evaluated.
    #[arg(long)]
    as_box: bool,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Replay {
    pub fn run(self) -> Result<Outcome, Failure> {
        self.policy.only_one_stdin(Some(&self.trace))?;
        let set = if self.unchecked {
            Set::parse(&self.policy)?
        } else {
            Set::check(&self.policy)?
        };
        let trace = input::Text::open(&self.trace)?;
        let rules = match set.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let (policy, _) = set.compiled(rules);
        let replay = |lateness| {
            let config = Config {
                lateness,
                explained: false,
            };
            let monitor = Monitor::new(policy.clone(), config);
            let as_box = self.as_box.then(|| AsBox {
                clock: i64::MIN,
                strict: Strict::new(monitor.policy().service()),
            });
            reply(&trace, monitor, as_box, self.format)
        };
        let mut replied = replay(0);
        if let Err(Stop::Late) = replied {
            let scan = trace::scan(trace.reader()?).map_err(|error| trace.failure(error))?;
            replied = if scan.sound {
                replay(scan.lateness)
            } else {
                Err(Stop::NoEvent)
            };
        }
        let mut reply = match replied {
            Ok(reply) => reply,
            Err(Stop::NoEvent) => {
                let source = trace.source()?;
                return match read_trace(&source, self.format)? {
                    Ok(_) => Err(trace.changed()),
                    Err(outcome) => Ok(outcome),
                };
            }
            Err(Stop::Late) => return Err(trace.changed()),
            Err(Stop::Failed(failure)) => return Err(failure),
        };
        let mut out = io::stdout().lock();
        reply
            .rewind()
            .and_then(|()| io::copy(&mut reply, &mut out))
            .and_then(|_| out.flush())
            .map_err(Failure::Write)?;
        Ok(Outcome::Accepted)
    }
}

/// Why a replay ends before the trace does.
enum Stop {
    /// An event is stamped earlier than there is room for.
    Late,
    /// A line is no event.
    NoEvent,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// More of an answer than so many bytes waits on disk.
const HELD: usize = 1 << 20;

/// The answer to a whole trace.
fn reply(
    trace: &input::Text,
    monitor: Monitor,
    as_box: Option<AsBox>,
    format: Format,
) -> Result<SpooledTempFile, Stop> {
    let mut out = BufWriter::with_capacity(1 << 16, SpooledTempFile::new(HELD));
    let run = Run {
        trace,
        lines: Lines::new(trace.reader()?),
        monitor,
        room: Room::default(),
        next: 0,
        as_box,
    };
    answer(run, format, &mut out)?;
    let failed = |error: io::IntoInnerError<_>| Failure::Write(error.into_error());
    Ok(out.into_inner().map_err(failed)?)
}

/// A trace on its way through a monitor.
struct Run<'t> {
    trace: &'t input::Text,
    lines: Lines<Box<dyn BufRead + 't>>,
    monitor: Monitor,
    /// With the event at hand.
    room: Room,
    /// The position of the next event.
    next: usize,
    as_box: Option<AsBox>,
}

/// What a box asks of events beside what the language does.
struct AsBox {
    /// The time of the last event.
    clock: i64,
    strict: Strict,
}

/// A decision and where in the trace it stands.
struct Decided {
    position: usize,
    time: i64,
    decision: Decision,
    /// Why a box does not take the event: no rule decides it, and it is no part of the history.
    misfit: Option<StrictError>,
    /// Whether it is a request at all, and not something that is only recorded.
    asked: bool,
}

impl Run<'_> {
    /// Whether there is one more.
    fn next_event(&mut self) -> Result<bool, Stop> {
        let line = self.lines.next_line();
        let Some((_, line)) = line.map_err(|error| self.trace.failure(error))? else {
            return Ok(false);
        };
        // A box looks at all of an event.
        let as_box = self.as_box.is_some();
        let read = self.room.read(line, |action, kind| match as_box {
            true => Keep::All,
            false => self.monitor.reads(action, kind),
        });
        read.map(|()| true).map_err(|_| Stop::NoEvent)
    }

    /// The next decision; nothing at the end of the trace.
    fn decide(&mut self) -> Result<Option<Decided>, Stop> {
        while self.next_event()? {
            let position = self.next;
            self.next += 1;
            if let Some(decided) = self.take(position)? {
                return Ok(Some(decided));
            }
        }
        Ok(None)
    }

    fn take(&mut self, position: usize) -> Result<Option<Decided>, Stop> {
        let event = &mut self.room.event;
        if let Some(AsBox { clock, strict }) = &mut self.as_box {
            event.time = event.time.max(*clock);
            *clock = event.time;
            if let Err(misfit) = strict.check(event) {
                return Ok(Some(Decided {
                    position,
                    time: event.time,
                    decision: Decision {
                        verdict: Verdict::Deny,
                        rules: Vec::new(),
                        errors: Vec::new(),
                    },
                    misfit: Some(misfit),
                    asked: self.monitor.policy().decides(&event.kind),
                }));
            }
        }
        let decision = self.monitor.step(event);
        let Some(mut decision) = decision.map_err(|StepError::Late { .. }| Stop::Late)? else {
            return Ok(None);
        };
        // What could not be evaluated might have forbidden it.
        if self.as_box.is_some() && decision.allowed() && !decision.errors.is_empty() {
            decision.verdict = Verdict::Deny;
            decision.rules.clear();
        }
        Ok(Some(Decided {
            position,
            time: event.time,
            decision,
            misfit: None,
            asked: true,
        }))
    }
}

fn answer(mut run: Run<'_>, format: Format, mut out: &mut impl Write) -> Result<(), Stop> {
    match format {
        Format::Human => {
            while let Some(decided) = run.decide()? {
                match &decided.misfit {
                    Some(misfit) => write!(out, "{}", decided.not_taken(misfit)),
                    None => write!(out, "{}", decided.line()),
                }
                .map_err(Failure::Write)?;
            }
        }
        Format::Json => {
            let verdicts = Verdicts(RefCell::new(Told { run, stop: None }));
            let written = serde_json::to_writer_pretty(
                &mut out,
                &Answer {
                    verdicts: &verdicts,
                },
            );
            if let Some(stop) = verdicts.0.into_inner().stop {
                return Err(stop);
            }
            written.map_err(|error| Failure::Write(error.into()))?;
            out.write_all(b"\n").map_err(Failure::Write)?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Answer<'v, 't> {
    verdicts: &'v Verdicts<'t>,
}

/// The decisions as a list, each made when it is written.
struct Verdicts<'t>(RefCell<Told<'t>>);

struct Told<'t> {
    run: Run<'t>,
    stop: Option<Stop>,
}

impl Serialize for Verdicts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut told = self.0.borrow_mut();
        let mut list = to.serialize_seq(None)?;
        loop {
            match told.run.decide() {
                Ok(Some(decided)) => list.serialize_element(&decided)?,
                Ok(None) => return list.end(),
                Err(stop) => {
                    told.stop = Some(stop);
                    return Err(S::Error::custom("the trace cannot be read on"));
                }
            }
        }
    }
}

impl Serialize for Decided {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shape<'d> {
            index: usize,
            timestamp: i64,
            verdict: &'static str,
            determining_rules: &'d [usize],
            errors: Vec<String>,
        }
        let allowed = self.decision.allowed();
        let shape = Shape {
            index: self.position,
            timestamp: self.time,
            verdict: match (self.asked, allowed) {
                (true, true) => "allow",
                (true, false) => "deny",
                (false, _) => "not recorded",
            },
            determining_rules: &self.decision.rules,
            errors: self.errors(),
        };
        shape.serialize(to)
    }
}

impl Decided {
    fn errors(&self) -> Vec<String> {
        let misfit = self.misfit.iter().map(ToString::to_string);
        misfit
            .chain(self.decision.errors.iter().map(error))
            .collect()
    }

    fn not_taken(&self, misfit: &StrictError) -> String {
        let verdict = if self.asked { "DENY, " } else { "" };
        let (time, position, misfit) = (self.time, self.position, misfit.to_string());
        let misfit = printable(&misfit);
        format!("@{time} (time point {position}): {verdict}not recorded\n    error: {misfit}\n")
    }

    fn line(&self) -> Line<'_> {
        Line {
            position: self.position,
            time: self.time,
            decision: &self.decision,
        }
    }
}

/// A decision in words: one line, and one more for each error.
pub(super) struct Line<'d> {
    pub position: usize,
    pub time: i64,
    pub decision: &'d Decision,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line {
            position,
            time,
            decision,
        } = self;
        let verdict = if decision.allowed() { "ALLOW" } else { "DENY" };
        write!(f, "@{time} (time point {position}): {verdict}")?;
        for (at, rule) in decision.rules.iter().enumerate() {
            f.write_str(if at == 0 { "  [rules: " } else { ", " })?;
            write!(f, "{rule}")?;
        }
        f.write_str(if decision.rules.is_empty() {
            "\n"
        } else {
            "]\n"
        })?;
        for found in &decision.errors {
            writeln!(f, "    error: {}", printable(&error(found)))?;
        }
        Ok(())
    }
}

pub(super) fn error(found: &RuleError) -> String {
    match found.rule {
        Some(rule) => format!("rule {rule}: {}", found.error),
        None => found.error.to_string(),
    }
}

/// The events of a trace, or the answer of a command that cannot go on without them.
pub(super) fn read_trace(
    trace: &Source,
    format: Format,
) -> Result<Result<Vec<Event>, Outcome>, Failure> {
    let (events, errors) = trace::parse(&trace.text);
    if errors.is_empty() {
        Ok(Ok(events))
    } else {
        reject(trace, &errors, format).map(Err)
    }
}

fn reject(trace: &Source, errors: &[TraceError], format: Format) -> Result<Outcome, Failure> {
    let found: Vec<Diagnostic> = errors
        .iter()
        .map(|error| {
            let at = place(&trace.text, error.line, error.column);
            Diagnostic::error("trace", Span::at(at), error.problem.to_string())
        })
        .collect();
    let texts = std::slice::from_ref(trace);
    let findings = Findings::new(&found, texts);
    match format {
        Format::Human => remark_drawn(&findings.drawn()),
        Format::Json => {
            let answer = json!({ "passed": false, "errors": findings.json() });
            print_json(&with_first_error(answer))?;
        }
    }
    Ok(Outcome::Rejected)
}

/// The byte at which a character of a line stands; both count from 1.
fn place(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = text.get(start..).unwrap_or_default();
    let within = rest
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(rest.len(), |(at, _)| at);
    start + within
}
