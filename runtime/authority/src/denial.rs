//! Why a request was refused, and the one place where that becomes text.

use smol_str::SmolStr;

/// A refusal, as data. `Display` gives the text people and agents read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The bare action: `shell:spawn`.
    pub action: SmolStr,
    /// The path, program or host it was about.
    pub target: String,
    pub cause: DenyCause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenyCause {
    /// A forbid rule matched.
    Forbidden { rule: RuleName, description: Option<SmolStr>, witness: Vec<String> },
    /// No permit rule matched. `witness` speaks of the nearest one.
    NoPermit { witness: Vec<String> },
    /// The request could not be evaluated or recorded.
    Fault(String),
    /// A fixed refusal that no permit lifts.
    Enforcement { gate: &'static str, reason: String },
}

/// How a rule is named to people: its `@id`, or where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleName {
    pub id: Option<SmolStr>,
    /// `policy.dw:12`.
    pub place: String,
}
