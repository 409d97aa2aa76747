//! File operations: resolved to a handle, decided under the resolved name, held against the floor, acted on
//! through the handle, reported. Where nothing can be resolved the question is asked all the same, so that an
//! answer tells nobody what policy hides.

use crate::protocol::{Aspect, Exception, Kind, Mode, Raised, Reply, Stat};
use crate::{Python, Request};
use box_authority::action::{FsDelete, FsRead, FsResult, FsWrite, Outcome};
use box_authority::denial::Denial;
use box_authority::gate::{Caller, Gate, Permit};
use box_shell::files::{
    Asker, Effect, FileType, Found, Host, Protected, Spelling, Spot, finish, lexical, read_all,
    write_all,
};
use nix::errno::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

const OUTSIDE: &str = "outside this box's home and every declared bind";

const READ: Effect = Effect::Read(FsRead::ReadContent);
const LOOK: Effect = Effect::Read(FsRead::ReadMetadata);
const WRITE: Effect = Effect::Write(FsWrite::WriteContent);
const MAKE: Effect = Effect::Write(FsWrite::CreateDir);

pub(super) struct Files<'p> {
    host: Host,
    protected: &'p [Protected],
    ask: Asker,
    gate: &'p dyn Gate,
    caller: Caller,
    cwd: PathBuf,
}

type Done<T> = Result<T, Raised>;

/// A place that may be acted on, once.
struct Permitted {
    spot: Spot,
    permit: Box<dyn Permit>,
}

impl<'p> Files<'p> {
    pub(super) fn new(python: &'p Python, request: &Request) -> Self {
        let config = &python.config;
        Self {
            host: Host::new(
                &[&config.home, &config.agent_home, &config.workspace],
                u64::try_from(config.limits.file).unwrap_or(u64::MAX),
            ),
            protected: &python.protected,
            ask: Asker::new(
                Arc::clone(&python.gate),
                request.caller.clone(),
                Spelling::new(config.home.clone()),
            ),
            gate: python.gate.as_ref(),
            caller: request.caller.clone(),
            cwd: lexical(&request.cwd),
        }
    }

    /// Where a script's path points before links are followed.
    fn absolute(&self, path: &str) -> Done<PathBuf> {
        if path.contains('\0') {
            return Err(Exception::Value.says("embedded null byte"));
        }
        if path.is_empty() {
            return Err(failure(Errno::ENOENT.into(), path));
        }
        Ok(self.cwd.join(path))
    }

    /// The decision about `effect` on what `path` leads to, and the place it was made about.
    fn permitted(&self, effect: Effect, path: &str, follow: bool) -> Done<Permitted> {
        let absolute = self.absolute(path)?;
        match self.host.find(&absolute, follow) {
            Ok(Found::Here(spot)) => {
                let permit = self.leg(effect, &spot)?;
                Ok(Permitted { spot, permit })
            }
            Ok(Found::Outside(outside)) => {
                let permit = self.decided(effect, &outside)?;
                Err(self.below_the_floor(permit, effect, &outside, OUTSIDE))
            }
            Err(error) => {
                let permit = self.decided(effect, &lexical(&absolute))?;
                permit.complete(Outcome::Failed);
                Err(failure(error, path))
            }
        }
    }

    fn decided(&self, effect: Effect, path: &Path) -> Done<Box<dyn Permit>> {
        self.ask.effect(effect, path).map_err(|it| denied(&it))
    }

    fn leg(&self, effect: Effect, spot: &Spot) -> Done<Box<dyn Permit>> {
        let permit = self.decided(effect, &spot.path)?;
        let takes_away = matches!(effect, Effect::Delete(_) | Effect::Move);
        let barred = self
            .protected
            .iter()
            .find_map(|it| it.bars(&spot.path, spot.identity(), takes_away));
        match barred {
            Some(reason) => Err(self.below_the_floor(permit, effect, &spot.path, &reason)),
            None => Ok(permit),
        }
    }

    /// Refuses what policy permitted and no permit opens.
    fn below_the_floor(
        &self,
        permit: Box<dyn Permit>,
        effect: Effect,
        path: &Path,
        reason: &str,
    ) -> Raised {
        permit.complete(Outcome::Failed);
        let denial = self.ask.floor(effect, path, reason);
        let action = self.ask.effect_action(effect, path);
        self.gate.record_refusal(&self.caller, &action, &denial);
        denied(&denial)
    }

    /// One decision, one act, one outcome.
    fn act<T>(
        &self,
        effect: Effect,
        path: &str,
        follow: bool,
        act: impl FnOnce(&Spot) -> io::Result<T>,
    ) -> Done<T> {
        let Permitted { spot, permit } = self.permitted(effect, path, follow)?;
        let result = act(&spot);
        finish(permit, &result);
        result.map_err(|error| failure(error, path))
    }

    pub(super) fn look(&self, path: &str, aspect: Aspect) -> Done<bool> {
        let looked = self.act(LOOK, path, aspect != Aspect::Link, |spot| {
            Ok(match aspect {
                Aspect::Exists => spot.exists(),
                Aspect::File => spot
                    .metadata()
                    .is_ok_and(|it| it.file_type == FileType::File),
                Aspect::Dir => spot.is_dir(),
                Aspect::Link => spot
                    .metadata()
                    .is_ok_and(|it| it.file_type == FileType::Symlink),
            })
        });
        match looked {
            // As Python has it: what cannot be there is not there.
            Err(raised)
                if matches!(
                    raised.exception,
                    Exception::NotFound | Exception::NotADirectory
                ) =>
            {
                Ok(false)
            }
            other => other,
        }
    }

    pub(super) fn stat(&self, path: &str) -> Done<Stat> {
        self.act(LOOK, path, true, |spot| {
            let metadata = spot.metadata()?;
            let kind = match metadata.file_type {
                FileType::File => Kind::File,
                FileType::Directory => Kind::Dir,
                FileType::Symlink => Kind::Link,
                _ => Kind::Other,
            };
            let modified = metadata.modified.duration_since(UNIX_EPOCH);
            Ok(Stat {
                kind,
                mode: metadata.mode,
                size: metadata.size,
                modified: modified.map_or(0.0, |since| since.as_secs_f64()),
            })
        })
    }

    pub(super) fn list(&self, path: &str) -> Done<Vec<String>> {
        self.act(Effect::Read(FsRead::Enumerate), path, true, |spot| {
            Ok(spot.entries()?.into_iter().map(|it| it.name).collect())
        })
    }

    /// Where the box keeps its files on the host is not told.
    pub(super) fn locate(&self, path: &str, call: &str) -> Done<Reply> {
        self.act(LOOK, path, true, |_| Ok(()))?;
        Err(Exception::Runtime.says(format!(
            "Path.{call}() is not available in a box; paths are relative to the directory the script runs in"
        )))
    }

    pub(super) fn read(&self, path: &str) -> Done<Vec<u8>> {
        self.act(READ, path, true, |spot| {
            read_all(&mut spot.open_content()?, self.host.max_file())
        })
    }

    pub(super) fn write(&self, path: &str, content: &[u8], append: bool) -> Done<()> {
        self.act(WRITE, path, true, |spot| {
            match spot.open_for_writing(append)? {
                Some(mut file) => write_all(&mut file, content, append),
                None => write_all(&mut spot.create(append)?, content, true),
            }
        })
    }

    /// The opening alone: what is read or written through it is asked for again, each time.
    pub(super) fn open(&self, path: &str, mode: Mode) -> Done<()> {
        let effect = match mode {
            Mode::Read => READ,
            Mode::Write | Mode::Append => WRITE,
        };
        let Permitted { spot, permit } = self.permitted(effect, path, true)?;
        let append = mode == Mode::Append;
        let opened = match mode {
            Mode::Read => spot.open_content().map(|_| ()),
            Mode::Write | Mode::Append => {
                spot.open_for_writing(append).and_then(|open| match open {
                    Some(mut file) => write_all(&mut file, b"", append),
                    None => spot.create(append).map(|_| ()),
                })
            }
        };
        permit.complete(match opened {
            Ok(()) => Outcome::Fs(FsResult::DescriptorIssued),
            Err(_) => Outcome::Failed,
        });
        opened.map_err(|error| failure(error, path))
    }

    pub(super) fn make_dir(&self, path: &str, parents: bool, exist_ok: bool) -> Done<()> {
        if parents {
            self.make_parents(path)?;
        }
        self.act(MAKE, path, false, |spot| match spot.make_dir() {
            Err(error)
                if exist_ok && error.kind() == io::ErrorKind::AlreadyExists && spot.is_dir() =>
            {
                Ok(())
            }
            result => result,
        })
    }

    /// One decision for each directory that is made.
    fn make_parents(&self, path: &str) -> Done<()> {
        let absolute = lexical(&self.absolute(path)?);
        let mut missing = Vec::new();
        for parent in absolute.ancestors().skip(1) {
            match self.host.find(parent, true) {
                Ok(Found::Here(spot)) if !spot.exists() => missing.push(parent),
                // Further up something else may be missing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(parent),
                _ => break,
            }
        }
        for parent in missing.into_iter().rev() {
            let spelled = parent.display().to_string();
            self.act(MAKE, &spelled, false, Spot::make_dir)?;
        }
        Ok(())
    }

    pub(super) fn remove_file(&self, path: &str) -> Done<()> {
        let effect = Effect::Delete(FsDelete::RemoveFile);
        self.act(effect, path, false, |spot| match spot.is_dir() {
            true => Err(Errno::EISDIR.into()),
            false => spot.remove(),
        })
    }

    pub(super) fn remove_dir(&self, path: &str) -> Done<()> {
        let effect = Effect::Delete(FsDelete::RemoveDir);
        self.act(effect, path, false, |spot| {
            match !spot.exists() || spot.is_dir() {
                true => spot.remove(),
                false => Err(Errno::ENOTDIR.into()),
            }
        })
    }

    /// Four questions at most; all must be permitted, and the first denial is the one to tell.
    pub(super) fn rename(&self, from: &str, to: &str) -> Done<()> {
        let Permitted { spot, permit } = self.permitted(Effect::Move, from, false)?;
        let mut legs = vec![permit];
        let renamed = self.rename_to(&spot, from, to, &mut legs);
        for leg in legs {
            finish(leg, &renamed);
        }
        renamed
    }

    fn rename_to(
        &self,
        source: &Spot,
        from: &str,
        to: &str,
        legs: &mut Vec<Box<dyn Permit>>,
    ) -> Done<()> {
        legs.push(self.leg(READ, source)?);
        let Permitted { spot, permit } = self.permitted(Effect::Move, to, false)?;
        legs.push(permit);
        if spot.exists() {
            let operation = match spot.is_dir() {
                true => FsDelete::RemoveDir,
                false => FsDelete::RemoveFile,
            };
            legs.push(self.leg(Effect::Delete(operation), &spot)?);
        }
        source.rename_to(&spot).map_err(|error| {
            let mut raised = failure(error, from);
            raised.text.push_str(&format!(" -> '{to}'"));
            raised
        })
    }
}

/// A refusal the script can catch, in the words every checkpoint uses.
fn denied(denial: &Denial) -> Raised {
    Exception::Permission.says(denial.to_string())
}

/// As Python words it.
fn failure(error: io::Error, path: &str) -> Raised {
    let Some(code) = error.raw_os_error() else {
        return Exception::Os.says(format!("{error}: '{path}'"));
    };
    let errno = Errno::from_raw(code);
    let exception = match errno {
        Errno::ENOENT => Exception::NotFound,
        Errno::EEXIST => Exception::Exists,
        Errno::EISDIR => Exception::IsADirectory,
        Errno::ENOTDIR => Exception::NotADirectory,
        Errno::EACCES | Errno::EPERM => Exception::Permission,
        _ => Exception::Os,
    };
    let told = error.to_string();
    let told = told.split(" (os error").next().unwrap_or_default();
    exception.says(format!("[Errno {code}] {told}: '{path}'"))
}
