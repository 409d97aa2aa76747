//! The seam to the compiled policy: one event in, a ruling out.

use crate::denial::RuleName;
use dogwood_compiler::event::Event;
use smol_str::SmolStr;

/// What reasons and records say about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCard {
    pub name: RuleName,
    pub description: Option<SmolStr>,
}

/// The answer of the policy to one request. Rules are named by their position in [`PolicySet::rules`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    pub allow: bool,
    /// Matching forbids of a denial, matching permits of an allowance.
    pub determining: Vec<usize>,
    /// Rules that could not be evaluated, with the reason; without a rule, the request itself.
    pub errors: Vec<(Option<usize>, String)>,
}

/// A monitor over compiled rules. Every event of the history passes through `step` exactly once, in order.
pub trait Engine: Send {
    /// `Ok(None)` for an event that is history only.
    fn step(&mut self, event: &Event) -> Result<Option<Ruling>, String>;

    /// Lines that say why the event just stepped was refused: what would have allowed it, or when it will be.
    fn witness(&self, event: &Event, ruling: &Ruling) -> Vec<String>;
}

/// A policy that compiled, and what to call its rules.
pub struct PolicySet {
    pub rules: Vec<RuleCard>,
    /// In its initial state.
    pub engine: Box<dyn Engine>,
    /// Seconds. No rule looks further back; older events are dropped when a history is opened.
    pub horizon: i64,
}
