//! The seam to the compiled policy: one event in, a ruling out.

use crate::denial::RuleName;
use dogwood_compiler::event::Event;
use smol_str::SmolStr;
use std::sync::Arc;

/// What reasons and records say about a rule, and how much history it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCard {
    pub name: RuleName,
    pub description: Option<SmolStr>,
    pub forbids: bool,
    /// Seconds. Older events make no difference to the rule.
    pub horizon: i64,
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

/// The state of a policy over one history. Every event of the history passes through `step` exactly once, in
/// order.
pub trait Engine: Send {
    /// `Ok(None)` for an event that is history only.
    fn step(&mut self, event: &Event) -> Result<Option<Ruling>, String>;

    /// What `step` would answer, changing nothing.
    fn what_if(&self, event: &Event) -> Result<Option<Ruling>, String>;

    /// Lines that say why the event just stepped was refused: what would have allowed it, or when it will be.
    fn witness(&self, event: &Event, ruling: &Ruling) -> Vec<String>;

    /// The whole state, for [`Compiled::load`]; nothing from an engine that cannot be stored.
    fn save(&self) -> Option<Vec<u8>>;
}

/// A policy that compiled, without any history.
pub trait Compiled: Send + Sync {
    fn start(&self) -> Box<dyn Engine>;

    /// An engine as it was when it was saved.
    fn load(&self, saved: &[u8]) -> Result<Box<dyn Engine>, String>;

    /// Equal for two policies exactly if one can load what the other saved.
    fn fingerprint(&self) -> String;

    /// Whether an event is what its schema says, and if not, which field is wrong.
    fn check(&self, event: &Event) -> Result<(), String>;

    /// Which of these rules could match the request if only the history were right.
    fn possible(&self, event: &Event, among: &[usize]) -> Vec<usize>;
}

/// A policy that compiled, and what to call its rules.
pub struct PolicySet {
    pub rules: Vec<RuleCard>,
    pub compiled: Arc<dyn Compiled>,
    /// Seconds of history that are kept. No rule needs more; a rule that is added later may.
    pub keep: i64,
    /// As it is written: arguments that it quotes are no secrets, and are recorded as they are.
    pub text: String,
}

impl PolicySet {
    /// Keeps this many seconds of history, if the rules do not need more anyway.
    #[must_use]
    pub fn keeping(self, seconds: i64) -> PolicySet {
        PolicySet {
            keep: self.keep.max(seconds),
            ..self
        }
    }

    /// Seconds of history that some rule needs.
    pub fn horizon(&self) -> i64 {
        self.rules
            .iter()
            .map(|rule| rule.horizon)
            .max()
            .unwrap_or(0)
    }
}
