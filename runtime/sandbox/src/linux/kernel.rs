//! The system calls no library of ours names, each behind a safe function. The only unsafe code of the
//! crate besides `fork`.
#![allow(unsafe_code)]

use nix::errno::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub type Result<T> = std::result::Result<T, Errno>;

pub fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}

fn descriptor(result: libc::c_long) -> Result<OwnedFd> {
    let raw = RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the call just returned this descriptor, so it is open and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The Landlock ABI in force, 0 for none.
pub fn landlock_abi() -> u32 {
    const VERSION: libc::c_ulong = 1;
    // SAFETY: a null attribute of size 0 with the version flag asks for the ABI and touches no memory.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            VERSION,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Opens `path` below `root` as a bare reference; no link is followed on the way and none at the end.
pub fn open_below(root: BorrowedFd, path: &Path) -> Result<OwnedFd> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let relative = if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    };
    let path = c_path(relative)?;
    // SAFETY: all-zero bytes are a valid open_how.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW) as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: `path` and `how` outlive the call, and the size is that of `how`.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            std::mem::size_of::<libc::open_how>(),
        )
    })
}

/// A detached copy of the mount tree at an opened path.
pub fn clone_tree(source: BorrowedFd) -> Result<OwnedFd> {
    const OPEN_TREE_CLONE: libc::c_uint = 1;
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as libc::c_uint
        | libc::AT_EMPTY_PATH as libc::c_uint
        | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path is an empty constant string, so the descriptor alone names the tree.
    descriptor(unsafe {
        libc::syscall(libc::SYS_open_tree, source.as_raw_fd(), c"".as_ptr(), flags)
    })
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

pub const READ_ONLY: u64 = 1;
pub const NO_SET_ID: u64 = 2;
pub const NO_DEVICES: u64 = 4;
pub const NO_EXECUTE: u64 = 8;

/// Sets attributes of a whole mount tree at once, or of one mount.
pub fn set_mount_attributes(tree: BorrowedFd, set: u64, recursive: bool) -> Result<()> {
    let attributes = MountAttributes {
        set,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    let below = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: `attributes` has the layout of the kernel's mount_attr, outlives the call, and its size is given.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            (libc::AT_EMPTY_PATH | below) as libc::c_uint,
            &raw const attributes,
            std::mem::size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Attaches a detached tree at an opened path.
pub fn attach(tree: BorrowedFd, target: BorrowedFd) -> Result<()> {
    const FROM_EMPTY: libc::c_uint = 0x04;
    const TO_EMPTY: libc::c_uint = 0x40;
    // SAFETY: both paths are empty constant strings, so the descriptors alone name source and target.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            FROM_EMPTY | TO_EMPTY,
        )
    })
    .map(drop)
}

/// Closes every descriptor from 3 on except `kept`.
pub fn close_all_but(kept: &[RawFd]) -> Result<()> {
    let mut kept: Vec<u32> = kept
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    kept.sort_unstable();
    let mut first = 3;
    for last in kept.into_iter().map(Some).chain([None]) {
        let until = last.map_or(u32::MAX, |fd| fd.saturating_sub(1));
        if first <= until {
            // SAFETY: no pointer is passed. The launcher owns no descriptor in these ranges that it uses again.
            Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, until, 0) })?;
        }
        first = last.map_or(u32::MAX, |fd| fd.saturating_add(1));
    }
    Ok(())
}

/// Takes ownership of a descriptor passed by number.
pub fn adopt(raw: RawFd) -> Result<OwnedFd> {
    // SAFETY: F_GETFD takes no pointer; it fails on a number that is not open.
    Errno::result(unsafe { libc::fcntl(raw, libc::F_GETFD) })?;
    // SAFETY: the descriptor is open, was passed by the parent for this process, and is adopted once.
    let owned = unsafe { OwnedFd::from_raw_fd(raw) };
    set_close_on_exec(owned.as_fd(), true)?;
    Ok(owned)
}

pub fn set_close_on_exec(fd: BorrowedFd, close: bool) -> Result<()> {
    let flag = if close { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: F_SETFD takes an integer and touches no memory. It may be called between fork and exec.
    Errno::result(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flag) }).map(drop)
}

/// Whether a descriptor stays open across exec.
pub fn survives_exec(raw: RawFd) -> bool {
    // SAFETY: F_GETFD takes no pointer.
    let flags = unsafe { libc::fcntl(raw, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// The access mode a descriptor was opened with.
pub fn access_mode(raw: RawFd) -> Option<libc::c_int> {
    // SAFETY: F_GETFL takes no pointer.
    let flags = unsafe { libc::fcntl(raw, libc::F_GETFL) };
    (flags >= 0).then_some(flags & libc::O_ACCMODE)
}

/// Sets `lo` up in the current network namespace.
pub fn loopback_up(socket: BorrowedFd) -> Result<()> {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (at, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *at = *byte as libc::c_char;
    }
    // SAFETY: the request outlives both calls and is an ifreq, as both ask for; reading the flags of the
    // union is what SIOCGIFFLAGS just wrote.
    unsafe {
        Errno::result(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &raw mut request,
        ))?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        Errno::result(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        ))
        .map(drop)
    }
}

pub fn process_descriptor(pid: libc::pid_t) -> Result<OwnedFd> {
    // SAFETY: no pointer is passed.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

pub fn signal_process(process: BorrowedFd, signal: i32) -> Result<()> {
    // SAFETY: a null siginfo asks the kernel to fill in a plain one.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    })
    .map(drop)
}

/// Blocks every signal, or none.
pub fn block_signals(block: bool) -> Result<()> {
    // SAFETY: both sets are local, initialised by sigfillset or sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        if block {
            libc::sigfillset(&raw mut set);
        } else {
            libc::sigemptyset(&raw mut set);
        }
        Errno::result(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const set,
            std::ptr::null_mut(),
        ))
        .map(drop)
    }
}

/// Waits for a blocked signal: its number, and whether a process (not the kernel) sent it.
pub fn next_signal() -> Result<(i32, bool)> {
    // SAFETY: the set and the siginfo are local, and the set is filled before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = Errno::result(libc::sigwaitinfo(&raw const set, &raw mut info))?;
        Ok((signal, info.si_code <= 0))
    }
}

/// Every signal back to its default action: the standard library ignores SIGPIPE, and that would be inherited.
pub fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of ours. Signals that cannot be changed fail harmlessly.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Empties every capability set and locks the ways to fill one again.
pub fn drop_capabilities() -> Result<()> {
    const ALL_SECURE_BITS: libc::c_ulong = 0b1110_1111;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let sets = [0u32; 6];
    for capability in 0..64 {
        // SAFETY: prctl with integers only. EINVAL marks the first number that is no capability.
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Err(Errno::EINVAL) => break,
            other => other.map(drop)?,
        }
    }
    // SAFETY: prctl with integers only.
    unsafe {
        Errno::result(libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        ))?;
        Errno::result(libc::prctl(
            libc::PR_SET_SECUREBITS,
            ALL_SECURE_BITS,
            0,
            0,
            0,
        ))?;
    }
    // SAFETY: version 3 takes two triples of u32, which `sets` holds; both outlive the call.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) })
        .map(drop)
}

/// A child that shares nothing; `None` in the child.
pub fn fork() -> Result<Option<libc::pid_t>> {
    // SAFETY: the launcher has one thread, so the child may allocate and take locks.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child.as_raw())),
        nix::unistd::ForkResult::Child => Ok(None),
    }
}

/// Ends this process at once, running no exit code of a copied parent.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Has `command` keep `descriptors` open and give its child the name the launcher goes by.
pub fn pass_descriptors(command: &mut std::process::Command, descriptors: Vec<OwnedFd>) {
    use std::os::unix::process::CommandExt;
    let keep = move || {
        for descriptor in &descriptors {
            set_close_on_exec(descriptor.as_fd(), false)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only calls fcntl, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(keep) };
}

pub fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> Errno {
    match nix::unistd::execve(program, argv, env) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

/// A child that has ended, if one has: its pid and raw wait status.
pub fn reap() -> Option<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Waits until the child `pid` has ended.
pub fn wait_for(pid: libc::pid_t) {
    loop {
        // SAFETY: a null status is allowed.
        let result = unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        if Errno::result(result) != Err(Errno::EINTR) {
            return;
        }
    }
}

/// Signals a process, or with a negative number a process group.
pub fn signal(pid: libc::pid_t, signal: i32) -> Result<()> {
    // SAFETY: integers only.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop)
}
