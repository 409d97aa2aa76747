//! What the launcher tells the process that started it, one packet a report.

use super::kernel::Result;
use crate::launch::Step;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "report", deny_unknown_fields)]
pub enum Report {
    /// One listener's descriptor comes along.
    Listener { port: u16 },
    /// The first process of the sandbox; its process descriptor comes along.
    Started,
    /// Everything is in place; the program waits for the gate.
    Attested(Attestation),
    Failed {
        step: Step,
        path: Option<PathBuf>,
        errno: i32,
    },
}

/// Read from the kernel just before the program is executed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attestation {
    /// `NoNewPrivs`, `Seccomp`, `Pid` and the capability sets of `/proc/self/status`.
    pub status: BTreeMap<String, String>,
    /// Network interfaces that are up.
    pub interfaces: Vec<String>,
    /// Descriptors the program will hold.
    pub descriptors: Vec<RawFd>,
    /// The Landlock ABI whose rights were all enforced; 0 without Landlock.
    pub landlock: u32,
}

/// The longest packet either side sends.
const LONGEST: usize = 16 * 1024;

pub fn send(socket: BorrowedFd, report: &Report, descriptor: Option<BorrowedFd>) -> Result<()> {
    let packet = serde_json::to_vec(report).map_err(|_| Errno::EINVAL)?;
    let raw = descriptor.map(|descriptor| [descriptor.as_raw_fd()]);
    let rights = raw.as_ref().map(|raw| [ControlMessage::ScmRights(raw)]);
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(&packet)],
        rights.as_ref().map_or(&[], |rights| rights),
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .map(drop)
}

/// The next packet and the descriptor that came along; an empty packet when the other side is gone.
pub fn receive(socket: BorrowedFd) -> Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut packet = vec![0; LONGEST];
    let mut space = nix::cmsg_space!([RawFd; 4]);
    let mut descriptors = Vec::new();
    let length = {
        let mut buffers = [IoSliceMut::new(&mut packet)];
        let message = recvmsg::<()>(
            socket.as_raw_fd(),
            &mut buffers,
            Some(&mut space),
            MsgFlags::MSG_CMSG_CLOEXEC,
        )?;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(raw) = control {
                for raw in raw {
                    descriptors.push(super::kernel::adopt(raw)?);
                }
            }
        }
        message.bytes
    };
    packet.truncate(length);
    Ok((packet, descriptors.into_iter().next()))
}
