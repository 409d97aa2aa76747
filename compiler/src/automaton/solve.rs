//! The rows of a formula at one point of the history (language reference, "Formal semantics"), with slots
//! that may still be unknown.

use super::cell::{Breaks, CellState, key_of};
use super::formula::{
    BreakShape, CellDef, CellId, CellOp, EventTypeId, Matcher, Node, Pattern, Term, Use,
};
use super::index::Key;
use super::reread::{Known, Seen};
use super::row::{Cmp, Residual, Row, Slot, Sym, Total, arith, total};
use super::store::{At, Times, in_window};
use super::table::{Found, Table};
use super::value::Val;
use smallvec::SmallVec;

/// Longer conjunctions are joined part by part instead of row by row, to bound the stack.
const DEEP: usize = 6;

/// One point of the history, with the cells brought up to it.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub defs: &'a [CellDef],
    pub states: States<'a>,
    pub event: Option<EventTypeId>,
    /// The fields that matchers of this event type read.
    pub fields: &'a [Option<Val>],
    pub at: At,
    /// Whether an event with a later stamp has been taken in.
    pub late: bool,
    /// What is remembered while one event is decided.
    pub seen: Option<&'a Seen>,
}

/// The states of cells. What a question about an event that is not recorded has changed lies beside the rest.
#[derive(Clone, Copy)]
pub(crate) struct States<'a> {
    all: &'a [CellState],
    /// In order.
    changed: &'a [(CellId, CellState)],
}

/// Takes a joined row, its points and the values of the row found; true stops the search.
type Visit<'v> = dyn FnMut(Row, &Times, Option<&[Val]>) -> bool + 'v;

impl<'a> States<'a> {
    pub fn new(all: &'a [CellState], changed: &'a [(CellId, CellState)]) -> States<'a> {
        States { all, changed }
    }

    pub fn get(&self, cell: CellId) -> Option<&'a CellState> {
        if !self.changed.is_empty()
            && let Ok(at) = self.changed.binary_search_by_key(&cell, |(cell, _)| *cell)
        {
            return self.changed.get(at).map(|(_, state)| state);
        }
        self.all.get(cell)
    }
}

/// What [`Moment::vals`] finds.
pub(crate) enum Vals {
    None,
    One(Key),
    /// The formula says more than matchers do, or its slots are not the columns.
    Unknown,
}

/// Takes a row; true to stop.
type Emit<'e> = &'e mut dyn FnMut(Row) -> bool;

impl<'a> Moment<'a> {
    /// The same for a decision.
    pub fn seeing(self, seen: &'a Seen) -> Moment<'a> {
        let seen = Some(seen);
        Moment { seen, ..self }
    }
}

impl Moment<'_> {
    /// Whether the formula has a row, everything it asks for being known.
    pub fn holds(&self, node: &Node, row: Row) -> bool {
        self.each(node, row, &mut |mut row| {
            row.settle() && row.residual == Residual::True
        })
    }

    /// All rows of a formula of which nothing is known.
    pub fn rows(&self, node: &Node, width: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        if super::cell::can_fire(node, self.event) {
            self.each(node, Row::unknown(width), &mut |mut row| {
                if row.settle() {
                    rows.push(row);
                }
                false
            });
        }
        rows
    }

    /// Visits the rows of a flat formula as values of its columns.
    pub fn keys(&self, node: &Node, width: usize, columns: &[Slot], mut visit: impl FnMut(Key)) {
        match self.vals(node, columns) {
            Vals::One(key) => visit(key),
            Vals::None => {}
            Vals::Unknown => {
                let rows = self.rows(node, width);
                rows.iter()
                    .filter_map(|row| key_of(row, columns))
                    .for_each(visit);
            }
        }
    }

    /// The values of the columns in the one row that matchers and `tp` can have at this event.
    pub fn vals(&self, node: &Node, columns: &[Slot]) -> Vals {
        let mut found: SmallVec<[Option<Val>; 4]> = smallvec::smallvec![None; columns.len()];
        let known = match node {
            Node::And(parts) => {
                let mut known = Some(true);
                for part in parts {
                    known = self.vals_into(part, columns, &mut found);
                    if known != Some(true) {
                        break;
                    }
                }
                known
            }
            node => self.vals_into(node, columns, &mut found),
        };
        match known {
            Some(true) => match found.into_iter().collect() {
                Some(key) => Vals::One(key),
                None => Vals::Unknown,
            },
            Some(false) => Vals::None,
            None => Vals::Unknown,
        }
    }

    fn vals_into(&self, node: &Node, columns: &[Slot], found: &mut [Option<Val>]) -> Option<bool> {
        let mut set = |slot: Slot, val: Val| {
            let place = columns.iter().position(|column| *column == slot)?;
            let place = found.get_mut(place)?;
            Some(*place.get_or_insert(val) == val)
        };
        match node {
            Node::Match(matcher) if self.event == Some(matcher.event) => {
                for (place, pattern) in &matcher.patterns {
                    let Some(Some(val)) = self.fields.get(*place) else {
                        return Some(false);
                    };
                    let fits = match pattern {
                        Pattern::Present => true,
                        Pattern::Const(constant) => constant == val,
                        Pattern::Slot(slot) => set(*slot, *val)?,
                        Pattern::Never => false,
                    };
                    if !fits {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Node::Match(_) | Node::Never => Some(false),
            Node::Tp(slot) => set(*slot, Val::Int(self.at.pos)),
            _ => None,
        }
    }

    /// The condition under which the formula has a row that extends this one.
    pub fn condition(&self, node: &Node, row: &Row) -> Residual {
        let mut base = row.clone();
        base.residual = Residual::True;
        let mut ways = Vec::new();
        let certain = self.each(node, base.clone(), &mut |mut found| {
            if !found.settle() {
                return false;
            }
            let condition = found.condition_over(&base);
            let certain = condition == Residual::True;
            ways.push(condition);
            certain
        });
        if certain {
            Residual::True
        } else {
            Residual::any(ways)
        }
    }

    fn each(&self, node: &Node, mut row: Row, emit: Emit<'_>) -> bool {
        match node {
            Node::And(parts) => self.each_of(parts, row, emit),
            Node::Not(body) => {
                let condition = self.condition(body, &row).negate();
                row.require(condition) && emit(row)
            }
            Node::Exists(slot, body) => {
                row.set(*slot, None);
                let base = row.clone();
                let mut certain = false;
                let stop = self.each(body, row, &mut |mut row| {
                    if !row.settle() {
                        return false;
                    }
                    row.set(*slot, None);
                    // Every further row would say the same, or less.
                    certain = row == base;
                    certain || emit(row)
                });
                match certain {
                    true => emit(base),
                    false => stop,
                }
            }
            Node::Match(matcher) => self.matches(matcher, &mut row) && emit(row),
            Node::Tp(slot) => {
                let now = Sym::Val(Val::Int(self.at.pos));
                row.unify(row.view(*slot), now) && emit(row)
            }
            Node::Bind(slot, term) => {
                let value = self.term(term, &row);
                row.bind(*slot, value) && emit(row)
            }
            Node::Compare(op, left, right) => {
                let left = self.term(left, &row);
                let right = self.term(right, &row);
                let holds = match op {
                    Cmp::Eq => row.unify(left, right),
                    op => row.require(Residual::compare(*op, left, right)),
                };
                holds && emit(row)
            }
            Node::Cell(cell) => self.each_of_cell(cell, row, emit),
            Node::Among(cell, column, bounds) => self.each_among(cell, *column, bounds, row, emit),
            Node::Never => false,
        }
    }

    fn each_of(&self, parts: &[Node], row: Row, emit: Emit<'_>) -> bool {
        if parts.len() > DEEP {
            let (early, late) = parts.split_at(parts.len() - DEEP);
            let mut rows = vec![row];
            for part in early {
                let mut joined = Vec::new();
                for row in rows {
                    self.each(part, row, &mut |row| {
                        joined.push(row);
                        false
                    });
                }
                rows = joined;
            }
            return rows.into_iter().any(|row| self.each_of(late, row, emit));
        }
        match parts.split_first() {
            None => emit(row),
            Some((first, [])) => self.each(first, row, emit),
            Some((first, rest)) => self.each(first, row, &mut |row| self.each_of(rest, row, emit)),
        }
    }

    fn matches(&self, matcher: &Matcher, row: &mut Row) -> bool {
        if self.event != Some(matcher.event) {
            return false;
        }
        matcher.patterns.iter().all(|(place, pattern)| {
            let Some(Some(val)) = self.fields.get(*place) else {
                return false;
            };
            match pattern {
                Pattern::Present => true,
                Pattern::Const(constant) => constant == val,
                Pattern::Slot(slot) => row.unify(row.view(*slot), Sym::Val(*val)),
                Pattern::Never => false,
            }
        })
    }

    fn each_of_cell(&self, cell: &Use, row: Row, emit: Emit<'_>) -> bool {
        let (Some(def), Some(state)) = (self.defs.get(cell.cell), self.states.get(cell.cell))
        else {
            return false;
        };
        match state {
            CellState::Formerly(table) => {
                self.each_found(def, cell, table, row, &mut |row, times, _| {
                    times
                        .iter()
                        .any(|at| in_window(at.time, self.at.time, cell.window))
                        && emit(row)
                })
            }
            CellState::Since { anchors, breaks } => {
                self.each_found(def, cell, anchors, row, &mut |row, times, vals| {
                    // What the anchor itself says counts first: a slot of the row may stand for a term.
                    let key = |slot: Slot| {
                        let column = def.columns.iter().position(|column| *column == slot);
                        match column.and_then(|column| vals?.get(column)) {
                            Some(val) => Some(*val),
                            None => row.known(cell.outer(slot)?),
                        }
                    };
                    let unbroken = self.unbroken_from(def, breaks, &key);
                    let live = |at: &At| {
                        at.pos >= unbroken && in_window(at.time, self.at.time, cell.window)
                    };
                    times.iter().any(live) && emit(row)
                })
            }
            CellState::Previous { older, newer } => {
                let mut held = [newer, older].into_iter().flatten();
                let Some(held) = held.find(|held| held.at.pos == self.at.pos - 1) else {
                    return false;
                };
                in_window(held.at.time, self.at.time, cell.window)
                    && held.rows.iter().any(|stored| {
                        let mut row = row.clone();
                        join(&mut row, stored, def, cell) && emit(row)
                    })
            }
            CellState::Window(_) => false,
            CellState::Nested(nested) => {
                let CellOp::Nested { logs, test } = &def.op else {
                    return false;
                };
                let known = |slot: Slot| row.known(cell.outer(slot)?);
                nested.holds((logs, test), self, &known) && emit(row)
            }
            CellState::Reread(reread) => {
                let CellOp::Reread(plan) = &def.op else {
                    return false;
                };
                let known = slots(def, cell, &row);
                let own = Seen::default();
                let seen = self.seen.unwrap_or(&own);
                let rows = seen.rows(cell.cell, (plan, reread), &known, self.at.pos);
                rows.iter().any(|found| {
                    let mut row = row.clone();
                    let mut columns = def.columns.iter();
                    let fits = columns.all(|column| {
                        let Some(Known::Val(val)) = found.get(*column as usize) else {
                            // What the request does not have.
                            return true;
                        };
                        let outer = cell.outer(*column);
                        outer.is_some_and(|slot| row.unify(row.view(slot), Sym::Val(*val)))
                    });
                    fits && emit(row)
                })
            }
            CellState::Pair(joint) => {
                let CellOp::Pair { left, others, .. } = &def.op else {
                    return false;
                };
                let Some(known) = known(def, cell, &row) else {
                    return false;
                };
                joint.find(left, others, self, &known, |pair| {
                    let mut row = row.clone();
                    agree(&mut row, pair, def, cell) && emit(row)
                })
            }
        }
    }

    /// The rows of a cell that leave nothing open, one column being within bounds.
    fn each_among(
        &self,
        cell: &Use,
        column: Slot,
        bounds: &[(Cmp, Term)],
        row: Row,
        emit: Emit<'_>,
    ) -> bool {
        let Some(def) = self.defs.get(cell.cell) else {
            return false;
        };
        let place = def
            .columns
            .iter()
            .position(|own| cell.outer(*own) == Some(column));
        let (mut from, mut to) = (i64::MIN, i64::MAX);
        for (op, term) in bounds {
            // What is no number is neither larger nor smaller than one.
            let Sym::Val(Val::Int(n)) = self.term(term, &row) else {
                return false;
            };
            let (lowest, highest) = match op {
                Cmp::Lt => (Some(i64::MIN), n.checked_sub(1)),
                Cmp::Le => (Some(i64::MIN), Some(n)),
                Cmp::Gt => (n.checked_add(1), Some(i64::MAX)),
                Cmp::Ge => (Some(n), Some(i64::MAX)),
                Cmp::Eq | Cmp::Ne => (None, None),
            };
            let (Some(lowest), Some(highest)) = (lowest, highest) else {
                return false;
            };
            (from, to) = (from.max(lowest), to.min(highest));
        }
        let (Some(place), Some(CellState::Formerly(table))) = (place, self.states.get(cell.cell))
        else {
            return false;
        };
        let Some(known) = known(def, cell, &row) else {
            return false;
        };
        table.find_among(&known, place, from..=to, |vals, times| {
            let mut points = times.iter();
            let mut row = row.clone();
            points.any(|at| in_window(at.time, self.at.time, cell.window))
                && agree(&mut row, vals, def, cell)
                && emit(row)
        })
    }

    /// The rows of a table joined with this one, each with its points.
    fn each_found(
        &self,
        def: &CellDef,
        cell: &Use,
        table: &Table,
        row: Row,
        visit: &mut Visit<'_>,
    ) -> bool {
        let known = known(def, cell, &row);
        let missing = known.is_none();
        table.find(&known.unwrap_or_default(), missing, |found| match found {
            Found::Plain(vals, times) => {
                let mut row = row.clone();
                agree(&mut row, vals, def, cell) && visit(row, times, Some(vals))
            }
            Found::Open(stored, times) => {
                let mut row = row.clone();
                join(&mut row, stored, def, cell) && visit(row, times, None)
            }
        })
    }

    /// The position before which an anchor with these keys has been broken.
    pub fn unbroken_from(
        &self,
        def: &CellDef,
        breaks: &Breaks,
        known: &dyn Fn(Slot) -> Option<Val>,
    ) -> i64 {
        let CellOp::Since { breaks: shape, .. } = &def.op else {
            return i64::MIN;
        };
        let key = |columns: &[Slot]| -> Option<Key> {
            columns.iter().map(|column| known(*column)).collect()
        };
        match (breaks, shape) {
            (Breaks::Parts(ended), BreakShape::Parts(parts)) => {
                let until = ended.iter().zip(parts);
                let until = until.map(|(ended, part)| ended.until(key(&part.keys), self.at.pos));
                until.max().unwrap_or(i64::MIN)
            }
            _ => i64::MIN,
        }
    }

    pub fn term(&self, term: &Term, row: &Row) -> Sym {
        match term {
            Term::Known(sym) => sym.clone(),
            Term::Slot(slot) => row.view(*slot),
            Term::Arith(op, left, right) => arith(*op, self.term(left, row), self.term(right, row)),
            Term::Total { op, vars, body } => self.total(*op, vars, body, row),
            Term::Window { vars, cell, .. } => {
                Sym::Val(Val::Int(self.window(cell, vars, row).unwrap_or(0)))
            }
        }
    }

    fn total(&self, op: Total, vars: &[Slot], body: &Node, row: &Row) -> Sym {
        let mut base = row.clone();
        base.residual = Residual::True;
        for var in vars {
            base.set(*var, None);
        }
        let mut tuples = Vec::new();
        self.each(body, base.clone(), &mut |mut found| {
            if found.settle() {
                let tuple: Vec<Sym> = vars.iter().map(|var| found.view(*var)).collect();
                for var in vars {
                    found.set(*var, None);
                }
                tuples.push((found.condition_over(&base), tuple));
            }
            false
        });
        total(op, tuples)
    }

    /// The running total of a window cell, or the number of pairs; nothing where a key is missing.
    fn window(&self, cell: &Use, vars: &[Slot], row: &Row) -> Option<i64> {
        let def = self.defs.get(cell.cell)?;
        let counts = match (self.states.get(cell.cell)?, &def.op) {
            (CellState::Window(counts), _) => counts,
            (CellState::Pair(joint), CellOp::Pair { left, others, .. }) => {
                let mut row = row.clone();
                vars.iter().for_each(|var| row.set(*var, None));
                let known = known(def, cell, &row)?;
                return Some(joint.total(left, others, self, &known));
            }
            _ => return None,
        };
        let key = self.window_key(cell, row)?;
        Some(counts.value(&key, self.at.time, cell.window))
    }

    pub fn window_key(&self, cell: &Use, row: &Row) -> Option<Key> {
        let CellState::Window(counts) = self.states.get(cell.cell)? else {
            return None;
        };
        counts
            .keyed
            .iter()
            .map(|column| row.known(cell.outer(*column)?))
            .collect()
    }
}

/// The values of a cell's columns, as far as a row of the using frame knows them; nothing where one is not
/// there at all.
fn known(def: &CellDef, cell: &Use, row: &Row) -> Option<SmallVec<[Option<Val>; 4]>> {
    let view = |column: &Slot| match row.view(cell.outer(*column)?) {
        Sym::Val(val) => Some(Some(val)),
        Sym::Bottom => None,
        _ => Some(None),
    };
    def.columns.iter().map(view).collect()
}

/// What is known of the slots of a cell.
pub(crate) fn slots(def: &CellDef, cell: &Use, row: &Row) -> Vec<Known> {
    let mut slots = vec![Known::Not; def.width];
    for column in &def.columns {
        let sym = cell.outer(*column).map(|slot| row.view(slot));
        if let Some(place) = slots.get_mut(*column as usize) {
            *place = match sym {
                Some(Sym::Val(val)) => Known::Val(val),
                Some(Sym::Bottom) | None => Known::Missing,
                Some(Sym::Slot(_) | Sym::Term(_)) => Known::Not,
            };
        }
    }
    slots
}

/// Gives a row of the using frame the values of a cell's columns; false where it has others.
fn agree(row: &mut Row, vals: &[Val], def: &CellDef, cell: &Use) -> bool {
    let mut columns = def.columns.iter().zip(vals);
    columns.all(|(column, val)| {
        let outer = cell.outer(*column);
        outer.is_some_and(|slot| row.unify(row.view(slot), Sym::Val(*val)))
    })
}

/// Adds what a stored row says to a row of the using frame.
pub(crate) fn join(row: &mut Row, stored: &Row, def: &CellDef, cell: &Use) -> bool {
    for column in &def.columns {
        let Some(Some(sym)) = stored.vals.get(*column as usize) else {
            continue;
        };
        let Some(outer) = cell.outer(*column) else {
            return false;
        };
        let sym = sym.rename(&cell.slots).resolve(row);
        if !row.bind(outer, sym) {
            return false;
        }
    }
    let residual = stored.residual.rename(&cell.slots).resolve(row);
    row.require(residual)
}
