//! Refusals as JSON-RPC errors: the one place where a denial becomes a frame.

use crate::frame::Id;
use box_authority::denial::{Denial, DenyCause};
use serde_json::{Map, Value, json};

/// The code of a refusal by policy, or by a rule no policy lifts.
pub const REFUSED: i64 = -32001;
/// The code for a server that is not there, or does not keep to the protocol.
pub const UNAVAILABLE: i64 = -32000;

/// The reply to a request that was refused.
pub fn refusal(id: Option<&Id>, code: i64, denial: &Denial, method: &str) -> Value {
    error(id, code, &message(denial, method), Some(data(denial)))
}

/// A JSON-RPC error reply.
pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let (Some(data), Some(members)) = (data, error.as_object_mut()) {
        members.insert("data".into(), data);
    }
    json!({"jsonrpc": "2.0", "id": id.map(Id::json), "error": error})
}

/// The text of the denial, with the method at the end of its first line.
fn message(denial: &Denial, method: &str) -> String {
    let text = denial.to_string();
    match text.split_once('\n') {
        Some((first, rest)) => format!("{first} ({method})\n{rest}"),
        None => format!("{text} ({method})"),
    }
}

fn data(denial: &Denial) -> Value {
    let mut data = Map::new();
    let mut put = |name: &str, value: Value| {
        data.insert(name.to_owned(), value);
    };
    put("action", json!(denial.action.as_str()));
    put("target", json!(denial.target));
    match &denial.cause {
        DenyCause::Forbidden {
            rule,
            description,
            witness,
        } => {
            put("rule", json!(rule.to_string()));
            put("place", json!(rule.place));
            if let Some(description) = description {
                put("description", json!(description.as_str()));
            }
            put("witness", json!(witness));
        }
        DenyCause::NoPermit { witness } => {
            put("rule", json!("default-deny"));
            put("witness", json!(witness));
        }
        DenyCause::Fault(reason) => put("reason", json!(reason)),
        DenyCause::Enforcement { gate, reason } => {
            put("rule", json!(format!("enforcement:{gate}")));
            put("reason", json!(reason));
        }
    }
    Value::Object(data)
}
