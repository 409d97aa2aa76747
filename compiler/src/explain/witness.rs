//! The lines under a denial: what the rule missed, what is nearest to it, and what would change the answer.
//!
//! [`Witness`] is the finding; its `Display` is the one place where it becomes text.

use super::words;
use std::fmt::{self, Display, Formatter};
use time::OffsetDateTime;
use time::macros::format_description;

/// An event of the past, as people speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// "`npm test`"
    pub what: String,
    pub time: i64,
    /// Seconds before the request.
    pub age: i64,
}

/// One thing to know about a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Several rules deny; what follows is about this one.
    Rule(String),
    /// What must be so for the request to pass.
    Needs(String),
    /// What is needed has not been seen.
    NoneSeen,
    /// What is needed has not happened in the window, or was undone at that time, so many seconds ago;
    /// further back nobody remembers.
    NoneWithin {
        window: i64,
        broken: Option<(i64, i64)>,
    },
    /// The last time it happened.
    Last(Seen),
    /// What is needed happened, but too long ago.
    TooOld { last: Seen, window: i64 },
    /// What is needed happened, and then something undid it.
    Undone { last: Seen, by: Option<Seen> },
    /// The event that came nearest: one field was wrong.
    Nearest {
        seen: Seen,
        field: String,
        found: Option<String>,
        wanted: String,
    },
    /// An event that came close, but something was not so when it came.
    NotThen { seen: Seen, missed: String },
    /// An event that would have done, were it not in another partition.
    Elsewhere {
        seen: Seen,
        field: String,
        found: String,
    },
    /// What came just before the request.
    Before(Seen),
    /// Of what is counted, the oldest, and when it counts no more.
    Oldest { seen: Seen, leaves: i64 },
    /// What should not have happened, did.
    Because(String),
    /// A count or sum is beyond its bound.
    Total {
        subject: String,
        value: i64,
        bound: String,
    },
    /// Waiting helps.
    AllowedIn { seconds: i64 },
    /// Nothing permits this.
    NoPermit { what: String },
    /// The permit that came nearest: `needs` did not hold, since `here`.
    NearestPermit {
        rule: String,
        needs: String,
        here: Option<String>,
    },
    /// The permit that came nearest, but for its temporal conditions.
    NearestRule(String),
    /// A rule that could not be judged.
    Broken {
        rule: Option<String>,
        reason: String,
    },
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}, {}",
            self.what,
            clock(self.time),
            ago(self.age)
        )
    }
}

impl Display for Witness {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Witness::Rule(name) => write!(f, "rule {name}:"),
            Witness::Needs(what) => write!(f, "needs: {what}"),
            Witness::NoneSeen => f.write_str("last: none seen yet"),
            Witness::NoneWithin { window, broken } => {
                write!(f, "last: none in {}", words::last(*window))?;
                match broken {
                    Some((at, age)) => write!(f, ", or undone at {}, {}", clock(*at), ago(*age)),
                    None => Ok(()),
                }
            }
            Witness::TooOld { last, window } => {
                let by = length(last.age.saturating_sub(*window));
                let span = words::span(*window);
                write!(f, "last: {last}, {by} too long; the rule looks back {span}")
            }
            Witness::Undone { last, by } => {
                write!(f, "last: {last}; undone")?;
                match by {
                    Some(by) => write!(f, " by {by}"),
                    None => f.write_str(" since"),
                }
            }
            Witness::Nearest {
                seen,
                field,
                found,
                wanted,
            } => {
                write!(f, "nearest: {seen}, had ")?;
                match found {
                    Some(found) => write!(f, "{field} {found} instead of {wanted}"),
                    None => write!(f, "no {field}; {wanted} is wanted"),
                }
            }
            Witness::NotThen { seen, missed } => {
                write!(f, "nearest: {seen}, but it was not so that {missed}")
            }
            Witness::Elsewhere { seen, field, found } => write!(
                f,
                "nearest: {seen}, which the rule does not see: its {field} is {found}"
            ),
            Witness::Before(seen) => write!(f, "just before it: {seen}"),
            Witness::Oldest { seen, leaves } => write!(
                f,
                "oldest: {seen}; it leaves the window in {}",
                wait(*leaves)
            ),
            Witness::Because(what) => write!(f, "because: {what}"),
            Witness::Last(seen) => write!(f, "last: {seen}"),
            Witness::Total {
                subject,
                value,
                bound,
            } => {
                write!(f, "because: {subject} is {value}; {bound}")
            }
            Witness::AllowedIn { seconds } => {
                write!(
                    f,
                    "allowed again in {} if nothing else happens",
                    wait(*seconds)
                )
            }
            Witness::NoPermit { what } => write!(f, "no permit rule covers {what}"),
            Witness::NearestPermit { rule, needs, here } => {
                write!(f, "nearest: rule {rule} needs that {needs}")?;
                match here {
                    Some(here) => write!(f, "; here {here}"),
                    None => Ok(()),
                }
            }
            Witness::NearestRule(rule) => write!(f, "nearest: rule {rule}"),
            Witness::Broken { rule, reason } => match rule {
                Some(rule) => write!(f, "rule {rule} could not be judged: {reason}"),
                None => write!(f, "the request could not be judged: {reason}"),
            },
        }
    }
}

/// `10:02:11` of a Unix time (UTC); the bare number where it is none a clock would show.
fn clock(time: i64) -> String {
    // A trace may count its seconds from anywhere.
    const FIRST_PLAUSIBLE: i64 = 100_000_000;
    let shown = (time >= FIRST_PLAUSIBLE)
        .then(|| OffsetDateTime::from_unix_timestamp(time).ok())
        .flatten()
        .and_then(|time| {
            time.format(format_description!("[hour]:[minute]:[second]"))
                .ok()
        });
    shown.unwrap_or_else(|| format!("second {time}"))
}

fn ago(seconds: i64) -> String {
    match seconds {
        s if s <= 0 => "just now".to_owned(),
        s => format!("{} ago", length(s)),
    }
}

/// `45s`, `4m 10s`, `12m 03s`, `2h 05m`, `3d 04h`.
pub fn length(seconds: i64) -> String {
    match seconds {
        s if s < 60 => format!("{s}s"),
        s if s < 3600 => format!("{}m {:02}s", s / 60, s % 60),
        s if s < 86_400 => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
        s => format!("{}d {:02}h", s / 86_400, s % 86_400 / 3600),
    }
}

/// The same with what is cut off rounded up: who waits so long has waited long enough.
pub fn wait(seconds: i64) -> String {
    let unit = match seconds {
        s if s < 3600 => 1,
        s if s < 86_400 => 60,
        _ => 3600,
    };
    length(seconds.saturating_add(unit - 1) / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let all: Vec<String> = [0, 45, 60, 250, 723, 3600, 7500, 90_000]
            .into_iter()
            .map(wait)
            .collect();
        assert_eq!(
            all,
            [
                "0s", "45s", "1m 00s", "4m 10s", "12m 03s", "1h 00m", "2h 05m", "1d 01h"
            ]
        );
        assert_eq!(ago(0), "just now");
        assert_eq!(ago(30), "30s ago");
    }

    #[test]
    fn clocks_show_civil_time_in_utc() {
        assert_eq!(clock(1_795_946_531), "10:02:11");
        assert_eq!(clock(100), "second 100");
        assert_eq!(clock(i64::MAX), format!("second {}", i64::MAX));
        assert_eq!(clock(-5), "second -5");
    }
}
