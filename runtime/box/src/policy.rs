//! The policy of a box: read, checked against the actions of a box, and refused whole or taken whole.

use box_mcp::broker::Installed;
use box_mcp::catalogue::Catalogue;
use box_mcp::relay::Policies;
use box_mcp::schema::{namespace, server_namespace};
use dogwood_compiler::compile::{self, Checked, Options, Source};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Severity};
use dogwood_compiler::schema::{BOX_ACTIONS, BOX_EVENTS, Service};
use std::path::{Path, PathBuf};

/// No policy is longer, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// A policy without errors, and the text it came from.
pub struct Loaded {
    pub source: Source,
    pub service: Service,
    /// Its rules, and its warnings.
    pub checked: Checked,
    pub tools: Tools,
}

/// The tools of MCP servers that a policy was checked against: the generated schema beside it.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// The file and its text. None: no rule can speak of a tool.
    pub schema: Option<(PathBuf, String)>,
}

/// What a generated schema is called, in the folder of the policy.
pub const SCHEMA: &str = "actions.cedarschema";

impl Tools {
    /// Reads the schema beside `policy`, if there is one.
    fn beside(policy: &Path) -> Result<Tools, String> {
        let file = policy.with_file_name(SCHEMA);
        if !file.exists() {
            return Ok(Tools::default());
        }
        let text = read(&file)?;
        if !text.starts_with(BOX_ACTIONS) {
            return Err(
                "it does not begin with the actions of this build; generate it anew with `box policy generate-schema`"
                    .into(),
            );
        }
        Ok(Tools {
            schema: Some((file, text)),
        })
    }
}

impl Policies for Tools {
    /// A server's tools are typed when the policy was checked against exactly these.
    fn install(&self, catalogue: &Catalogue) -> Installed {
        let heading = format!("\nnamespace {} {{\n", namespace(&catalogue.server));
        let Some((file, text)) = self
            .schema
            .as_ref()
            .filter(|(_, text)| text.contains(&heading))
        else {
            return Installed::Untyped;
        };
        match server_namespace(catalogue) {
            Ok(fragment) if text.contains(&fragment) => Installed::Typed,
            _ => Installed::Refused(format!(
                "they are not those that {} was generated from. Look at what changed, and generate it anew with \
                 `box policy generate-schema`",
                file.display()
            )),
        }
    }
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
    let tools = match file.map(Tools::beside) {
        None => Tools::default(),
        Some(Ok(tools)) => tools,
        Some(Err(reason)) => {
            let message = format!("the schema {SCHEMA} beside the policy cannot be used: {reason}");
            let source = Source { name, text };
            return Err(Rejected {
                source,
                diagnostics: vec![Diagnostic::error("policy-schema", Span::at(0), message)],
            });
        }
    };
    let source = Source { name, text };
    let actions = tools.schema.as_ref().map(|(file, text)| Source {
        name: file.display().to_string(),
        text: text.clone(),
    });
    let events = actions.as_ref().map(|_| Source {
        name: "events.dwschema".into(),
        text: BOX_EVENTS.into(),
    });
    let service = match compile::load_service(actions.as_ref(), events.as_ref()) {
        Ok((service, _)) => service,
        Err(diagnostics) => {
            return Err(Rejected {
                source: actions.unwrap_or(source),
                diagnostics,
            });
        }
    };
    let sources = std::slice::from_ref(&source);
    match compile::check(sources, None, &service, &Options::default()) {
        Ok(checked) => Ok(Loaded {
            source,
            service,
            checked,
            tools,
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
