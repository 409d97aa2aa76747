//! A host made of a list of paths, for tests.

use super::{Files, Host, Identity, Kind, Node, Platform};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Paths and what they are; directories above them are implied.
#[derive(Default)]
pub struct Fake {
    nodes: BTreeMap<PathBuf, Node>,
    closures: BTreeMap<PathBuf, Vec<PathBuf>>,
    spellings: BTreeMap<PathBuf, PathBuf>,
}

impl Fake {
    fn put(&mut self, path: &str, kind: Kind, mode: u32) {
        for above in Path::new(path).ancestors().skip(1) {
            let inode = self.nodes.len() as u64 + 1;
            self.nodes.entry(above.into()).or_insert(Node {
                kind: Kind::Directory,
                mode: 0o755,
                identity: Identity { device: 1, inode },
            });
        }
        let inode = self.nodes.len() as u64 + 1;
        self.nodes.insert(
            path.into(),
            Node {
                kind,
                mode,
                identity: Identity { device: 1, inode },
            },
        );
    }

    pub fn directory(mut self, path: &str) -> Fake {
        self.put(path, Kind::Directory, 0o755);
        self
    }

    pub fn file(mut self, path: &str) -> Fake {
        self.put(path, Kind::File, 0o644);
        self
    }

    pub fn program(mut self, path: &str, mode: u32, needs: &[&str]) -> Fake {
        self.put(path, Kind::File, mode);
        self.closures
            .insert(path.into(), needs.iter().map(PathBuf::from).collect());
        self
    }

    pub fn link(mut self, path: &str, target: &str) -> Fake {
        self.put(path, Kind::Symlink(target.into()), 0o777);
        self
    }

    pub fn device(mut self, path: &str) -> Fake {
        self.put(path, Kind::CharDevice, 0o666);
        self
    }

    /// The file at `path` is called otherwise by the kernel.
    pub fn spelled(mut self, path: &str, canonical: &str) -> Fake {
        self.spellings.insert(path.into(), canonical.into());
        self
    }

    pub fn fifo(mut self, path: &str) -> Fake {
        self.put(path, Kind::Fifo, 0o644);
        self
    }

    /// A distribution with merged `/usr` and a few programs.
    pub fn merged_usr() -> Fake {
        let mut fake = Fake::default()
            .link("/bin", "usr/bin")
            .link("/lib", "usr/lib")
            .link("/lib64", "usr/lib64")
            .link("/sbin", "usr/sbin")
            .directory("/usr/sbin")
            .directory("/usr/share/zoneinfo")
            .directory("/usr/local/bin")
            .directory("/etc/ssl")
            .file("/etc/ld.so.cache")
            .link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
            .file("/usr/share/zoneinfo/Etc/UTC")
            .program("/usr/lib/ld-linux-x86-64.so.2", 0o755, &[])
            .link(
                "/usr/lib64/ld-linux-x86-64.so.2",
                "../lib/ld-linux-x86-64.so.2",
            )
            .program("/usr/bin/git", 0o755, &["/lib64/ld-linux-x86-64.so.2"])
            .program("/usr/bin/su", 0o4755, &[])
            .program("/usr/bin/env", 0o755, &[])
            .directory("/tmp")
            .directory("/dev/shm");
        for device in ["null", "zero", "full", "random", "urandom", "kvm"] {
            fake = fake.device(&format!("/dev/{device}"));
        }
        fake
    }

    /// A Mac: the links into `/private`, the system's trees, and a program or two.
    pub fn mac() -> Fake {
        let mut fake = Fake::default()
            .link("/etc", "private/etc")
            .link("/var", "private/var")
            .link("/tmp", "private/tmp")
            .directory("/private/etc/ssl")
            .directory("/private/var/db/timezone")
            .directory("/private/tmp")
            .link(
                "/private/etc/localtime",
                "/var/db/timezone/zoneinfo/Etc/UTC",
            )
            .file("/private/var/db/timezone/zoneinfo/Etc/UTC")
            .directory("/System/Library")
            .directory("/usr/lib")
            .directory("/usr/share/zoneinfo")
            .program("/bin/sh", 0o755, &[])
            .program("/usr/bin/env", 0o755, &[])
            .program("/usr/bin/git", 0o755, &[])
            .program("/usr/bin/sudo", 0o4755, &[])
            .directory("/Users/me");
        for device in ["null", "zero", "random", "urandom"] {
            fake = fake.device(&format!("/dev/{device}"));
        }
        fake
    }

    /// A Mac of an ordinary user whose home is `/Users/me`.
    pub fn mac_host(self) -> Host {
        Host {
            platform: Platform::MacOs,
            uid: 501,
            gid: 20,
            homes: vec!["/Users/me".into()],
            ..self.host(0)
        }
    }

    /// A host of an ordinary user whose home is `/home/me`.
    pub fn host(self, landlock: u32) -> Host {
        Host {
            platform: Platform::Linux,
            uid: 1000,
            gid: 1000,
            run_as: None,
            homes: vec!["/home/me".into()],
            landlock,
            terminal: false,
            files: Arc::new(self),
        }
    }
}

impl Files for Fake {
    fn node(&self, path: &Path) -> Option<Node> {
        self.nodes.get(path).cloned()
    }

    fn spelling(&self, path: &Path) -> Option<PathBuf> {
        self.spellings.get(path).cloned()
    }

    fn closure(&self, program: &Path, _search: &str) -> Vec<PathBuf> {
        self.closures.get(program).cloned().unwrap_or_default()
    }

    fn set_id_program(&self, path: &Path) -> Option<PathBuf> {
        let set_id =
            |(_, node): &(&PathBuf, &Node)| node.kind == Kind::File && node.mode & 0o6000 != 0;
        let mut below = self.nodes.iter().filter(|(at, _)| at.starts_with(path));
        below.find(set_id).map(|(at, _)| at.clone())
    }
}
