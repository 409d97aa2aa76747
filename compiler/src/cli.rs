//! The command line: what may be asked, where answers go, and what the process exits with.
//!
//! Exit status: 0 for success, 1 where the tool could not do its work (a missing file), 2 for rejected
//! input (a policy with errors, a trace that cannot be read, wrong arguments).

mod check;
mod check_parse;
mod diff;
mod explain;
mod explain_error;
mod fmt;
mod input;
mod lower;
mod policy;
mod repl;
mod replay;
mod schema;
mod test;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dogwood_compiler::compile::{Options, Source};
use dogwood_compiler::diagnostic::{Style, printable, render, to_json};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::suite::record::RecordFault;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "dogwood",
    version,
    about = "Check, explain and replay policies for agents",
    after_help = "Examples:\n  \
        dogwood check policy.dw                    are these rules sound?\n  \
        dogwood explain policy.dw                  what do they say, in plain English?\n  \
        dogwood fmt --write policy.dw              lay it out\n  \
        dogwood replay policy.dw --trace day.log   what would they have decided?\n\n\
        A file named `-` is standard input. Exit status: 0 success, 1 the tool failed, 2 the input was rejected."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check policies against their schema.
    #[command(
        visible_alias = "validate",
        after_help = "Examples:\n  \
            dogwood check policy.dw\n  \
            dogwood check base.dw team.dw --deny-warnings\n  \
            dogwood check policy.dw --policy-schema depot.cedarschema --event-schema depot.dwschema\n  \
            cat policy.dw | dogwood check - --format json\n\n\
            Without a schema option, the schema is that of the nearest box.toml at or above the policy,\n\
            else the built-in Box schema. Several files are one policy set."
    )]
    Check(check::Check),

    /// Check the syntax only; no schema is read.
    #[command(after_help = "Example:\n  dogwood check-parse policy.dw")]
    CheckParse(check_parse::CheckParse),

    /// Say what changed between two versions of a policy, in meaning and not in text.
    #[command(after_help = "Examples:\n  \
        dogwood diff old.dw new.dw\n  \
        dogwood diff old.dw new.dw --traces recorded/ --format json\n\n\
        A changed rule comes with the shortest trace found on which the two differ.")]
    Diff(diff::Diff),

    /// Say in plain English what each rule does, or why an event was denied.
    #[command(after_help = "Examples:\n  \
        dogwood explain policy.dw\n  \
        dogwood explain policy.dw --format json\n  \
        dogwood explain policy.dw --trace day.log          why was the last denial?\n  \
        dogwood explain policy.dw --trace day.log --at 12  why was event 12 decided so?\n  \
        dogwood explain policy.dw --trace day.log --html   the whole trace, drawn\n  \
        dogwood explain policy.dw --cost                   what does each rule hold and cost?\n  \
        dogwood explain policy.dw --graph | dot -Tsvg > network.svg")]
    Explain(explain::Explain),

    /// Say what the code of an error or warning means.
    #[command(after_help = "Example:\n  dogwood explain-error unguarded-optional")]
    ExplainError(explain_error::ExplainError),

    /// Lay policy files out, and print them.
    #[command(
        visible_alias = "format",
        after_help = "Examples:\n  \
            dogwood fmt policy.dw\n  \
            dogwood fmt --check *.dw\n  \
            dogwood fmt --write *.dw\n\n\
            A file that does not parse is an error, and nothing is printed."
    )]
    Fmt(fmt::Fmt),

    /// Print the rules as plain Cedar, with the schema they need.
    #[command(after_help = "Examples:\n  \
        dogwood lower policy.dw\n  \
        dogwood lower policy.dw --emit cedar-policies\n  \
        dogwood lower policy.dw --emit cedar-json --format json\n\n\
        A temporal block becomes a Boolean of the context, a provider call one of its attributes.")]
    Lower(lower::Lower),

    /// Check a schema by itself, or make one of MCP tools.
    Schema(schema::Schema),

    /// Decide every event of a trace, and print the verdicts.
    #[command(after_help = "Examples:\n  \
        dogwood replay policy.dw --trace day.log\n  \
        dogwood replay policy.dw --trace day.log --format json\n\n\
        Each decision is one line: its time, its position in the trace (all events count, from 0), the\n\
        verdict and the rules that determined it. The exit status does not depend on the verdicts.")]
    Replay(replay::Replay),

    /// Feed events by hand, and see each verdict and why.
    #[command(after_help = "Examples:\n  \
        dogwood repl policy.dw\n  \
        printf '$ git push\\n' | dogwood repl policy.dw")]
    Repl(repl::Repl),

    /// Run the test files beside policies.
    #[command(after_help = "Examples:\n  \
        dogwood test                                       every *.dwtest.toml at and below this folder\n  \
        dogwood test push.dwtest.toml --coverage\n  \
        dogwood test --record day.log policy.dw > day.dwtest.toml\n\n\
        A test lists events in short form, and what the policy should decide:\n\n  \
        [[test]]\n  \
        name = \"push waits for the tests\"\n  \
        events = [\n  \
        \u{20} { command = \"git push\", expect = \"deny\", by = \"push_after_tests\" },\n  \
        \u{20} { at = \"+5m\", command = \"run-tests\", status = 0 },\n  \
        \u{20} { at = \"+1m\", command = \"git push\", expect = \"allow\" },\n  \
        ]\n\n\
        Exit status: 0 all pass, 2 one fails or cannot be read.")]
    Test(test::Test),
}

/// The policy texts and what they are read against.
#[derive(Args, Default)]
struct PolicyArgs {
    /// Policy files; `-` is standard input. Several are one policy set.
    #[arg(required = true, value_name = "FILE")]
    policies: Vec<PathBuf>,

    /// Action schema (.cedarschema).
    #[arg(long, value_name = "FILE")]
    policy_schema: Option<PathBuf>,

    /// Event schema (.dwschema).
    #[arg(long, value_name = "FILE")]
    event_schema: Option<PathBuf>,

    /// A macro library in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    macros: Option<PathBuf>,

    /// Declarations of information providers (.json); their scripts are looked for beside the file.
    #[arg(long, value_name = "FILE")]
    providers: Option<PathBuf>,

    #[command(flatten)]
    experiments: Experiments,
}

/// What may still change.
#[derive(Args, Clone, Copy, Default)]
struct Experiments {
    /// Permit `+`, `-` and `*` inside temporal blocks.
    #[arg(long)]
    experimental_arithmetic: bool,
}

impl Experiments {
    fn options(self) -> Options {
        Options {
            arithmetic: self.experimental_arithmetic,
            ..Options::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

/// How a command ended when nothing stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Rejected,
}

/// Why a command could not give its answer.
#[derive(Debug)]
enum Failure {
    Read {
        path: String,
        error: std::io::Error,
    },
    NotText {
        path: String,
        line: usize,
        byte: usize,
    },
    /// A file was written to while it was read.
    Changed {
        path: String,
    },
    StdinTwice,
    /// The trace has no decision at that position.
    NoDecision {
        at: usize,
        events: usize,
    },
    NoSuchCode {
        code: String,
        nearest: Option<&'static str>,
    },
    /// No test file where one was looked for.
    NoTests,
    /// A file in a language that `fmt` does not lay out.
    NoLayout {
        path: String,
    },
    Record(RecordFault),
    Write(std::io::Error),
    Replace {
        path: String,
        error: std::io::Error,
    },
}

impl Failure {
    fn text(&self) -> String {
        match self {
            Failure::Read { path, error } => {
                let why = match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                    std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
                    _ => error.to_string(),
                };
                format!("cannot read {}: {why}", printable(path))
            }
            Failure::NotText { path, line, byte } => {
                format!(
                    "{}:{line}: this is not UTF-8 text (at byte {byte})",
                    printable(path)
                )
            }
            Failure::Changed { path } => {
                format!("{} changed while it was read", printable(path))
            }
            Failure::NoDecision { at, events } if at < events => {
                format!("event {at} of the trace is history only: nothing is decided at it")
            }
            Failure::NoDecision { at, events } => {
                format!(
                    "the trace has no event {at}: it has {}",
                    counted(*events, "event")
                )
            }
            Failure::NoSuchCode { code, nearest } => {
                let meant = nearest.map(|code| format!("; did you mean `{code}`?"));
                format!(
                    "there is no code `{}`{}",
                    printable(code),
                    meant.unwrap_or_default()
                )
            }
            Failure::StdinTwice => "standard input (`-`) can be named only once".to_owned(),
            Failure::NoTests => {
                "there is no test file here; their names end in `.dwtest.toml`".to_owned()
            }
            Failure::NoLayout { path } => format!(
                "{} cannot be laid out: only policies (.dw), action schemas (.cedarschema), event schemas \
                 (.dwschema) and test files (.dwtest.toml) can",
                printable(path)
            ),
            Failure::Record(fault) => format!("this cannot be made a test: {fault}"),
            Failure::Write(error) => format!("cannot write the answer: {error}"),
            Failure::Replace { path, error } => {
                format!("cannot write {}: {error}", printable(path))
            }
        }
    }

    fn status(&self) -> u8 {
        match self {
            Failure::Read { .. }
            | Failure::Changed { .. }
            | Failure::Write(_)
            | Failure::Replace { .. } => 1,
            Failure::NotText { .. }
            | Failure::StdinTwice
            | Failure::NoDecision { .. }
            | Failure::NoSuchCode { .. }
            | Failure::NoTests
            | Failure::NoLayout { .. }
            | Failure::Record(_) => 2,
        }
    }
}

pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let answer = match cli.command {
        Command::Check(command) => command.run(),
        Command::CheckParse(command) => command.run(),
        Command::Diff(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::ExplainError(command) => command.run(),
        Command::Fmt(command) => command.run(),
        Command::Lower(command) => command.run(),
        Command::Repl(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Schema(command) => command.run(),
        Command::Test(command) => command.run(),
    };
    match answer {
        Ok(Outcome::Accepted) => ExitCode::SUCCESS,
        Ok(Outcome::Rejected) => ExitCode::from(2),
        // Whoever reads has heard enough: `dogwood explain … | head`.
        Err(Failure::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            _ = writeln!(anstream::stderr(), "dogwood: error: {}", failure.text());
            ExitCode::from(failure.status())
        }
    }
}

/// Writes to standard output; colours go where they are welcome.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::Write)
}

fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// A remark beside the answer. That nobody may be there to read it is no failure.
fn remark(text: &str) {
    _ = writeln!(anstream::stderr(), "{}", printable(text));
}

/// Diagnostics about texts, drawn or as JSON.
struct Findings<'t> {
    diagnostics: &'t [Diagnostic],
    texts: Vec<(&'t str, &'t str)>,
}

impl<'t> Findings<'t> {
    fn new(diagnostics: &'t [Diagnostic], texts: &'t [Source]) -> Findings<'t> {
        let texts = texts
            .iter()
            .map(|text| (text.name.as_str(), text.text.as_str()))
            .collect();
        Findings { diagnostics, texts }
    }

    fn drawn(&self) -> String {
        // Colours that neither stream would show need not be drawn first.
        let shown = [
            anstream::AutoStream::choice(&std::io::stdout()),
            anstream::AutoStream::choice(&std::io::stderr()),
        ];
        let style = match shown {
            [anstream::ColorChoice::Never, anstream::ColorChoice::Never] => Style::Plain,
            _ => Style::Color,
        };
        render(self.diagnostics, &self.texts, style)
    }

    fn json(&self) -> serde_json::Value {
        to_json(self.diagnostics, &self.texts)
    }
}

/// Text inside XML or HTML; a control character that XML cannot hold becomes its picture.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// `1 rule`, `3 rules`.
fn counted(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}
