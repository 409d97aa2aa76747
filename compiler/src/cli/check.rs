//! `dogwood check`: are these rules sound?

use super::policy::Set;
use super::{Failure, Format, Outcome, PolicyArgs};
use clap::Args;

#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Reject policies with warnings, too.
    #[arg(long)]
    deny_warnings: bool,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Check {
    pub fn run(self) -> Result<Outcome, Failure> {
        let set = Set::lint(&self.policy)?;
        if self.format == Format::Human {
            set.say_schema();
        }
        let clean = set.diagnostics.is_empty() || !self.deny_warnings;
        let passed = set.rules.is_some() && clean;
        let rules = set.rules.as_ref().map_or(0, Vec::len);
        set.print_verdict(self.format, rules, passed)?;
        // The process ends here; taking thousands of trees apart first is time nobody needs.
        std::mem::forget(set);
        Ok(if passed {
            Outcome::Accepted
        } else {
            Outcome::Rejected
        })
    }
}
