//! The first process of a sandbox: reaps, passes signals to the workload, and ends with it. Its end is the
//! end of every process in the sandbox.

use super::{At, Fault, kernel, seccomp};
use crate::launch::Step;
use nix::sys::prctl;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

/// No capability, no new privilege, and few system calls: it holds nothing the workload could want.
pub fn confine() -> Result<(), Fault> {
    kernel::drop_capabilities().at(Step::Capabilities)?;
    prctl::set_no_new_privs().at(Step::NoNewPrivileges)?;
    seccomp::install_init()
}

pub fn serve(workload: libc::pid_t, status: OwnedFd, terminal: bool) -> ! {
    loop {
        match kernel::next_signal() {
            Ok((libc::SIGCHLD, _)) => {
                while let Some((pid, ended)) = kernel::reap() {
                    if pid == workload {
                        report(status, ended);
                        kernel::exit_now(0);
                    }
                }
            }
            // What the terminal sends, it sends to the workload as well.
            Ok((signal, true)) => {
                let target = if terminal { workload } else { -workload };
                if kernel::signal(target, signal).is_err() {
                    let _ = kernel::signal(workload, signal);
                }
            }
            Ok((_, false)) | Err(_) => {}
        }
    }
}

fn report(status: OwnedFd, ended: libc::c_int) {
    let (kind, number) = if libc::WIFSIGNALED(ended) {
        (b's', libc::WTERMSIG(ended))
    } else {
        (b'c', libc::WEXITSTATUS(ended))
    };
    let mut bytes = vec![kind];
    bytes.extend(number.to_le_bytes());
    // Nobody reads it when the parent is gone, and then nobody is here long.
    let _ = File::from(status).write_all(&bytes);
}
