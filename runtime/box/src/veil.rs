//! Placeholders kept out of what is decided and written down.
//!
//! A command is judged after expansion, so one that says `"x-api-key: $LLM_KEY"` holds the placeholder itself. That
//! opens nothing outside its box, but it is another text on every run: rules, records and the history have the
//! name of the variable instead.

use box_authority::action::{Action, Command};
use box_authority::denial::Denial;
use box_authority::gate::{Caller, Gate, Permit};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A gate that puts `$NAME` for the placeholder of `NAME` in the commands it asks about.
pub struct Veil {
    gate: Arc<dyn Gate>,
    /// Placeholder and what stands for it.
    names: Vec<(String, String)>,
}

impl Veil {
    /// `placeholders` by the variables that hold them.
    pub fn new(gate: Arc<dyn Gate>, placeholders: &BTreeMap<String, String>) -> Veil {
        let names = placeholders
            .iter()
            .map(|(name, placeholder)| (placeholder.clone(), format!("${name}")))
            .collect();
        Veil { gate, names }
    }

    fn text(&self, text: &mut SmolStr) {
        for (placeholder, name) in &self.names {
            if text.contains(placeholder.as_str()) {
                *text = text.replace(placeholder.as_str(), name).into();
            }
        }
    }

    fn command(&self, command: &mut Command) {
        command.words.iter_mut().for_each(|word| self.text(word));
        self.text(&mut command.program);
    }

    fn veiled(&self, mut action: Action) -> Action {
        match &mut action {
            Action::ShellExec(command) => self.command(command),
            Action::ShellSpawn(spawn) => self.command(&mut spawn.command),
            _ => {}
        }
        action
    }
}

impl Gate for Veil {
    fn decide(&self, caller: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
        self.gate.decide(caller, self.veiled(action))
    }

    fn record_refusal(&self, caller: &Caller, action: &Action, denial: &Denial) {
        let mut denial = denial.clone();
        let mut target = SmolStr::from(denial.target.as_str());
        self.text(&mut target);
        denial.target = target.into();
        self.gate
            .record_refusal(caller, &self.veiled(action.clone()), &denial);
    }
}

#[cfg(test)]
mod tests {
    use super::Veil;
    use box_authority::action::{Action, Command, Outcome, Spawn};
    use box_authority::denial::{Denial, DenyCause};
    use box_authority::gate::{Caller, Gate, Permit};
    use std::sync::{Arc, Mutex};

    #[derive(Default)]
    struct Asked(Mutex<Vec<String>>);

    struct Leave;

    impl Permit for Leave {
        fn complete(self: Box<Self>, _: Outcome) {}
    }

    impl Gate for Asked {
        fn decide(&self, _: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
            self.0.lock().unwrap().push(format!("{action:?}"));
            Ok(Box::new(Leave))
        }

        fn record_refusal(&self, _: &Caller, action: &Action, denial: &Denial) {
            self.0.lock().unwrap().push(format!("{action:?} {denial}"));
        }
    }

    #[test]
    fn commands_name_the_variable() {
        let asked = Arc::new(Asked::default());
        let placeholders = [
            ("LLM_KEY".to_owned(), "strands_box_1".to_owned()),
            ("TOKEN".to_owned(), "strands_box_2".to_owned()),
        ];
        let veil = Veil::new(Arc::<Asked>::clone(&asked), &placeholders.into());
        let command = Command {
            words: [
                "curl",
                "-H",
                "x-api-key: strands_box_1",
                "strands_box_2/strands_box_1",
            ]
            .map(Into::into)
            .to_vec(),
            program: "strands_box_2".into(),
            cwd: "~/work".into(),
        };
        let spawn = Action::ShellSpawn(Spawn {
            command: command.clone(),
            ..Spawn::default()
        });
        let exec = Action::ShellExec(command);
        let denial = Denial {
            action: exec.name().into(),
            target: "strands_box_2".into(),
            cause: DenyCause::Fault("none".into()),
        };
        assert!(veil.decide(&Caller::Agent, spawn).is_ok());
        assert!(veil.decide(&Caller::Agent, exec.clone()).is_ok());
        veil.record_refusal(&Caller::Agent, &exec, &denial);
        let told = asked.0.lock().unwrap().join("\n");
        assert_eq!(told.lines().count(), 4, "{told}");
        assert!(!told.contains("strands_box_"), "{told}");
        assert_eq!(told.matches("x-api-key: $LLM_KEY").count(), 3, "{told}");
        assert_eq!(told.matches("$TOKEN/$LLM_KEY").count(), 3, "{told}");
    }
}
