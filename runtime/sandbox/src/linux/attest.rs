//! What the kernel says about this process, read back after everything was applied.

use super::channel::Attestation;
use super::{At, Fault, kernel};
use crate::launch::Step;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::collections::BTreeSet;
use std::os::fd::RawFd;

const STATUS: [&str; 8] = [
    "NoNewPrivs",
    "Seccomp",
    "Pid",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
];

pub fn read(landlock: u32) -> Result<Attestation, Fault> {
    let text = std::fs::read_to_string("/proc/self/status").at(Step::Attest)?;
    let status = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| STATUS.contains(name))
        .map(|(name, value)| (name.to_string(), value.trim().to_string()))
        .collect();
    let interfaces: BTreeSet<String> = getifaddrs()
        .at(Step::Attest)?
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .map(|interface| interface.interface_name)
        .collect();
    let mut descriptors: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
        .at(Step::Attest)?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|raw| kernel::survives_exec(*raw))
        .collect();
    descriptors.sort_unstable();
    Ok(Attestation {
        status,
        interfaces: interfaces.into_iter().collect(),
        descriptors,
        landlock,
    })
}
