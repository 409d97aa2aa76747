//! The seam between checkpoints and the authority. A checkpoint holds a [`Gate`] and nothing else of it.

use crate::action::{Action, Outcome};
use crate::denial::{Denial, DenyCause};
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

    /// Whether this answer was given before, to a request with the same key. Then the effect may have happened
    /// already, and doing it again is the holder's to answer for: the history counts it once. Dropping such a
    /// permit says nothing.
    fn repeated(&self) -> bool {
        false
    }
}

/// Asks, waits until the answer is durable, and answers. Callable from any thread.
pub trait Gate: Send + Sync {
    fn decide(&self, caller: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial>;

    /// The same for a request that may be asked again because its answer was lost. The first with this key, of
    /// this caller, is decided and recorded; every later one gets the same answer and adds nothing to the
    /// history. The key is the checkpoint's, never the agent's.
    fn decide_once(
        &self,
        _caller: &Caller,
        action: Action,
        _key: &str,
    ) -> Result<Box<dyn Permit>, Denial> {
        Err(unable(&action, "requests with a key are not decided here"))
    }

    /// What `decide` would answer now. Nothing is recorded, and nothing follows from it.
    fn what_if(&self, _caller: &Caller, action: Action) -> Result<(), Denial> {
        Err(unable(&action, "nobody can say what would be decided here"))
    }

    /// Records a refusal that a checkpoint makes beneath policy: a [`crate::denial::DenyCause::Enforcement`].
    /// The checkpoint refuses whether or not anybody keeps the record.
    fn record_refusal(&self, _caller: &Caller, _action: &Action, _denial: &Denial) {}
}

fn unable(action: &Action, reason: &str) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Fault(reason.into()),
    }
}
