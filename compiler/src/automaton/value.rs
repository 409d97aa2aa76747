//! Values inside the automata: 16 bytes, `Copy`, and equal exactly when the language says equal.
//!
//! Numbers stay numbers; strings, entities, arrays and objects are interned. A decimal is kept scaled, so
//! `1.5` and `1.50` are one value. What no row holds any more is released by [`Interner::sweep`], which the
//! monitor runs each time the table has doubled: memory follows what is live, at constant amortised cost.

use crate::value::{EntityUid, Value};
use smol_str::SmolStr;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Val {
    Null,
    Bool(bool),
    Int(i64),
    /// Scaled by 10,000.
    Decimal(i64),
    Ref(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stored {
    Str(SmolStr),
    /// A decimal that is not well-formed equals only the same text.
    BadDecimal(SmolStr),
    Entity(EntityUid),
    Array(Vec<Val>),
    Object(Vec<(SmolStr, Val)>),
}

/// Below this many values a sweep is not worth its time.
const SMALL: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    values: Vec<Option<Arc<Stored>>>,
    ids: HashMap<Arc<Stored>, u32>,
    free: Vec<u32>,
    /// The constants of the policy come first and stay.
    pinned: usize,
    sweep_at: usize,
}

impl Interner {
    pub fn value(&mut self, value: &Value) -> Val {
        match value {
            Value::Null => Val::Null,
            Value::Bool(b) => Val::Bool(*b),
            Value::Int(n) => Val::Int(*n),
            Value::String(s) => self.store(Stored::Str(s.clone())),
            Value::Decimal(text) => self.decimal(text),
            Value::Entity(uid) => self.entity(uid),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item)).collect();
                self.store(Stored::Array(items))
            }
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), self.value(value)))
                    .collect();
                self.store(Stored::Object(fields))
            }
        }
    }

    pub fn string(&mut self, text: &SmolStr) -> Val {
        self.store(Stored::Str(text.clone()))
    }

    pub fn entity(&mut self, uid: &EntityUid) -> Val {
        self.store(Stored::Entity(uid.clone()))
    }

    pub fn decimal(&mut self, text: &SmolStr) -> Val {
        match parse_decimal(text) {
            Some(scaled) => Val::Decimal(scaled),
            None => self.store(Stored::BadDecimal(text.clone())),
        }
    }

    pub fn array(&mut self, items: Vec<Val>) -> Val {
        self.store(Stored::Array(items))
    }

    fn store(&mut self, stored: Stored) -> Val {
        if let Some(&id) = self.ids.get(&stored) {
            return Val::Ref(id);
        }
        let stored = Arc::new(stored);
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.values.push(None);
                u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(place) = self.values.get_mut(id as usize) {
            *place = Some(Arc::clone(&stored));
        }
        self.ids.insert(stored, id);
        Val::Ref(id)
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
            let Val::Ref(id) = val else { continue };
            let Some(mark) = marked.get_mut(id as usize) else {
                continue;
            };
            if std::mem::replace(mark, true) {
                continue;
            }
            match self.values.get(id as usize).and_then(Option::as_deref) {
                Some(Stored::Array(items)) => work.extend(items),
                Some(Stored::Object(fields)) => work.extend(fields.iter().map(|(_, v)| *v)),
                _ => {}
            }
        }
        let places = self
            .values
            .iter_mut()
            .zip(marked)
            .enumerate()
            .skip(self.pinned);
        for (id, (place, marked)) in places {
            if !marked && let Some(stored) = place.take() {
                self.ids.remove(&stored);
                self.free.push(u32::try_from(id).unwrap_or(u32::MAX));
            }
        }
        self.sweep_at = self.ids.len().saturating_mul(2);
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
        let constant = values.string(&"constant".into());
        values.pin();
        let element = values.string(&"element".into());
        let held = values.array(vec![element]);
        for n in 0..100 {
            values.string(&SmolStr::new(format!("gone {n}")));
        }
        values.sweep(vec![held]);
        assert_eq!(values.len(), 3);
        assert_eq!(values.string(&"constant".into()), constant);
        assert_eq!(values.array(vec![element]), held);
        let before = values.values.len();
        values.string(&"new".into());
        assert_eq!(values.values.len(), before);
    }
}
