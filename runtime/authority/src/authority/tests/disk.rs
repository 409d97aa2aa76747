//! A disk that breaks where it is told to.

use redb::StorageBackend;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle; the disk outlives whoever writes to it.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    /// What was synced.
    durable: Vec<u8>,
    /// What was written since, in order.
    pending: Vec<Change>,
    /// What is read: both.
    seen: Vec<u8>,
    /// Writes, changes of length and syncs so far.
    operations: u64,
    breaks: Breaks,
}

/// How the disk breaks.
#[derive(Clone, Copy, Debug, Default)]
pub enum Breaks {
    #[default]
    Never,
    /// This operation and every later one fails: the process is gone.
    From(u64),
    /// Only this one fails.
    Once(u64),
    /// There is no room for more bytes than this.
    Full(usize),
    /// Syncs say that they are done and do nothing.
    Lies,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

const SECTOR: usize = 512;

impl Change {
    /// Applied in the sectors that `keeps` says.
    fn apply(&self, bytes: &mut Vec<u8>, mut keeps: impl FnMut() -> bool) {
        match self {
            Change::Length(length) => bytes.resize(*length, 0),
            Change::Write(at, written) => {
                for (sector, part) in written.chunks(SECTOR).enumerate() {
                    let start = at + sector * SECTOR;
                    if keeps() {
                        if bytes.len() < start + part.len() {
                            bytes.resize(start + part.len(), 0);
                        }
                        bytes[start..start + part.len()].copy_from_slice(part);
                    }
                }
            }
        }
    }
}

/// Small numbers in a fixed order.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

impl Disk {
    pub fn holding(bytes: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(Platter {
            durable: bytes.clone(),
            seen: bytes,
            ..Platter::default()
        })))
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap()
    }

    pub fn breaking(self, breaks: Breaks) -> Disk {
        self.platter().breaks = breaks;
        self
    }

    pub fn operations(&self) -> u64 {
        self.platter().operations
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.platter().seen.clone()
    }

    /// What is on the disk after the power went: of what was not synced some writes, some not, some in part.
    pub fn after_power_loss(&self, dice: &mut Dice) -> Vec<u8> {
        let platter = self.platter();
        let mut bytes = platter.durable.clone();
        for change in &platter.pending {
            match dice.roll(3) {
                0 => {}
                1 => change.apply(&mut bytes, || true),
                _ => change.apply(&mut bytes, || dice.roll(2) == 0),
            }
        }
        bytes
    }
}

impl Platter {
    fn operation(&mut self, grows_to: usize) -> Result<(), Error> {
        let number = self.operations;
        self.operations += 1;
        match self.breaks {
            Breaks::From(first) if number >= first => Err(Error::other("the disk is gone")),
            Breaks::Once(only) if number == only => Err(Error::other("the disk stumbled")),
            Breaks::Full(room) if grows_to > room => Err(Error::new(
                ErrorKind::StorageFull,
                "no space left on the disk",
            )),
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen, || true);
        self.pending.push(change);
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.platter().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let platter = self.platter();
        let start = usize::try_from(offset).unwrap();
        let found = platter.seen.get(start..start + out.len());
        out.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let length = usize::try_from(len).unwrap();
        let mut platter = self.platter();
        platter.operation(length)?;
        platter.change(Change::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        let mut platter = self.platter();
        platter.operation(0)?;
        if !matches!(platter.breaks, Breaks::Lies) {
            let Platter {
                durable, pending, ..
            } = &mut *platter;
            for change in pending.drain(..) {
                change.apply(durable, || true);
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let start = usize::try_from(offset).unwrap();
        let mut platter = self.platter();
        platter.operation(start + data.len())?;
        platter.change(Change::Write(start, data.into()));
        Ok(())
    }
}
