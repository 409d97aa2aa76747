//! Descriptors: passed to the supervisor, taken up by it, and looked at.
#![allow(
    unsafe_code,
    reason = "raw descriptors, and code between fork and exec"
)]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::SigSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

fn close_on_exec(descriptor: BorrowedFd, close: bool) -> Result<(), Errno> {
    let flag = if close {
        FdFlag::FD_CLOEXEC
    } else {
        FdFlag::empty()
    };
    fcntl(descriptor, FcntlArg::F_SETFD(flag)).map(drop)
}

/// Has `command` keep `descriptor` open, and tells its child the number.
pub fn pass(command: &mut Command, descriptor: OwnedFd) {
    command.arg(descriptor.as_raw_fd().to_string());
    let keep = move || close_on_exec(descriptor.as_fd(), false).map_err(io::Error::from);
    // SAFETY: between fork and exec the closure only calls fcntl, which is async-signal-safe.
    unsafe { command.pre_exec(keep) };
}

/// Has `command` take every signal, whatever its parent blocks, and with a terminal ignore the one that would
/// stop it: nobody is there to continue it.
pub fn open_to_signals(command: &mut Command, terminal: bool) {
    let open = move || {
        if terminal {
            use nix::sys::signal::{SigHandler, Signal, signal};
            // SAFETY: no function is installed.
            unsafe { signal(Signal::SIGTSTP, SigHandler::SigIgn) }?;
        }
        SigSet::empty().thread_set_mask().map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure only calls sigaction and sigprocmask, which are
    // async-signal-safe.
    unsafe { command.pre_exec(open) };
}

/// Takes up a descriptor that was passed, and closes every other that is no standard stream.
pub fn take(number: RawFd) -> io::Result<OwnedFd> {
    let names = std::fs::read_dir("/dev/fd")?;
    let open: Vec<RawFd> = names
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for other in open
        .into_iter()
        .filter(|other| *other > 2 && *other != number)
    {
        // The directory just read is closed already.
        let _ = nix::unistd::close(other);
    }
    if number <= 2 {
        return Err(Errno::EBADF.into());
    }
    // SAFETY: the number came from our parent for this purpose, and nothing else here uses it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    close_on_exec(descriptor.as_fd(), true)?;
    Ok(descriptor)
}

/// The path of a stream that is a regular file. A directory is refused: it would be a way past the profile.
pub fn regular_file(stream: BorrowedFd) -> io::Result<Option<PathBuf>> {
    let found = std::fs::File::from(stream.try_clone_to_owned()?).metadata()?;
    if found.is_dir() {
        return Err(Errno::EISDIR.into());
    }
    if found.is_file() {
        return path_of(stream).map(Some);
    }
    Ok(None)
}

#[cfg(target_os = "macos")]
fn path_of(stream: BorrowedFd) -> io::Result<PathBuf> {
    let mut path = PathBuf::new();
    fcntl(stream, FcntlArg::F_GETPATH(&mut path))?;
    Ok(path)
}

#[cfg(not(target_os = "macos"))]
fn path_of(stream: BorrowedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd()))
}
