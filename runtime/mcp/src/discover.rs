//! Asking a server for its tools ourselves, where no client does: to generate a schema.

use crate::catalogue::{Catalogue, CatalogueFault, Gathered, Lists};
use crate::frame::{Ending, Frame, Id, Malformed};
use crate::http::reply_result;
use crate::refusal::error;
use crate::relay::{Ends, Line, next_line, write_line};
use serde_json::{Map, Value, json};
use std::io::{BufReader, Write};
use thiserror::Error;

/// Lines that are no reply before one comes, at most.
const MAX_STRAY: usize = 10_000;
/// The revision asked for.
const REVISION: &str = "2025-11-25";

/// Why a server could not be asked.
#[derive(Debug, Error)]
#[error("MCP server {server:?} failed during {step}: {cause}")]
pub struct DiscoverError {
    pub server: String,
    /// `initialize` or `tools/list`.
    pub step: &'static str,
    pub cause: DiscoverCause,
}

#[derive(Debug, Error)]
pub enum DiscoverCause {
    #[error("it cannot be written to or read from: {0}")]
    Io(#[from] std::io::Error),
    #[error("it ended before it answered")]
    Ended,
    #[error("it sent a line that is too long")]
    TooLong,
    #[error("it sent {MAX_STRAY} lines and no reply among them")]
    NoReply,
    #[error("it answered with an error: {0}")]
    Refused(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("it answered with the status {0}: {1}")]
    Status(u16, String),
    #[error("its reply holds no answer")]
    NoAnswer,
    #[error(transparent)]
    List(#[from] CatalogueFault),
}

/// `initialize`, then `tools/list` to its last page. Whoever runs the server bounds the time, by ending it.
pub fn list_tools(server: &str, process: Ends) -> Result<Catalogue, DiscoverError> {
    let mut wire = Lines {
        reader: BufReader::new(process.reader),
        writer: process.writer,
    };
    listed(server, &mut wire)
}

/// The same of a remote server. Whoever posts bounds the time.
pub fn list_remote_tools(server: &str, post: &mut dyn Post) -> Result<Catalogue, DiscoverError> {
    let mut wire = Posts {
        post,
        session: None,
    };
    listed(server, &mut wire)
}

/// Makes one POST to the endpoint of a remote server, which takes JSON and event streams.
pub trait Post {
    fn post(&mut self, headers: &[(&str, &str)], body: String) -> Result<Posted, String>;
}

/// A reply, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    pub status: u16,
    /// The media type, without parameters.
    pub kind: String,
    /// The session the server opened.
    pub session: Option<String>,
    pub body: Vec<u8>,
}

fn listed(server: &str, wire: &mut dyn Wire) -> Result<Catalogue, DiscoverError> {
    let at = |step| {
        move |cause: DiscoverCause| DiscoverError {
            server: server.to_owned(),
            step,
            cause,
        }
    };
    let mut asking = Asking { wire, last: 0 };
    asking.initialise().map_err(at("initialize"))?;
    asking.list(server).map_err(at("tools/list"))
}

/// How frames travel.
trait Wire {
    /// The reply to a request, and its bytes.
    fn ask(&mut self, id: &Id, request: &Frame) -> Result<(Ending, usize), DiscoverCause>;
    fn tell(&mut self, notification: &Frame) -> Result<(), DiscoverCause>;
}

struct Asking<'w> {
    wire: &'w mut dyn Wire,
    last: i64,
}

impl Asking<'_> {
    fn initialise(&mut self) -> Result<(), DiscoverCause> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "box", "version": env!("CARGO_PKG_VERSION")},
        });
        self.ask("initialize", params)?;
        self.wire.tell(&Frame::Notification {
            method: "notifications/initialized".into(),
            params: None,
        })
    }

    fn list(&mut self, server: &str) -> Result<Catalogue, DiscoverCause> {
        let mut lists = Lists::default();
        let mut params = json!({});
        let mut number = lists.asked(None).ok_or(CatalogueFault::Cursor)?;
        loop {
            let (result, bytes) = self.ask("tools/list", params)?;
            match lists.answered(number, &result, bytes)? {
                Gathered::Finished(tools) => return Ok(Catalogue::new(server, tools)?),
                Gathered::Page => {
                    let cursor = result.get("nextCursor").and_then(Value::as_str);
                    number = lists.asked(cursor).ok_or(CatalogueFault::Cursor)?;
                    params = json!({"cursor": cursor});
                }
            }
        }
    }

    /// The result, and the bytes it came in.
    fn ask(&mut self, method: &str, params: Value) -> Result<(Value, usize), DiscoverCause> {
        self.last += 1;
        let id = Id::Number(self.last);
        let params: Option<Map<String, Value>> = params.as_object().cloned();
        let request = Frame::Request {
            id: id.clone(),
            method: method.into(),
            params,
        };
        match self.wire.ask(&id, &request)? {
            (Ending::Result(result), bytes) => Ok((result, bytes)),
            (Ending::Error(error), _) => {
                let message = error.get("message").and_then(Value::as_str);
                Err(DiscoverCause::Refused(
                    message.unwrap_or_default().to_owned(),
                ))
            }
        }
    }
}

struct Lines<R> {
    reader: BufReader<R>,
    writer: Box<dyn Write + Send>,
}

impl<R: std::io::Read> Wire for Lines<R> {
    fn tell(&mut self, notification: &Frame) -> Result<(), DiscoverCause> {
        Ok(write_line(&mut *self.writer, &notification.line())?)
    }

    fn ask(&mut self, asked: &Id, request: &Frame) -> Result<(Ending, usize), DiscoverCause> {
        write_line(&mut *self.writer, &request.line())?;
        for _ in 0..MAX_STRAY {
            let line = match next_line(&mut self.reader)? {
                None => return Err(DiscoverCause::Ended),
                Some(Line::TooLong) => return Err(DiscoverCause::TooLong),
                Some(Line::Whole(line)) => line,
            };
            match Frame::parse(&line) {
                Ok(Frame::Response { id, ending }) if id == *asked => {
                    return Ok((ending, line.len()));
                }
                Ok(Frame::Request { id, method, .. }) if method == "ping" => {
                    let ending = Ending::Result(json!({}));
                    write_line(&mut *self.writer, &Frame::Response { id, ending }.line())?;
                }
                Ok(Frame::Request { id, .. }) => {
                    let reply = error(Some(&id), -32601, "only tools are listed here", None);
                    write_line(&mut *self.writer, &reply.to_string())?;
                }
                // Replies to nothing, notifications, and lines a server prints that are no frames.
                Ok(Frame::Response { .. } | Frame::Notification { .. }) | Err(Malformed { .. }) => {
                }
            }
        }
        Err(DiscoverCause::NoReply)
    }
}

struct Posts<'p> {
    post: &'p mut dyn Post,
    session: Option<String>,
}

impl Posts<'_> {
    fn post(&mut self, frame: &Frame) -> Result<Posted, DiscoverCause> {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", REVISION),
        ];
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session));
        }
        let posted = self
            .post
            .post(&headers, frame.line())
            .map_err(DiscoverCause::Unreachable)?;
        if !(200..300).contains(&posted.status) {
            let text: String = String::from_utf8_lossy(&posted.body)
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .take(500)
                .collect();
            return Err(DiscoverCause::Status(posted.status, text));
        }
        if posted.session.is_some() {
            self.session.clone_from(&posted.session);
        }
        Ok(posted)
    }
}

impl Wire for Posts<'_> {
    fn tell(&mut self, notification: &Frame) -> Result<(), DiscoverCause> {
        self.post(notification).map(|_| ())
    }

    fn ask(&mut self, id: &Id, request: &Frame) -> Result<(Ending, usize), DiscoverCause> {
        let posted = self.post(request)?;
        let stream = posted.kind == "text/event-stream";
        let ending = reply_result(stream, &posted.body, id).ok_or(DiscoverCause::NoAnswer)?;
        Ok((ending, posted.body.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Post, Posted, list_remote_tools, list_tools};
    use crate::relay::Ends;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What a server that says these lines is told, and what comes of it.
    fn asked(lines: &[&str]) -> String {
        let told = Kept::default();
        let ends = Ends {
            reader: Box::new(std::io::Cursor::new(lines.join("\n").into_bytes())),
            writer: Box::new(told.clone()),
        };
        let outcome = match list_tools("pay", ends) {
            Ok(catalogue) => format!("{:?}", catalogue.tools.keys().collect::<Vec<_>>()),
            Err(error) => error.to_string(),
        };
        let told = String::from_utf8(told.0.lock().unwrap().clone()).unwrap();
        format!(
            "{}{outcome}",
            told.replace(env!("CARGO_PKG_VERSION"), "VERSION")
        )
    }

    const READY: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;

    #[test]
    fn a_server_is_asked_to_the_last_page_whatever_else_it_says() {
        let text = asked(&[
            "Listening…",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            READY,
            r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"p2"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"b","inputSchema":{}}]}}"#,
        ]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn servers_that_cannot_be_asked_say_where_they_failed() {
        let last = |lines: &[&str]| asked(lines).lines().last().unwrap_or_default().to_owned();
        let failures = [
            last(&[]),
            last(&[READY]),
            last(&[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"not today"}}"#]),
            last(&[READY, r#"{"jsonrpc":"2.0","id":2,"result":{"tools":1}}"#]),
            last(&[
                READY,
                r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{}}]}}"#,
            ]),
        ];
        insta::assert_snapshot!(failures.join("\n"));
    }

    /// A remote server that says these things in turn, and what it is told.
    struct Scripted {
        says: Vec<Posted>,
        told: String,
    }

    impl Post for Scripted {
        fn post(&mut self, headers: &[(&str, &str)], body: String) -> Result<Posted, String> {
            let session = headers.iter().find(|(name, _)| *name == "mcp-session-id");
            let session = session.map(|(_, session)| format!("[{session}] "));
            let told = format!("{}{body}\n", session.unwrap_or_default());
            self.told
                .push_str(&told.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
            if self.says.is_empty() {
                return Err("no address answers".into());
            }
            Ok(self.says.remove(0))
        }
    }

    fn posted(status: u16, kind: &str, body: &str) -> Posted {
        Posted {
            status,
            kind: kind.into(),
            session: None,
            body: body.into(),
        }
    }

    fn asked_remotely(says: Vec<Posted>) -> String {
        let mut server = Scripted {
            says,
            told: String::new(),
        };
        let outcome = match list_remote_tools("pay", &mut server) {
            Ok(catalogue) => format!("{:?}", catalogue.tools.keys().collect::<Vec<_>>()),
            Err(error) => error.to_string(),
        };
        format!("{}{outcome}", server.told)
    }

    #[test]
    fn a_remote_server_is_asked_in_its_session_by_body_or_by_stream() {
        let json = "application/json";
        let ready = Posted {
            session: Some("s7".into()),
            ..posted(200, json, READY)
        };
        let first = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"p2"}}"#;
        let stream = format!("event: message\ndata: {first}\n\n");
        let last = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"b","inputSchema":{}}]}}"#;
        let text = asked_remotely(vec![
            ready,
            posted(202, "", ""),
            posted(200, "text/event-stream", &stream),
            posted(200, json, last),
        ]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn remote_servers_that_cannot_be_asked_say_where_they_failed() {
        let last = |says| {
            let text = asked_remotely(says);
            text.lines().last().unwrap_or_default().to_owned()
        };
        let json = "application/json";
        let ready = || posted(200, json, READY);
        let failures = [
            last(vec![]),
            last(vec![posted(401, "text/html", "<h1>who\nare you?</h1>")]),
            last(vec![posted(200, "text/html", "<h1>hello</h1>")]),
            last(vec![ready(), posted(202, "", ""), posted(200, json, "{}")]),
            last(vec![
                ready(),
                posted(202, "", ""),
                posted(
                    200,
                    json,
                    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"not today"}}"#,
                ),
            ]),
        ];
        insta::assert_snapshot!(failures.join("\n"));
    }
}
