//! What every checkpoint that acts on files does alike: a path is walked once to a handle, decided under the
//! name rules give it, checked against what no permit opens, and acted on through that handle.

pub use crate::decide::{Asker, Effect, Spelling, finish};
pub use crate::fs::Protected;
pub use crate::host::{Found, Host, Identity, Spot, lexical, read_all, write_all};
pub use bashkit::{DirEntry, FileType, Metadata};
