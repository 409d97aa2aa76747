//! Values inside the automata: 16 bytes, `Copy`, and equal exactly when the language says equal.
//!
//! Numbers, short texts and entities with short ids stay what they are; the others, arrays and objects are interned.
//! A decimal is kept scaled, so `1.5` and `1.50` are one value. What no row holds any more is released by
//! [`Interner::sweep`], which the monitor runs each time the table has grown by half: memory follows what is live,
//! at constant amortised cost.
//!
//! What an agent chooses is hashed here and where rows are found, with keys drawn for each process.

mod saved;
mod short;
mod size;

pub(crate) use short::Short;
pub(crate) use size::text_bytes;

use super::keyed::grow;
use crate::value::{EntityUid, Value};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::hash::{BuildHasher, Hash};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Val {
    Null,
    Bool(bool),
    Int(i64),
    /// Scaled by 10,000.
    Decimal(i64),
    /// Every string that is short enough, so that no other value is equal to it.
    Short(Short<15>),
    /// Every entity whose id is short enough, with the number of its type.
    Entity(u32, Short<11>),
    Ref(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stored {
    Str(SmolStr),
    /// A decimal that is not well-formed equals only the same text.
    BadDecimal(SmolStr),
    /// Twice as large as the rest, so apart.
    Entity(Box<EntityUid>),
    /// Of entities.
    Type(SmolStr),
    Array(Vec<Val>),
    Object(Vec<(SmolStr, Val)>),
}

/// What is stored, seen before it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key<'k> {
    Str(&'k SmolStr),
    BadDecimal(&'k SmolStr),
    Entity(&'k EntityUid),
    Type(&'k SmolStr),
    Array(&'k [Val]),
    Object(&'k [(SmolStr, Val)]),
}

impl Stored {
    fn key(&self) -> Key<'_> {
        match self {
            Stored::Str(text) => Key::Str(text),
            Stored::BadDecimal(text) => Key::BadDecimal(text),
            Stored::Entity(uid) => Key::Entity(uid),
            Stored::Type(name) => Key::Type(name),
            Stored::Array(items) => Key::Array(items),
            Stored::Object(fields) => Key::Object(fields),
        }
    }
}

impl Stored {
    /// Whether it lies in its value.
    fn is_short(&self) -> bool {
        match self {
            Stored::Str(text) => Short::<15>::new(text).is_some(),
            Stored::Entity(uid) => Short::<11>::new(&uid.id).is_some(),
            _ => false,
        }
    }
}

impl Key<'_> {
    fn stored(self) -> Stored {
        match self {
            Key::Str(text) => Stored::Str(text.clone()),
            Key::BadDecimal(text) => Stored::BadDecimal(text.clone()),
            Key::Entity(uid) => Stored::Entity(Box::new(uid.clone())),
            Key::Type(name) => Stored::Type(name.clone()),
            Key::Array(items) => Stored::Array(items.to_vec()),
            Key::Object(fields) => Stored::Object(fields.to_vec()),
        }
    }
}

/// Something that gives values their numbers.
pub(crate) trait Values {
    /// The number of what this is, now if it had none.
    fn keep(&mut self, key: Key<'_>) -> Val;

    fn value(&mut self, value: &Value) -> Val {
        match value {
            Value::Null => Val::Null,
            Value::Bool(b) => Val::Bool(*b),
            Value::Int(n) => Val::Int(*n),
            Value::String(text) => self.string(text),
            Value::Decimal(text) => self.decimal(text),
            Value::Entity(uid) => self.entity(uid),
            Value::Array(items) => {
                let items: SmallVec<[Val; 8]> = items.iter().map(|item| self.value(item)).collect();
                self.keep(Key::Array(&items))
            }
            Value::Object(fields) => {
                let fields: Vec<(SmolStr, Val)> = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), self.value(value)))
                    .collect();
                self.keep(Key::Object(&fields))
            }
        }
    }

    fn string(&mut self, text: &SmolStr) -> Val {
        match Short::new(text) {
            Some(short) => Val::Short(short),
            None => self.keep(Key::Str(text)),
        }
    }

    fn entity(&mut self, uid: &EntityUid) -> Val {
        match Short::new(&uid.id) {
            Some(id) => match self.keep(Key::Type(&uid.ty)) {
                Val::Ref(ty) => Val::Entity(ty, id),
                other => other,
            },
            None => self.keep(Key::Entity(uid)),
        }
    }

    fn decimal(&mut self, text: &SmolStr) -> Val {
        match parse_decimal(text) {
            Some(scaled) => Val::Decimal(scaled),
            None => self.keep(Key::BadDecimal(text)),
        }
    }

    fn array(&mut self, items: &[Val]) -> Val {
        self.keep(Key::Array(items))
    }
}

/// Below this many values a sweep is not worth its time.
const SMALL: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    values: Vec<Option<Stored>>,
    ids: HashTable<u32>,
    hasher: RandomState,
    free: Vec<u32>,
    /// The constants of the policy come first and stay.
    pinned: usize,
    sweep_at: usize,
}

impl Values for Interner {
    fn keep(&mut self, key: Key<'_>) -> Val {
        let hash = hash(&self.hasher, key);
        if let Some(id) = self.find(hash, key) {
            return Val::Ref(id);
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                grow(&mut self.values, 1);
                self.values.push(None);
                u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(place) = self.values.get_mut(id as usize) {
            *place = Some(key.stored());
        }
        let (values, hasher) = (&self.values, &self.hasher);
        self.ids
            .insert_unique(hash, id, |id| hash_of(values, hasher, *id));
        Val::Ref(id)
    }
}

fn hash(hasher: &RandomState, key: Key<'_>) -> u64 {
    hasher.hash_one(key)
}

fn hash_of(values: &[Option<Stored>], hasher: &RandomState, id: u32) -> u64 {
    let stored = values.get(id as usize).and_then(Option::as_ref);
    stored.map_or(0, |stored| hash(hasher, stored.key()))
}

impl Interner {
    fn find(&self, hash: u64, key: Key<'_>) -> Option<u32> {
        let is = |id: &u32| match self.values.get(*id as usize) {
            Some(Some(stored)) => stored.key() == key,
            _ => false,
        };
        self.ids.find(hash, is).copied()
    }

    /// Keeps everything stored so far for good.
    pub fn pin(&mut self) {
        self.pinned = self.values.len();
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn sweep_due(&self) -> bool {
        self.ids.len() >= self.sweep_at.max(self.pinned + SMALL)
    }

    /// Releases what is neither pinned nor reachable from `live`.
    pub fn sweep(&mut self, live: Vec<Val>) {
        let mut marked = vec![false; self.values.len()];
        let mut work = live;
        while let Some(val) = work.pop() {
            let (Val::Ref(id) | Val::Entity(id, _)) = val else {
                continue;
            };
            let Some(mark) = marked.get_mut(id as usize) else {
                continue;
            };
            if std::mem::replace(mark, true) {
                continue;
            }
            match self.values.get(id as usize).and_then(Option::as_ref) {
                Some(Stored::Array(items)) => work.extend(items),
                Some(Stored::Object(fields)) => work.extend(fields.iter().map(|(_, v)| *v)),
                _ => {}
            }
        }
        let gone = |id: &usize| {
            let live = marked.get(*id).copied().unwrap_or(true);
            !live && matches!(self.values.get(*id), Some(Some(_)))
        };
        let gone: Vec<usize> = (self.pinned..self.values.len()).filter(gone).collect();
        for id in gone {
            let number = u32::try_from(id).unwrap_or(u32::MAX);
            let hash = hash_of(&self.values, &self.hasher, number);
            if let Ok(place) = self.ids.find_entry(hash, |id| *id == number) {
                place.remove();
            }
            if let Some(place) = self.values.get_mut(id) {
                *place = None;
            }
            self.free.push(number);
        }
        self.sweep_at = self.ids.len().saturating_mul(3) / 2;
    }
}

/// More values over those of an interner, which stays as it is: for questions about a history.
#[derive(Debug)]
pub(crate) struct Overlay<'i> {
    base: &'i Interner,
    more: Interner,
}

impl<'i> Overlay<'i> {
    pub fn new(base: &'i Interner) -> Overlay<'i> {
        Overlay {
            base,
            more: Interner::default(),
        }
    }
}

impl Values for Overlay<'_> {
    fn keep(&mut self, key: Key<'_>) -> Val {
        if let Some(id) = self.base.find(hash(&self.base.hasher, key), key) {
            return Val::Ref(id);
        }
        match self.more.keep(key) {
            Val::Ref(id) => {
                let first = u32::try_from(self.base.values.len()).unwrap_or(u32::MAX);
                Val::Ref(first.saturating_add(id))
            }
            other => other,
        }
    }
}

/// A decimal scaled by 10,000, if it is well-formed.
pub fn parse_decimal(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.')?;
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || fraction.len() > 4 {
        return None;
    }
    let mut scaled: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        scaled = scaled
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))?;
    }
    for _ in fraction.len()..4 {
        scaled = scaled.checked_mul(10)?;
    }
    i64::try_from(if negative { -scaled } else { scaled }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_equal_by_value_and_distinct_from_other_kinds() {
        let mut values = Interner::default();
        let short = values.value(&Value::Decimal("1.5".into()));
        assert_eq!(short, values.value(&Value::Decimal("1.50".into())));
        assert_ne!(short, values.value(&Value::str("1.5")));
        assert_ne!(
            values.value(&Value::Decimal("1.0".into())),
            values.value(&Value::Int(1))
        );
        let bad = values.value(&Value::Decimal("1.23456".into()));
        assert_ne!(bad, values.value(&Value::Decimal("1.234560".into())));
        assert_eq!(bad, values.value(&Value::Decimal("1.23456".into())));
        let nested = values.value(&Value::Array(vec![Value::Decimal("2.10".into())]));
        assert_eq!(
            nested,
            values.value(&Value::Array(vec![Value::Decimal("2.1".into())]))
        );
    }

    #[test]
    fn decimal_limits() {
        assert_eq!(parse_decimal("922337203685477.5807"), Some(i64::MAX));
        assert_eq!(parse_decimal("922337203685477.5808"), None);
        assert_eq!(parse_decimal("-922337203685477.5808"), Some(i64::MIN));
        for bad in ["1", "1.", ".5", "1.00000", "+1.0", "1.0 ", "--1.0", ""] {
            assert_eq!(parse_decimal(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_sweep_keeps_what_is_live_and_reuses_the_rest() {
        let mut values = Interner::default();
        let constant = values.string(&"constant of a policy".into());
        values.pin();
        let element = values.string(&"element of an array".into());
        let held = values.array(&[element]);
        for n in 0..100 {
            values.string(&SmolStr::new(format!("no longer held {n}")));
        }
        values.sweep(vec![held]);
        assert_eq!(values.len(), 3);
        assert_eq!(values.string(&"constant of a policy".into()), constant);
        assert_eq!(values.array(&[element]), held);
        let before = values.values.len();
        values.string(&"never seen before".into());
        assert_eq!(values.values.len(), before);
    }

    #[test]
    fn an_overlay_adds_values_of_its_own_and_leaves_the_rest() {
        let mut values = Interner::default();
        let known = values.string(&"known to the base".into());
        let mut over = Overlay::new(&values);
        assert_eq!(over.string(&"known to the base".into()), known);
        let new = over.string(&"never seen before".into());
        assert_ne!(new, known);
        assert_eq!(over.string(&"never seen before".into()), new);
        let pair = over.array(&[known, new]);
        assert_eq!(over.array(&[known, new]), pair);
        assert_ne!(over.array(&[new, known]), pair);
        assert_eq!(values.len(), 1);
    }

    #[test]
    fn entities_are_equal_by_type_and_id_wherever_they_lie() {
        let mut values = Interner::default();
        let uids = [
            EntityUid::new("Depot::Clerk", "ann"),
            EntityUid::new("Depot::Clerk", ""),
            EntityUid::new("Depot::Bay", "ann"),
            EntityUid::new("Depot::Clerk", "ann of the night"),
            EntityUid::new("Depot::Bay", "ann of the night"),
        ];
        let vals = uids.each_ref().map(|uid| values.entity(uid));
        let mut texts = Overlay::new(&values);
        let told_apart: std::collections::BTreeSet<Val> = vals
            .into_iter()
            .chain(
                ["ann", "ann of the night", "Depot::Clerk"].map(|text| texts.string(&text.into())),
            )
            .collect();
        assert_eq!(told_apart.len(), 8);
        assert_eq!(uids.each_ref().map(|uid| texts.entity(uid)), vals);
        // The number of a type stays as long as an entity of it.
        values.sweep(vec![vals[0]]);
        assert_eq!(values.len(), 1);
        values.entity(&EntityUid::new("Depot::Crew", "ann"));
        assert_eq!(values.entity(&uids[0]), vals[0]);
        assert_ne!(values.entity(&uids[2]), vals[0]);
    }
}
