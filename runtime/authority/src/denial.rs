//! Why a request was refused, and the one place where that becomes text.

use smol_str::SmolStr;
use std::fmt::{Display, Formatter, Result, Write};

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
    Forbidden {
        rule: RuleName,
        description: Option<SmolStr>,
        witness: Vec<String>,
    },
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

impl Display for RuleName {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.id {
            Some(id) => f.write_str(id),
            None => f.write_str(&self.place),
        }
    }
}

/// Text that came from outside, kept to its line: a path may hold a newline that would forge a second one.
struct OneLine<'t>(&'t str);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for c in self.0.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

/// What comes first is the sentence every checkpoint prints; lines after it are indented by two.
impl Display for Denial {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (action, target) = (OneLine(&self.action), OneLine(&self.target));
        if let DenyCause::Enforcement { gate, reason } = &self.cause {
            let reason = OneLine(reason);
            return write!(
                f,
                "{action} denied: no policy can permit this operation on '{target}' [enforcement:{gate}]: {reason}"
            );
        }
        write!(
            f,
            "{action} denied: policy denied this operation on '{target}' "
        )?;
        let witness = match &self.cause {
            DenyCause::Forbidden {
                rule,
                description,
                witness,
            } => {
                write!(f, "[policy: {rule}]")?;
                if let Some(description) = description
                    .as_deref()
                    .map(str::trim)
                    .filter(|text| !text.is_empty())
                {
                    write!(f, ": {}", OneLine(description))?;
                }
                if rule.id.is_some() {
                    write!(f, "\n  rule: {rule} ({})", rule.place)?;
                }
                witness.as_slice()
            }
            DenyCause::NoPermit { witness } => {
                f.write_str("[default-deny]: No permit policy matched this request.")?;
                witness.as_slice()
            }
            DenyCause::Fault(reason) => {
                f.write_str("because the request could not be evaluated.")?;
                write!(f, "\n  {}", OneLine(reason))?;
                &[]
            }
            DenyCause::Enforcement { .. } => &[],
        };
        for line in witness {
            write!(f, "\n  {}", OneLine(line))?;
        }
        Ok(())
    }
}

impl std::error::Error for Denial {}

#[cfg(test)]
mod tests {
    use super::{Denial, DenyCause, RuleName};

    fn text(target: &str, cause: DenyCause) -> String {
        Denial {
            action: "shell:spawn".into(),
            target: target.into(),
            cause,
        }
        .to_string()
    }

    fn forbidden(id: Option<&str>, description: Option<&str>, witness: &[&str]) -> DenyCause {
        DenyCause::Forbidden {
            rule: RuleName {
                id: id.map(Into::into),
                place: "policy.dw:12".into(),
            },
            description: description.map(Into::into),
            witness: witness.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_forbid_names_its_rule_its_reason_and_the_way_out() {
        let cause = forbidden(
            Some("push_gate"),
            Some("Run the tests, then push."),
            &[
                "no response of `npm test` within the last 15 minutes",
                "last one: 17 minutes ago",
            ],
        );
        insta::assert_snapshot!(text("/usr/bin/git", cause), @r"
        shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: push_gate]: Run the tests, then push.
          rule: push_gate (policy.dw:12)
          no response of `npm test` within the last 15 minutes
          last one: 17 minutes ago
        ");
    }

    #[test]
    fn a_forbid_without_id_is_named_by_its_place() {
        insta::assert_snapshot!(text("/usr/bin/git", forbidden(None, Some(" "), &[])), @"shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: policy.dw:12]");
    }

    #[test]
    fn nothing_permits_it() {
        let cause = DenyCause::NoPermit {
            witness: vec!["nearest: `run_checks` wants arg1 \"check\"".into()],
        };
        insta::assert_snapshot!(text("/usr/bin/make", cause), @r#"
        shell:spawn denied: policy denied this operation on '/usr/bin/make' [default-deny]: No permit policy matched this request.
          nearest: `run_checks` wants arg1 "check"
        "#);
    }

    #[test]
    fn a_fault_says_what_broke() {
        let cause = DenyCause::Fault("the history cannot be written: no space left".into());
        insta::assert_snapshot!(text("/usr/bin/make", cause), @r"
        shell:spawn denied: policy denied this operation on '/usr/bin/make' because the request could not be evaluated.
          the history cannot be written: no space left
        ");
    }

    #[test]
    fn a_fixed_refusal_names_its_gate() {
        let cause = DenyCause::Enforcement {
            gate: "reach-floor",
            reason: "the box directory is out of reach".into(),
        };
        insta::assert_snapshot!(text("~/state", cause), @"shell:spawn denied: no policy can permit this operation on '~/state' [enforcement:reach-floor]: the box directory is out of reach");
    }

    #[test]
    fn a_target_cannot_forge_a_line() {
        let cause = DenyCause::NoPermit {
            witness: Vec::new(),
        };
        insta::assert_snapshot!(text("a\nb\u{1b}[2J", cause), @r"shell:spawn denied: policy denied this operation on 'a\nb\u{1b}[2J' [default-deny]: No permit policy matched this request.");
    }
}
