//! The seam between checkpoints and the authority. A checkpoint holds a [`Gate`] and nothing else of it.

use crate::action::{Action, Outcome};
use crate::denial::Denial;
use smol_str::SmolStr;

/// Which sandbox a request came from, known from the listener that accepted it, never from what it says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    Agent,
    Tool(SmolStr),
    McpServer(SmolStr),
}

/// Leave to do one thing once. Only an authority makes one; whoever performs an effect must hold it.
///
/// Give it back with [`Permit::complete`]. One that is dropped instead is recorded as indeterminate.
pub trait Permit: Send {
    fn complete(self: Box<Self>, outcome: Outcome);
}

/// Asks, waits until the answer is durable, and answers. Callable from any thread.
pub trait Gate: Send + Sync {
    fn decide(&self, caller: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial>;

    /// Records a refusal that a checkpoint makes beneath policy: a [`crate::denial::DenyCause::Enforcement`].
    /// The checkpoint refuses whether or not anybody keeps the record.
    fn record_refusal(&self, _caller: &Caller, _action: &Action, _denial: &Denial) {}
}
