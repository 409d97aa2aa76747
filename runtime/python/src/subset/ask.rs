//! Asks the interpreter what it knows, by running a line in it. No effect comes of such a line: whatever wants
//! one is stopped there, and known.

use crate::worker::OURS;
use monty::{MontyRun, RunProgress};
use monty_types::{CompileOptions, ExcType, PrintWriter, ResourceLimits, ResourceTracker};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// Answers already had.
#[derive(Default)]
pub(super) struct Known {
    answers: RefCell<HashMap<String, bool>>,
}

impl Known {
    pub(super) fn module(&self, module: &str) -> bool {
        self.runs(format!("import {module}"))
    }

    /// `from module import name`.
    pub(super) fn member(&self, module: &str, name: &str) -> bool {
        self.runs(format!("from {module} import {name}"))
    }

    /// `attribute` of what `import` binds to `name`.
    pub(super) fn attribute(&self, import: &str, name: &str, attribute: &str) -> bool {
        self.runs(format!("{import}\n{name}.{attribute}"))
            || self.runs(format!("{import}\n{name}.{attribute}()"))
    }

    pub(super) fn path_method(&self, method: &str) -> bool {
        self.runs(format!("from pathlib import Path\nPath('a').{method}"))
            || self.runs(format!("from pathlib import Path\nPath('a').{method}()"))
    }

    pub(super) fn builtin(&self, name: &str) -> bool {
        OURS.contains(&name) || self.runs(name.to_owned())
    }

    /// Whether the line gets past its names. Calls are made without arguments, so most end in some other error.
    fn runs(&self, line: String) -> bool {
        if let Some(known) = self.answers.borrow().get(&line) {
            return *known;
        }
        let known = tried(&line);
        self.answers.borrow_mut().insert(line, known);
        known
    }
}

fn tried(line: &str) -> bool {
    let Ok(program) = MontyRun::new(
        line.to_owned(),
        "ask.py",
        Vec::new(),
        CompileOptions::default(),
    ) else {
        return false;
    };
    let limits = ResourceLimits::default().max_duration(Duration::from_millis(200));
    let started = program.start(
        Vec::new(),
        ResourceTracker::new(limits),
        PrintWriter::Disabled,
    );
    match started {
        Ok(RunProgress::NameLookup(_) | RunProgress::FunctionCall(_)) => false,
        Ok(_) => true,
        Err(exception) => !matches!(
            exception.exc_type(),
            ExcType::NameError
                | ExcType::AttributeError
                | ExcType::ImportError
                | ExcType::ModuleNotFoundError
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn the_interpreter_says_what_it_knows() {
        let known = Known::default();
        assert!(known.module("json") && !known.module("os.path") && !known.module("time"));
        assert!(known.member("json", "dumps") && !known.member("json", "dump"));
        assert!(known.attribute("import os", "os", "listdir"));
        assert!(known.attribute("import os", "os", "environ"));
        assert!(known.attribute("import math as m", "m", "pi"));
        assert!(!known.attribute("import sys", "sys", "argv"));
        assert!(known.attribute("from datetime import timezone", "timezone", "utc"));
        assert!(!known.attribute("from datetime import datetime", "datetime", "utcnow"));
        assert!(known.path_method("read_text") && known.path_method("parent"));
        assert!(!known.path_method("glob"));
        assert!(known.builtin("len") && known.builtin("fetch") && !known.builtin("eval"));
    }
}
