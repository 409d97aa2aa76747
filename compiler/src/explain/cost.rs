//! What rules cost: the cells behind each, how much each may hold, and the work of an event and a decision.

use super::words;
use crate::diagnostic::printable;
use crate::monitor::{CellKind, CellOutline, CellSummary, Cost, Key, Operator, Outline, Policy};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// One rule and its cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleCost {
    /// Counted from 0.
    pub rule: usize,
    /// Its `@id`, or its place.
    pub name: String,
    pub cells: Vec<CellCost>,
}

/// What a cell holds and what it takes to keep and to ask it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellCost {
    /// Equal cells of several rules are one.
    pub cell: usize,
    pub operator: &'static str,
    pub window_seconds: i64,
    /// What is held at most, in words.
    pub state: String,
    /// Of an event that concerns it.
    pub per_event: &'static str,
    /// Of a decision that asks it.
    pub per_decision: &'static str,
    /// Why it is more than constant, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The other rules that ask it.
    pub shared_with: Vec<usize>,
}

/// The costs of all rules, in order; `names` has a name for each.
pub fn costs(policy: &Policy, names: &[String]) -> Vec<RuleCost> {
    let Outline { cells, .. } = policy.outline();
    let summaries = policy.cells();
    let mut costs: Vec<RuleCost> = names
        .iter()
        .enumerate()
        .map(|(rule, name)| RuleCost {
            rule,
            name: name.clone(),
            cells: Vec::new(),
        })
        .collect();
    for (cell, (outline, summary)) in cells.iter().zip(&summaries).enumerate() {
        for rule in &summary.rules {
            if let Some(cost) = costs.get_mut(*rule) {
                cost.cells
                    .push(CellCost::new(cell, outline, summary, *rule));
            }
        }
    }
    costs
}

impl CellCost {
    fn new(cell: usize, outline: &CellOutline, summary: &CellSummary, rule: usize) -> CellCost {
        let others = summary.rules.iter().filter(|other| **other != rule);
        CellCost {
            cell,
            operator: operator(outline.operator),
            window_seconds: outline.window,
            state: state(outline),
            per_event: order(summary.update),
            per_decision: order(summary.lookup),
            why: summary.why.map(str::to_owned),
            shared_with: others.copied().collect(),
        }
    }

    fn is_constant(&self) -> bool {
        let constant = order(Cost::Constant);
        self.per_event == constant && self.per_decision == constant
    }
}

pub(super) fn operator(operator: Operator) -> &'static str {
    match operator {
        Operator::Formerly => "formerly",
        Operator::Previous => "previous",
        Operator::Since => "since",
        Operator::Both => "both",
        Operator::Count => "count",
        Operator::Sum => "sum",
    }
}

fn state(cell: &CellOutline) -> String {
    let last = words::last(cell.window);
    let each = |what: &str, keys: &[Key]| match keys {
        [] => format!("one {what}"),
        keys => format!("one {what} for each distinct {}", named(keys)),
    };
    match cell.kind {
        CellKind::Latest => format!("{} seen in {last}", each("time", &cell.keys)),
        CellKind::Pair => format!(
            "one row for each distinct {} that all have which it has to be in",
            named(&cell.keys)
        ),
        CellKind::Previous => "the matches of the last two events that had any".to_owned(),
        CellKind::Window => {
            let by = match cell.keys.as_slice() {
                [] => String::new(),
                keys => format!(", and one total for each distinct {}", named(keys)),
            };
            if cell.counted.contains(&Key::TimePoint) {
                format!("one entry for each event counted in {last}{by}")
            } else {
                let all: Vec<Key> = cell.keys.iter().chain(&cell.counted).cloned().collect();
                format!("{} counted in {last}{by}", each("time", &all))
            }
        }
        CellKind::Anchor => {
            let mut held = vec![format!("{} anchored in {last}", each("time", &cell.keys))];
            held.extend(cell.breaks.iter().map(|keys| match keys.as_slice() {
                [] => "the time of the last break".to_owned(),
                keys => format!("one time for each distinct {} of a break", named(keys)),
            }));
            words::clauses(&held, "and", true)
        }
        CellKind::Nested => {
            let by = match cell.keys.as_slice() {
                [] => String::new(),
                keys => format!(", by {}", named(keys)),
            };
            let which = match cell.every {
                true => "",
                false => " that it names",
            };
            let last = words::last(cell.kept);
            format!("one time for each event{which} in {last}{by}")
        }
        CellKind::Reread => {
            let last = words::last(cell.kept);
            let fields = match cell.keys.as_slice() {
                [] => String::new(),
                keys => format!(" with its {}", named(keys)),
            };
            format!("one time for each event in {last}, and each event that it names{fields}")
        }
        CellKind::Relation => {
            let rows = match cell.keys.as_slice() {
                [] => "one row for each way in which it holds".to_owned(),
                keys => format!(
                    "one row for each distinct {}, with what is open until a request asks",
                    named(keys)
                ),
            };
            format!("{rows}, in {last}")
        }
    }
}

pub(super) fn named(keys: &[Key]) -> String {
    let names: BTreeSet<String> = keys
        .iter()
        .map(|key| match key {
            Key::Field(path) => format!("`{path}`"),
            Key::TimePoint => "time point".to_owned(),
            Key::Computed => "computed value".to_owned(),
            Key::Asked => "value asked".to_owned(),
        })
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    words::list(&names, "and")
}

fn order(cost: Cost) -> &'static str {
    match cost {
        Cost::Constant => "O(1)",
        Cost::Rows => "O(rows held)",
    }
}

impl fmt::Display for RuleCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = printable(&self.name).replace('\n', "\\n");
        writeln!(f, "rule {}: {name}", self.rule)?;
        if self.cells.is_empty() {
            return writeln!(
                f,
                "  Holds nothing: an event costs nothing, a decision O(1)."
            );
        }
        self.cells.iter().try_for_each(|cell| cell.fmt(f))
    }
}

impl fmt::Display for CellCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = match self.shared_with.as_slice() {
            [] => String::new(),
            [rule] => format!(", shared with rule {rule}"),
            rules => {
                let rules: Vec<String> = rules.iter().map(usize::to_string).collect();
                format!(", shared with rules {}", words::list(&rules, "and"))
            }
        };
        writeln!(
            f,
            "  cell {}: `{}` over {}{shared}",
            self.cell,
            self.operator,
            words::span(self.window_seconds)
        )?;
        let holds = format!("Holds {}.", self.state);
        writeln!(f, "{}", words::wrap(&holds, "    ", 96))?;
        let work = format!(
            "An event costs {}, a decision {}{}.",
            self.per_event,
            self.per_decision,
            match &self.why {
                Some(why) => format!(": {why}"),
                None => String::new(),
            }
        );
        writeln!(f, "{}", words::wrap(&work, "    ", 96))
    }
}

/// What the whole set comes to.
pub fn closing(costs: &[RuleCost], partition: Option<&str>) -> String {
    let cells = costs.iter().flat_map(|rule| &rule.cells);
    let all: BTreeSet<usize> = cells.clone().map(|cell| cell.cell).collect();
    let worse: BTreeSet<usize> = cells
        .filter(|cell| !cell.is_constant())
        .map(|cell| cell.cell)
        .collect();
    let mut said = if all.is_empty() {
        "No rule looks back, so nothing is held.".to_owned()
    } else if worse.is_empty() {
        "Every cell costs O(1) an event and a decision.".to_owned()
    } else {
        let worse: Vec<String> = worse.iter().map(usize::to_string).collect();
        let cells = if worse.len() == 1 { "Cell" } else { "Cells" };
        let cost = if worse.len() == 1 { "costs" } else { "cost" };
        format!(
            "{cells} {} {cost} more than O(1); the others do not.",
            words::list(&worse, "and")
        )
    };
    if let Some(field) = partition
        && !all.is_empty()
    {
        said.push_str(&format!(
            " All of it is held once for each distinct `{field}`."
        ));
    }
    said
}
