//! Frames of a remote server: what the gateway asks about the bodies it holds.
//!
//! The gateway has decided `net:connect` and `http:request` before. Here the body is read as the broker reads a
//! line, and `mcp:call` comes before the catalogue.

use crate::catalogue::{Catalogue, CatalogueFault, page};
use crate::events::Events;
use crate::examine::{Accepted, Asked, Door, call, exact, examine, fixed, tool_action};
use crate::frame::{Ending, Frame, Id, Malformed, strict_json};
use crate::questions::Questions;
use crate::refusal::{REFUSED, error, refusal};
use box_authority::action::Action;
use box_authority::denial::Denial;
use serde_json::{Value, json};
use smol_str::SmolStr;

/// A body that was read: what to ask, in this order, and what to send when all of it is permitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// Absent for a notification and for a reply.
    pub id: Option<Id>,
    /// Of a reply: that of the request it answers.
    pub method: SmolStr,
    /// The tool, prompt or address it is about.
    pub item: Option<SmolStr>,
    /// `mcp:call`, unless nobody decides, then one for each kind of question that it answers.
    pub calls: Vec<Action>,
    /// For a tool, once the calls are permitted: its own action, if the policy has it, or why it cannot be called.
    pub tool: Option<Result<Action, Denial>>,
    /// `tools/list`: the cursor it follows.
    pub list: Option<Option<SmolStr>>,
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

/// Reads the body of a request to a remote server. `questions` are those it may answer.
pub fn inspect_request(
    server: &str,
    accepted: Option<&Accepted>,
    questions: &mut Questions,
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
            let fault = |reason: String| {
                let denial = fixed(&call(server, &method), "mcp-frame", &reason);
                let body = refusal(Some(&id), -32602, &denial, &method);
                refused(server, &method, reason, &body)
            };
            let asked = examine(server, Door::Http, &method, &mut params)
                .map_err(|found| fault(found.to_string()))?;
            let Asked {
                call: own,
                tool,
                cursor,
                answers,
            } = asked;
            let mut answered = Vec::new();
            for name in answers {
                let method = questions.method(&name).ok_or_else(|| {
                    fault(format!("the server did not ask the question {name:?}"))
                })?;
                if !answered.contains(method) {
                    answered.push(method.clone());
                }
            }
            let item = match &own {
                Some(Action::McpCall {
                    tool, prompt, uri, ..
                }) => tool.as_ref().or(prompt.as_ref()).or(uri.as_ref()).cloned(),
                _ => None,
            };
            let tool = match (&tool, &own) {
                (Some(tool), Some(call)) => tool_action(accepted, tool, params.as_ref())
                    .map_err(|reason| fixed(call, reason.gate(), reason))
                    .transpose(),
                _ => None,
            };
            let answered = answered.iter().map(|question| call(server, question));
            Ok(Inspected {
                id: Some(id.clone()),
                method: method.clone(),
                item,
                calls: own.into_iter().chain(answered).collect(),
                tool,
                list: (method == "tools/list").then_some(cursor),
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
            let undecided = crate::examine::harmless(&method);
            Ok(Inspected {
                id: None,
                method: method.clone(),
                item: None,
                calls: (!undecided)
                    .then(|| call(server, &method))
                    .into_iter()
                    .collect(),
                tool: None,
                list: None,
                forward: Frame::Notification { method, params }.line().into_bytes(),
            })
        }
        Frame::Response { id, ending } => {
            let Some(method) = questions.answered(&id) else {
                let reason = format!("the server has no request {id}");
                let body = error(None, -32600, &reason, None);
                return Err(refused(server, "(reply)", reason, &body));
            };
            let (calls, ending) = match method == "ping" {
                true => (Vec::new(), Ending::Result(json!({}))),
                false => (vec![call(server, &method)], ending),
            };
            Ok(Inspected {
                id: None,
                method,
                item: None,
                calls,
                tool: None,
                list: None,
                forward: Frame::Response { id, ending }.line().into_bytes(),
            })
        }
    }
}

/// The refusal of a request that carries no message that could be read.
pub fn unreadable(server: &str, reason: &str) -> BodyRefusal {
    let body = error(None, -32600, reason, None);
    *refused(server, "(unreadable frame)", reason.to_owned(), &body)
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
    refusal_text(inspected.id.as_ref(), denial, &inspected.method)
}

/// A denial as a JSON-RPC error.
pub fn refusal_text(id: Option<&Id>, denial: &Denial, method: &str) -> Vec<u8> {
    refusal(id, REFUSED, denial, method)
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

/// The result that a reply holds for a request: a JSON body, or the event of a finished stream that carries it.
pub fn reply_result(event_stream: bool, body: &[u8], id: &Id) -> Option<Ending> {
    let found = |bytes: &[u8]| match strict_json(bytes).ok().map(Frame::read) {
        Some(Ok(Frame::Response {
            id: answered,
            ending,
        })) if answered == *id => Some(ending),
        _ => None,
    };
    if !event_stream {
        return found(body);
    }
    let events = Events::default().push(body).unwrap_or_default();
    let data = events.into_iter().filter_map(|event| event.data);
    data.filter_map(|data| found(data.as_bytes())).next()
}

#[cfg(test)]
mod tests {
    use super::{inspect_request, listed, refusal_body, reply_result};
    use crate::examine::Accepted;
    use crate::frame::{Ending, Id};
    use crate::questions::Questions;
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
        let mut questions = Questions::default();
        questions.remember(&json!({"inputRequests": {"k": {"method": "roots/list"}}}));
        for (id, method) in [(7, "sampling/createMessage"), (8, "ping")] {
            questions.asked(&Id::Number(id), &method.into()).unwrap();
        }
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
            (true, r#"{"jsonrpc":"2.0","id":7,"result":{"secret":1}}"#),
            (true, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            (true, r#"{"jsonrpc":"2.0","id":8,"result":{"secret":1}}"#),
            (
                true,
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","id":9,"method":"m","params":{"inputResponses":{"q":{}}}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","id":9,"method":"m","params":{"inputResponses":{"k":{}}}}"#,
            ),
            (
                true,
                r#"{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{"cursor":"2"}}"#,
            ),
            (true, r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#),
            (true, "id=1"),
        ] {
            writeln!(text, "{body}").unwrap();
            let known = known.then_some(&accepted);
            match inspect_request("pay", known, &mut questions, body.as_bytes()) {
                Ok(inspected) => {
                    for call in &inspected.calls {
                        writeln!(text, "  call {:?}", call.input()).unwrap();
                    }
                    if let Some(cursor) = &inspected.list {
                        writeln!(text, "  list from {cursor:?}").unwrap();
                    }
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
        let expected = Some(Ending::Result(json!({"tools": []})));
        assert_eq!(reply_result(false, body, &Id::Number(1)), expected);
        assert_eq!(reply_result(true, stream, &Id::Number(1)), expected);
        assert_eq!(reply_result(true, stream, &Id::Number(2)), None);
        assert_eq!(reply_result(false, b"<html>", &Id::Number(1)), None);
    }
}
