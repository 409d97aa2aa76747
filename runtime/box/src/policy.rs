//! The policy of a box: read, checked against the actions of a box, and refused whole or taken whole.

use dogwood_compiler::compile::{self, Checked, Options, Source};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Severity};
use dogwood_compiler::schema::Service;
use std::path::Path;

/// No policy is longer, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// A policy without errors, and the text it came from.
pub struct Loaded {
    pub source: Source,
    pub service: Service,
    /// Its rules, and its warnings.
    pub checked: Checked,
}

/// What is wrong with it. The source is there for the drawing.
pub struct Rejected {
    pub source: Source,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads and checks `file`, called `name` in messages. Without a file there are no rules.
pub fn load(file: Option<&Path>, name: String) -> Result<Loaded, Rejected> {
    let text = match file.map(read) {
        None => String::new(),
        Some(Ok(text)) => text,
        Some(Err(reason)) => {
            let message = format!("the policy cannot be read: {reason}");
            let source = Source {
                name,
                text: String::new(),
            };
            return Err(Rejected {
                source,
                diagnostics: vec![Diagnostic::error("policy-unreadable", Span::at(0), message)],
            });
        }
    };
    let source = Source { name, text };
    let checked = compile::load_service(None, None).and_then(|(service, _)| {
        compile::check(
            std::slice::from_ref(&source),
            None,
            &service,
            &Options::default(),
        )
        .map(|checked| (service, checked))
    });
    match checked {
        Ok((service, checked)) => Ok(Loaded {
            source,
            service,
            checked,
        }),
        Err(diagnostics) => Err(Rejected {
            source,
            diagnostics,
        }),
    }
}

fn read(file: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|e| e.to_string())?;
    opened
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into())
}

/// `3 errors, 1 warning`.
pub fn tally(diagnostics: &[Diagnostic]) -> String {
    let count = |severity, word: &str| match diagnostics
        .iter()
        .filter(|d| d.severity == severity)
        .count()
    {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    let parts: Vec<String> = [
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        "no errors".into()
    } else {
        parts.join(", ")
    }
}
