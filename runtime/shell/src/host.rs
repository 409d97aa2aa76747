//! The real file system, reached through handles: a path is walked once, from a root held open since the
//! start, and what is judged is what is acted on.
//!
//! [`Host::find`] follows links by hand, component by component, and returns a [`Spot`]: the open parent
//! directory, the last name, and a handle on what stands there. Everything later works on those handles.

use bashkit::{DirEntry, FileType, Metadata};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{
    FchmodatFlags, FileStat, Mode, SFlag, UtimensatFlags, fchmod, fchmodat, fstat, mkdirat,
    utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Links followed in one look-up before it fails, as on Linux.
const MAX_LINKS: usize = 40;

/// Opens a handle on whatever stands under a name, a link included, neither following nor reading it.
#[cfg(target_os = "linux")]
const HANDLE: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlag = OFlag::from_bits_retain(nix::libc::O_SYMLINK)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

struct Root {
    spelled: PathBuf,
    canonical: PathBuf,
    handle: OwnedFd,
}

/// The directories of the host that a checkpoint can reach.
pub struct Host {
    roots: Vec<Root>,
    max_file: u64,
}

/// Where a path ends up.
pub enum Found {
    Here(Spot),
    /// Outside every root: the name, links followed as far as they led.
    Outside(PathBuf),
}

/// A name in an open directory.
pub struct Spot {
    /// The path with every link of the parents followed.
    pub path: PathBuf,
    dir: OwnedFd,
    name: OsString,
    there: Option<(OwnedFd, FileStat)>,
}

/// Identity of a file on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

#[allow(clippy::unnecessary_cast)] // the widths differ between systems
fn identity(stat: &FileStat) -> Identity {
    Identity {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
    }
}

pub(crate) fn identity_of(path: &Path) -> Option<Identity> {
    let file = File::open(path).ok()?;
    fstat(&file).ok().map(|stat| identity(&stat))
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn failed(message: &str) -> io::Error {
    io::Error::other(message.to_owned())
}

impl Spot {
    pub fn exists(&self) -> bool {
        self.there.is_some()
    }

    pub fn identity(&self) -> Option<Identity> {
        self.there.as_ref().map(|(_, stat)| identity(stat))
    }

    pub fn is_dir(&self) -> bool {
        self.kind() == Some(SFlag::S_IFDIR)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == Some(SFlag::S_IFREG)
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.there
            .as_ref()
            .is_some_and(|(_, stat)| stat.st_mode & 0o111 != 0)
    }

    fn kind(&self) -> Option<SFlag> {
        self.there.as_ref().map(|(_, stat)| kind(stat))
    }

    fn missing<T>() -> io::Result<T> {
        Err(Errno::ENOENT.into())
    }

    fn stat(&self) -> io::Result<&FileStat> {
        self.there
            .as_ref()
            .map(|(_, stat)| stat)
            .ok_or_else(|| Errno::ENOENT.into())
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.stat().map(metadata)
    }

    /// Opens what stands here and checks that it is still what was judged.
    fn open(&self, flags: OFlag) -> io::Result<File> {
        let stat = self.stat()?;
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(&self.dir, self.name.as_os_str(), flags, Mode::empty())?;
        if identity(&fstat(&file)?) != identity(stat) {
            return Err(failed("changed while it was being judged"));
        }
        Ok(File::from(file))
    }

    /// A regular file, for reading. Opening has no effect yet.
    pub fn open_content(&self) -> io::Result<File> {
        self.regular()?;
        self.open(OFlag::O_RDONLY)
    }

    fn regular(&self) -> io::Result<()> {
        match kind(self.stat()?) {
            SFlag::S_IFREG => Ok(()),
            SFlag::S_IFDIR => Err(Errno::EISDIR.into()),
            SFlag::S_IFLNK => Err(Errno::ELOOP.into()),
            _ => Err(failed("not a regular file")),
        }
    }

    /// An existing regular file for writing, neither truncated nor written yet; `None` where nothing stands.
    pub fn open_for_writing(&self, append: bool) -> io::Result<Option<File>> {
        if !self.exists() {
            return Ok(None);
        }
        self.regular()?;
        let flags = if append {
            OFlag::O_WRONLY | OFlag::O_APPEND
        } else {
            OFlag::O_WRONLY
        };
        self.open(flags).map(Some)
    }

    /// Creates the file; fails if something stands here by now.
    pub fn create(&self, append: bool) -> io::Result<File> {
        let mut flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        flags.set(OFlag::O_APPEND, append);
        Ok(File::from(openat(
            &self.dir,
            self.name.as_os_str(),
            flags,
            Mode::from_bits_truncate(0o666),
        )?))
    }

    pub(crate) fn link_target(&self) -> io::Result<PathBuf> {
        if !self.exists() {
            return Self::missing();
        }
        Ok(PathBuf::from(readlinkat(&self.dir, self.name.as_os_str())?))
    }

    pub fn entries(&self) -> io::Result<Vec<DirEntry>> {
        if !self.is_dir() {
            return Err(if self.exists() {
                Errno::ENOTDIR
            } else {
                Errno::ENOENT
            }
            .into());
        }
        let file = self.open(OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        let mut entries = Vec::new();
        let mut dir = Dir::from_fd(OwnedFd::from(file))?;
        for entry in dir.iter() {
            let entry = entry?;
            let name = entry.file_name();
            // A name that is not text cannot be judged by a rule, so it cannot be used either.
            let Ok(text) = name.to_str() else { continue };
            if text != "." && text != ".." {
                entries.push(text.to_owned());
            }
        }
        let handle = self.open(OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        let mut listed = Vec::with_capacity(entries.len());
        for name in entries {
            let stat = match openat(&handle, name.as_str(), HANDLE, Mode::empty()).and_then(fstat) {
                Ok(stat) => stat,
                Err(Errno::ENOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            listed.push(DirEntry {
                name,
                metadata: metadata(&stat),
            });
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    pub fn make_dir(&self) -> io::Result<()> {
        Ok(mkdirat(
            &self.dir,
            self.name.as_os_str(),
            Mode::from_bits_truncate(0o777),
        )?)
    }

    pub fn remove(&self) -> io::Result<()> {
        let flag = if self.is_dir() {
            UnlinkatFlags::RemoveDir
        } else {
            UnlinkatFlags::NoRemoveDir
        };
        self.unchanged()?;
        Ok(unlinkat(&self.dir, self.name.as_os_str(), flag)?)
    }

    pub fn rename_to(&self, to: &Spot) -> io::Result<()> {
        self.unchanged()?;
        to.unchanged()?;
        Ok(renameat(
            &self.dir,
            self.name.as_os_str(),
            &to.dir,
            to.name.as_os_str(),
        )?)
    }

    pub(crate) fn make_link(&self, target: &Path) -> io::Result<()> {
        Ok(symlinkat(target, &self.dir, self.name.as_os_str())?)
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        if mode & 0o7000 != 0 {
            return Err(failed("set-id and sticky bits cannot be set here"));
        }
        #[allow(clippy::unnecessary_cast)] // mode_t is narrower on macOS
        let mode = Mode::from_bits_truncate(mode as nix::libc::mode_t);
        match self.open(OFlag::O_RDONLY) {
            Ok(file) => Ok(fchmod(&file, mode)?),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unchanged()?;
                Ok(fchmodat(
                    &self.dir,
                    self.name.as_os_str(),
                    mode,
                    FchmodatFlags::NoFollowSymlink,
                )?)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.unchanged()?;
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let time = TimeSpec::from(since);
        Ok(utimensat(
            &self.dir,
            self.name.as_os_str(),
            &time,
            &time,
            UtimensatFlags::NoFollowSymlink,
        )?)
    }

    /// Acts by name in the held directory are done only on the very file that was judged.
    fn unchanged(&self) -> io::Result<()> {
        let now = match openat(&self.dir, self.name.as_os_str(), HANDLE, Mode::empty()) {
            Ok(handle) => Some(identity(&fstat(&handle)?)),
            Err(Errno::ENOENT) => None,
            Err(error) => return Err(error.into()),
        };
        if now == self.identity() {
            Ok(())
        } else {
            Err(failed("changed while it was being judged"))
        }
    }
}

fn metadata(stat: &FileStat) -> Metadata {
    let file_type = match kind(stat) {
        SFlag::S_IFDIR => FileType::Directory,
        SFlag::S_IFLNK => FileType::Symlink,
        SFlag::S_IFIFO => FileType::Fifo,
        _ => FileType::File,
    };
    let time = |seconds: i64, nanos: i64| {
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        UNIX_EPOCH + seconds + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    };
    #[allow(clippy::unnecessary_cast)] // the widths differ between systems
    Metadata {
        file_type,
        size: if file_type == FileType::Directory {
            0
        } else {
            u64::try_from(stat.st_size).unwrap_or(0)
        },
        mode: stat.st_mode as u32 & 0o7777,
        modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        created: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

/// Reads a file to its end, refusing one that is larger than `max`.
pub fn read_all(file: &mut File, max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > max {
        return Err(failed(&format!("file size limit exceeded ({max} bytes)")));
    }
    Ok(content)
}

/// Writes the whole content; a file that is replaced is truncated first.
pub fn write_all(file: &mut File, content: &[u8], append: bool) -> io::Result<()> {
    if !append {
        file.set_len(0)?;
    }
    file.write_all(content)
}

impl Host {
    /// Holds each root open. A root that does not exist is left out.
    pub fn new(roots: &[&Path], max_file: u64) -> Self {
        let roots = roots
            .iter()
            .filter_map(|spelled| {
                let canonical = spelled.canonicalize().ok()?;
                let handle = File::open(&canonical).ok()?;
                Some(Root {
                    spelled: spelled.to_path_buf(),
                    canonical,
                    handle: handle.into(),
                })
            })
            .collect();
        Self { roots, max_file }
    }

    pub fn max_file(&self) -> u64 {
        self.max_file
    }

    /// True for `/`, `/home` and the like: directories that only lead to a root.
    pub fn leads_to_a_root(&self, path: &Path) -> bool {
        self.roots
            .iter()
            .any(|root| root.canonical.starts_with(path) || root.spelled.starts_with(path))
    }

    fn root_of(&self, path: &Path) -> Option<(&Root, PathBuf)> {
        self.roots
            .iter()
            .find_map(|root| {
                path.strip_prefix(&root.canonical)
                    .ok()
                    .map(|rest| (root, rest.to_path_buf()))
            })
            .or_else(|| {
                self.roots.iter().find_map(|root| {
                    path.strip_prefix(&root.spelled)
                        .ok()
                        .map(|rest| (root, rest.to_path_buf()))
                })
            })
    }

    /// Walks `path`. The last component is followed only when `follow` says so.
    pub fn find(&self, path: &Path, follow: bool) -> io::Result<Found> {
        let mut path = path.to_path_buf();
        let mut links = 0;
        loop {
            let Some((root, rest)) = self.root_of(&path) else {
                // Outside the roots there is nothing to walk: `..` goes by its spelling, and may lead back in.
                path = lexical(&path);
                match self.root_of(&path) {
                    Some(_) => continue,
                    None => return Ok(Found::Outside(path)),
                }
            };
            match self.walk(root, &rest, follow)? {
                Step::There(spot) => return Ok(Found::Here(spot)),
                Step::Again { path: next, link } => {
                    links += usize::from(link);
                    if links > MAX_LINKS {
                        return Err(Errno::ELOOP.into());
                    }
                    path = next;
                }
            }
        }
    }

    fn walk(&self, root: &Root, rest: &Path, follow: bool) -> io::Result<Step> {
        let mut todo: VecDeque<Component<'_>> = rest
            .components()
            .filter(|c| !matches!(c, Component::CurDir))
            .collect();
        let mut dirs = vec![root.handle.try_clone()?];
        let mut at = root.canonical.clone();
        while let Some(component) = todo.pop_front() {
            let name = match component {
                Component::Normal(name) => name,
                Component::ParentDir => {
                    dirs.pop();
                    if !at.pop() || dirs.is_empty() {
                        return Ok(Step::Again {
                            path: extend(&at, &todo),
                            link: false,
                        });
                    }
                    continue;
                }
                _ => continue,
            };
            if name.to_str().is_none() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a name that is not text",
                ));
            }
            let last = todo.is_empty();
            let dir = dirs.last().ok_or_else(|| failed("lost the directory"))?;
            let there = match openat(dir, name, HANDLE, Mode::empty()) {
                Ok(handle) => {
                    let stat = fstat(&handle)?;
                    Some((handle, stat))
                }
                Err(Errno::ENOENT) if last => None,
                Err(error) => return Err(error.into()),
            };
            match there {
                Some((_, stat)) if kind(&stat) == SFlag::S_IFLNK && (follow || !last) => {
                    let target = PathBuf::from(readlinkat(dir, name)?);
                    let next = at.join(target);
                    return Ok(Step::Again {
                        path: extend(&next, &todo),
                        link: true,
                    });
                }
                there if last => {
                    let dir = dir.as_fd().try_clone_to_owned()?;
                    return Ok(Step::There(Spot {
                        path: at.join(name),
                        dir,
                        name: name.to_owned(),
                        there,
                    }));
                }
                Some((handle, stat)) if kind(&stat) == SFlag::S_IFDIR => {
                    dirs.push(handle);
                    at.push(name);
                }
                _ => return Err(Errno::ENOTDIR.into()),
            }
        }
        let dir = dirs.pop().ok_or_else(|| failed("lost the directory"))?;
        let stat = fstat(&dir)?;
        let handle = dir.try_clone()?;
        Ok(Step::There(Spot {
            path: at,
            dir,
            name: OsStr::new(".").to_owned(),
            there: Some((handle, stat)),
        }))
    }
}

enum Step {
    There(Spot),
    Again { path: PathBuf, link: bool },
}

fn extend(path: &Path, todo: &VecDeque<Component<'_>>) -> PathBuf {
    let mut path = path.to_path_buf();
    path.extend(todo.iter());
    path
}

/// `.` and `..` taken by their spelling.
pub fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Found, Host, read_all, write_all};
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/f"), "text").unwrap();
        (dir, path)
    }

    fn found(host: &Host, path: &Path, follow: bool) -> String {
        match host.find(path, follow) {
            Ok(Found::Here(spot)) => format!("here {} {}", spot.path.display(), spot.exists()),
            Ok(Found::Outside(path)) => format!("outside {}", path.display()),
            Err(error) => format!("error {:?}", error.kind()),
        }
    }

    #[test]
    fn links_are_followed_to_where_they_lead() {
        let (_dir, home) = home();
        let host = Host::new(&[&home], 1 << 20);
        symlink("f", home.join("a/rel")).unwrap();
        symlink(home.join("a"), home.join("abs")).unwrap();
        symlink("/etc/passwd", home.join("out")).unwrap();
        symlink("loop", home.join("loop")).unwrap();
        symlink("../../..", home.join("a/up")).unwrap();
        let at = |rest: &str| home.join(rest).display().to_string();
        assert_eq!(
            found(&host, &home.join("a/rel"), true),
            format!("here {} true", at("a/f"))
        );
        assert_eq!(
            found(&host, &home.join("a/rel"), false),
            format!("here {} true", at("a/rel"))
        );
        assert_eq!(
            found(&host, &home.join("abs/f"), true),
            format!("here {} true", at("a/f"))
        );
        assert_eq!(
            found(&host, &home.join("abs/new"), true),
            format!("here {} false", at("a/new"))
        );
        assert_eq!(found(&host, &home.join("out"), true), "outside /etc/passwd");
        assert_eq!(
            found(&host, &home.join("a/b/../f"), true),
            format!("here {} true", at("a/f"))
        );
        assert_eq!(
            found(&host, &home.join("loop"), true),
            "error FilesystemLoop"
        );
        assert_eq!(
            found(&host, &home.join("a/f/x"), true),
            "error NotADirectory"
        );
        assert_eq!(found(&host, &home.join("nope/x"), true), "error NotFound");
        assert!(found(&host, &home.join("a/up/etc/passwd"), true).starts_with("outside"));
    }

    #[test]
    fn what_was_judged_is_what_is_acted_on() {
        let (_dir, home) = home();
        let host = Host::new(&[&home], 1 << 20);
        let Ok(Found::Here(spot)) = host.find(&home.join("a/f"), true) else {
            panic!("not found")
        };
        std::fs::remove_file(home.join("a/f")).unwrap();
        std::fs::write(home.join("a/other"), "secret").unwrap();
        symlink("other", home.join("a/f")).unwrap();
        assert!(spot.open_content().is_err());
        assert!(spot.remove().is_err());
        assert!(home.join("a/f").symlink_metadata().is_ok());
    }

    #[test]
    fn files_have_a_size_limit_and_appends_append() {
        let (_dir, home) = home();
        let host = Host::new(&[&home], 4);
        let Ok(Found::Here(spot)) = host.find(&home.join("a/f"), true) else {
            panic!("not found")
        };
        assert_eq!(
            read_all(&mut spot.open_content().unwrap(), host.max_file()).unwrap(),
            b"text"
        );
        let mut file = spot.open_for_writing(true).unwrap().unwrap();
        write_all(&mut file, b"!", true).unwrap();
        assert_eq!(std::fs::read(home.join("a/f")).unwrap(), b"text!");
        assert!(read_all(&mut spot.open_content().unwrap(), host.max_file()).is_err());
    }
}
