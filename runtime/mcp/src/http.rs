//! Frames of a remote server: what the gateway asks about the bodies it holds.
//!
//! The gateway has decided `net:connect` and `http:request` before. Here the body is read as the broker reads a
//! line, and `mcp:call` comes before the catalogue.

use crate::catalogue::{Catalogue, CatalogueFault, page};
use crate::examine::{Accepted, Asked, Door, call, exact, examine, fixed, tool_action};
use crate::frame::{Ending, Frame, Id, Malformed, strict_json};
use crate::refusal::{REFUSED, error, refusal};
use box_authority::action::Action;
use box_authority::denial::Denial;
use serde_json::Value;
use smol_str::SmolStr;

/// A body that was read: what to ask, in this order, and what to send when all of it is permitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// Absent for a notification.
    pub id: Option<Id>,
    pub method: SmolStr,
    /// `mcp:call`, unless nobody decides.
    pub call: Option<Action>,
    /// For a tool, once `mcp:call` is permitted: its own action, if the policy has it, or why it cannot be called.
    pub tool: Option<Result<Action, Denial>>,
    /// Written anew from what was read.
    pub forward: Vec<u8>,
}

/// A body that is refused whatever the policy says.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyRefusal {
    pub action: Action,
    pub denial: Denial,
    /// A JSON-RPC error.
    pub body: Vec<u8>,
}

/// Reads the body of a request to a remote server.
pub fn inspect_request(
    server: &str,
    accepted: Option<&Accepted>,
    body: &[u8],
) -> Result<Inspected, Box<BodyRefusal>> {
    let frame = Frame::parse(body).map_err(|malformed| {
        let Malformed { id, reply, fault } = malformed;
        let text = fault.to_string();
        let body = error(id.as_ref().filter(|_| !reply), fault.code(), &text, None);
        refused(server, "(unreadable frame)", text, &body)
    })?;
    match frame {
        Frame::Request {
            id,
            method,
            mut params,
        } => {
            let asked = examine(server, Door::Http, &method, &mut params).map_err(|fault| {
                let denial = fixed(&call(server, &method), "mcp-frame", &fault);
                let body = refusal(Some(&id), -32602, &denial, &method);
                refused(server, &method, fault.to_string(), &body)
            })?;
            if !asked.answers.is_empty() {
                // Which question an answer belongs to is known only where replies are kept.
                let reason = "answers to questions of a remote server are not taken";
                let denial = fixed(&call(server, &method), "mcp-frame", reason);
                let body = refusal(Some(&id), -32602, &denial, &method);
                return Err(refused(server, &method, reason.to_owned(), &body));
            }
            let Asked { call, tool, .. } = asked;
            let tool = match (&tool, &call) {
                (Some(tool), Some(call)) => tool_action(accepted, tool, params.as_ref())
                    .map_err(|reason| fixed(call, reason.gate(), reason))
                    .transpose(),
                _ => None,
            };
            Ok(Inspected {
                id: Some(id.clone()),
                method: method.clone(),
                call,
                tool,
                forward: Frame::Request { id, method, params }.line().into_bytes(),
            })
        }
        Frame::Notification { method, params } => {
            let fault = match exact(params.as_ref()) {
                Err(fault) => Some(fault.to_string()),
                Ok(()) if !method.starts_with("notifications/") => {
                    Some("a request needs an id".to_owned())
                }
                Ok(()) => None,
            };
            if let Some(fault) = fault {
                let body = error(None, -32600, &fault, None);
                return Err(refused(server, &method, fault, &body));
            }
            Ok(Inspected {
                id: None,
                method: method.clone(),
                call: (!crate::examine::harmless(&method)).then(|| call(server, &method)),
                tool: None,
                forward: Frame::Notification { method, params }.line().into_bytes(),
            })
        }
        Frame::Response { .. } => {
            let reason = "a reply to a request of a remote server is not taken".to_owned();
            let body = error(None, -32600, &reason, None);
            Err(refused(server, "(reply)", reason, &body))
        }
    }
}

fn refused(server: &str, method: &str, reason: String, body: &Value) -> Box<BodyRefusal> {
    let action = call(server, method);
    Box::new(BodyRefusal {
        denial: fixed(&action, "mcp-frame", reason),
        action,
        body: body.to_string().into_bytes(),
    })
}

/// The body of the 403 for a request that was denied.
pub fn refusal_body(inspected: &Inspected, denial: &Denial) -> Vec<u8> {
    refusal(inspected.id.as_ref(), REFUSED, denial, &inspected.method)
        .to_string()
        .into_bytes()
}

/// The catalogue in the replies to a chain of `tools/list`, one result a page.
pub fn listed(server: &str, results: &[Value]) -> Result<Catalogue, CatalogueFault> {
    let mut tools = Vec::new();
    for result in results {
        tools.extend(page(result)?.0);
    }
    Catalogue::new(server, tools)
}

/// The result that a reply holds for a request: a JSON body, or the event of a stream that carries it.
pub fn reply_result(event_stream: bool, body: &[u8], id: &Id) -> Option<Value> {
    let found = |bytes: &[u8]| match strict_json(bytes).ok().map(Frame::read) {
        Some(Ok(Frame::Response {
            id: answered,
            ending: Ending::Result(result),
        })) if answered == *id => Some(result),
        _ => None,
    };
    if !event_stream {
        return found(body);
    }
    events(std::str::from_utf8(body).ok()?)
        .iter()
        .find_map(|event| found(event.as_bytes()))
}

/// The payload of each event of a finished stream.
fn events(text: &str) -> Vec<String> {
    let mut events = Vec::new();
    let mut payload: Vec<&str> = Vec::new();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    for line in text.split('\n') {
        if line.is_empty() {
            if !payload.is_empty() {
                events.push(payload.join("\n"));
                payload.clear();
            }
        } else if let Some(part) = line.strip_prefix("data:") {
            payload.push(part.strip_prefix(' ').unwrap_or(part));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::{inspect_request, listed, refusal_body, reply_result};
    use crate::examine::Accepted;
    use crate::frame::Id;
    use serde_json::json;
    use std::fmt::Write;
    use std::sync::Arc;

    fn accepted() -> Accepted {
        let result = json!({"tools": [{"name": "charge", "inputSchema": {"type": "object", "properties": {"amount": {"type": "integer"}}}}]});
        Accepted {
            catalogue: Arc::new(listed("pay", &[result]).unwrap()),
            typed: true,
        }
    }

    #[test]
    fn bodies_become_questions() {
        let accepted = accepted();
        let mut text = String::new();
        for (known, body) in [
            (
                true,
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            ),
            (true, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#),
            (
                true,
                r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"charge","arguments":{"amount":5}}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wipe"}}"#,
            ),
            (
                false,
                r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"charge"}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"HTTP://H/%2e/a"}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            ),
            (true, r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#),
            (true, r#"{"jsonrpc":"2.0","method":"tools/call"}"#),
            (true, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            (
                true,
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","id":9,"method":"m","params":{"inputResponses":{"q":{}}}}"#,
            ),
            (true, r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#),
            (true, "id=1"),
        ] {
            writeln!(text, "{body}").unwrap();
            match inspect_request("pay", known.then_some(&accepted), body.as_bytes()) {
                Ok(inspected) => {
                    writeln!(
                        text,
                        "  call {:?}",
                        inspected.call.as_ref().map(|call| call.input())
                    )
                    .unwrap();
                    if let Some(tool) = &inspected.tool {
                        let tool = tool
                            .as_ref()
                            .map(|action| (action.target(), action.input()));
                        writeln!(text, "  tool {tool:?}").unwrap();
                        if let Err(denial) = tool {
                            let body = refusal_body(&inspected, denial);
                            writeln!(text, "  403 {}", String::from_utf8(body).unwrap()).unwrap();
                        }
                    }
                    writeln!(
                        text,
                        "  forward {}",
                        String::from_utf8(inspected.forward).unwrap()
                    )
                    .unwrap();
                }
                Err(refusal) => {
                    writeln!(text, "  {}", refusal.denial).unwrap();
                    writeln!(text, "  403 {}", String::from_utf8(refusal.body).unwrap()).unwrap();
                }
            }
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn results_are_found_in_bodies_and_in_streams() {
        let body = br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
        let stream = b": hello\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\nid: 4\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\r\ndata:\"result\":{\"tools\":[]}}\r\n\r\n";
        let expected = Some(json!({"tools": []}));
        assert_eq!(reply_result(false, body, &Id::Number(1)), expected);
        assert_eq!(reply_result(true, stream, &Id::Number(1)), expected);
        assert_eq!(reply_result(true, stream, &Id::Number(2)), None);
        assert_eq!(reply_result(false, b"<html>", &Id::Number(1)), None);
    }
}
