//! Which stamps the operators can look at, whenever they are asked.

use super::ask::Known;
use super::plan::{Form, Plan, Value};
use super::{Happened, Reread};
use crate::automaton::row::Slot;

impl Reread {
    /// Visits them, each with the seconds that one of the operators looks back.
    pub fn each_reached(&self, plan: &Plan, known: &[Known], visit: &mut dyn FnMut(i64, i64)) {
        let reached = Reached { state: self, known };
        reached.form(&plan.form, visit);
    }
}

struct Reached<'r> {
    state: &'r Reread,
    /// The slots of the operator's frame; the rest are variables inside.
    known: &'r [Known],
}

impl Reached<'_> {
    fn form(&self, form: &Form, visit: &mut dyn FnMut(i64, i64)) {
        match form {
            Form::All(parts) => {
                for part in parts {
                    self.form(part, visit);
                }
            }
            Form::Not(body) | Form::Exists(_, body, _) => self.form(body, visit),
            Form::Compare(_, left, right) => {
                self.value(left, visit);
                self.value(right, visit);
            }
            Form::Formerly(body, window, _) | Form::Previous(body, window, _) => {
                self.stamps(body, *window, visit);
                self.form(body, visit);
            }
            Form::Since(sides, window, _) => {
                let (left, right) = &**sides;
                self.stamps(right, *window, visit);
                self.form(left, visit);
                self.form(right, visit);
            }
            Form::Event(..) | Form::Now(_) | Form::Never => {}
        }
    }

    fn value(&self, value: &Value, visit: &mut dyn FnMut(i64, i64)) {
        match value {
            Value::Arith(_, left, right) => {
                self.value(left, visit);
                self.value(right, visit);
            }
            Value::Total(_, _, body, _) => self.form(body, visit),
            Value::Known(_) | Value::Slot(_) => {}
        }
    }

    /// The stamps of all events at which a formula can hold.
    fn stamps(&self, body: &Form, window: i64, visit: &mut dyn FnMut(i64, i64)) {
        let named = named(body).and_then(|(log, slots)| Some((self.state.logs.get(log)?, slots)));
        let Some((happened, slots)) = named else {
            self.state
                .stamps
                .iter()
                .for_each(|stamp| visit(*stamp, window));
            return;
        };
        for (event, pos) in happened.at.iter().enumerate() {
            if let Some(stamp) = self.state.time(*pos)
                && self.agrees(happened, event, slots)
            {
                visit(stamp, window);
            }
        }
    }

    fn agrees(&self, happened: &Happened, event: usize, slots: &[Slot]) -> bool {
        let mut columns = slots.iter().enumerate();
        columns.all(|(column, slot)| match self.known.get(usize::from(*slot)) {
            Some(Known::Val(val)) => happened.val(event, column) == Some(*val),
            Some(Known::Missing) => false,
            Some(Known::Not | Known::Sought) | None => true,
        })
    }
}

/// An event that has to be the one at hand where the formula holds.
fn named(form: &Form) -> Option<(usize, &[Slot])> {
    match form {
        Form::Event(log, slots) => Some((*log, slots)),
        Form::All(parts) => parts.iter().find_map(named),
        Form::Exists(_, body, _) => named(body),
        _ => None,
    }
}
