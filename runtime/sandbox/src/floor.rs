//! Paths no grant reaches, and paths only a grant that names them reaches. One table for both platforms.

use crate::grants::List;
use std::path::{Path, PathBuf};

/// How a grant is compared with a path of the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The grant names the path itself; paths inside stay grantable.
    Exact,
    /// The grant is at, inside or above the path.
    Overlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    WholeFilesystem,
    HomeNamespace,
    SystemTree,
    LoaderDirectory,
    PasswordDatabase,
    MachineCredential,
    PrivilegeConfiguration,
    Kernel,
    HostSocket,
}

pub struct Floor {
    pub class: Class,
    pub rule: Match,
    pub path: &'static str,
    /// Lists that may name it all the same.
    pub except: &'static [List],
}

const fn floor(class: Class, rule: Match, path: &'static str) -> Floor {
    Floor {
        class,
        rule,
        path,
        except: &[],
    }
}

const fn except(class: Class, path: &'static str, except: &'static [List]) -> Floor {
    Floor {
        class,
        rule: Match::Exact,
        path,
        except,
    }
}

use Class::*;
use Match::*;

pub const FLOOR: &[Floor] = &[
    floor(WholeFilesystem, Exact, "/"),
    floor(HomeNamespace, Exact, "/home"),
    floor(HomeNamespace, Exact, "/Users"),
    floor(SystemTree, Exact, "/bin"),
    floor(SystemTree, Exact, "/boot"),
    floor(SystemTree, Exact, "/dev"),
    floor(SystemTree, Exact, "/etc"),
    floor(SystemTree, Exact, "/opt"),
    floor(SystemTree, Exact, "/opt/homebrew"),
    floor(SystemTree, Exact, "/root"),
    floor(SystemTree, Exact, "/run"),
    floor(SystemTree, Exact, "/sbin"),
    floor(SystemTree, Exact, "/srv"),
    floor(SystemTree, Exact, "/sys"),
    floor(SystemTree, Exact, "/tmp"),
    floor(SystemTree, Exact, "/usr"),
    floor(SystemTree, Exact, "/usr/bin"),
    floor(SystemTree, Exact, "/usr/local"),
    floor(SystemTree, Exact, "/usr/sbin"),
    floor(SystemTree, Exact, "/usr/share"),
    except(SystemTree, "/var", &[List::Metadata]),
    floor(SystemTree, Exact, "/Library"),
    floor(SystemTree, Exact, "/System"),
    floor(SystemTree, Exact, "/private"),
    except(SystemTree, "/private/etc", &[List::Metadata]),
    except(SystemTree, "/private/tmp", &[List::List, List::Metadata]),
    except(SystemTree, "/private/var", &[List::Metadata]),
    except(LoaderDirectory, "/lib", &[List::Read]),
    except(LoaderDirectory, "/lib64", &[List::Read]),
    except(LoaderDirectory, "/usr/lib", &[List::Read]),
    except(LoaderDirectory, "/usr/lib64", &[List::Read]),
    floor(PasswordDatabase, Exact, "/etc/shadow"),
    floor(PasswordDatabase, Exact, "/etc/gshadow"),
    floor(PasswordDatabase, Exact, "/etc/master.passwd"),
    floor(PasswordDatabase, Exact, "/private/etc/master.passwd"),
    floor(PasswordDatabase, Overlap, "/var/db/dslocal"),
    floor(PasswordDatabase, Overlap, "/private/var/db/dslocal"),
    floor(MachineCredential, Overlap, "/Library/Keychains"),
    floor(MachineCredential, Exact, "/var/db/SystemKey"),
    floor(MachineCredential, Exact, "/private/var/db/SystemKey"),
    floor(PrivilegeConfiguration, Exact, "/etc/sudoers"),
    floor(PrivilegeConfiguration, Exact, "/private/etc/sudoers"),
    floor(PrivilegeConfiguration, Overlap, "/etc/sudoers.d"),
    floor(PrivilegeConfiguration, Overlap, "/private/etc/sudoers.d"),
    floor(
        PrivilegeConfiguration,
        Overlap,
        "/Library/Application Support/com.apple.TCC",
    ),
    floor(PrivilegeConfiguration, Exact, "/etc/ld.so.preload"),
    floor(Kernel, Overlap, "/proc"),
    floor(Kernel, Overlap, "/sys/kernel"),
    floor(HostSocket, Overlap, "/run/docker.sock"),
    floor(HostSocket, Overlap, "/var/run/docker.sock"),
    floor(HostSocket, Overlap, "/run/containerd"),
    floor(HostSocket, Overlap, "/run/podman"),
    floor(HostSocket, Overlap, "/run/user"),
    floor(HostSocket, Overlap, "/run/dbus"),
    floor(HostSocket, Overlap, "/run/systemd"),
];

/// What happens to a credential store when a grant encloses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enclosed {
    /// The grant is refused.
    Refuse,
    /// The grant is given without the store.
    Mask,
}

/// Below a home. A `read`, `write`, `read_file` or `write_file` entry that names one, or a path in one, is
/// allowed and announced.
pub const CREDENTIAL_STORES: &[(&str, Enclosed)] = &[
    (".aws", Enclosed::Refuse),
    (".ssh", Enclosed::Refuse),
    (".gnupg", Enclosed::Refuse),
    (".netrc", Enclosed::Refuse),
    (".docker", Enclosed::Refuse),
    (".kube", Enclosed::Refuse),
    (".config/gcloud", Enclosed::Refuse),
    (".config/google-chrome", Enclosed::Refuse),
    (".mozilla", Enclosed::Refuse),
    ("Library/Keychains", Enclosed::Refuse),
    (
        "Library/Application Support/Google/Chrome",
        Enclosed::Refuse,
    ),
    ("Library/Application Support/Firefox", Enclosed::Refuse),
    (".1password", Enclosed::Mask),
    (".age", Enclosed::Mask),
    (".azure", Enclosed::Mask),
    (".boto", Enclosed::Mask),
    (".cargo/credentials", Enclosed::Mask),
    (".cargo/credentials.toml", Enclosed::Mask),
    (".claude/.credentials.json", Enclosed::Mask),
    (".codex/auth.json", Enclosed::Mask),
    (".config/BraveSoftware", Enclosed::Mask),
    (".config/azure", Enclosed::Mask),
    (".config/chromium", Enclosed::Mask),
    (".config/doctl", Enclosed::Mask),
    (".config/gh", Enclosed::Mask),
    (".config/git/credentials", Enclosed::Mask),
    (".config/hub", Enclosed::Mask),
    (".config/keepassxc", Enclosed::Mask),
    (".config/microsoft-edge", Enclosed::Mask),
    (".config/op", Enclosed::Mask),
    (".config/rclone", Enclosed::Mask),
    (".config/sops", Enclosed::Mask),
    (".fly", Enclosed::Mask),
    (".gem/credentials", Enclosed::Mask),
    (".git-credentials", Enclosed::Mask),
    (".gradle/gradle.properties", Enclosed::Mask),
    (".local/share/keyrings", Enclosed::Mask),
    (".m2/settings.xml", Enclosed::Mask),
    (".my.cnf", Enclosed::Mask),
    (".npmrc", Enclosed::Mask),
    (".oci", Enclosed::Mask),
    (".password-store", Enclosed::Mask),
    (".pgpass", Enclosed::Mask),
    (".pypirc", Enclosed::Mask),
    (".s3cfg", Enclosed::Mask),
    (".terraform.d", Enclosed::Mask),
    (".thunderbird", Enclosed::Mask),
    (".vault-token", Enclosed::Mask),
    (".yarnrc.yml", Enclosed::Mask),
];

/// Every credential store below the homes.
pub fn stores(homes: &[PathBuf]) -> impl Iterator<Item = (PathBuf, Enclosed)> + '_ {
    homes.iter().flat_map(|home| {
        CREDENTIAL_STORES
            .iter()
            .map(move |(name, enclosed)| (home.join(name), *enclosed))
    })
}

/// The first path of the floor that `entry` of `list` hits.
pub fn hit(entry: &Path, list: List) -> Option<&'static Floor> {
    FLOOR.iter().find(|floor| {
        let path = Path::new(floor.path);
        let hit = match floor.rule {
            Exact => entry == path,
            Overlap => entry.starts_with(path) || path.starts_with(entry),
        };
        hit && !floor.except.contains(&list)
    })
}
