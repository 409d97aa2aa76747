//! Names found in texts before they run: functions that may be defined, and paths that may be run.

use super::Session;
use crate::by_path::ByPath;
use std::sync::{Arc, Weak};

/// Commands that run a command named in their arguments.
const WRAPPERS: [&str; 19] = [
    "builtin", "command", "coproc", "env", "exec", "find", "flock", "nice", "nohup", "parallel",
    "retry", "setsid", "stdbuf", "sudo", "time", "timeout", "trap", "watch", "xargs",
];

/// Texts longer than this are not searched for names.
const MAX_SEARCHED: usize = 1 << 20;

impl Session {
    pub(super) fn learn_from(&self, name: &str, args: &[String]) {
        if name.contains('/') {
            self.stand_in(name);
        }
        match name {
            "eval" | "bash" | "sh" | "trap" => args.iter().for_each(|text| self.learn(text)),
            _ if WRAPPERS.contains(&name) => {
                for word in args
                    .iter()
                    .filter(|word| word.contains('/') && word.len() < 4096)
                {
                    self.stand_in(word);
                }
            }
            _ => {}
        }
    }

    /// Notes names in a text that the interpreter will read: functions it defines, and words with a `/` that
    /// could be run. Noting too many does no harm.
    pub(crate) fn learn(&self, text: &str) {
        if text.len() > MAX_SEARCHED {
            return;
        }
        let mut previous = "";
        for word in text.split(|c: char| c.is_whitespace() || ";|&<>(){}'\"`$=".contains(c)) {
            if word.is_empty() {
                continue;
            }
            if word.contains('/') {
                self.stand_in(word);
            }
            if previous == "function" {
                self.state().functions.insert(word.to_owned());
            }
            previous = word;
        }
        for (at, _) in text.match_indices('(') {
            let (before, after) = text.split_at(at);
            if after
                .get(1..)
                .is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with(')'))
            {
                let before = before.trim_end_matches([' ', '\t']);
                let start =
                    before.rfind(|c: char| c.is_whitespace() || ";|&<>(){}'\"`".contains(c));
                let name = start.and_then(|at| before.get(at + 1..)).unwrap_or(before);
                if !name.is_empty() {
                    self.state().functions.insert(name.to_owned());
                }
            }
        }
    }

    fn stand_in(&self, name: &str) {
        if self.registry.lookup(name).is_none()
            && let Some(spawner) = self.spawner.get().and_then(Weak::upgrade)
        {
            self.registry
                .insert(name, Arc::new(ByPath::new(name, spawner)));
        }
    }
}
