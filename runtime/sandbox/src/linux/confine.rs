//! The workload on its way to its program: each step takes something away, and the last is `execve`.

use super::channel::{self, Report};
use super::{At, Fault, attest, kernel, seccomp};
use crate::launch::Step;
use crate::plan::{Landlock, Limits, Right, SandboxPlan};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, setsid};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// The newest ABI whose rights are put to use.
pub const NEWEST_LANDLOCK: u32 = 7;

/// Confines this process and executes the program; returns only what went wrong.
pub fn workload(plan: &SandboxPlan, env: &[(String, String)], control: &OwnedFd) -> Fault {
    match run(plan, env, control.as_fd()) {
        Ok(never) => match never {},
        Err(fault) => fault,
    }
}

fn run(
    plan: &SandboxPlan,
    env: &[(String, String)],
    control: BorrowedFd,
) -> Result<Infallible, Fault> {
    if !plan.terminal {
        setsid().at(Step::Session)?;
    }
    kernel::default_signals();
    kernel::block_signals(false).at(Step::Session)?;
    limits(&plan.limits)?;
    umask(Mode::from_bits_truncate(plan.umask));
    chdir(&plan.cwd).at_path(Step::WorkingDirectory, &plan.cwd)?;
    let program = kernel::c_path(&plan.program).at_path(Step::Execute, &plan.program)?;
    let argv = strings(plan.argv.iter().cloned())?;
    let env = strings(env.iter().map(|(name, value)| format!("{name}={value}")))?;
    kernel::drop_capabilities().at(Step::Capabilities)?;
    prctl::set_no_new_privs().at(Step::NoNewPrivileges)?;
    let enforced = match &plan.landlock {
        Some(landlock) => restrict(landlock, plan.terminal)?,
        None => 0,
    };
    seccomp::install_workload(&plan.identity)?;
    let attestation = attest::read(enforced)?;
    channel::send(control, &Report::Attested(attestation), None).at(Step::Attest)?;
    let mut gate = [0];
    let opened = loop {
        match nix::unistd::read(control, &mut gate) {
            Err(Errno::EINTR) => {}
            other => break other.at(Step::Attest)?,
        }
    };
    if opened != 1 {
        return Err(Errno::ECANCELED).at(Step::Attest);
    }
    Err(kernel::execute(&program, &argv, &env)).at_path(Step::Execute, &plan.program)
}

fn strings(texts: impl Iterator<Item = String>) -> Result<Vec<CString>, Fault> {
    texts
        .map(|text| {
            CString::new(text)
                .map_err(|_| Errno::EINVAL)
                .at(Step::Execute)
        })
        .collect()
}

/// Lowers limits; one that the caller had lower stays.
fn limits(limits: &Limits) -> Result<(), Fault> {
    for (resource, most) in [
        (Resource::RLIMIT_CORE, limits.core),
        (Resource::RLIMIT_NPROC, limits.processes),
        (Resource::RLIMIT_NOFILE, limits.open_files),
    ] {
        let (_, hard) = getrlimit(resource).at(Step::Limits)?;
        let most = most.min(hard);
        setrlimit(resource, most, most).at(Step::Limits)?;
    }
    Ok(())
}

/// Applies the cells, and says which ABI is enforced in full.
fn restrict(plan: &Landlock, terminal: bool) -> Result<u32, Fault> {
    let abi = match plan.abi {
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        NEWEST_LANDLOCK => ABI::V7,
        _ => return Err(Errno::ENOTSUP).at(Step::Landlock),
    };
    let mut rules = ruleset(abi).map_err(landlock_errno).at(Step::Landlock)?;
    for (path, rights) in &plan.cells {
        let opened = match PathFd::new(path) {
            Ok(opened) => opened,
            // Hidden by a mask: there is nothing to give rights on.
            Err(_) if !path.exists() => continue,
            Err(_) => return Err(Errno::last()).at_path(Step::Landlock, path),
        };
        rules = rules
            .add_rule(PathBeneath::new(opened, access(rights, abi)))
            .map_err(landlock_errno)
            .at_path(Step::Landlock, path)?;
    }
    rules = stdio(rules, abi, terminal)?;
    let status = rules
        .restrict_self()
        .map_err(landlock_errno)
        .at(Step::Landlock)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(plan.abi)
    } else {
        Err(Errno::ENOTSUP).at(Step::Landlock)
    }
}

fn ruleset(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    let scopes = Scope::from_all(abi);
    let rules = if scopes.is_empty() {
        rules
    } else {
        rules.scope(scopes)?
    };
    rules.create()
}

/// A file or terminal that is standard input or output may be opened again through `/dev/stdin` and its
/// like, in the mode it came in.
fn stdio(mut rules: RulesetCreated, abi: ABI, terminal: bool) -> Result<RulesetCreated, Fault> {
    for raw in 0..=2 as RawFd {
        let path = format!("/proc/self/fd/{raw}");
        let Ok(found) = std::fs::metadata(&path) else {
            continue;
        };
        let device = std::os::unix::fs::FileTypeExt::is_char_device(&found.file_type());
        let Some(mode) = kernel::access_mode(raw).filter(|_| found.is_file() || device) else {
            continue;
        };
        let mut rights = BTreeSet::new();
        if terminal && device {
            rights.insert(Right::Control);
        }
        if mode != libc::O_WRONLY {
            rights.insert(Right::ReadFile);
        }
        if mode != libc::O_RDONLY {
            rights.insert(Right::WriteFile);
        }
        let opened = PathFd::new(&path)
            .map_err(|_| Errno::last())
            .at_path(Step::Landlock, Path::new(&path))?;
        rules = rules
            .add_rule(PathBeneath::new(opened, access(&rights, abi)))
            .map_err(landlock_errno)
            .at_path(Step::Landlock, Path::new(&path))?;
    }
    Ok(rules)
}

fn access(rights: &BTreeSet<Right>, abi: ABI) -> BitFlags<AccessFs> {
    let mut access = BitFlags::empty();
    for right in rights {
        access |= match right {
            Right::ReadFile => BitFlags::from(AccessFs::ReadFile),
            Right::ReadDir => AccessFs::ReadDir.into(),
            Right::Execute => AccessFs::Execute.into(),
            // Needs ABI 5; before it nothing withholds it.
            Right::Control => AccessFs::IoctlDev.into(),
            Right::WriteFile => AccessFs::WriteFile | AccessFs::Truncate,
            Right::Change => {
                AccessFs::MakeReg
                    | AccessFs::MakeDir
                    | AccessFs::MakeSym
                    | AccessFs::RemoveFile
                    | AccessFs::RemoveDir
                    | AccessFs::Refer
            }
        };
    }
    access & AccessFs::from_all(abi)
}

/// The crate's errors keep the system's inside; the number is the last one set on this thread.
fn landlock_errno(_error: RulesetError) -> Errno {
    match Errno::last() {
        Errno::UnknownErrno => Errno::ENOTSUP,
        errno => errno,
    }
}
