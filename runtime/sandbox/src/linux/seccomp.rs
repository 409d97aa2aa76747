//! The seccomp filters. Two are stacked: one allows the known calls and answers ENOSYS to every other
//! number, so that libraries fall back; one answers EPERM to what is known and refused. Of two errors the
//! kernel gives the one of the filter installed last. A call of another architecture kills the process.

mod calls;

use super::{At, Fault};
use crate::launch::Step;
use crate::plan::IdentityMap;
use nix::errno::Errno;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

pub fn install_workload(identity: &IdentityMap) -> Result<(), Fault> {
    let (known, refused) = workload(identity)
        .map_err(|_| Errno::EINVAL)
        .at(Step::Seccomp)?;
    install(&known)?;
    install(&refused)
}

pub fn install_init() -> Result<(), Fault> {
    let program = compile(
        calls::INIT.iter().map(|call| (*call, Vec::new())).collect(),
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
    );
    install(&program.map_err(|_| Errno::EINVAL).at(Step::Seccomp)?)
}

fn install(program: &BpfProgram) -> Result<(), Fault> {
    apply_filter(program)
        .map_err(|error| match error {
            Error::Prctl(error) | Error::Seccomp(error) => super::errno_of(error),
            _ => Errno::EINVAL,
        })
        .at(Step::Seccomp)
}

fn compile(
    rules: Rules,
    other: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    SeccompFilter::new(rules, other, listed, ARCHITECTURE)?.try_into()
}

fn workload(identity: &IdentityMap) -> Result<(BpfProgram, BpfProgram), seccompiler::BackendError> {
    // Everything refused by number is known too, or it would be refused as unknown before that is decided.
    let mut known: Rules = calls::ALLOWED
        .iter()
        .map(|call| (*call, Vec::new()))
        .collect();
    // The core limit stays where it was put; asking for it is fine, and setting it looks unimplemented,
    // which programs that want no core take well.
    let core = u64::from(libc::RLIMIT_CORE);
    let other = SeccompRule::new(vec![Is::Not(1, core).condition()?])?;
    let query = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    known.insert(
        libc::SYS_prlimit64,
        vec![other, SeccompRule::new(vec![query])?],
    );
    let other = SeccompRule::new(vec![Is::Not(0, core).condition()?])?;
    known.insert(libc::SYS_setrlimit, vec![other]);
    let known = compile(
        known,
        SeccompAction::Errno(libc::ENOSYS as u32),
        SeccompAction::Allow,
    )?;
    let refused = compile(
        refused(identity)?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
    )?;
    Ok((known, refused))
}

/// A condition on argument `at`.
#[derive(Clone, Copy)]
enum Is {
    Value(u8, u64),
    Not(u8, u64),
    /// The bits of the mask have this value.
    Bits(u8, u64, u64),
}

impl Is {
    fn condition(self) -> Result<SeccompCondition, seccompiler::BackendError> {
        let (at, operator, value) = match self {
            Is::Value(at, value) => (at, SeccompCmpOp::Eq, value),
            Is::Not(at, value) => (at, SeccompCmpOp::Ne, value),
            Is::Bits(at, mask, value) => (at, SeccompCmpOp::MaskedEq(mask), value),
        };
        SeccompCondition::new(at, SeccompCmpArgLen::Dword, operator, value)
    }
}

/// What is answered EPERM: numbers, and calls whose arguments meet all conditions of one of their rules.
fn refused(identity: &IdentityMap) -> Result<Rules, seccompiler::BackendError> {
    let mut scoped: Vec<(i64, Vec<Is>)> = Vec::new();
    namespaces(&mut scoped);
    sockets(&mut scoped);
    modes(&mut scoped);
    identities(identity, &mut scoped);
    for request in calls::TERMINAL_REQUESTS {
        scoped.push((libc::SYS_ioctl, vec![Is::Value(1, *request)]));
    }
    for option in calls::PROCESS_OPTIONS {
        scoped.push((libc::SYS_prctl, vec![Is::Value(0, *option)]));
    }
    let empty = libc::AT_EMPTY_PATH as u64;
    scoped.push((libc::SYS_execveat, vec![Is::Bits(4, empty, empty)]));
    // Memory that may not become a program.
    scoped.push((
        libc::SYS_memfd_create,
        vec![Is::Bits(1, calls::NO_EXEC_SEAL, 0)],
    ));
    // The query, and the ordinary personality.
    scoped.push((
        libc::SYS_personality,
        vec![Is::Not(0, 0), Is::Not(0, 0xffff_ffff)],
    ));
    let mut rules: Rules = calls::REFUSED
        .iter()
        .map(|call| (*call, Vec::new()))
        .collect();
    for (call, conditions) in scoped {
        let conditions = conditions
            .into_iter()
            .map(Is::condition)
            .collect::<Result<_, _>>()?;
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(conditions)?);
    }
    Ok(rules)
}

fn namespaces(scoped: &mut Vec<(i64, Vec<Is>)>) {
    for flag in calls::NAMESPACE_FLAGS {
        scoped.push((libc::SYS_clone, vec![Is::Bits(0, *flag, *flag)]));
    }
}

/// Internet streams and datagrams, the routing netlink that lists interfaces, and connected pairs.
fn sockets(scoped: &mut Vec<(i64, Vec<Is>)>) {
    let [inet, inet6, netlink] =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| family as u64);
    let socket = libc::SYS_socket;
    scoped.push((
        socket,
        vec![Is::Not(0, inet), Is::Not(0, inet6), Is::Not(0, netlink)],
    ));
    scoped.push((
        socket,
        vec![
            Is::Value(0, netlink),
            Is::Not(2, libc::NETLINK_ROUTE as u64),
        ],
    ));
    let protocols =
        [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP].map(|protocol| Is::Not(2, protocol as u64));
    scoped.push((
        socket,
        [vec![Is::Not(0, netlink)], protocols.to_vec()].concat(),
    ));
    let kinds = 0..16u64;
    let [stream, datagram, sequenced] =
        [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET].map(|kind| kind as u64);
    for kind in kinds
        .clone()
        .filter(|kind| ![stream, datagram].contains(kind))
    {
        scoped.push((socket, vec![Is::Not(0, netlink), Is::Bits(1, 15, kind)]));
    }
    let pair = libc::SYS_socketpair;
    scoped.push((pair, vec![Is::Not(0, libc::AF_UNIX as u64)]));
    // One end of a datagram pair could be connected again, to a socket in a granted tree.
    for kind in kinds.filter(|kind| ![stream, sequenced].contains(kind)) {
        scoped.push((pair, vec![Is::Bits(1, 15, kind)]));
    }
}

/// No file is given a set-uid or set-gid bit: the host's own mount would honour it.
fn modes(scoped: &mut Vec<(i64, Vec<Is>)>) {
    for bit in [u64::from(libc::S_ISUID), u64::from(libc::S_ISGID)] {
        for (call, at) in calls::MODES {
            scoped.push((*call, vec![Is::Bits(*at, bit, bit)]));
        }
        // The mode counts only where a file is made; otherwise the argument holds anything.
        for (call, flags, mode) in calls::OPENS {
            for making in [libc::O_CREAT, libc::O_TMPFILE].map(|flag| flag as u64) {
                scoped.push((
                    *call,
                    vec![Is::Bits(*flags, making, making), Is::Bits(*mode, bit, bit)],
                ));
            }
        }
    }
    for (call, at) in calls::MAKE_NODES {
        for kind in [libc::S_IFCHR, libc::S_IFBLK, libc::S_IFSOCK] {
            scoped.push((
                *call,
                vec![Is::Bits(*at, u64::from(libc::S_IFMT), u64::from(kind))],
            ));
        }
    }
}

/// Ids may only be set to what they are, or left alone.
fn identities(identity: &IdentityMap, scoped: &mut Vec<(i64, Vec<Is>)>) {
    let keep = 0xffff_ffff;
    for (calls, id) in [
        (calls::SET_UIDS, identity.uid),
        (calls::SET_GIDS, identity.gid),
    ] {
        for (call, arguments) in calls {
            for at in 0..*arguments {
                scoped.push((*call, vec![Is::Not(at, u64::from(id)), Is::Not(at, keep)]));
            }
        }
    }
}
