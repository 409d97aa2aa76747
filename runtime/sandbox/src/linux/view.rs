//! Builds the planned view in a mount namespace of its own and makes it the root.

use super::{At, Fault, kernel};
use crate::host::Identity;
use crate::launch::Step;
use crate::plan::{Access, Mount, SandboxPlan};
use kernel::{NO_DEVICES, NO_EXECUTE, NO_SET_ID, READ_ONLY};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat, umask};
use nix::unistd::{chdir, mkdir, pivot_root, symlinkat};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Directories of the host that a private file system may be mounted over, for want of a name of our own.
const STAGES: [&str; 4] = ["/tmp", "/run", "/mnt", "/dev"];
const OLD: &str = "/old";
const NEW: &str = "/new";
const BLANK: &str = "/blank";

pub fn build(plan: &SandboxPlan) -> Result<(), Fault> {
    umask(Mode::empty());
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).at(Step::PrivateMounts)?;
    stage()?;
    let mut view = View {
        old: reference(OLD)?,
        new: reference(NEW)?,
        blank: reference(BLANK)?,
        own: BTreeSet::new(),
    };
    view.own(Path::new("/"))?;
    for step in &plan.view {
        view.make(step)?;
    }
    kernel::set_mount_attributes(
        view.new.as_fd(),
        READ_ONLY | NO_SET_ID | NO_DEVICES | NO_EXECUTE,
        false,
    )
    .at(Step::MountAttributes)?;
    drop(view);
    umount2(OLD, MntFlags::MNT_DETACH).at(Step::Detach)?;
    chdir(NEW).at(Step::Pivot)?;
    pivot_root(".", ".").at(Step::Pivot)?;
    umount2(".", MntFlags::MNT_DETACH).at(Step::Detach)?;
    chdir("/").at(Step::Pivot)
}

/// A private root with the old root, the new one, and an empty tree and file for masks.
fn stage() -> Result<(), Fault> {
    let place = STAGES.iter().find(|path| Path::new(path).is_dir());
    let place = *place.ok_or(Errno::ENOENT).at(Step::Staging)?;
    tmpfs(Path::new(place), "mode=0755,size=64k").at(Step::Staging)?;
    chdir(place).at(Step::Staging)?;
    let name = |path: &'static str| path.trim_start_matches('/');
    for path in [OLD, NEW, BLANK] {
        mkdir(name(path), Mode::from_bits_truncate(0o755)).at(Step::Staging)?;
    }
    pivot_root(".", name(OLD)).at(Step::Pivot)?;
    chdir("/").at(Step::Pivot)?;
    tmpfs(Path::new(NEW), "mode=0755,size=2m,nr_inodes=16k").at(Step::ViewRoot)?;
    tmpfs(Path::new(BLANK), "mode=0755,size=4k,nr_inodes=8").at(Step::Staging)?;
    mkdir("/blank/tree", Mode::from_bits_truncate(0o555)).at(Step::Staging)?;
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    open("/blank/file", flags, Mode::from_bits_truncate(0o444))
        .map(drop)
        .at(Step::Staging)
}

fn tmpfs(path: &Path, options: &str) -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("box"), path, Some("tmpfs"), flags, Some(options))
}

fn reference(path: &str) -> Result<OwnedFd, Fault> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(path, flags, Mode::empty()).at_path(Step::Staging, Path::new(path))
}

struct View {
    old: OwnedFd,
    new: OwnedFd,
    blank: OwnedFd,
    /// The devices of our own file systems. Nothing is ever created on any other: that would be the host's.
    own: BTreeSet<u64>,
}

impl View {
    fn make(&mut self, step: &Mount) -> Result<(), Fault> {
        match step {
            Mount::Directory { path } => self.directory(path).at_path(Step::Directory, path),
            Mount::Link { path, target } => self.link(path, target).at_path(Step::Link, path),
            Mount::File { path, contents } => {
                self.file(path, contents).at_path(Step::SyntheticFile, path)
            }
            Mount::Tmpfs {
                path,
                mode,
                kilobytes,
                inodes,
            } => {
                self.directory(path).at_path(Step::MountPoint, path)?;
                let options = format!("mode={mode:o},size={kilobytes}k,nr_inodes={inodes}");
                tmpfs(&in_new(path), &options).at_path(Step::Tmpfs, path)?;
                self.own(path)
            }
            Mount::Proc { path } => {
                self.directory(path).at_path(Step::MountPoint, path)?;
                proc(&in_new(path)).at_path(Step::Proc, path)
            }
            Mount::Bind {
                path,
                source,
                directory,
                identity,
                access,
                fresh,
            } => {
                if *fresh {
                    let made = if *directory {
                        self.directory(path)
                    } else {
                        self.file(path, "")
                    };
                    made.at_path(Step::MountPoint, path)?;
                }
                let opened = kernel::open_below(self.old.as_fd(), source)
                    .at_path(Step::OpenSource, source)?;
                same(opened.as_fd(), *identity, *directory).at_path(Step::Identity, source)?;
                self.attach(opened.as_fd(), path, flags(*access), *directory)
            }
            Mount::Mask { path, directory } => {
                let name = if *directory { "tree" } else { "file" };
                let blank = kernel::open_below(self.blank.as_fd(), Path::new(name))
                    .at_path(Step::OpenSource, path)?;
                self.attach(blank.as_fd(), path, flags(Access::Read), *directory)
            }
        }
    }

    /// Mounts what was opened, by the descriptor that was checked, at a path of the view.
    fn attach(
        &self,
        source: BorrowedFd,
        path: &Path,
        attributes: u64,
        directory: bool,
    ) -> Result<(), Fault> {
        let tree = kernel::clone_tree(source).at_path(Step::CloneMount, path)?;
        kernel::set_mount_attributes(tree.as_fd(), attributes, true)
            .at_path(Step::MountAttributes, path)?;
        let target = kernel::open_below(self.new.as_fd(), path).at_path(Step::MountPoint, path)?;
        let is_directory = kind(target.as_fd()).at_path(Step::MountPoint, path)? == SFlag::S_IFDIR;
        if is_directory != directory {
            return Err(Errno::ENOTDIR).at_path(Step::MountPoint, path);
        }
        kernel::attach(tree.as_fd(), target.as_fd()).at_path(Step::MoveMount, path)
    }

    fn own(&mut self, path: &Path) -> Result<(), Fault> {
        let root = kernel::open_below(self.new.as_fd(), path).at_path(Step::Tmpfs, path)?;
        self.own
            .insert(fstat(&root).at_path(Step::Tmpfs, path)?.st_dev);
        Ok(())
    }

    /// The directory that will hold `path`, which must be ours, and the name in it.
    fn parent<'p>(&self, path: &'p Path) -> Result<(OwnedFd, &'p Path), Errno> {
        let name = path.file_name().ok_or(Errno::EINVAL)?;
        let parent = kernel::open_below(self.new.as_fd(), path.parent().ok_or(Errno::EINVAL)?)?;
        if self.own.contains(&fstat(&parent)?.st_dev) {
            Ok((parent, Path::new(name)))
        } else {
            Err(Errno::EXDEV)
        }
    }

    fn directory(&self, path: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent(path)?;
        mkdirat(&parent, name, Mode::from_bits_truncate(0o755))
    }

    fn link(&self, path: &Path, target: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent(path)?;
        symlinkat(target, &parent, name)
    }

    fn file(&self, path: &Path, contents: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(path)?;
        let flags =
            OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&parent, name, flags, Mode::from_bits_truncate(0o444))?;
        File::from(file)
            .write_all(contents.as_bytes())
            .map_err(super::errno_of)
    }
}

fn in_new(path: &Path) -> PathBuf {
    Path::new(NEW).join(path.strip_prefix("/").unwrap_or(path))
}

/// A procfs of the new process namespace, with processes and nothing else where the kernel can do that.
fn proc(path: &Path) -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    match mount(Some("proc"), path, Some("proc"), flags, Some("subset=pid")) {
        Err(Errno::EINVAL) => mount(Some("proc"), path, Some("proc"), flags, None::<&str>),
        other => other,
    }
}

fn flags(access: Access) -> u64 {
    match access {
        Access::Read => READ_ONLY | NO_SET_ID | NO_DEVICES | NO_EXECUTE,
        Access::ReadExecute => READ_ONLY | NO_SET_ID | NO_DEVICES,
        Access::Write => NO_SET_ID | NO_DEVICES | NO_EXECUTE,
        Access::WriteExecute => NO_SET_ID | NO_DEVICES,
        // A device can be written through a read-only mount.
        Access::Device => READ_ONLY | NO_SET_ID | NO_EXECUTE,
    }
}

fn kind(opened: BorrowedFd) -> Result<SFlag, Errno> {
    Ok(SFlag::from_bits_truncate(
        fstat(opened)?.st_mode & SFlag::S_IFMT.bits(),
    ))
}

/// Whether the opened file is the one that was checked when the plan was made.
fn same(opened: BorrowedFd, identity: Identity, directory: bool) -> Result<(), Errno> {
    let found = fstat(opened)?;
    let is_directory = kind(opened)? == SFlag::S_IFDIR;
    let same = found.st_dev == identity.device
        && found.st_ino == identity.inode
        && is_directory == directory;
    if same { Ok(()) } else { Err(Errno::ESTALE) }
}
