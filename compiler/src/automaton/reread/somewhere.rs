//! Whether a subformula holds somewhere, found out with as few looks as its shape allows.

use super::ask::{Asked, FEW, Known};
use super::plan::{Form, Memo};
use super::spans::Spans;
use crate::automaton::store::in_window;

impl Asked<'_> {
    /// Whether it holds at some position of the domain. All that it asks is known.
    pub(super) fn somewhere(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> bool {
        if domain.is_empty() {
            return false;
        }
        self.looked_at(1);
        match form {
            Form::All(parts) => {
                let Some((last, parts)) = parts.split_last() else {
                    return true;
                };
                let mut left = domain.clone();
                for part in parts {
                    left = self.spans(part, env, &left);
                }
                self.somewhere(last, env, &left)
            }
            Form::Not(body) => self.fails(body, env, domain),
            Form::Event(..) => self.latest(form, env, domain).is_some(),
            Form::Exists(.., memo)
            | Form::Formerly(.., memo)
            | Form::Previous(.., memo)
            | Form::Since(.., memo)
                if domain.ranges() <= FEW && self.is_asked_anew(form, memo) =>
            {
                self.meets(form, env, domain)
            }
            _ => !self.spans(form, env, domain).is_empty(),
        }
    }

    /// Whether it does not hold at some position of the domain.
    fn fails(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> bool {
        if domain.is_empty() {
            return false;
        }
        match form {
            Form::Not(body) => self.somewhere(body, env, domain),
            Form::All(parts) => {
                let mut parts = parts.iter();
                parts.any(|part| self.fails(part, env, domain))
            }
            Form::Event(log, slots) => {
                let says = Self::says_all(*log, slots, env);
                let fill = says.and_then(|says| self.with(&says, |events| events.fill(domain)));
                !fill.unwrap_or(false)
            }
            _ if domain.first() == domain.last() => !self.somewhere(form, env, domain),
            _ => !domain.minus(&self.spans(form, env, domain)).is_empty(),
        }
    }

    /// The last position of the domain at which it holds.
    fn latest(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> Option<i64> {
        match form {
            Form::Event(log, slots) => {
                let says = Self::says_all(*log, slots, env)?;
                self.with(&says, |events| events.last(domain))?
            }
            _ => self.spans(form, env, domain).last(),
        }
    }

    /// Where the same is asked again, it is found out once for all positions, unless a few searches are as good.
    pub(super) fn is_asked_anew(&self, form: &Form, memo: &Memo) -> bool {
        !memo.shared || self.ordered() && form.is_quick(true)
    }

    /// Whether an operator holds at some position of a domain of few ranges.
    pub(super) fn meets(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> bool {
        match form {
            Form::Exists(slots, body, _) => {
                self.each(slots, body, env, domain, &mut |asked, env| {
                    asked.somewhere(body, env, domain)
                })
            }
            Form::Formerly(body, window, _) if self.ordered() => {
                let mut before = Spans::default();
                for (from, to) in domain.iter() {
                    before.push(self.reached(from, *window), to);
                }
                self.looked_at(domain.ranges());
                self.somewhere(body, env, &before)
            }
            Form::Since(sides, window, _) if self.ordered() => {
                let (left, right) = &**sides;
                domain.iter().any(|(from, to)| {
                    self.looked_at(1);
                    let before = Spans::of(self.reached(from, *window), to);
                    let Some(anchor) = self.latest(right, env, &before) else {
                        return false;
                    };
                    // At an anchor in the range it holds. Without one it holds in the range only if it does at the
                    // first position, and where the left side breaks behind the last anchor, it breaks behind the
                    // earlier ones as well.
                    let after = Spans::of(anchor.saturating_add(1), from);
                    !self.fails(left, env, &after)
                })
            }
            Form::Previous(body, window, _) if domain.first() == domain.last() => {
                let at = domain.first().unwrap_or(i64::MIN);
                let before = at.saturating_sub(1);
                let times = self.state.time(before).zip(self.state.time(at));
                times.is_some_and(|(before, now)| in_window(before, now, *window))
                    && self.somewhere(body, env, &Spans::of(before, before))
            }
            _ => !self.operator(form, env, domain).is_empty(),
        }
    }
}
