//! How much an interner holds.

use super::{Interner, Stored, Val};
use crate::value::EntityUid;
use smol_str::SmolStr;
use std::mem::size_of;

/// Held for a text beside itself: short ones are kept in place.
pub(crate) fn text_bytes(text: &SmolStr) -> usize {
    if text.is_heap_allocated() {
        // Two counters, and the text.
        2 * size_of::<usize>() + text.len()
    } else {
        0
    }
}

impl Interner {
    pub(crate) fn bytes(&self) -> usize {
        let inside = self.values.iter().flatten().map(|stored| match stored {
            Stored::Str(text) | Stored::BadDecimal(text) | Stored::Type(text) => text_bytes(text),
            Stored::Entity(uid) => {
                size_of::<EntityUid>() + text_bytes(&uid.ty) + text_bytes(&uid.id)
            }
            Stored::Array(items) => items.capacity() * size_of::<Val>(),
            Stored::Object(fields) => {
                let names = fields.iter().map(|(name, _)| text_bytes(name));
                fields.capacity() * size_of::<(SmolStr, Val)>() + names.sum::<usize>()
            }
        });
        self.values.capacity() * size_of::<Option<Stored>>()
            + self.ids.allocation_size()
            + self.free.capacity() * size_of::<u32>()
            + inside.sum::<usize>()
    }
}
