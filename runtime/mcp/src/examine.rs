//! What a client's request asks for, read from its method and parameters before anybody decides.

use crate::address::{AddressFault, canonical};
use crate::catalogue::Catalogue;
use crate::schema::namespace;
use crate::shape::{Mismatch, measure};
use box_authority::action::Action;
use box_authority::denial::{Denial, DenyCause};
use serde_json::{Map, Value};
use smol_str::SmolStr;
use std::sync::Arc;
use thiserror::Error;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Stdio,
    Http,
}

/// The tools a client may call on a connection.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub catalogue: Arc<Catalogue>,
    /// Whether the policy decides the tools' own actions.
    pub typed: bool,
}

/// Parameters that do not say what is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ItemFault {
    #[error("`{0}` must be a text that is not empty")]
    NoItem(&'static str),
    #[error("`params` holds {0:?}, which some servers read as `{1}`")]
    LookAlike(String, &'static str),
    #[error("`arguments` must be an object")]
    Arguments,
    #[error("`cursor` must be a text")]
    Cursor,
    #[error("`uri`: {0}")]
    Address(#[from] AddressFault),
    #[error("`inputResponses` must be an object")]
    Answers,
}

/// Why a tool cannot be called whatever the policy says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueRefusal {
    #[error("the MCP tool catalog is not accepted: list the tools first")]
    NotAccepted,
    #[error("the tool is not in the accepted MCP catalog")]
    NotListed,
    #[error("{0}")]
    Arguments(#[from] Mismatch),
    #[error("a rule could not speak of its arguments: {0}")]
    Unsupported(String),
}

impl CatalogueRefusal {
    /// The name records and replies have for it.
    pub fn gate(&self) -> &'static str {
        match self {
            CatalogueRefusal::NotAccepted | CatalogueRefusal::NotListed => "mcp-catalog",
            CatalogueRefusal::Arguments(_) | CatalogueRefusal::Unsupported(_) => "mcp-arguments",
        }
    }
}

/// Parameters that decide what a request means.
const MEANINGFUL: [&str; 6] = [
    "name",
    "uri",
    "arguments",
    "cursor",
    "inputResponses",
    "requestId",
];

/// A client's request, after its parameters were put into their one spelling.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Absent where nobody decides.
    pub call: Option<Action>,
    /// `tools/call`.
    pub tool: Option<SmolStr>,
    /// `tools/list`: whether it starts a list or follows one.
    pub cursor: Option<SmolStr>,
    /// Questions of the server that the parameters answer.
    pub answers: Vec<String>,
}

/// Whether a request passes without a decision: it only sets up or keeps up the connection.
fn undecided(door: Door, method: &str) -> bool {
    match method {
        "initialize" => door == Door::Stdio,
        "ping" | "server/discover" | "subscriptions/listen" => true,
        _ => false,
    }
}

/// Notifications that say nothing a server acts upon beyond the connection itself.
pub fn harmless(method: &str) -> bool {
    matches!(
        method,
        "notifications/initialized"
            | "notifications/cancelled"
            | "notifications/progress"
            | "notifications/roots/list_changed"
    )
}

/// `mcp:call` without an item.
pub fn call(server: &str, method: &str) -> Action {
    Action::McpCall {
        server: server.into(),
        method: method.into(),
        tool: None,
        prompt: None,
        uri: None,
    }
}

/// A refusal that no policy lifts.
pub fn fixed(action: &Action, gate: &'static str, reason: impl ToString) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Enforcement {
            gate,
            reason: reason.to_string(),
        },
    }
}

/// No parameter may be one that a forgiving server would take for another.
pub fn exact(params: Option<&Map<String, Value>>) -> Result<(), ItemFault> {
    for name in params.into_iter().flat_map(Map::keys) {
        let folded = folded(name);
        let meant = MEANINGFUL
            .iter()
            .find(|meant| **meant != name && self::folded(meant) == folded);
        if let Some(meant) = meant {
            return Err(ItemFault::LookAlike(name.clone(), meant));
        }
    }
    Ok(())
}

/// As parsers fold that take no notice of case: `ſ` is an `s`, and the Kelvin sign a `k`.
fn folded(name: &str) -> String {
    name.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Reads a request. Addresses in `params` are replaced by their canonical spelling.
pub fn examine(
    server: &str,
    door: Door,
    method: &str,
    params: &mut Option<Map<String, Value>>,
) -> Result<Asked, ItemFault> {
    exact(params.as_ref())?;
    let mut tool = None;
    let mut prompt = None;
    let mut uri = None;
    let mut cursor = None;
    let given = |name: &str| params.as_ref().and_then(|params| params.get(name));
    let item = |name: &'static str| match given(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(SmolStr::from(text)),
        _ => Err(ItemFault::NoItem(name)),
    };
    match method {
        "tools/call" => {
            tool = Some(item("name")?);
            if given("arguments").is_some_and(|a| !a.is_object() && !a.is_null()) {
                return Err(ItemFault::Arguments);
            }
        }
        "prompts/get" => prompt = Some(item("name")?),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            uri = Some(SmolStr::from(canonical(&item("uri")?)?));
        }
        "tools/list" => {
            cursor = match given("cursor") {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.into()),
                Some(_) => return Err(ItemFault::Cursor),
            }
        }
        _ => {}
    }
    let answers = match given("inputResponses") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(answers)) => answers.keys().cloned().collect(),
        Some(_) => return Err(ItemFault::Answers),
    };
    if let (Some(uri), Some(params)) = (&uri, params.as_mut()) {
        params.insert("uri".into(), Value::String(uri.to_string()));
    }
    let call = (!undecided(door, method)).then(|| Action::McpCall {
        server: server.into(),
        method: method.into(),
        tool: tool.clone(),
        prompt,
        uri,
    });
    Ok(Asked {
        call,
        tool,
        cursor,
        answers,
    })
}

/// The action of the tool itself, if the policy decides it.
pub fn tool_action(
    accepted: Option<&Accepted>,
    tool: &str,
    params: Option<&Map<String, Value>>,
) -> Result<Option<Action>, CatalogueRefusal> {
    let accepted = accepted.ok_or(CatalogueRefusal::NotAccepted)?;
    let listed = accepted
        .catalogue
        .tools
        .get(tool)
        .ok_or(CatalogueRefusal::NotListed)?;
    if !accepted.typed {
        return Ok(None);
    }
    let fields = listed.input.as_ref().map_err(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        CatalogueRefusal::Unsupported(found.join("; "))
    })?;
    let none = Map::new();
    let arguments = params
        .and_then(|params| params.get("arguments"))
        .and_then(Value::as_object)
        .unwrap_or(&none);
    Ok(Some(Action::Tool {
        namespace: namespace(&accepted.catalogue.server),
        tool: tool.into(),
        arguments: measure(fields, arguments)?,
    }))
}
