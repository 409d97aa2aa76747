//! The operations: decided, acted and reported, each on the handle that was resolved.

use super::probe::{looked_for, program_metadata, shows_links, shows_metadata};
use super::reach::Target;
use super::{PolicyFs, denied, directory, is_staged_name, missing, plain_file, to_io};
use crate::admission::{REFUSED, REFUSED_DIR};
use crate::decide::{Effect, finish, refusal_text};
use crate::host::{Found, lexical, read_all, write_all};
use bashkit::{DirEntry, FileSystem, FileType, Metadata};
use box_authority::action::{FsDelete, FsRead, FsResult, FsWrite, Outcome};
use box_authority::gate::Permit;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A permitted step of an operation that needs several.
type Legs = Vec<Box<dyn Permit>>;

impl PolicyFs {
    pub(super) async fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
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

    pub(super) async fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        if is_staged_name(path) {
            self.state()
                .staged
                .insert(path.to_path_buf(), content.to_vec());
            return Ok(());
        }
        self.put(path, content, false).await
    }

    pub(super) async fn append(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(staged) = self.state().staged.get_mut(path) {
            staged.extend_from_slice(content);
            return Ok(());
        }
        self.put(path, content, true).await
    }

    pub(super) async fn make(&self, path: &Path, recursive: bool) -> io::Result<()> {
        if recursive {
            return self.make_dirs(path).await;
        }
        let target = self.locate(path, false).await?;
        if self.kind(&target).await.is_some() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "File exists"));
        }
        self.make_dir(&target).await
    }

    pub(super) async fn take_away(&self, path: &Path, recursive: bool) -> io::Result<()> {
        if self.state().staged.remove(path).is_some() {
            return Ok(());
        }
        let target = self.locate(path, false).await?;
        match self.kind(&target).await {
            None => Err(missing()),
            Some(FileType::Directory) if recursive => self.remove_tree(path).await,
            Some(kind) => self.remove_one(&target, kind == FileType::Directory).await,
        }
    }

    /// Does not follow the last link: the interpreter resolves links itself by asking for each.
    pub(super) async fn look(&self, path: &Path) -> io::Result<Metadata> {
        if path.starts_with(REFUSED_DIR) {
            return Ok(plain_file(0));
        }
        if let Some(len) = self.staged(path) {
            return Ok(plain_file(u64::try_from(len).unwrap_or(u64::MAX)));
        }
        if is_staged_name(path) {
            return Err(missing());
        }
        let tool = self.session.tool();
        if let Some(answer) = self.program_look_up(path, tool.as_ref()) {
            return answer;
        }
        let target = self.locate(path, false).await?;
        let is_link = self.kind(&target).await == Some(FileType::Symlink);
        if is_link && !tool.as_ref().is_some_and(shows_links) {
            self.note_link(path);
            return self.metadata_of(&target).await;
        }
        if self.is_probe(path, tool.as_ref()) {
            return self.metadata_of(&target).await;
        }
        let effect = looked_for(tool.as_ref());
        let by_builtin = tool
            .as_ref()
            .is_some_and(|tool| tool.main && !tool.runs_text);
        // One builtin may look at one file several times; the script sees one look.
        if by_builtin
            && self
                .state()
                .looked
                .contains(&(effect, target.path().to_path_buf()))
        {
            return self.metadata_of(&target).await;
        }
        let permit = self.permit(effect, &target)?;
        self.state()
            .looked
            .push((effect, target.path().to_path_buf()));
        let result = match self.metadata_of(&target).await {
            Err(error) if error.kind() == ErrorKind::NotFound && self.is_searched(&target) => {
                program_metadata(target.path())
            }
            result => result,
        };
        // That nothing is there is an answer too.
        permit.complete(Outcome::Fs(FsResult::Completed));
        result
    }

    pub(super) async fn entries(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let target = self.locate(path, true).await?;
        match self.kind(&target).await {
            Some(FileType::Directory) => {}
            None if self.host.leads_to_a_root(target.path()) => {}
            None => return Err(missing()),
            Some(_) => return Err(io::Error::other("not a directory")),
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
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(entries)
    }

    pub(super) async fn move_to(&self, from: &Path, to: &Path) -> io::Result<()> {
        let staged = self.state().staged.remove(from);
        if let Some(content) = staged {
            return self.put(to, &content, false).await;
        }
        let from = self.locate(from, false).await?;
        let to = self.locate(to, false).await?;
        self.rename_at(&from, &to).await
    }

    pub(super) async fn duplicate(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = self.locate(from, true).await?;
        let content = self.content(&from).await?;
        let mode = self
            .metadata_of(&from)
            .await
            .ok()
            .map(|metadata| metadata.mode);
        let to = self.locate(to, true).await?;
        self.put_at(&to, &content, false, mode).await
    }

    pub(super) async fn link(&self, target: &Path, link: &Path) -> io::Result<()> {
        let place = self.locate(link, false).await?;
        if self.kind(&place).await.is_some() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "File exists"));
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
        result
    }

    pub(super) async fn link_target(&self, path: &Path) -> io::Result<PathBuf> {
        let target = self.locate(path, false).await?;
        // The interpreter follows links by reading them; what they lead to is decided instead.
        let explicit = self.session.tool().is_some_and(|tool| shows_links(&tool));
        let permit = match explicit {
            true => Some(self.permit(Effect::Read(FsRead::ReadLink), &target)?),
            false => None,
        };
        let result = match &target {
            Target::Memory(path) => self.memory.read_link(path).await.map_err(to_io),
            Target::Host(spot) => spot.link_target(),
        };
        if let Some(permit) = permit {
            finish(permit, &result);
        }
        result
    }

    pub(super) async fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
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
        result
    }

    pub(super) async fn set_time(&self, path: &Path, time: SystemTime) -> io::Result<()> {
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
        result
    }

    // --- steps ---

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
            self.session.refused_effect(path, &text);
            denied(text)
        };
        let permit = self
            .session
            .ask
            .effect(effect, path)
            .map_err(|denial| refuse(refusal_text(&denial)))?;
        if let Some(reason) = self.below_the_floor(effect, target) {
            permit.complete(Outcome::Failed);
            let denial = self.session.ask.floor(effect, path, &reason);
            self.session.ask.record(effect, path, &denial);
            return Err(refuse(refusal_text(&denial)));
        }
        Ok(permit)
    }

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
                let effect = Effect::Read(FsRead::ReadContent);
                // The interpreter tries a missing file again with its links resolved.
                if self.state().looked.contains(&(effect, path.clone())) {
                    return Err(missing());
                }
                let permit = self.permit(effect, target)?;
                if self.memory.stat(path).await.is_err() {
                    self.state().looked.push((effect, path.clone()));
                }
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
