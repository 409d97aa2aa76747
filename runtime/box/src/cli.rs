//! The command line of `box`.

mod check;
mod prepare;
mod run;
mod schema;

use clap::{Args, Parser, Subcommand};
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

/// The box refused or failed.
const FAILED: i32 = 1;
/// The input was rejected: arguments, configuration or policy.
const REJECTED: i32 = 2;

/// Runs an agent in a kernel-enforced sandbox whose ways out all ask one policy.
#[derive(Parser)]
#[command(name = "box", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the workload of a box and wait for it to end
    Run(Run),
    /// Check a configuration and its policy, and list what would be reachable; start nothing
    Check(Check),
    /// What a policy is written with
    #[command(subcommand)]
    Policy(Policy),
}

#[derive(Subcommand)]
enum Policy {
    /// Ask the MCP servers of a box for their tools, each in its sandbox, and write the schema that rules about
    /// them need: put it beside the policy
    GenerateSchema(GenerateSchema),
}

#[derive(Args)]
struct GenerateSchema {
    /// The box.toml of the box
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where to write actions.cedarschema and events.dwschema
    #[arg(long, value_name = "DIR")]
    output_dir: PathBuf,
}

#[derive(Args)]
struct Run {
    /// The box.toml of the box
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Arguments appended to the command of `[agent]`
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
}

#[derive(Args)]
struct Check {
    /// The box.toml of the box
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command of this process; its exit status.
pub fn main() -> i32 {
    let ended = match Cli::parse().command {
        Command::Run(Run { config, arguments }) => run::run(&config, &arguments),
        Command::Check(Check { config }) => check::check(&config),
        Command::Policy(Policy::GenerateSchema(GenerateSchema { config, output_dir })) => {
            schema::generate(&config, &output_dir)
        }
    };
    ended.unwrap_or_else(|failure| {
        failure.print();
        failure.status
    })
}

/// Why a command ended early.
struct Failure {
    status: i32,
    /// Printed as it is.
    report: String,
    line: String,
}

impl Failure {
    fn failed(reason: impl Display) -> Failure {
        Failure {
            status: FAILED,
            report: String::new(),
            line: format!("error: {reason}"),
        }
    }

    /// Input that is not accepted, with the report that says why.
    fn rejected(report: String, line: String) -> Failure {
        Failure {
            status: REJECTED,
            report,
            line,
        }
    }

    fn print(&self) {
        if !self.report.is_empty() {
            // Whoever cannot be told cannot be told that either.
            let _ = write!(anstream::stderr(), "{}", self.report);
        }
        tell(&self.line);
    }
}

/// Tells the operator: every line on standard error, marked as the box's. The other streams are the workload's.
fn tell(text: &str) {
    let marked: String = text.lines().map(|line| format!("box: {line}\n")).collect();
    let _ = anstream::stderr().write_all(marked.as_bytes());
}
