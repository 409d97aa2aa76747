//! Everything that can be refused before anything starts: the configuration, the policy, the sandboxes.

use super::{Failure, tell};
use crate::config::{self, BoxConfig};
use crate::planning::plan_all;
use crate::policy::{self, Loaded, Rejected};
use crate::report::{self, Planned};
use box_sandbox::host::Host;
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Severity};
use std::io::{IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// No configuration is longer, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// A box that may start.
pub struct Prepared {
    pub config: BoxConfig,
    pub policy: Loaded,
    pub host: Host,
    /// The operator's.
    pub home: PathBuf,
    /// This executable: the launcher of sandboxes, and the shell in them.
    pub program: PathBuf,
    /// The agent is the last.
    pub planned: Vec<Planned>,
}

/// What it is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Run,
    Check,
}

/// Reads and checks all of it. Warnings are printed.
pub fn prepare(file: &Path, arguments: &[String], purpose: Purpose) -> Result<Prepared, Failure> {
    let Configuration {
        config,
        name,
        text,
        home,
    } = configuration(file)?;
    not_enforced(&config, purpose, &name, &text)?;
    let policy = policy(&config)?;
    let program = program()?;
    let machine = machine(&config, &home);
    let planned = plan_all(&config, arguments, &program, &machine).map_err(|refusals| {
        let reasons: Vec<String> = refusals
            .iter()
            .flat_map(|refusal| {
                refusal
                    .to_string()
                    .lines()
                    .map(|line| format!("error: {line}"))
                    .collect::<Vec<_>>()
            })
            .collect();
        let line = format!("{name} is rejected: {}", count(reasons.len(), "error"));
        Failure::rejected(String::new(), format!("{}\n{line}", reasons.join("\n")))
    })?;
    Ok(Prepared {
        config,
        policy,
        host: machine,
        home,
        program,
        planned,
    })
}

/// A configuration and the text it came from.
pub struct Configuration {
    pub config: BoxConfig,
    /// What messages call the file.
    pub name: String,
    pub text: String,
    /// The operator's home.
    pub home: PathBuf,
}

pub fn configuration(file: &Path) -> Result<Configuration, Failure> {
    let (file, name, text) = source(file)?;
    let host = config_host()?;
    match config::read(&file, &text, &host) {
        Ok(config) => Ok(Configuration {
            config,
            name,
            text,
            home: host.home,
        }),
        Err(problems) => Err(rejected(&problems, &name, &text)),
    }
}

/// This executable.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::failed(format!("this program cannot be found: {e}")))
}

/// The machine as the sandboxes of a box see it.
pub fn machine(config: &BoxConfig, home: &Path) -> Host {
    let agent_home = config.agent.env.get("HOME").map(PathBuf::from);
    let mut machine = Host::this_machine(agent_home);
    if !machine.homes.iter().any(|known| known == home) {
        machine.homes.push(home.to_path_buf());
    }
    machine.terminal = std::io::stdin().is_terminal();
    machine
}

/// The lines about a box that `check` and `run` share.
pub fn disclose(prepared: &Prepared, detail: report::Detail) {
    let Prepared {
        config,
        policy,
        host,
        planned,
        ..
    } = prepared;
    tell(&report::policy(
        config.policy.as_deref(),
        policy.checked.rules.len(),
    ));
    for planned in planned {
        report::exposures(&planned.spec.name, &planned.spec.grants, &host.homes)
            .iter()
            .for_each(|line| tell(line));
    }
    if let Some((schema, _)) = &policy.tools.schema {
        tell(&report::schema(schema));
    }
    tell(&report::tools(config));
    for line in report::network(config)
        .iter()
        .chain(&report::servers(config))
    {
        tell(line);
    }
    for planned in planned {
        report::reach(planned, detail)
            .iter()
            .for_each(|line| tell(line));
    }
}

/// A file that asks for what this build does not enforce: a warning to whoever checks it, a refusal to run it.
fn not_enforced(
    config: &BoxConfig,
    purpose: Purpose,
    name: &str,
    text: &str,
) -> Result<(), Failure> {
    let mut problems = config.not_yet.clone();
    if problems.is_empty() {
        return Ok(());
    }
    if purpose == Purpose::Run {
        for problem in &mut problems {
            problem.severity = Severity::Error;
        }
        return Err(rejected(&problems, name, text));
    }
    let report = render(&problems, &[(name, text)], style());
    let _ = std::io::Write::write_all(&mut anstream::stderr(), report.as_bytes());
    Ok(())
}

fn count(n: usize, word: &str) -> String {
    if n == 1 {
        format!("1 {word}")
    } else {
        format!("{n} {word}s")
    }
}

fn rejected(problems: &[Diagnostic], name: &str, text: &str) -> Failure {
    let report = render(problems, &[(name, text)], style());
    Failure::rejected(
        report,
        format!("{name} is rejected: {}", policy::tally(problems)),
    )
}

/// `anstream` takes the colours out again where they do not belong.
fn style() -> Style {
    if std::io::stderr().is_terminal() {
        Style::Color
    } else {
        Style::Plain
    }
}

/// The canonical path of the configuration, its name in messages, and its text.
fn source(file: &Path) -> Result<(PathBuf, String, String), Failure> {
    let name = file.display().to_string();
    let refuse = |reason: String| {
        Failure::rejected(
            String::new(),
            format!("error: the configuration {name}: {reason}"),
        )
    };
    let canonical = file.canonicalize().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => refuse("there is no such file".into()),
        _ => refuse(e.to_string()),
    })?;
    let opened = std::fs::File::open(&canonical).map_err(|e| refuse(e.to_string()))?;
    let found = opened.metadata().map_err(|e| refuse(e.to_string()))?;
    if !found.is_file() {
        return Err(refuse("it is not a regular file".into()));
    }
    if found.nlink() != 1 {
        return Err(refuse(
            "it has a second name (a hard link), which could be changed unseen".into(),
        ));
    }
    let mut text = String::new();
    opened
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .map_err(|e| refuse(e.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(refuse(format!("it is longer than {LONGEST} bytes")));
    }
    Ok((canonical, name, text))
}

/// Reads and checks the policy. Warnings are printed.
pub fn policy(config: &BoxConfig) -> Result<Loaded, Failure> {
    let file = config.policy.as_deref();
    let cwd = std::env::current_dir().unwrap_or_default();
    let name = file.map_or_else(String::new, |file| {
        file.strip_prefix(&cwd)
            .unwrap_or(file)
            .display()
            .to_string()
    });
    match policy::load(file, name) {
        Ok(loaded) => {
            let warnings = &loaded.checked.diagnostics;
            if !warnings.is_empty() {
                let report = render(
                    warnings,
                    &[(&loaded.source.name, &loaded.source.text)],
                    style(),
                );
                let _ = std::io::Write::write_all(&mut anstream::stderr(), report.as_bytes());
            }
            Ok(loaded)
        }
        Err(Rejected {
            source,
            diagnostics,
        }) => {
            let mut failure = rejected(&diagnostics, &source.name, &source.text);
            let unknown = |found: &Diagnostic| found.code.starts_with("unknown-action");
            if !config.mcp.is_empty() && diagnostics.iter().any(unknown) {
                failure.line.push_str(
                    "\nhelp: rules about the tools of an MCP server need its schema beside the policy; \
                     `box policy generate-schema` writes it",
                );
            }
            Err(failure)
        }
    }
}

/// What the configuration takes from the environment of this process.
fn config_host() -> Result<config::Host, Failure> {
    let absolute = |name: &str| {
        std::env::var(name)
            .ok()
            .filter(|path| path.starts_with('/'))
    };
    let home =
        absolute("HOME").ok_or_else(|| Failure::failed("HOME must be set to an absolute path"))?;
    let home = Path::new(&home)
        .canonicalize()
        .map_err(|e| Failure::failed(format!("HOME={home}: {e}")))?;
    let state = absolute("XDG_STATE_HOME").map_or_else(|| home.join(".local/state"), PathBuf::from);
    let cwd = std::env::current_dir()
        .and_then(|cwd| cwd.canonicalize())
        .map_err(|e| Failure::failed(format!("the current directory: {e}")))?;
    Ok(config::Host {
        home,
        path: std::env::var("PATH").unwrap_or_default(),
        state: state.join("box"),
        cwd,
    })
}
