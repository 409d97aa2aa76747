//! One transaction being filled: what it appends, and which answers it keeps for requests that are asked again.

use super::entry::{Entry, open_seal, seal};
use super::{EVENTS, Growth, KEY_ORDER, KEYS};
use crate::denial::{Denial, DenyCause, RuleName};
use dogwood_compiler::value::{EntityUid, Record};
use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use serde::{Deserialize, Serialize};

/// Answers that are kept for requests with a key; the oldest go first.
pub const MOST_KEYS: u64 = 4096;

/// The answer to a request with a key, and what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub sequence: u64,
    pub action: EntityUid,
    pub input: Record,
    /// Nothing where it was permitted.
    #[serde(with = "kept")]
    pub denial: Option<Denial>,
}

/// A denial as it is kept. The fixed refusals of checkpoints are no answers of the authority and never are.
mod kept {
    use super::{Denial, DenyCause, RuleName};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use smol_str::SmolStr;

    #[derive(Serialize, Deserialize)]
    struct Kept {
        action: SmolStr,
        target: String,
        cause: Cause,
    }

    #[derive(Serialize, Deserialize)]
    enum Cause {
        Forbidden {
            id: Option<SmolStr>,
            place: String,
            description: Option<SmolStr>,
            witness: Vec<String>,
        },
        NoPermit(Vec<String>),
        Fault(String),
    }

    pub fn serialize<S: Serializer>(denial: &Option<Denial>, to: S) -> Result<S::Ok, S::Error> {
        let kept = denial.as_ref().map(|denial| Kept {
            action: denial.action.clone(),
            target: denial.target.clone(),
            cause: match &denial.cause {
                DenyCause::Forbidden {
                    rule,
                    description,
                    witness,
                } => Cause::Forbidden {
                    id: rule.id.clone(),
                    place: rule.place.clone(),
                    description: description.clone(),
                    witness: witness.clone(),
                },
                DenyCause::NoPermit { witness } => Cause::NoPermit(witness.clone()),
                DenyCause::Fault(reason) | DenyCause::Enforcement { reason, .. } => {
                    Cause::Fault(reason.clone())
                }
            },
        });
        kept.serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Denial>, D::Error> {
        let kept = Option::<Kept>::deserialize(from)?;
        Ok(kept.map(|kept| Denial {
            action: kept.action,
            target: kept.target,
            cause: match kept.cause {
                Cause::Forbidden {
                    id,
                    place,
                    description,
                    witness,
                } => DenyCause::Forbidden {
                    rule: RuleName { id, place },
                    description,
                    witness,
                },
                Cause::NoPermit(witness) => DenyCause::NoPermit { witness },
                Cause::Fault(reason) => DenyCause::Fault(reason),
            },
        }))
    }
}

pub struct Batch<'t> {
    tx: &'t WriteTransaction,
    events: Table<'t, u64, &'static [u8]>,
    /// The last event, which is written when it is known what else happens.
    last: Option<(u64, Entry)>,
    growth: &'t mut Growth,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl<'t> Batch<'t> {
    pub(super) fn new(
        tx: &'t WriteTransaction,
        growth: &'t mut Growth,
    ) -> Result<Batch<'t>, String> {
        Ok(Batch {
            tx,
            events: tx.open_table(EVENTS).map_err(text)?,
            last: None,
            growth,
        })
    }

    /// The number the next event gets.
    pub fn next(&self) -> u64 {
        self.growth.next
    }

    pub fn append(&mut self, entry: &Entry) -> Result<u64, String> {
        let sequence = self.growth.next;
        self.growth.appended(entry.time);
        if let Some((sequence, entry)) = self.last.replace((sequence, entry.clone())) {
            self.write(sequence, &entry)?;
        }
        Ok(sequence)
    }

    fn write(&mut self, sequence: u64, entry: &Entry) -> Result<(), String> {
        let bytes = seal(&sequence.to_le_bytes(), entry)?;
        self.events
            .insert(sequence, bytes.as_slice())
            .map_err(text)?;
        self.growth.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Nothing else happens in this transaction.
    pub(super) fn end(mut self) -> Result<(), String> {
        let Some((sequence, mut entry)) = self.last.take() else {
            return Ok(());
        };
        entry.open_from = self.growth.open.first().copied();
        self.write(sequence, &entry)
    }

    /// Notes that the last event is a request that is permitted, and its outcome not known.
    pub fn leave_open(&mut self) {
        if let Some((sequence, entry)) = &mut self.last {
            entry.permitted = true;
            self.growth.open.insert(*sequence);
        }
    }

    /// Whether the request had not ended yet.
    pub fn close(&mut self, sequence: u64) -> bool {
        self.growth.open.remove(&sequence)
    }

    /// What the request with this key was answered.
    pub fn answered(&self, key: &str) -> Result<Option<Answered>, String> {
        let keys = self.tx.open_table(KEYS).map_err(text)?;
        let Some(bytes) = keys.get(key).map_err(text)? else {
            return Ok(None);
        };
        open_seal(key.as_bytes(), bytes.value())
            .map(Some)
            .map_err(|reason| format!("the answer kept under a key is not readable: {reason}"))
    }

    pub fn keep_answer(&mut self, key: &str, answered: &Answered) -> Result<(), String> {
        let mut keys = self.tx.open_table(KEYS).map_err(text)?;
        let mut order = self.tx.open_table(KEY_ORDER).map_err(text)?;
        let bytes = seal(key.as_bytes(), answered)?;
        keys.insert(key, bytes.as_slice()).map_err(text)?;
        order.insert(answered.sequence, key).map_err(text)?;
        while order.len().map_err(text)? > MOST_KEYS {
            let Some((_, oldest)) = order.pop_first().map_err(text)? else {
                break;
            };
            keys.remove(oldest.value()).map_err(text)?;
        }
        Ok(())
    }
}
