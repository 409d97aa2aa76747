//! Which operators are kept by what happened, and how they are asked.

use super::super::formula::{
    BreakShape, CellDef, CellOp, Log, Node, Pattern, Term, Test, Then, Use, When,
};
use super::super::open::plain_rows;
use super::super::row::{Cmp, Slot, Sym, Total};
use super::super::value::Val;
use std::collections::BTreeSet;

/// The operation that takes the place of one asked by a leaf, where that one would hold a row for each way in
/// which values of its parts go together. Nothing, where it would not, or a part says what logs do not.
pub(in super::super) fn nested(op: &CellOp, window: i64, cells: &[CellDef]) -> Option<CellOp> {
    let mut plan = Plan {
        cells,
        logs: Vec::new(),
        lists: 0,
    };
    let names = &Names::Own;
    let (test, apart) = match op {
        CellOp::Formerly(body) => {
            let when = plan.when(conjuncts(body), names, window)?;
            let apart = plan.is_apart(&when);
            (Test::Formerly(when, window), apart)
        }
        CellOp::Previous(body) => {
            let when = plan.when(conjuncts(body), names, window)?;
            let apart = plan.is_apart(&when);
            (Test::Previous(when, window), apart)
        }
        CellOp::Since {
            left,
            right,
            breaks,
        } => {
            let (anchor, ends) = plan.since((left, right), names, window)?;
            // What a part without events of its own says is kept by its own values already.
            let own = ends.iter().filter(|when| plan.names_events(when));
            let apart = *breaks == BreakShape::General
                || own.chain([&anchor]).any(|when| plan.is_apart(when));
            (Test::Since(anchor, ends, window), apart)
        }
        CellOp::Window { .. } | CellOp::Pair { .. } | CellOp::Nested { .. } => return None,
    };
    let logs = plan.logs;
    apart.then_some(CellOp::Nested { logs, test })
}

/// What the slots of a frame are in that of the operator.
enum Names<'n> {
    Own,
    Inner(&'n Names<'n>, &'n Use),
}

impl Names<'_> {
    fn of(&self, slot: Slot) -> Option<Slot> {
        match self {
            Names::Own => Some(slot),
            Names::Inner(outer, cell) => outer.of(cell.outer(slot)?),
        }
    }
}

struct Plan<'p> {
    cells: &'p [CellDef],
    logs: Vec<Log>,
    /// How many lists of events there are.
    lists: usize,
}

impl Plan<'_> {
    fn keys(&self, when: &When) -> &[Slot] {
        self.logs.get(when.log).map_or(&[], |log| &log.keys)
    }

    fn names_events(&self, when: &When) -> bool {
        let log = self.logs.get(when.log);
        log.is_some_and(|log| log.node != any_event())
    }

    /// Whether it looks back, and some part of it is told apart by what its own event does not say.
    fn is_apart(&self, when: &When) -> bool {
        let mut slots = BTreeSet::new();
        let mut looks_back = false;
        for then in &when.then {
            self.read(&then.test, &mut slots, &mut looks_back);
        }
        let own = self.keys(when);
        looks_back && slots.iter().any(|slot| !own.contains(slot))
    }

    fn read(&self, test: &Test, slots: &mut BTreeSet<Slot>, looks_back: &mut bool) {
        let mut of = |when: &When| {
            slots.extend(self.keys(when));
            for then in &when.then {
                self.read(&then.test, slots, looks_back);
            }
        };
        match test {
            Test::Now(when) => of(when),
            Test::Formerly(when, _) | Test::Previous(when, _) | Test::Count(when, ..) => {
                of(when);
                *looks_back = true;
            }
            Test::Since(anchor, breaks, _) => {
                of(anchor);
                breaks.iter().for_each(of);
                *looks_back = true;
            }
            Test::All(parts) => {
                let tests = parts.iter().map(|then| &then.test);
                tests.for_each(|test| self.read(test, slots, looks_back));
            }
        }
    }

    fn log(&mut self, node: Node, window: i64) -> Option<usize> {
        let keys = plain_rows(&node, &[], &[])?;
        let same = self.logs.iter().position(|log| log.node == node);
        if let Some(log) = same.and_then(|at| self.logs.get_mut(at)) {
            log.window = log.window.max(window);
            return same;
        }
        self.logs.push(Log { node, keys, window });
        Some(self.logs.len() - 1)
    }

    /// The events at which all parts are so; any event may be one where no part names one.
    fn when(&mut self, parts: &[Node], names: &Names<'_>, kept: i64) -> Option<When> {
        let mut own = Vec::new();
        let mut then = Vec::new();
        for part in parts {
            match part {
                Node::Match(_) => own.push(renamed(part, names)?),
                Node::Not(inner) => then.push(Then {
                    negated: true,
                    test: self.test(inner, names, kept)?,
                }),
                inner => then.push(Then {
                    negated: false,
                    test: self.test(inner, names, kept)?,
                }),
            }
        }
        let own = match own.len() {
            0 => any_event(),
            1 => own.into_iter().next()?,
            _ => Node::And(own),
        };
        let log = self.log(own, kept)?;
        self.lists += 1;
        Some(When {
            number: self.lists - 1,
            log,
            then,
        })
    }

    /// What is so at an event that is kept for so many seconds.
    fn test(&mut self, node: &Node, names: &Names<'_>, kept: i64) -> Option<Test> {
        match node {
            Node::Match(_) => Some(Test::Now(self.when(
                std::slice::from_ref(node),
                names,
                kept,
            )?)),
            Node::And(parts) if parts.iter().any(|part| matches!(part, Node::Match(_))) => {
                Some(Test::Now(self.when(parts, names, kept)?))
            }
            Node::And(parts) => {
                let parts = parts.iter().map(|part| self.then(part, names, kept));
                Some(Test::All(parts.collect::<Option<_>>()?))
            }
            Node::Not(_) => Some(Test::All(vec![self.then(node, names, kept)?])),
            Node::Cell(cell) => self.cell(cell, names, kept),
            Node::Compare(op, total, Term::Known(Sym::Val(Val::Int(n)))) => {
                self.count(total, *op, *n, names, kept)
            }
            Node::Compare(op, Term::Known(Sym::Val(Val::Int(n))), total) => {
                self.count(total, op.turned(), *n, names, kept)
            }
            _ => None,
        }
    }

    /// A comparison of the number of events in a window, each a time point.
    fn count(
        &mut self,
        total: &Term,
        op: Cmp,
        n: i64,
        names: &Names<'_>,
        kept: i64,
    ) -> Option<Test> {
        let Term::Total {
            op: Total::Count,
            vars,
            body,
        } = total
        else {
            return None;
        };
        let ([var], Node::Cell(cell)) = (vars.as_slice(), body.as_ref()) else {
            return None;
        };
        let CellOp::Formerly(Node::And(parts)) = &self.cells.get(cell.cell)?.op else {
            return None;
        };
        let is_point = |part: &&Node| match part {
            Node::Tp(slot) => cell.outer(*slot) == Some(*var),
            _ => false,
        };
        let (points, named): (Vec<&Node>, Vec<&Node>) = parts.iter().partition(is_point);
        let named: Vec<Node> = named.into_iter().cloned().collect();
        let kept = kept.saturating_add(cell.window);
        let when = self.when(&named, &Names::Inner(names, cell), kept)?;
        // How many there are is known without asking each.
        let counts = when.then.is_empty() && !self.keys(&when).contains(var);
        (points.len() == 1 && counts).then_some(Test::Count(when, cell.window, op, n))
    }

    fn then(&mut self, node: &Node, names: &Names<'_>, kept: i64) -> Option<Then> {
        let (negated, node) = match node {
            Node::Not(inner) => (true, inner.as_ref()),
            node => (false, node),
        };
        let test = self.test(node, names, kept)?;
        Some(Then { negated, test })
    }

    fn cell(&mut self, cell: &Use, names: &Names<'_>, outer: i64) -> Option<Test> {
        let def = self.cells.get(cell.cell)?;
        let names = &Names::Inner(names, cell);
        let kept = outer.saturating_add(cell.window);
        match &def.op {
            CellOp::Formerly(body) => {
                let when = self.when(conjuncts(body), names, kept)?;
                Some(Test::Formerly(when, cell.window))
            }
            CellOp::Previous(body) => {
                let when = self.when(conjuncts(body), names, kept)?;
                Some(Test::Previous(when, cell.window))
            }
            CellOp::Since { left, right, .. } => {
                let (anchor, breaks) = self.since((left, right), names, kept)?;
                Some(Test::Since(anchor, breaks, cell.window))
            }
            _ => None,
        }
    }

    fn since(
        &mut self,
        (left, right): (&Node, &Node),
        names: &Names<'_>,
        kept: i64,
    ) -> Option<(When, Vec<When>)> {
        let anchor = self.when(conjuncts(right), names, kept)?;
        let mut breaks = Vec::new();
        for part in conjuncts(left) {
            let ends = match part {
                Node::Not(inner) => self.when(conjuncts(inner), names, kept)?,
                // It ends at any event at which it is not so.
                part => {
                    let not = Node::Not(Box::new(part.clone()));
                    self.when(&[not], names, kept)?
                }
            };
            breaks.push(ends);
        }
        Some((anchor, breaks))
    }
}

/// Has one row at each event.
fn any_event() -> Node {
    Node::And(Vec::new())
}

fn conjuncts(node: &Node) -> &[Node] {
    match node {
        Node::And(parts) => parts,
        node => std::slice::from_ref(node),
    }
}

/// A matcher in the slots of the operator.
fn renamed(node: &Node, names: &Names<'_>) -> Option<Node> {
    let Node::Match(matcher) = node else {
        return None;
    };
    let mut matcher = matcher.clone();
    for (_, pattern) in &mut matcher.patterns {
        if let Pattern::Slot(slot) = pattern {
            *slot = names.of(*slot)?;
        }
    }
    Some(Node::Match(matcher))
}
