//! What a worker takes away from itself: every descriptor but its socket, time and memory without bound, and
//! every system call that is not needed to compute and to talk on that socket. It cannot open, connect, make a
//! process or map a program, whatever a defect of the interpreter lets a script do.

use crate::protocol::WorkerLimits;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::os::fd::RawFd;

/// Stack of the interpreter, which recurses for nested values and calls.
const STACK: u64 = 64 << 20;

/// Address space beside what a script may hold: this program's own image, stack and allocator.
const OWN_SPACE: u64 = 2 << 30;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Calls without a condition.
const ALLOWED: [i64; 20] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

pub(super) fn confine(limits: &WorkerLimits, socket: RawFd) -> Result<(), String> {
    // Nobody waits for a script whose box has gone.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(during("tying its life to the box"))?;
    prctl::set_dumpable(false).map_err(during("refusing to be dumped"))?;
    close_others(socket).map_err(during("closing inherited descriptors"))?;
    resources(limits).map_err(during("setting resource limits"))?;
    prctl::set_no_new_privs().map_err(during("refusing new privileges"))?;
    let program = filter().map_err(during("making the seccomp filter"))?;
    apply_filter(&program).map_err(during("installing the seccomp filter"))
}

fn during<E: Display>(doing: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("{doing}: {error}")
}

/// Everything but standard input, output and error, and the socket.
fn close_others(socket: RawFd) -> std::io::Result<()> {
    let open = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok())
        .filter(|fd| *fd > 2 && *fd != socket)
        .collect::<Vec<_>>();
    for fd in open {
        // The descriptor that listed the directory is among them and gone by now.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

fn resources(limits: &WorkerLimits) -> nix::Result<()> {
    let memory = u64::try_from(limits.memory).unwrap_or(u64::MAX);
    let seconds = limits.execution / 1000 + 10;
    let (_, hard) = getrlimit(Resource::RLIMIT_STACK)?;
    let stack = STACK.min(hard);
    setrlimit(Resource::RLIMIT_STACK, stack, stack)?;
    let bounds = [
        (Resource::RLIMIT_AS, memory.saturating_add(OWN_SPACE)),
        (Resource::RLIMIT_CPU, seconds),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NOFILE, 0),
        (Resource::RLIMIT_NPROC, 0),
        (Resource::RLIMIT_MEMLOCK, 0),
        (Resource::RLIMIT_MSGQUEUE, 0),
    ];
    for (resource, bound) in bounds {
        let (_, hard) = getrlimit(resource)?;
        let bound = bound.min(hard);
        setrlimit(resource, bound, bound)?;
    }
    Ok(())
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let condition = |at, op, value| {
        SeccompCondition::new(at, SeccompCmpArgLen::Qword, op, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // Memory, but never memory that runs.
    let executable = libc::PROT_EXEC as u64;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(
            call,
            vec![condition(2, SeccompCmpOp::MaskedEq(executable), 0)?],
        );
    }
    // An abort, of this process only.
    let itself = u64::from(std::process::id());
    rules.insert(
        libc::SYS_tgkill,
        vec![condition(0, SeccompCmpOp::Eq, itself)?],
    );
    SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        ARCHITECTURE,
    )?
    .try_into()
}
