//! `box run`: one box, from its first check to its last process.

use super::prepare::{self, Prepared, Purpose, disclose, prepare};
use super::{Failure, tell};
use crate::boxdir::{BoxDir, append};
use crate::broker;
use crate::checkpoint::{Checkpoints, Interpreter, Remotes, Servers, ShellCheckpoint};
use crate::config::{self, BoxConfig};
use crate::network::Network;
use crate::planning::{agent_workspace, plan_all};
use crate::policy::Loaded;
use crate::programs::Sandboxed;
use crate::report::{self, Detail};
use crate::signals::Signals;
use crate::veil::Veil;
use box_authority::Authority;
use box_authority::clock::Clock;
use box_authority::engine::PolicySet;
use box_authority::gate::{Caller, Gate};
use box_authority::records::{Records, RunIdentity};
use box_gateway::messages::Messages;
use box_mcp::catalogue::Allowance;
use box_mcp::relay::Policies;
use box_shell::{Programs, Shell};
use nix::sys::resource::{Resource, setrlimit};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long commands may take to wind up once the workload has ended.
const WIND_UP: Duration = Duration::from_secs(2);

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}

pub fn run(file: &Path, arguments: &[String]) -> Result<i32, Failure> {
    // First of all, while there is one thread.
    let signals = Signals::hold()
        .map_err(|e| Failure::failed(format!("signals cannot be held back: {e}")))?;
    let mut prepared = prepare(file, arguments, Purpose::Run)?;
    let box_dir = box_dir(&mut prepared, arguments)?;
    harden()?;
    let authority = Arc::new(authority(&prepared, &box_dir)?);
    let allowances = allowances(&prepared.config);
    let network = network(&prepared, &authority, &box_dir, &allowances)?;
    disclose(&prepared, Detail::Short);
    let status = workload(&prepared, &authority, &network, allowances, signals);
    authority.close();
    status
}

/// Makes the directory. Its canonical name may be another than the file's, and the plans must hold that one.
fn box_dir(prepared: &mut Prepared, arguments: &[String]) -> Result<BoxDir, Failure> {
    let made =
        BoxDir::prepare(&prepared.config.box_dir, prepared.host.uid).map_err(Failure::failed)?;
    prepared.config.box_dir = made.root().to_path_buf();
    // Again, because the lists are held apart from a directory that now exists.
    prepared.planned = plan_all(
        &prepared.config,
        arguments,
        &prepared.program,
        &prepared.host,
    )
    .map_err(|refusals| {
        Failure::failed(
            refusals
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
        )
    })?;
    let verb = if made.created { "created" } else { "ready" };
    tell(&format!(
        "box {} {verb} in {}",
        prepared.config.name,
        made.root().display()
    ));
    Ok(made)
}

/// The process that holds the authority leaves no memory behind and lets nobody look into it.
fn harden() -> Result<(), Failure> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)
        .map_err(|e| Failure::failed(format!("core dumps cannot be turned off: {e}")))?;
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false).map_err(|e| {
        Failure::failed(format!("tracing of this process cannot be turned off: {e}"))
    })?;
    Ok(())
}

fn authority(prepared: &Prepared, box_dir: &BoxDir) -> Result<Authority, Failure> {
    let (paths, out) = records(&prepared.config, box_dir)?;
    let run = RunIdentity {
        box_id: format!("box-{:016x}", config::hash(box_dir.root())),
        run_id: std::hash::RandomState::new().build_hasher().finish(),
    };
    let records = Records::new(out, run);
    let rules = rules(&prepared.policy, &prepared.config);
    let authority = Authority::open(&box_dir.private(), rules, Arc::new(WallClock), records)
        .map_err(Failure::failed)?;
    let recovered = authority.recovered();
    let unfinished = match recovered.unfinished {
        0 => String::new(),
        1 => "; 1 request of an earlier run had no end and counts as indeterminate".into(),
        n => format!("; {n} requests of an earlier run had no end and count as indeterminate"),
    };
    tell(&format!(
        "history: {} events{unfinished}; decisions are recorded in {}",
        recovered.events,
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(" and ")
    ));
    if let Some(reason) = &recovered.passed_over {
        tell(&format!(
            "the snapshot of the history was passed over: {reason}"
        ));
    }
    for rule in &recovered.waiting {
        tell(&rule.to_string());
    }
    Ok(authority)
}

fn rules(policy: &Loaded, config: &BoxConfig) -> PolicySet {
    let sources = std::slice::from_ref(&policy.source);
    PolicySet::new(&policy.checked, sources, &policy.service).keeping(config.keep_history)
}

/// Puts the policy as its file is now in the place of the one that decides. What is no policy changes nothing.
fn reload(authority: &Authority, config: &BoxConfig, tools: &Option<(PathBuf, String)>) {
    let refuse = |reason: &str| {
        authority.reject(reason);
        tell(&format!("the policy was not reloaded: {reason}"));
    };
    let policy = match prepare::policy(config) {
        Ok(policy) => policy,
        Err(failure) => {
            failure.print();
            authority.reject(&failure.line);
            return tell("the policy was not reloaded: the one before goes on deciding");
        }
    };
    if policy.tools.schema != *tools {
        return refuse("the schema of the MCP tools changed, which needs a new start of the box");
    }
    match authority.reload(rules(&policy, config)) {
        Ok(waiting) => {
            let told = report::policy(config.policy.as_deref(), policy.checked.rules.len());
            tell(&format!("reloaded, with its history: {told}"));
            for rule in waiting {
                tell(&rule.to_string());
            }
        }
        // It has been recorded.
        Err(error) => tell(&format!("the policy was not reloaded: {error}")),
    }
}

/// The files records go to, and one stream to all of them.
fn records(
    config: &BoxConfig,
    box_dir: &BoxDir,
) -> Result<(Vec<PathBuf>, Box<dyn Write + Send>), Failure> {
    let mut paths = config.telemetry.files.clone();
    if paths.is_empty() {
        paths.push(box_dir.records());
    }
    let mut files = Vec::new();
    for path in &paths {
        let file = append(path).map_err(|e| {
            Failure::failed(format!("the decision records in {}: {e}", path.display()))
        })?;
        files.push(file);
    }
    Ok((paths, Box::new(BufWriter::new(Each(files)))))
}

/// Writes everything to each of its files.
struct Each(Vec<File>);

impl Write for Each {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for file in &mut self.0 {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.iter_mut().try_for_each(Write::flush)
    }
}

fn network(
    prepared: &Prepared,
    authority: &Arc<Authority>,
    box_dir: &BoxDir,
    allowances: &BTreeMap<SmolStr, Allowance>,
) -> Result<Arc<Network>, Failure> {
    let policies: Arc<dyn Policies> = Arc::new(prepared.policy.tools.clone());
    let messages = Remotes::new(&prepared.config, policies, allowances)
        .map(|remotes| Arc::new(remotes) as Arc<dyn Messages>);
    let gate: Arc<dyn Gate> = Arc::<Authority>::clone(authority);
    let notices = append(&box_dir.notices())
        .map_err(|e| Failure::failed(format!("the notices of the network: {e}")))?;
    Network::start(&prepared.config, gate, &prepared.home, notices, messages)
        .map(Arc::new)
        .map_err(Failure::failed)
}

/// What listing tools may cost during this run, by the name of the server.
fn allowances(config: &BoxConfig) -> BTreeMap<SmolStr, Allowance> {
    let run = Allowance::default();
    let names = config.mcp.keys();
    names
        .map(|name| (SmolStr::from(name), run.another()))
        .collect()
}

fn workload(
    prepared: &Prepared,
    authority: &Arc<Authority>,
    network: &Arc<Network>,
    allowances: BTreeMap<SmolStr, Allowance>,
    signals: Signals,
) -> Result<i32, Failure> {
    let Some(agent) = prepared.planned.last() else {
        return Err(Failure::failed("there is no workload to run"));
    };
    let checkpoints = checkpoints(prepared, authority, network, allowances);
    let mut spec = agent.spec.clone();
    network.equip(&mut spec, &Caller::Agent);
    let plan = box_sandbox::plan::plan(&spec, &prepared.host).map_err(Failure::failed)?;
    tell("starting workload");
    let mut child = box_sandbox::launch(&plan, standard_streams()?, &prepared.program)
        .map_err(Failure::failed)?;
    let _reached = network
        .serve(&mut child, Caller::Agent)
        .map_err(|e| Failure::failed(format!("the gateway cannot serve: {e}")))?;
    let checkpoint: Arc<dyn broker::Runner> = Arc::new(checkpoints);
    let mut served = Vec::new();
    for listener in std::mem::take(&mut child.listeners) {
        let listening = broker::serve(listener, Caller::Agent, Arc::clone(&checkpoint));
        served
            .push(listening.map_err(|e| Failure::failed(format!("the broker cannot serve: {e}")))?);
    }
    let signaller = child.signaller();
    let pass_on = move |signal| {
        // A workload that has ended takes no signal.
        let _ = signaller.signal(signal as i32);
    };
    let (deciding, config) = (Arc::clone(authority), prepared.config.clone());
    let tools = prepared.policy.tools.schema.clone();
    let reload = move || reload(&deciding, &config, &tools);
    signals
        .forward(pass_on, reload)
        .map_err(|e| Failure::failed(format!("signals cannot be passed on: {e}")))?;
    let ended = child
        .wait()
        .map_err(|e| Failure::failed(format!("the workload cannot be waited for: {e}")))?;
    for broker in served {
        broker.wind_up(WIND_UP);
    }
    Ok(ended.as_code())
}

fn checkpoints(
    prepared: &Prepared,
    authority: &Arc<Authority>,
    network: &Arc<Network>,
    allowances: BTreeMap<SmolStr, Allowance>,
) -> Checkpoints {
    let Prepared {
        config,
        policy,
        host,
        home,
        program,
        ..
    } = prepared;
    let config = Arc::new(config.clone());
    let workspace = agent_workspace(&config).to_path_buf();
    let protected: Vec<PathBuf> = config.own().cloned().collect();
    let mut env = config.agent.env.clone();
    let agent_home = env
        .remove("HOME")
        .map_or_else(|| home.clone(), PathBuf::from);
    env.remove("PATH");
    // A command of the agent's finds the placeholders that the agent has.
    let placeholders = network.gateway().placeholders_for(&Caller::Agent);
    for (name, placeholder) in &placeholders {
        env.entry(name.clone())
            .or_insert_with(|| placeholder.clone());
    }
    let gate: Arc<dyn Gate> = Arc::<Authority>::clone(authority);
    let scripts = box_python::Config {
        home: home.clone(),
        agent_home: agent_home.clone(),
        workspace: workspace.clone(),
        protected: protected.clone(),
        worker: program.clone(),
        limits: box_python::Limits::default(),
    };
    let python = Arc::new(Interpreter::new(scripts, Arc::clone(&gate), network));
    let shell = box_shell::Config {
        home: home.clone(),
        agent_home,
        workspace: workspace.clone(),
        path: search_path(&config),
        protected,
        limits: box_shell::Limits::default(),
    };
    let programs: Arc<dyn Programs> = Arc::new(Sandboxed {
        config: Arc::clone(&config),
        host: host.clone(),
        launcher: program.clone(),
        network: Arc::clone(network),
        python: Arc::clone(&python),
    });
    Checkpoints {
        shell: ShellCheckpoint {
            shell: Shell::new(
                shell,
                Arc::new(Veil::new(Arc::clone(&gate), &placeholders)),
                programs,
            ),
            workspace,
            env,
        },
        python,
        servers: Servers {
            config,
            host: host.clone(),
            launcher: program.clone(),
            home: home.clone(),
            gate,
            network: Arc::clone(network),
            policies: Arc::new(policy.tools.clone()),
            allowances,
        },
    }
}

/// Where the shell looks bare names up: the operator's `PATH`, then where the tools are.
fn search_path(config: &BoxConfig) -> Vec<PathBuf> {
    let path = std::env::var("PATH")
        .ok()
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut folders: Vec<PathBuf> = path
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(PathBuf::from)
        .collect();
    for tool in config.tools.values() {
        if let Some(folder) = tool
            .program
            .parent()
            .filter(|folder| !folders.iter().any(|other| other == folder))
        {
            folders.push(folder.to_path_buf());
        }
    }
    folders
}

fn standard_streams() -> Result<[OwnedFd; 3], Failure> {
    let copy = |fd: std::os::fd::BorrowedFd<'_>| {
        fd.try_clone_to_owned()
            .map_err(|e| Failure::failed(format!("the standard streams: {e}")))
    };
    Ok([
        copy(std::io::stdin().as_fd())?,
        copy(std::io::stdout().as_fd())?,
        copy(std::io::stderr().as_fd())?,
    ])
}
