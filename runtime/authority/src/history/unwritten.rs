//! What happened and is not durable yet: events, and answers that are kept for requests that are asked again.

use super::entry::{Entry, Filling, open_seal, seal};
use super::{EVENTS, KEY_ORDER, KEYS, text};
use crate::denial::{Denial, DenyCause, RuleName};
use dogwood_compiler::value::{EntityUid, Record};
use redb::{ReadableTableMetadata, WriteTransaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A row that has so many bytes takes no more events.
const FULL: usize = 32 * 1024;
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

/// Filled event by event, written as one transaction.
pub(super) struct Unwritten {
    /// The ordinal of the next row.
    ordinal: u64,
    /// By the numbers of their first events.
    rows: Vec<(u64, Vec<u8>)>,
    filling: Option<Filling>,
    /// The last event, which is put into a row when it is known what else happens.
    last: Option<(u64, Entry)>,
    /// By key: the number of the request, and the sealed answer.
    answers: BTreeMap<String, (u64, Vec<u8>)>,
}

impl Unwritten {
    pub fn new(ordinal: u64) -> Unwritten {
        Unwritten {
            ordinal,
            rows: Vec::new(),
            filling: None,
            last: None,
            answers: BTreeMap::new(),
        }
    }

    /// The number of the first event.
    pub fn first(&self) -> Option<u64> {
        let row = self.rows.first().map(|(first, _)| *first);
        let filling = self.filling.as_ref().map(|filling| filling.first);
        let last = self.last.as_ref().map(|(sequence, _)| *sequence);
        row.or(filling).or(last)
    }

    /// Takes the next event in. Bytes by which what is stored grows.
    pub fn append(&mut self, sequence: u64, entry: Entry) -> Result<usize, String> {
        match self.last.replace((sequence, entry)) {
            Some((before, entry)) => self.put(before, &entry),
            None => Ok(0),
        }
    }

    fn put(&mut self, sequence: u64, entry: &Entry) -> Result<usize, String> {
        // What grows old together is dropped together.
        let goes_on = |row: &mut Filling| row.time == entry.time && row.len() < FULL;
        let mut row = match self.filling.take_if(goes_on) {
            Some(row) => row,
            None => {
                self.end_row();
                self.ordinal = self.ordinal.saturating_add(1);
                Filling::new(sequence, self.ordinal - 1, entry.time)?
            }
        };
        let before = row.len();
        row.push(entry)?;
        let grown = row.len() - before;
        self.filling = Some(row);
        Ok(grown)
    }

    fn end_row(&mut self) {
        let row = self.filling.take();
        self.rows.extend(row.map(|row| (row.first, row.seal())));
    }

    /// The last event is a request that is permitted. Its number.
    pub fn permit(&mut self) -> Option<u64> {
        let (sequence, entry) = self.last.as_mut()?;
        entry.permitted = true;
        Some(*sequence)
    }

    /// Nothing else happens before this is written.
    pub fn end(&mut self, open_from: Option<u64>) -> Result<usize, String> {
        let Some((sequence, mut entry)) = self.last.take() else {
            return Ok(0);
        };
        entry.open_from = open_from;
        let grown = self.put(sequence, &entry)?;
        self.end_row();
        Ok(grown)
    }

    pub fn keep_answer(&mut self, key: &str, answered: &Answered) -> Result<(), String> {
        let bytes = seal(key.as_bytes(), answered)?;
        let kept = (answered.sequence, bytes);
        self.answers.insert(key.to_owned(), kept);
        Ok(())
    }

    /// The sealed answer to the request with this key.
    pub fn answer(&self, key: &str) -> Option<&[u8]> {
        self.answers.get(key).map(|(_, bytes)| bytes.as_slice())
    }

    /// Moves everything into a transaction.
    pub fn write(&mut self, tx: &WriteTransaction) -> Result<(), String> {
        let mut events = tx.open_table(EVENTS).map_err(text)?;
        for (first, bytes) in self.rows.drain(..) {
            events.insert(first, bytes.as_slice()).map_err(text)?;
        }
        if self.answers.is_empty() {
            return Ok(());
        }
        let mut keys = tx.open_table(KEYS).map_err(text)?;
        let mut order = tx.open_table(KEY_ORDER).map_err(text)?;
        for (key, (sequence, bytes)) in std::mem::take(&mut self.answers) {
            let key = key.as_str();
            keys.insert(key, bytes.as_slice()).map_err(text)?;
            order.insert(sequence, key).map_err(text)?;
        }
        while order.len().map_err(text)? > MOST_KEYS {
            let Some((_, oldest)) = order.pop_first().map_err(text)? else {
                break;
            };
            keys.remove(oldest.value()).map_err(text)?;
        }
        Ok(())
    }
}

/// The answer as it was kept under a key.
pub(super) fn answered(key: &str, sealed: &[u8]) -> Result<Answered, String> {
    open_seal(key.as_bytes(), sealed)
        .map_err(|reason| format!("the answer kept under a key is not readable: {reason}"))
}
