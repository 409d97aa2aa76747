//! The values of an interner, written down and read back under their numbers.

use super::{Interner, Stored, hash, hash_of};

impl Interner {
    /// The constants of the policy, by number.
    pub(crate) fn constants(&self) -> &[Option<Stored>] {
        self.values.get(..self.pinned).unwrap_or(&[])
    }

    /// What came after the constants of the policy, by number.
    pub(crate) fn saved(&self) -> Vec<Option<Stored>> {
        self.values.iter().skip(self.pinned).cloned().collect()
    }

    /// Takes saved values in behind the constants. Nothing, where one has two numbers or needs none.
    pub(crate) fn restore(&mut self, saved: Vec<Option<Stored>>) -> Option<()> {
        for place in saved {
            let id = u32::try_from(self.values.len()).ok()?;
            match place {
                None => self.free.push(id),
                Some(stored) if stored.is_short() => return None,
                Some(stored) => {
                    let code = hash(&self.hasher, stored.key());
                    if self.find(code, stored.key()).is_some() {
                        return None;
                    }
                    self.values.push(Some(stored));
                    let (values, hasher) = (&self.values, &self.hasher);
                    self.ids
                        .insert_unique(code, id, |id| hash_of(values, hasher, *id));
                    continue;
                }
            }
            self.values.push(None);
        }
        Some(())
    }
}
