//! The state of cells as it is written down: what the rows say, nothing of how they are found.
//!
//! Terms and conditions nest; they are written in postfix order and read back with a stack, so that no
//! input, however deep, takes more of the program's own stack than a bound allows.

use super::breaks::{Ended, SavedEnded};
use super::cell::{Breaks, CellState, Held};
use super::formula::{BreakShape, CellDef, CellOp};
use super::join::SavedPair;
use super::nested::SavedNested;
use super::reread::SavedReread;
use super::row::{Arith, Cmp, Open, Residual, Row, Slot, Sym, Total};
use super::store::At;
use super::table::closed_names;
use super::value::Val;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Deeper conditions than any legal policy makes are not read back.
const DEEPEST: u32 = 1024;

#[derive(Serialize, Deserialize)]
enum Piece {
    Val(Val),
    Bottom,
    Slot(Slot),
    Arith(Arith),
    /// A tuple of an aggregate: its condition and so many terms.
    Tuple(u32),
    Total(Total, u32),
    True,
    False,
    Not,
    All(u32),
    Any(u32),
    Cmp(Cmp),
    /// The slot gets the term.
    Bind(Slot),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SavedRow(Vec<Piece>);

pub(crate) type SavedKey = Vec<Val>;

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SavedTable {
    pub plain: Vec<(SavedKey, Vec<At>)>,
    pub open: Vec<(SavedRow, Vec<At>)>,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum SavedCount {
    /// Stamp and summand, by stamp.
    Points(Vec<(i64, i64)>),
    Rows(Vec<(SavedKey, Vec<At>)>),
}

#[derive(Serialize, Deserialize)]
pub(crate) enum SavedBreaks {
    General,
    Parts(Vec<SavedEnded>),
}

#[derive(Serialize, Deserialize)]
pub(crate) enum SavedState {
    Formerly(SavedTable),
    /// The older ones first.
    Previous([Option<(At, Vec<SavedRow>)>; 2]),
    Since(SavedTable, SavedBreaks),
    Window(Vec<(SavedKey, SavedCount)>),
    Pair(Vec<SavedPair>),
    Nested(SavedNested),
    Reread(SavedReread),
}

impl CellState {
    pub fn saved(&self, def: &CellDef) -> SavedState {
        match self {
            CellState::Formerly(table) => SavedState::Formerly(table.saved()),
            CellState::Previous { older, newer } => {
                let saved = |held: &Option<Held>| {
                    held.as_ref().map(|held| {
                        let rows = held.rows.iter();
                        let closed = rows.map(|row| closed_names(row.clone(), &def.columns));
                        (held.at, closed.map(|row| SavedRow::of(&row)).collect())
                    })
                };
                SavedState::Previous([saved(older), saved(newer)])
            }
            CellState::Since { anchors, breaks } => SavedState::Since(
                anchors.saved(),
                match breaks {
                    Breaks::General => SavedBreaks::General,
                    Breaks::Parts(parts) => {
                        SavedBreaks::Parts(parts.iter().map(Ended::saved).collect())
                    }
                },
            ),
            CellState::Window(counts) => SavedState::Window(counts.saved()),
            CellState::Pair(joint) => SavedState::Pair(joint.saved()),
            CellState::Nested(nested) => SavedState::Nested(nested.saved()),
            CellState::Reread(reread) => SavedState::Reread(reread.saved()),
        }
    }

    /// Takes the rows over into a state that has none. Nothing, where they do not fit the cell.
    pub fn restore(&mut self, def: &CellDef, saved: SavedState) -> Option<()> {
        match (self, saved) {
            (CellState::Formerly(table), SavedState::Formerly(saved)) => table.restore(saved, def),
            (CellState::Previous { older, newer }, SavedState::Previous([first, second])) => {
                *older = held(first, def)?;
                *newer = held(second, def)?;
                Some(())
            }
            (CellState::Since { anchors, breaks }, SavedState::Since(table, saved)) => {
                anchors.restore(table, def)?;
                match (breaks, saved) {
                    (Breaks::General, SavedBreaks::General) => Some(()),
                    (Breaks::Parts(ended), SavedBreaks::Parts(saved)) => {
                        let CellOp::Since {
                            breaks: BreakShape::Parts(parts),
                            ..
                        } = &def.op
                        else {
                            return None;
                        };
                        if saved.len() != ended.len() {
                            return None;
                        }
                        let mut all = ended.iter_mut().zip(parts).zip(saved);
                        all.try_for_each(|((ended, part), saved)| {
                            ended.restore(saved, part.keys.len())
                        })
                    }
                    _ => None,
                }
            }
            (CellState::Window(counts), SavedState::Window(saved)) => counts.restore(saved),
            (CellState::Nested(nested), SavedState::Nested(saved)) => match &def.op {
                CellOp::Nested { logs, .. } => nested.restore(saved, logs),
                _ => None,
            },
            (CellState::Reread(reread), SavedState::Reread(saved)) => reread.restore(saved),
            (CellState::Pair(joint), SavedState::Pair(saved)) => {
                joint.restore(saved, def.columns.len())
            }
            _ => None,
        }
    }
}

fn held(saved: Option<(At, Vec<SavedRow>)>, def: &CellDef) -> Option<Option<Held>> {
    let Some((at, rows)) = saved else {
        return Some(None);
    };
    let rows: Option<Vec<Row>> = rows.into_iter().map(|row| row.read(def.width)).collect();
    Some(Some(Held {
        at,
        rows: Arc::new(rows?),
    }))
}

impl SavedRow {
    /// Of a row whose slots have been written out.
    pub fn of(row: &Row) -> SavedRow {
        let mut pieces = Vec::new();
        for (slot, sym) in (0..).zip(&row.vals) {
            if let Some(sym) = sym {
                write_sym(sym, &mut pieces);
                pieces.push(Piece::Bind(slot));
            }
        }
        write_residual(&row.residual, &mut pieces);
        SavedRow(pieces)
    }

    pub fn read(self, width: usize) -> Option<Row> {
        let mut row = Row::unknown(width);
        let mut stack = Stack::default();
        for piece in self.0 {
            match piece {
                Piece::Bind(slot) => {
                    let (sym, _) = stack.syms.pop()?;
                    *row.vals.get_mut(slot as usize)? = Some(sym);
                }
                piece => stack.take(piece)?,
            }
        }
        let (residual, _) = stack.residuals.pop()?;
        row.residual = residual;
        let done = stack.syms.is_empty() && stack.residuals.is_empty() && stack.tuples.is_empty();
        // Looking a slot up follows terms; one that leads back to a bound slot might never end.
        let open = |slot: &Slot| matches!(row.vals.get(*slot as usize), Some(None));
        (done && stack.slots.iter().all(open)).then_some(row)
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn write_sym(sym: &Sym, pieces: &mut Vec<Piece>) {
    match sym {
        Sym::Val(val) => pieces.push(Piece::Val(*val)),
        Sym::Bottom => pieces.push(Piece::Bottom),
        Sym::Slot(slot) => pieces.push(Piece::Slot(*slot)),
        Sym::Term(open) => match open.as_ref() {
            Open::Arith(op, left, right) => {
                write_sym(left, pieces);
                write_sym(right, pieces);
                pieces.push(Piece::Arith(*op));
            }
            Open::Total(op, tuples) => {
                for (condition, tuple) in tuples {
                    write_residual(condition, pieces);
                    tuple.iter().for_each(|sym| write_sym(sym, pieces));
                    pieces.push(Piece::Tuple(count(tuple.len())));
                }
                pieces.push(Piece::Total(*op, count(tuples.len())));
            }
        },
    }
}

fn write_residual(residual: &Residual, pieces: &mut Vec<Piece>) {
    match residual {
        Residual::True => pieces.push(Piece::True),
        Residual::False => pieces.push(Piece::False),
        Residual::Not(inner) => {
            write_residual(inner, pieces);
            pieces.push(Piece::Not);
        }
        Residual::All(parts) => {
            parts.iter().for_each(|part| write_residual(part, pieces));
            pieces.push(Piece::All(count(parts.len())));
        }
        Residual::Any(parts) => {
            parts.iter().for_each(|part| write_residual(part, pieces));
            pieces.push(Piece::Any(count(parts.len())));
        }
        Residual::Cmp(op, left, right) => {
            write_sym(left, pieces);
            write_sym(right, pieces);
            pieces.push(Piece::Cmp(*op));
        }
    }
}

/// What has been read so far, each with its depth.
#[derive(Default)]
struct Stack {
    syms: Vec<(Sym, u32)>,
    residuals: Vec<(Residual, u32)>,
    tuples: Vec<((Residual, Vec<Sym>), u32)>,
    /// Every slot that a term or condition names.
    slots: Vec<Slot>,
}

impl Stack {
    fn take(&mut self, piece: Piece) -> Option<()> {
        match piece {
            Piece::Val(val) => self.syms.push((Sym::Val(val), 0)),
            Piece::Bottom => self.syms.push((Sym::Bottom, 0)),
            Piece::Slot(slot) => {
                self.slots.push(slot);
                self.syms.push((Sym::Slot(slot), 0));
            }
            Piece::Arith(op) => {
                let ((right, r), (left, l)) = (self.syms.pop()?, self.syms.pop()?);
                let term = Sym::Term(Arc::new(Open::Arith(op, left, right)));
                self.syms.push((term, deeper(l.max(r))?));
            }
            Piece::Tuple(len) => {
                let (tuple, t) = last(&mut self.syms, len)?;
                let (condition, c) = self.residuals.pop()?;
                self.tuples.push(((condition, tuple), t.max(c)));
            }
            Piece::Total(op, len) => {
                let (tuples, depth) = last(&mut self.tuples, len)?;
                let term = Sym::Term(Arc::new(Open::Total(op, tuples)));
                self.syms.push((term, deeper(depth)?));
            }
            Piece::True => self.residuals.push((Residual::True, 0)),
            Piece::False => self.residuals.push((Residual::False, 0)),
            Piece::Not => {
                let (inner, depth) = self.residuals.pop()?;
                self.residuals
                    .push((Residual::Not(Box::new(inner)), deeper(depth)?));
            }
            Piece::All(len) => {
                let (parts, depth) = last(&mut self.residuals, len)?;
                self.residuals.push((Residual::All(parts), deeper(depth)?));
            }
            Piece::Any(len) => {
                let (parts, depth) = last(&mut self.residuals, len)?;
                self.residuals.push((Residual::Any(parts), deeper(depth)?));
            }
            Piece::Cmp(op) => {
                let ((right, r), (left, l)) = (self.syms.pop()?, self.syms.pop()?);
                self.residuals
                    .push((Residual::Cmp(op, left, right), deeper(l.max(r))?));
            }
            Piece::Bind(_) => return None,
        }
        Some(())
    }
}

fn deeper(depth: u32) -> Option<u32> {
    (depth < DEEPEST).then_some(depth + 1)
}

/// Takes the last items off, in order, with the depth of the deepest.
fn last<T>(stack: &mut Vec<(T, u32)>, len: u32) -> Option<(Vec<T>, u32)> {
    let from = stack.len().checked_sub(len as usize)?;
    let depth = stack.iter().skip(from).map(|(_, depth)| *depth).max();
    let items = stack.drain(from..).map(|(item, _)| item).collect();
    Some((items, depth.unwrap_or(0)))
}
