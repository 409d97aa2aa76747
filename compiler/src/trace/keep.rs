//! How much of an event is kept when it is read.

use crate::value::Value;
use smol_str::SmolStr;

/// What is kept of a value.
#[derive(Clone, Copy, Debug)]
pub enum Keep<'k> {
    All,
    /// Of a record these fields, of anything else nothing.
    Only(&'k [Wanted]),
}

/// A field that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    name: SmolStr,
    /// The fields of it that are, where that is not all of it.
    below: Option<Vec<Wanted>>,
}

impl Wanted {
    /// The fields on the way to the ends of these paths, and all that is found there.
    pub fn paths<'p>(paths: impl IntoIterator<Item = &'p [SmolStr]>) -> Vec<Wanted> {
        let mut found = Vec::new();
        for path in paths {
            add(&mut found, path);
        }
        found
    }
}

fn add(wanted: &mut Vec<Wanted>, path: &[SmolStr]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let at = match wanted.iter().position(|known| known.name == *first) {
        Some(at) => at,
        None => {
            wanted.push(Wanted {
                name: first.clone(),
                below: Some(Vec::new()),
            });
            wanted.len() - 1
        }
    };
    let Some(field) = wanted.get_mut(at) else {
        return;
    };
    match &mut field.below {
        Some(_) if rest.is_empty() => field.below = None,
        Some(below) => add(below, rest),
        None => {}
    }
}

impl<'k> Keep<'k> {
    pub(super) const NOTHING: Keep<'static> = Keep::Only(&[]);

    pub(super) fn all(self) -> bool {
        matches!(self, Keep::All)
    }

    /// The same of something that is no record.
    pub(super) fn whole(self) -> Keep<'k> {
        match self {
            Keep::All => Keep::All,
            Keep::Only(_) => Keep::NOTHING,
        }
    }

    /// What is kept of a field.
    pub(super) fn below(self, name: &str) -> Keep<'k> {
        let Keep::Only(wanted) = self else {
            return Keep::All;
        };
        match wanted.iter().find(|field| field.name == name) {
            Some(Wanted { below: None, .. }) => Keep::All,
            Some(Wanted {
                below: Some(below), ..
            }) => Keep::Only(below),
            None => Keep::NOTHING,
        }
    }

    /// Whether there is anything to keep of this.
    pub(super) fn keeps(self, value: &Value) -> bool {
        match self {
            Keep::All => true,
            Keep::Only(wanted) => !wanted.is_empty() && matches!(value, Value::Object(_)),
        }
    }

    pub(super) fn nothing(self) -> bool {
        matches!(self, Keep::Only([]))
    }
}
