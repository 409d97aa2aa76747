//! Temporal leaves as networks of cells.
//!
//! ```text
//! leaf ─ formula over slots ─ asks ─ cells ─ fed by events
//!            (build, formula)         latest, anchor, previous, window, pair, nested, reread, relation
//! ```
//!
//! Each operator over the past is a *cell* whose state one event changes and one decision reads. Cells
//! of which rows would be too many keep the events of their windows instead, and those only are gone
//! through by a decision (see `nested`, `reread`). Equal cells, whatever names they use, are one. What is asked of the request is
//! not known when the past happens: a cell keeps its rows by the values matched, and where a condition
//! could not be decided yet the row carries it along (see `row`). `solve` is the one evaluator, used both
//! to bring cells up to date and to ask leaves.

mod breaks;
pub(crate) mod build;
pub(crate) mod cell;
pub(crate) mod cost;
pub(crate) mod family;
pub(crate) mod formula;
mod index;
mod join;
mod keyed;
mod lasting;
mod linear;
mod narrow;
mod nested;
mod network;
mod open;
mod order;
mod ordered;
mod pairs;
mod points;
pub(crate) mod reread;
mod rewrite;
pub(crate) mod row;
pub(crate) mod saved;
mod share;
pub(crate) mod solve;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod value;
mod waiting;
pub(crate) mod window;

pub use value::parse_decimal;
