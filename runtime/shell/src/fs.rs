//! The file system the interpreter sees. Every effect is resolved, decided, checked against the reach floor,
//! acted and reported, in that order, on the handle that was resolved.
//!
//! Under the operator's home, the agent's home and the workspace it is the host's ([`crate::host`]); every
//! other path lives in memory for one run and is decided all the same.
//!
//! The interpreter looks at metadata more often than the script asks for it. Such probes are told apart by who
//! acts: a builtin that reads or changes content looks first whether the file is there, and the operation
//! that follows is decided. A look that the script can see the answer of (`test`, `[[ ]]`, `ls`, `stat`, …) is
//! decided itself.

use crate::admission::{REFUSED, REFUSED_DIR, Session, Tool};
use crate::decide::{Effect, finish, refusal_text};
use crate::host::{Found, Host, Identity, Spot, identity_of, lexical, read_all, write_all};
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, InMemoryFs, Metadata, Result,
    async_trait,
};
use box_authority::action::{FsDelete, FsRead, FsResult, FsWrite, Outcome};
use box_authority::gate::Permit;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Links between the host and memory followed in one look-up.
const MAX_CROSSINGS: usize = 40;

/// Builtins whose output shows metadata.
const SHOWS_METADATA: [&str; 11] = [
    "test", "[", "ls", "stat", "du", "tree", "file", "realpath", "readlink", "pushd", "popd",
];

/// `find` predicates and actions that look at more than names and types.
const FIND_METADATA: [&str; 22] = [
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-perm",
    "-empty",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-inum",
    "-links",
    "-ls",
    "-printf",
    "-fprintf",
    "-executable",
    "-readable",
    "-writable",
];

/// Something no permit opens.
pub(crate) struct Protected {
    path: PathBuf,
    identity: Option<Identity>,
    is_dir: bool,
}

impl Protected {
    pub(crate) fn new(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Self {
            identity: identity_of(&path),
            is_dir: path.is_dir(),
            path,
        }
    }

    fn reason(&self) -> String {
        if self.is_dir {
            "the path resolves into trusted Box state".to_owned()
        } else {
            "the path resolves to an authority source that this run loaded".to_owned()
        }
    }
}

pub(crate) struct PolicyFs {
    session: Arc<Session>,
    host: Arc<Host>,
    memory: Arc<InMemoryFs>,
    protected: Arc<Vec<Protected>>,
    /// Where programs are looked up: the shell asks there for names, which is not a file effect.
    search: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Content of an in-place tool's sibling file, until it is renamed onto its target.
    staged: HashMap<PathBuf, Vec<u8>>,
    /// The last component looked at by a walk from the root downwards.
    chain: Option<PathBuf>,
    /// A link was looked at just before; the walk that follows resolves it.
    through_link: bool,
    /// Answers already given to the command that acts now.
    serial: u64,
    refused: Vec<(Effect, PathBuf, String)>,
    written: Vec<PathBuf>,
}

enum Target {
    Host(Spot),
    Memory(PathBuf),
}

impl Target {
    fn path(&self) -> &Path {
        match self {
            Target::Host(spot) => &spot.path,
            Target::Memory(path) => path,
        }
    }
}

/// A permitted step of an operation that needs several.
type Legs = Vec<Box<dyn Permit>>;

fn denied(text: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text)
}

fn missing() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "file not found")
}

fn to_io(error: bashkit::Error) -> io::Error {
    match error {
        bashkit::Error::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

fn is_staged_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(".bashkit-") && name.ends_with(".tmp"))
}

fn plain_file(size: u64) -> Metadata {
    Metadata {
        file_type: FileType::File,
        size,
        mode: 0o644,
        modified: UNIX_EPOCH,
        created: UNIX_EPOCH,
    }
}

fn directory() -> Metadata {
    Metadata {
        file_type: FileType::Directory,
        size: 0,
        mode: 0o755,
        modified: UNIX_EPOCH,
        created: UNIX_EPOCH,
    }
}

impl PolicyFs {
    pub(crate) fn new(
        session: Arc<Session>,
        host: Arc<Host>,
        memory: Arc<InMemoryFs>,
        protected: Arc<Vec<Protected>>,
        search: Vec<PathBuf>,
    ) -> Self {
        Self {
            session,
            host,
            memory,
            protected,
            search,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = self.session.serial();
        if state.serial != serial {
            state.serial = serial;
            state.refused.clear();
            state.written.clear();
            state.chain = None;
            state.through_link = false;
        }
        state
    }

    // --- where a path leads ---

    async fn locate(&self, path: &Path, follow: bool) -> io::Result<Target> {
        let mut path = path.to_path_buf();
        for _ in 0..MAX_CROSSINGS {
            match self.host.find(&path, follow)? {
                Found::Here(spot) => return Ok(Target::Host(spot)),
                Found::Outside(outside) => match self.memory_link(&outside, follow).await? {
                    Some(next) => path = next,
                    None => return Ok(Target::Memory(outside)),
                },
            }
        }
        Err(io::Error::other("Too many levels of symbolic links"))
    }

    /// The path with its first link replaced, if a link in memory lies on it.
    async fn memory_link(&self, path: &Path, follow: bool) -> io::Result<Option<PathBuf>> {
        let mut walked = PathBuf::from("/");
        let mut rest = path.strip_prefix("/").unwrap_or(path).components();
        while let Some(component) = rest.next() {
            walked.push(component);
            let last = rest.as_path().as_os_str().is_empty();
            match self.memory.stat(&walked).await {
                Ok(metadata) if metadata.file_type.is_symlink() && (follow || !last) => {
                    let target = self.memory.read_link(&walked).await.map_err(to_io)?;
                    walked.pop();
                    return Ok(Some(walked.join(target).join(rest.as_path())));
                }
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    async fn kind(&self, target: &Target) -> Option<FileType> {
        match target {
            Target::Host(spot) => spot.metadata().ok().map(|metadata| metadata.file_type),
            Target::Memory(path) => self
                .memory
                .stat(path)
                .await
                .ok()
                .map(|metadata| metadata.file_type),
        }
    }

    // --- asking ---

    fn permit(&self, effect: Effect, target: &Target) -> io::Result<Box<dyn Permit>> {
        self.session.settle();
        if let Some(text) = self.session.refused_call() {
            return Err(denied(if text.is_empty() {
                "the call was refused".to_owned()
            } else {
                text
            }));
        }
        let path = target.path();
        let known = {
            let state = self.state();
            state
                .refused
                .iter()
                .find(|(e, p, _)| *e == effect && p == path)
                .map(|(_, _, text)| text.clone())
        };
        if let Some(text) = known {
            return Err(denied(text));
        }
        let refuse = |text: String| {
            self.state()
                .refused
                .push((effect, path.to_path_buf(), text.clone()));
            denied(text)
        };
        let permit = self
            .session
            .ask
            .effect(effect, path)
            .map_err(|denial| refuse(refusal_text(&denial)))?;
        if let Some(reason) = self.below_the_floor(effect, target) {
            permit.complete(Outcome::Failed);
            return Err(refuse(refusal_text(
                &self.session.ask.floor(effect, path, &reason),
            )));
        }
        Ok(permit)
    }

    /// Deny-only, and after the decision: no permit reaches the box's own state or what it was loaded from.
    fn below_the_floor(&self, effect: Effect, target: &Target) -> Option<String> {
        let path = target.path();
        let identity = match target {
            Target::Host(spot) => spot.identity(),
            Target::Memory(_) => None,
        };
        let takes_away = matches!(effect, Effect::Delete(_) | Effect::Move);
        self.protected
            .iter()
            .find(|protected| {
                path.starts_with(&protected.path)
                    || (identity.is_some() && identity == protected.identity)
                    || (takes_away && protected.path.starts_with(path))
            })
            .map(Protected::reason)
    }

    /// True for a look that only prepares an operation which is decided itself.
    fn is_probe(&self, path: &Path, tool: Option<&Tool>) -> bool {
        let mut state = self.state();
        let parent = path.parent();
        let starts = parent == Some(Path::new("/"));
        if starts || (state.chain.is_some() && state.chain.as_deref() == parent) {
            state.chain = Some(path.to_path_buf());
            return true;
        }
        let again = state.chain.as_deref() == Some(path) && !state.through_link;
        state.chain = None;
        state.through_link = false;
        drop(state);
        if again && tool.is_none_or(|tool| tool.runs_text) {
            return true;
        }
        if self.host.leads_to_a_root(path) {
            return !tool.is_some_and(changes_dir);
        }
        match tool {
            None => false,
            Some(tool) if tool.runs_text => false,
            Some(tool) if shows_metadata(tool) || changes_dir(tool) => false,
            Some(tool) if tool.main => true,
            // The next look in a copy may be the script's own, so only what the builtin was given counts.
            Some(tool) => tool.args.iter().any(|word| names(word, path)),
        }
    }

    fn note_link(&self) {
        let mut state = self.state();
        state.through_link = true;
        state.chain = None;
    }

    /// The look-up of programs: answered from the host's directories, for those who only look names up.
    fn program_look_up(&self, path: &Path, tool: Option<&Tool>) -> Option<io::Result<Metadata>> {
        let dir = path.parent()?;
        if !self.search.iter().any(|searched| searched == dir) {
            return None;
        }
        match tool {
            // The interpreter's own search: what it would find it would read as a script. Programs are reached
            // through their stand-ins and the resolver instead.
            None => Some(Err(missing())),
            Some(tool) if tool.runs_text && tool.name != "command" => Some(Err(missing())),
            Some(tool) if ["command", "type", "which", "hash"].contains(&tool.name.as_str()) => {
                Some(match std::fs::metadata(path) {
                    Ok(metadata) if metadata.is_file() => Ok(Metadata {
                        mode: 0o755,
                        ..plain_file(metadata.len())
                    }),
                    _ => Err(missing()),
                })
            }
            Some(_) => None,
        }
    }

    // --- acting ---

    async fn metadata_of(&self, target: &Target) -> io::Result<Metadata> {
        match target {
            Target::Host(spot) => spot.metadata(),
            Target::Memory(path) => match self.memory.stat(path).await {
                Ok(metadata) => Ok(metadata),
                Err(_) if self.host.leads_to_a_root(path) => Ok(directory()),
                Err(error) => Err(to_io(error)),
            },
        }
    }

    async fn content(&self, target: &Target) -> io::Result<Vec<u8>> {
        match target {
            Target::Host(spot) => {
                let mut file = spot.open_content()?;
                let permit = self.permit(Effect::Read(FsRead::ReadContent), target)?;
                let result = read_all(&mut file, self.host.max_file());
                finish(permit, &result);
                result
            }
            Target::Memory(path) => {
                let permit = self.permit(Effect::Read(FsRead::ReadContent), target)?;
                let result = self.memory.read_file(path).await.map_err(to_io);
                finish(permit, &result);
                result
            }
        }
    }

    async fn put(&self, path: &Path, content: &[u8], append: bool) -> io::Result<()> {
        let target = self.locate(path, true).await?;
        self.put_at(&target, content, append, None).await
    }

    async fn put_at(
        &self,
        target: &Target,
        content: &[u8],
        append: bool,
        mode: Option<u32>,
    ) -> io::Result<()> {
        // Pieces of one redirection's output: decided when it was opened.
        if append && !content.is_empty() && self.session.granted(target.path()) {
            return self.store(target, None, content, append, mode).await;
        }
        let open = match target {
            Target::Host(spot) => spot.open_for_writing(append)?,
            Target::Memory(_) => None,
        };
        let permit = self.permit(Effect::Write(FsWrite::WriteContent), target)?;
        let result = self.store(target, open, content, append, mode).await;
        match (
            &result,
            self.session.opening().filter(|_| content.is_empty()),
        ) {
            (Ok(()), Some(owner)) => {
                self.session.grant(target.path(), owner);
                permit.complete(Outcome::Fs(FsResult::DescriptorIssued));
            }
            _ => finish(permit, &result),
        }
        if result.is_ok() {
            self.state().written.push(target.path().to_path_buf());
        }
        result
    }

    async fn store(
        &self,
        target: &Target,
        open: Option<std::fs::File>,
        content: &[u8],
        append: bool,
        mode: Option<u32>,
    ) -> io::Result<()> {
        match target {
            Target::Host(spot) => {
                let open = match open {
                    Some(file) => Some(file),
                    None => spot.open_for_writing(append)?,
                };
                match open {
                    Some(mut file) => write_all(&mut file, content, append),
                    None => {
                        let mut file = spot.create(append)?;
                        write_all(&mut file, content, true)?;
                        match mode {
                            Some(mode) => file.set_permissions(
                                std::os::unix::fs::PermissionsExt::from_mode(mode & 0o777),
                            ),
                            None => Ok(()),
                        }
                    }
                }
            }
            Target::Memory(path) if append => {
                self.memory.append_file(path, content).await.map_err(to_io)
            }
            Target::Memory(path) => self.memory.write_file(path, content).await.map_err(to_io),
        }
    }

    async fn make_dir(&self, target: &Target) -> io::Result<()> {
        let permit = self.permit(Effect::Write(FsWrite::CreateDir), target)?;
        let result = match target {
            Target::Host(spot) => spot.make_dir(),
            Target::Memory(path) => self.memory.mkdir(path, false).await.map_err(to_io),
        };
        finish(permit, &result);
        result
    }

    async fn make_dirs(&self, path: &Path) -> io::Result<()> {
        let mut made = PathBuf::from("/");
        for component in lexical(path).components().skip(1) {
            made.push(component);
            if self.host.leads_to_a_root(&made) {
                continue;
            }
            let target = self.locate(&made, true).await?;
            match self.kind(&target).await {
                Some(FileType::Directory) => {}
                Some(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "File exists")),
                None => self.make_dir(&target).await?,
            }
        }
        Ok(())
    }

    /// One decision an entry, children before their directory. What may not go stays, and so does what holds it.
    async fn remove_tree(&self, path: &Path) -> io::Result<()> {
        let mut first_error = None;
        let mut stack = vec![(path.to_path_buf(), false)];
        while let Some((path, opened)) = stack.pop() {
            let target = self.locate(&path, false).await?;
            let is_dir = self.kind(&target).await == Some(FileType::Directory);
            let children = if is_dir {
                self.list(&target).await
            } else {
                Ok(Vec::new())
            };
            match children {
                Ok(children) if is_dir && !opened => {
                    stack.push((path.clone(), true));
                    stack.extend(
                        children
                            .into_iter()
                            .map(|entry| (path.join(entry.name), false)),
                    );
                }
                // Something in it was refused; that is the error to tell.
                Ok(children) if !children.is_empty() => {}
                Ok(_) => {
                    if let Err(error) = self.remove_one(&target, is_dir).await {
                        first_error.get_or_insert(error);
                    }
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn remove_one(&self, target: &Target, is_dir: bool) -> io::Result<()> {
        let operation = if is_dir {
            FsDelete::RemoveDir
        } else {
            FsDelete::RemoveFile
        };
        let permit = self.permit(Effect::Delete(operation), target)?;
        let result = match target {
            Target::Host(spot) => spot.remove(),
            Target::Memory(path) => self.memory.remove(path, false).await.map_err(to_io),
        };
        finish(permit, &result);
        result
    }

    async fn list(&self, target: &Target) -> io::Result<Vec<DirEntry>> {
        match target {
            Target::Host(spot) => spot.entries(),
            Target::Memory(path) => match self.memory.read_dir(path).await {
                Ok(entries) => Ok(entries),
                Err(_) if self.host.leads_to_a_root(path) => Ok(Vec::new()),
                Err(error) => Err(to_io(error)),
            },
        }
    }

    async fn rename_at(&self, from: &Target, to: &Target) -> io::Result<()> {
        let Some(_) = self.kind(from).await else {
            return Err(missing());
        };
        let mut legs: Legs = Vec::new();
        let result = self.rename_legs(from, to, &mut legs).await;
        let result = match result {
            Ok(()) => match (from, to) {
                (Target::Host(from), Target::Host(to)) => from.rename_to(to),
                (Target::Memory(from), Target::Memory(to)) => {
                    self.memory.rename(from, to).await.map_err(to_io)
                }
                _ => self.carry(from, to).await,
            },
            Err(error) => Err(error),
        };
        for leg in legs {
            finish(leg, &result);
        }
        result
    }

    async fn rename_legs(&self, from: &Target, to: &Target, legs: &mut Legs) -> io::Result<()> {
        legs.push(self.permit(Effect::Move, from)?);
        legs.push(self.permit(Effect::Read(FsRead::ReadContent), from)?);
        match self.kind(to).await {
            Some(FileType::Directory) => {
                legs.push(self.permit(Effect::Delete(FsDelete::RemoveDir), to)?)
            }
            Some(_) => legs.push(self.permit(Effect::Delete(FsDelete::RemoveFile), to)?),
            None => {}
        }
        legs.push(self.permit(Effect::Move, to)?);
        Ok(())
    }

    /// A move between the host and memory, already permitted: plain files only.
    async fn carry(&self, from: &Target, to: &Target) -> io::Result<()> {
        let content = match from {
            Target::Host(spot) => read_all(&mut spot.open_content()?, self.host.max_file())?,
            Target::Memory(path) => self.memory.read_file(path).await.map_err(to_io)?,
        };
        self.store(to, None, &content, false, None).await?;
        match from {
            Target::Host(spot) => spot.remove(),
            Target::Memory(path) => self.memory.remove(path, false).await.map_err(to_io),
        }
    }

    fn staged(&self, path: &Path) -> Option<usize> {
        self.state().staged.get(path).map(Vec::len)
    }
}

fn changes_dir(tool: &Tool) -> bool {
    ["cd", "pushd", "popd"].contains(&tool.name.as_str())
}

fn shows_metadata(tool: &Tool) -> bool {
    SHOWS_METADATA.contains(&tool.name.as_str())
        || (tool.name == "find"
            && tool
                .args
                .iter()
                .any(|word| FIND_METADATA.contains(&word.as_str())))
}

/// Looks at the link itself rather than where it leads.
fn shows_links(tool: &Tool) -> bool {
    match tool.name.as_str() {
        "test" | "[" => tool.args.iter().any(|word| word == "-L" || word == "-h"),
        name => ["ls", "stat", "readlink", "realpath"].contains(&name),
    }
}

fn looked_for(tool: Option<&Tool>) -> Effect {
    Effect::Read(match tool {
        Some(tool) if changes_dir(tool) => FsRead::ChangeDir,
        Some(tool)
            if ["test", "["].contains(&tool.name.as_str())
                && tool.args.iter().any(|w| w == "-x") =>
        {
            FsRead::Exec
        }
        _ => FsRead::ReadMetadata,
    })
}

/// True when `path` is what the word names, lies below it, or leads to it.
fn names(word: &str, path: &Path) -> bool {
    let word = Path::new(word.strip_prefix("./").unwrap_or(word));
    let named = |part: &Path| {
        !part.as_os_str().is_empty() && path.ancestors().any(|ancestor| ancestor.ends_with(part))
    };
    named(word)
        || word
            .ancestors()
            .skip(1)
            .any(|part| !part.as_os_str().is_empty() && path.ends_with(part))
}

#[async_trait]
impl FileSystemExt for PolicyFs {
    fn limits(&self) -> FsLimits {
        FsLimits::unlimited()
    }
}

#[async_trait]
impl FileSystem for PolicyFs {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        if let Ok(id) = path.strip_prefix(REFUSED_DIR) {
            return Ok(format!("{REFUSED} {}\n", id.display()).into_bytes());
        }
        let staged = self.state().staged.get(path).cloned();
        if let Some(content) = staged {
            return Ok(content);
        }
        let target = self.locate(path, true).await?;
        let content = self.content(&target).await?;
        // A script that is read may define functions and name programs.
        if let Some(tool) = self.session.tool()
            && ["bash", "sh", "source", "."].contains(&tool.name.as_str())
            && let Ok(text) = std::str::from_utf8(&content)
        {
            self.session.learn(text);
        }
        Ok(content)
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        if is_staged_name(path) {
            self.state()
                .staged
                .insert(path.to_path_buf(), content.to_vec());
            return Ok(());
        }
        Ok(self.put(path, content, false).await?)
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        if let Some(staged) = self.state().staged.get_mut(path) {
            staged.extend_from_slice(content);
            return Ok(());
        }
        Ok(self.put(path, content, true).await?)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        if recursive {
            return Ok(self.make_dirs(path).await?);
        }
        let target = self.locate(path, false).await?;
        if self.kind(&target).await.is_some() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "File exists").into());
        }
        Ok(self.make_dir(&target).await?)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        if self.state().staged.remove(path).is_some() {
            return Ok(());
        }
        let target = self.locate(path, false).await?;
        match self.kind(&target).await {
            None => Err(missing().into()),
            Some(FileType::Directory) if recursive => Ok(self.remove_tree(path).await?),
            Some(kind) => Ok(self
                .remove_one(&target, kind == FileType::Directory)
                .await?),
        }
    }

    /// Does not follow the last link: the interpreter resolves links itself by asking for each.
    async fn stat(&self, path: &Path) -> Result<Metadata> {
        if path.starts_with(REFUSED_DIR) {
            return Ok(plain_file(0));
        }
        if let Some(len) = self.staged(path) {
            return Ok(plain_file(u64::try_from(len).unwrap_or(u64::MAX)));
        }
        if is_staged_name(path) {
            return Err(missing().into());
        }
        let tool = self.session.tool();
        if let Some(answer) = self.program_look_up(path, tool.as_ref()) {
            return Ok(answer?);
        }
        let target = self.locate(path, false).await?;
        let is_link = self.kind(&target).await == Some(FileType::Symlink);
        if is_link && !tool.as_ref().is_some_and(shows_links) {
            self.note_link();
            return Ok(self.metadata_of(&target).await?);
        }
        if self.is_probe(path, tool.as_ref()) {
            return Ok(self.metadata_of(&target).await?);
        }
        let permit = self.permit(looked_for(tool.as_ref()), &target)?;
        let result = self.metadata_of(&target).await;
        finish(permit, &result);
        Ok(result?)
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let target = self.locate(path, true).await?;
        match self.kind(&target).await {
            Some(FileType::Directory) => {}
            None if self.host.leads_to_a_root(target.path()) => {}
            None => return Err(missing().into()),
            Some(_) => return Err(io::Error::other("not a directory").into()),
        }
        let permit = self.permit(Effect::Read(FsRead::Enumerate), &target)?;
        let result = self.list(&target).await;
        finish(permit, &result);
        let mut entries = result?;
        if self
            .session
            .tool()
            .is_some_and(|tool| shows_metadata(&tool))
        {
            for entry in &mut entries {
                let child = self.locate(&target.path().join(&entry.name), false).await?;
                match self.permit(Effect::Read(FsRead::ReadMetadata), &child) {
                    Ok(permit) => permit.complete(Outcome::Fs(FsResult::Completed)),
                    Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                        entry.metadata = Metadata {
                            size: 0,
                            mode: 0,
                            ..entry.metadata.clone()
                        };
                        entry.metadata.modified = UNIX_EPOCH;
                        entry.metadata.created = UNIX_EPOCH;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        match self.stat(path).await {
            Ok(_) => Ok(true),
            Err(bashkit::Error::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let staged = self.state().staged.remove(from);
        if let Some(content) = staged {
            return Ok(self.put(to, &content, false).await?);
        }
        let from = self.locate(from, false).await?;
        let to = self.locate(to, false).await?;
        Ok(self.rename_at(&from, &to).await?)
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let from = self.locate(from, true).await?;
        let content = self.content(&from).await?;
        let mode = self
            .metadata_of(&from)
            .await
            .ok()
            .map(|metadata| metadata.mode);
        let to = self.locate(to, true).await?;
        Ok(self.put_at(&to, &content, false, mode).await?)
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        let place = self.locate(link, false).await?;
        if self.kind(&place).await.is_some() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "File exists").into());
        }
        let permit = self.permit(Effect::Write(FsWrite::Symlink), &place)?;
        let result = match &place {
            Target::Host(spot) => {
                let leads = lexical(&spot.path.parent().unwrap_or(Path::new("/")).join(target));
                match self.host.find(&leads, true) {
                    Ok(Found::Outside(_)) => Err(io::Error::other(
                        "the link would lead out of the reachable paths",
                    )),
                    _ => spot.make_link(target),
                }
            }
            Target::Memory(path) => self.memory.symlink(target, path).await.map_err(to_io),
        };
        finish(permit, &result);
        Ok(result?)
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        let target = self.locate(path, false).await?;
        let read = |target: &Target| match target {
            Target::Host(spot) => spot.link_target(),
            Target::Memory(_) => Err(missing()),
        };
        // The interpreter follows links by reading them; what they lead to is decided instead.
        let explicit = self.session.tool().is_some_and(|tool| shows_links(&tool));
        let permit = match explicit {
            true => Some(self.permit(Effect::Read(FsRead::ReadLink), &target)?),
            false => None,
        };
        let result = match &target {
            Target::Memory(path) => self.memory.read_link(path).await.map_err(to_io),
            host => read(host),
        };
        if let Some(permit) = permit {
            finish(permit, &result);
        }
        Ok(result?)
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        if self.staged(path).is_some() {
            return Ok(());
        }
        let target = self.locate(path, true).await?;
        let permit = self.permit(Effect::Write(FsWrite::SetPermissions), &target)?;
        let result = match &target {
            Target::Host(spot) => spot.set_mode(mode),
            Target::Memory(path) => self.memory.chmod(path, mode).await.map_err(to_io),
        };
        finish(permit, &result);
        Ok(result?)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        let target = self.locate(path, true).await?;
        // `touch new` writes and then dates: one effect.
        let fresh = self
            .state()
            .written
            .iter()
            .any(|written| written == target.path());
        let permit = match fresh {
            true => None,
            false => Some(self.permit(Effect::Write(FsWrite::WriteContent), &target)?),
        };
        let result = match &target {
            Target::Host(spot) => spot.set_modified(time),
            Target::Memory(path) => self
                .memory
                .set_modified_time(path, time)
                .await
                .map_err(to_io),
        };
        if let Some(permit) = permit {
            finish(permit, &result);
        }
        Ok(result?)
    }
}

#[cfg(test)]
mod tests {
    use super::names;
    use std::path::Path;

    #[test]
    fn a_word_names_itself_what_is_below_and_what_leads_to_it() {
        let path = Path::new("/h/ws/a/b");
        assert!(names("a/b", path));
        assert!(names("./a", path));
        assert!(names("a/b/c", path));
        assert!(names("/h/ws", path));
        assert!(!names("b/a", path));
        assert!(!names("", path));
        assert!(!names("x", path));
    }
}
