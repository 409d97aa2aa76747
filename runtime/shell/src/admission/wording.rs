//! How a refusal is told where the interpreter, or a utility, has its own words for it.

use super::{REFUSED, REFUSED_DIR, Session};
use bashkit::hooks::{HookAction, ToolEvent};
use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};
use std::path::Path;
use std::sync::Weak;

/// What bashkit says of a refusal that it words itself.
const UNWORDED: &str = "cancelled by before_tool hook\n";

/// Refusals kept for a utility that says nothing of them.
const MAX_UNSAID: usize = 16;

impl Session {
    /// Makes a refused builtin end with 126 and our text where its arguments allow that.
    pub(super) fn refuse(&self, mut event: ToolEvent, text: String) -> HookAction<ToolEvent> {
        let mut state = self.state();
        state.next_id += 1;
        let id = state.next_id.to_string();
        event.args = match event.name.as_str() {
            "eval" | "command" | "builtin" | "exec" => vec![REFUSED.to_owned(), id.clone()],
            "bash" | "sh" => vec!["-c".to_owned(), format!("{REFUSED} {id}")],
            "source" | "." => vec![format!("{REFUSED_DIR}/{id}")],
            _ => {
                state.unworded.push_back((event.name, text.clone()));
                return HookAction::Cancel(text);
            }
        };
        state.texts.insert(id, text);
        HookAction::Continue(event)
    }

    pub(crate) fn text(&self, id: &str) -> Option<String> {
        self.state().texts.remove(id)
    }

    /// A file operation was refused; the utility is about to say so in its own way.
    pub(crate) fn refused_effect(&self, path: &Path, text: &str) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return;
        };
        let mut state = self.state();
        state.unsaid.push_back((name.to_owned(), text.to_owned()));
        if state.unsaid.len() > MAX_UNSAID {
            state.unsaid.pop_front();
        }
    }

    /// Puts our text where the interpreter worded a refusal itself, or a utility left it out.
    pub(crate) fn reword(&self, text: &str) -> String {
        self.state().unsaid.retain(|(_, refusal)| {
            !refusal
                .lines()
                .next()
                .is_some_and(|first| text.contains(first))
        });
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            if line.ends_with(UNWORDED)
                && let Some(refusal) = self.next_unworded(line)
            {
                if !refusal.is_empty() {
                    out.push_str(&refusal);
                    out.push('\n');
                }
                continue;
            }
            out.push_str(line);
            if let Some(refusal) = self.next_unsaid(line) {
                if !line.ends_with('\n') {
                    out.push('\n');
                }
                out.push_str(&refusal);
                out.push('\n');
            }
        }
        out
    }

    /// The text that belongs to the interpreter's own wording of a refusal.
    fn next_unworded(&self, line: &str) -> Option<String> {
        let mut state = self.state();
        let at = state
            .unworded
            .iter()
            .position(|(name, _)| line.contains(&format!("{name}: cancelled by")))?;
        state.unworded.remove(at).map(|(_, text)| text)
    }

    fn next_unsaid(&self, line: &str) -> Option<String> {
        if ![
            "No such file",
            "ermission denied",
            "cannot",
            "Not a directory",
        ]
        .iter()
        .any(|w| line.contains(w))
        {
            return None;
        }
        let mut state = self.state();
        let at = state
            .unsaid
            .iter()
            .position(|(name, _)| line.contains(name.as_str()))?;
        state.unsaid.remove(at).map(|(_, text)| text)
    }

    pub(crate) fn has_to_reword(&self) -> bool {
        let state = self.state();
        !state.unworded.is_empty() || !state.unsaid.is_empty()
    }
}

/// Prints a refusal and ends with 126.
pub(crate) struct Refused {
    pub(crate) text: Option<String>,
    pub(crate) session: Option<Weak<Session>>,
}

#[async_trait]
impl Builtin for Refused {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let text = self.text.clone().or_else(|| {
            let session = self.session.as_ref().and_then(Weak::upgrade)?;
            session.text(ctx.args.first()?)
        });
        Ok(refused(&text.unwrap_or_default()))
    }
}

/// Status 126, and the text unless it was shown before.
pub(crate) fn refused(text: &str) -> ExecResult {
    let line = if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    };
    ExecResult::err(line, 126)
}
