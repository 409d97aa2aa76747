//! Which operators are kept by what happened, and how they are asked.

use super::super::formula::{
    BreakShape, CellDef, CellOp, Log, Node, Number, Pattern, Side, Term, Test, Then, Use, When,
};
use super::super::row::{Cmp, Slot, Sym, Total};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The operation that takes the place of one asked by a leaf, where that one would hold a row for each way in
/// which values of its parts go together. Nothing, where it would not, or a part says what logs do not.
pub(in super::super) fn nested(
    op: &CellOp,
    window: i64,
    width: usize,
    cells: &[CellDef],
) -> Option<CellOp> {
    let mut plan = Plan {
        cells,
        width: Slot::try_from(width).ok()?,
        variables: 0,
        points: BTreeSet::new(),
        logs: Vec::new(),
        lists: 0,
    };
    let names = &Rc::new(Names::Own);
    let (test, apart) = match op {
        CellOp::Formerly(body) => {
            let when = plan.when(&[body], names, window)?;
            let apart = plan.is_apart(&when);
            (Test::Formerly(when, window), apart)
        }
        CellOp::Previous(body) => {
            let when = plan.when(&[body], names, window)?;
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
        CellOp::Window { .. } | CellOp::Pair { .. } | CellOp::Nested { .. } | CellOp::Reread(_) => {
            return None;
        }
    };
    if plan.lists_again(&test, false) {
        return None;
    }
    let logs = plan.logs;
    apart.then_some(CellOp::Nested { logs, test })
}

/// What the slots of a frame are in that of the operator.
enum Names {
    Own,
    Inner(Rc<Names>, Use),
    /// One of them is a variable bound here.
    With(Rc<Names>, Slot, Slot),
}

impl Names {
    fn of(&self, slot: Slot) -> Option<Slot> {
        match self {
            Names::Own => Some(slot),
            Names::Inner(outer, cell) => outer.of(cell.outer(slot)?),
            Names::With(_, own, variable) if *own == slot => Some(*variable),
            Names::With(outer, ..) => outer.of(slot),
        }
    }
}

/// A conjunct with the names of its frame.
type Part<'n> = (&'n Node, Rc<Names>);

enum Looking {
    Formerly,
    Previous,
}

struct Plan<'p> {
    cells: &'p [CellDef],
    /// Of the operator's frame; the variables bound on the way come behind.
    width: Slot,
    variables: Slot,
    /// Those that stand for time points.
    points: BTreeSet<Slot>,
    logs: Vec<Log>,
    /// How many lists of events there are.
    lists: usize,
}

impl<'p> Plan<'p> {
    fn log_of(&self, when: &When) -> Option<&Log> {
        self.logs.get(when.log)
    }

    fn names_events(&self, when: &When) -> bool {
        self.log_of(when).is_some_and(|log| log.node != any_event())
    }

    /// Whether it looks back, and some part of it is told apart by what its own event does not say.
    fn is_apart(&self, when: &When) -> bool {
        let mut slots = BTreeSet::new();
        let mut looks_back = false;
        for then in &when.then {
            self.read(&then.test, &mut slots, &mut looks_back);
        }
        let own = self.log_of(when).map_or(&[][..], |log| &log.keys);
        looks_back && slots.iter().any(|slot| !own.contains(slot))
    }

    /// Whether what is counted is listed at each of many events: inside something that is counted itself, or
    /// where there is no key that makes the events few.
    fn lists_again(&self, test: &Test, counted: bool) -> bool {
        let of = |when: &When, counted: bool| {
            let mut tests = when.then.iter().map(|then| &then.test);
            tests.any(|test| self.lists_again(test, counted))
        };
        match test {
            Test::Now(when) | Test::Formerly(when, _) | Test::Previous(when, _) => {
                of(when, counted)
            }
            Test::Since(anchor, breaks, _) => {
                of(anchor, counted) || breaks.iter().any(|when| of(when, counted))
            }
            Test::Number(number) => {
                let when = &number.when;
                let listed =
                    number.sum.is_some() || number.distinct.is_some() || !when.then.is_empty();
                let keyed = self.log_of(when).is_some_and(|log| !log.keys.is_empty());
                (listed && (counted || !keyed)) || of(when, true)
            }
            Test::Compare(..) => false,
            Test::All(parts) => {
                let mut tests = parts.iter().map(|then| &then.test);
                tests.any(|test| self.lists_again(test, counted))
            }
        }
    }

    /// Collects what of the request is asked.
    fn read(&self, test: &Test, slots: &mut BTreeSet<Slot>, looks_back: &mut bool) {
        let side = |side: &Side, slots: &mut BTreeSet<Slot>| {
            if let Side::Asked(slot) = side {
                slots.insert(*slot);
            }
        };
        let mut of = |when: &When| {
            slots.extend(self.log_of(when).into_iter().flat_map(|log| &log.keys));
            for then in &when.then {
                self.read(&then.test, slots, looks_back);
            }
        };
        match test {
            Test::Now(when) => of(when),
            Test::Formerly(when, _) | Test::Previous(when, _) => {
                of(when);
                *looks_back = true;
            }
            Test::Since(anchor, breaks, _) => {
                of(anchor);
                breaks.iter().for_each(of);
                *looks_back = true;
            }
            Test::Number(number) => {
                of(&number.when);
                side(&number.than, slots);
                *looks_back = true;
            }
            Test::Compare(_, left, right) => {
                side(left, slots);
                side(right, slots);
            }
            Test::All(parts) => {
                let tests = parts.iter().map(|then| &then.test);
                tests.for_each(|test| self.read(test, slots, looks_back));
            }
        }
    }

    /// Keeps the events of matchers by the values that the request has for their slots, with those of the
    /// variables; nothing, where one is bound elsewhere.
    fn log(&mut self, node: Node, variables: &[Slot], window: i64) -> Option<usize> {
        let (vals, keys): (Vec<Slot>, Vec<Slot>) = node
            .free()
            .into_iter()
            .partition(|slot| *slot >= self.width);
        if vals.iter().any(|slot| !variables.contains(slot)) {
            return None;
        }
        let same = self.logs.iter().position(|log| log.node == node);
        if let Some(log) = same.and_then(|at| self.logs.get_mut(at)) {
            log.window = log.window.max(window);
            return same;
        }
        self.logs.push(Log {
            node,
            keys,
            vals,
            window,
        });
        Some(self.logs.len() - 1)
    }

    fn variable(&mut self) -> Option<Slot> {
        let variable = self.width.checked_add(self.variables)?;
        self.variables += 1;
        Some(variable)
    }

    /// The events at which all of this is so; any event may be one where no part names one.
    fn when(&mut self, nodes: &[&Node], names: &Rc<Names>, kept: i64) -> Option<When> {
        let parts = nodes.iter().map(|node| (*node, names.clone())).collect();
        self.when_of(parts, Vec::new(), kept)
    }

    /// The same with parts of several frames and the variables bound around them.
    fn when_of(
        &mut self,
        parts: Vec<Part<'_>>,
        mut variables: Vec<Slot>,
        kept: i64,
    ) -> Option<When> {
        let mut own = Vec::new();
        let mut rest = Vec::new();
        let mut work = parts;
        work.reverse();
        while let Some((node, names)) = work.pop() {
            match node {
                Node::And(parts) => {
                    work.extend(parts.iter().rev().map(|part| (part, names.clone())));
                }
                Node::Exists(slot, body) if !self.looks_through(node) => {
                    let variable = self.variable()?;
                    variables.push(variable);
                    let names = Rc::new(Names::With(names, *slot, variable));
                    work.push((body.as_ref(), names));
                }
                Node::Match(_) => own.push(renamed(node, &names)?),
                Node::Tp(slot) => {
                    let point = names.of(*slot).filter(|slot| variables.contains(slot))?;
                    self.points.insert(point);
                }
                _ => rest.push((node, names)),
            }
        }
        let own = match own.len() {
            0 => any_event(),
            1 => own.into_iter().next()?,
            _ => Node::And(own),
        };
        let log = self.log(own, &variables, kept)?;
        self.lists += 1;
        let number = self.lists - 1;
        let mut then = Vec::with_capacity(rest.len());
        for (node, names) in rest {
            then.push(self.then(node, &names, log, kept)?);
        }
        Some(When { number, log, then })
    }

    fn then(&mut self, node: &Node, names: &Rc<Names>, log: usize, kept: i64) -> Option<Then> {
        let (negated, node) = match node {
            Node::Not(inner) => (true, inner.as_ref()),
            node => (false, node),
        };
        let test = self.test(node, names, log, kept)?;
        Some(Then { negated, test })
    }

    /// What is so at an event of a log, kept for so many seconds.
    fn test(&mut self, node: &Node, names: &Rc<Names>, log: usize, kept: i64) -> Option<Test> {
        match node {
            Node::And(parts) if !parts.iter().any(|part| matches!(part, Node::Match(_))) => {
                let parts = parts.iter().map(|part| self.then(part, names, log, kept));
                Some(Test::All(parts.collect::<Option<_>>()?))
            }
            Node::Exists(..) if self.looks_through(node) => {
                let (looking, when, window) = self.looking(node, names, Vec::new(), kept)?;
                match looking {
                    Looking::Formerly => Some(Test::Formerly(when, window)),
                    Looking::Previous => Some(Test::Previous(when, window)),
                }
            }
            Node::Match(_) | Node::And(_) | Node::Exists(..) => {
                Some(Test::Now(self.when(&[node], names, kept)?))
            }
            Node::Not(_) => Some(Test::All(vec![self.then(node, names, log, kept)?])),
            Node::Cell(cell) => self.cell(cell, names, kept),
            Node::Bind(slot, term) => {
                self.compare(Cmp::Eq, (&Term::Slot(*slot), term), names, log, kept)
            }
            Node::Compare(op, left, right) => self.compare(*op, (left, right), names, log, kept),
            Node::Tp(_) | Node::Among(..) | Node::Never => None,
        }
    }

    fn compare(
        &mut self,
        op: Cmp,
        (left, right): (&Term, &Term),
        names: &Rc<Names>,
        log: usize,
        kept: i64,
    ) -> Option<Test> {
        match (left, right) {
            (Term::Total { op: of, vars, body }, other) => {
                let than = self.side(other, names, log)?;
                self.number((*of, vars, body), (op, than), names, kept)
            }
            (other, Term::Total { op: of, vars, body }) => {
                let than = self.side(other, names, log)?;
                self.number((*of, vars, body), (op.turned(), than), names, kept)
            }
            _ => {
                let (left, right) = (self.side(left, names, log)?, self.side(right, names, log)?);
                Some(Test::Compare(op, left, right))
            }
        }
    }

    /// What is known of a term at an event of a log.
    fn side(&self, term: &Term, names: &Names, log: usize) -> Option<Side> {
        match term {
            Term::Known(Sym::Val(val)) => Some(Side::Val(*val)),
            Term::Slot(slot) => {
                let slot = names.of(*slot)?;
                if slot < self.width {
                    return Some(Side::Asked(slot));
                }
                let vals = &self.logs.get(log)?.vals;
                Some(Side::Own(vals.iter().position(|own| *own == slot)?))
            }
            _ => None,
        }
    }

    /// A comparison of how many events, or tuples of values, there are in a window, or of their sum.
    fn number(
        &mut self,
        (of, vars, body): (Total, &[Slot], &Node),
        (op, than): (Cmp, Side),
        names: &Rc<Names>,
        kept: i64,
    ) -> Option<Test> {
        // What it is compared with has to be the same at every event.
        if matches!(than, Side::Own(_)) {
            return None;
        }
        let mut names = names.clone();
        let mut variables = Vec::with_capacity(vars.len());
        for var in vars {
            let variable = self.variable()?;
            names = Rc::new(Names::With(names, *var, variable));
            variables.push(variable);
        }
        let (Looking::Formerly, when, window) =
            self.looking(body, &names, variables.clone(), kept)?
        else {
            return None;
        };
        let vals = &self.log_of(&when)?.vals;
        let column = |variable: &Slot| vals.iter().position(|own| own == variable);
        let sum = match of {
            Total::Count => None,
            Total::Sum(at) => Some(column(variables.get(at)?)?),
        };
        let mut each = variables.iter();
        // With its time point no tuple is like that of another event.
        let distinct = match each.any(|variable| self.points.contains(variable)) {
            true => None,
            false => Some(variables.iter().map(column).collect::<Option<_>>()?),
        };
        Some(Test::Number(Box::new(Number {
            when,
            window,
            sum,
            distinct,
            op,
            than,
        })))
    }

    /// Whether this is one operator, perhaps under variables, and comparisons with what it finds.
    fn looks_through(&self, node: &Node) -> bool {
        let mut cells = 0;
        let rest = conjuncts(unbound(node)).iter().all(|part| match part {
            Node::Cell(cell) => {
                cells += 1;
                let op = self.cells.get(cell.cell).map(|def| &def.op);
                matches!(op, Some(CellOp::Formerly(_) | CellOp::Previous(_)))
            }
            Node::Compare(..) | Node::Bind(..) => !part.has_cells(),
            _ => false,
        });
        rest && cells == 1
    }

    /// Such an operator, over the events that compare so: what they say, and what the request says, is the same
    /// whenever it is asked.
    fn looking(
        &mut self,
        node: &Node,
        names: &Rc<Names>,
        mut variables: Vec<Slot>,
        kept: i64,
    ) -> Option<(Looking, When, i64)> {
        if !self.looks_through(node) {
            return None;
        }
        let mut names = names.clone();
        let mut at = node;
        while let Node::Exists(slot, body) = at {
            let variable = self.variable()?;
            variables.push(variable);
            names = Rc::new(Names::With(names, *slot, variable));
            at = body;
        }
        let mut parts: Vec<Part<'_>> = Vec::new();
        let mut found = None;
        for part in conjuncts(at) {
            match part {
                Node::Cell(cell) => found = Some(cell),
                part => parts.push((part, names.clone())),
            }
        }
        let cell = found?;
        let cells = self.cells;
        let (looking, body) = match &cells.get(cell.cell)?.op {
            CellOp::Formerly(body) => (Looking::Formerly, body),
            CellOp::Previous(body) => (Looking::Previous, body),
            _ => return None,
        };
        parts.push((body, Rc::new(Names::Inner(names, cell.clone()))));
        let when = self.when_of(parts, variables, kept.saturating_add(cell.window))?;
        Some((looking, when, cell.window))
    }

    fn cell(&mut self, cell: &Use, names: &Rc<Names>, outer: i64) -> Option<Test> {
        let def = self.cells.get(cell.cell)?;
        let names = &Rc::new(Names::Inner(names.clone(), cell.clone()));
        let kept = outer.saturating_add(cell.window);
        match &def.op {
            CellOp::Formerly(body) => Some(Test::Formerly(
                self.when(&[body], names, kept)?,
                cell.window,
            )),
            CellOp::Previous(body) => Some(Test::Previous(
                self.when(&[body], names, kept)?,
                cell.window,
            )),
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
        names: &Rc<Names>,
        kept: i64,
    ) -> Option<(When, Vec<When>)> {
        let anchor = self.when(&[right], names, kept)?;
        let mut breaks = Vec::new();
        for part in conjuncts(left) {
            let ends = match part {
                Node::Not(inner) => self.when(&[inner], names, kept)?,
                // It ends at any event at which it is not so.
                part => self.when(&[&Node::Not(Box::new(part.clone()))], names, kept)?,
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

/// What stands under variables.
fn unbound(mut node: &Node) -> &Node {
    while let Node::Exists(_, body) = node {
        node = body;
    }
    node
}

/// A matcher in the slots of the operator.
fn renamed(node: &Node, names: &Names) -> Option<Node> {
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
