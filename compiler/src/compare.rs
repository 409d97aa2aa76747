//! Two versions of a policy: which rules changed meaning, and a trace that shows it.
//!
//! ```text
//! rules ── normal form (spelling gone) ── pairs: same, reworded, changed, added, removed
//!      └── vocabulary (what either version can tell apart) ── search: the shortest trace that tells them apart
//! ```
//!
//! Equal normal forms mean the same. Unequal ones may still; then the search finds nothing, and says how far it
//! looked.

mod pairs;
mod search;
mod vocabulary;

pub use pairs::{Pair, PairKind, pairs};
pub(crate) use search::slim;
pub use search::{Bounds, Difference, Search, search};
pub use vocabulary::{Agreement, Vocabulary, vocabulary};
