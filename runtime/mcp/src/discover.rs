//! Asking a server for its tools ourselves, where no client does: to generate a schema.

use crate::catalogue::{Catalogue, CatalogueFault, Gathered, Lists};
use crate::frame::{Ending, Frame, Id, Malformed};
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
    #[error(transparent)]
    List(#[from] CatalogueFault),
}

/// `initialize`, then `tools/list` to its last page. Whoever runs the server bounds the time, by ending it.
pub fn list_tools(server: &str, process: Ends) -> Result<Catalogue, DiscoverError> {
    let mut asking = Asking {
        reader: BufReader::new(process.reader),
        writer: process.writer,
        last: 0,
    };
    let at = |step| {
        move |cause: DiscoverCause| DiscoverError {
            server: server.to_owned(),
            step,
            cause,
        }
    };
    asking.initialise().map_err(at("initialize"))?;
    asking.list(server).map_err(at("tools/list"))
}

struct Asking<R> {
    reader: BufReader<R>,
    writer: Box<dyn Write + Send>,
    last: i64,
}

impl<R: std::io::Read> Asking<R> {
    fn initialise(&mut self) -> Result<(), DiscoverCause> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "box", "version": env!("CARGO_PKG_VERSION")},
        });
        self.ask("initialize", params)?;
        let frame = Frame::Notification {
            method: "notifications/initialized".into(),
            params: None,
        };
        Ok(write_line(&mut *self.writer, &frame.line())?)
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

    /// The result, and the bytes of its line.
    fn ask(&mut self, method: &str, params: Value) -> Result<(Value, usize), DiscoverCause> {
        self.last += 1;
        let asked = Id::Number(self.last);
        let params: Option<Map<String, Value>> = params.as_object().cloned();
        let request = Frame::Request {
            id: asked.clone(),
            method: method.into(),
            params,
        };
        write_line(&mut *self.writer, &request.line())?;
        for _ in 0..MAX_STRAY {
            let line = match next_line(&mut self.reader)? {
                None => return Err(DiscoverCause::Ended),
                Some(Line::TooLong) => return Err(DiscoverCause::TooLong),
                Some(Line::Whole(line)) => line,
            };
            match Frame::parse(&line) {
                Ok(Frame::Response { id, ending }) if id == asked => {
                    return match ending {
                        Ending::Result(result) => Ok((result, line.len())),
                        Ending::Error(error) => {
                            let message = error.get("message").and_then(Value::as_str);
                            Err(DiscoverCause::Refused(
                                message.unwrap_or_default().to_owned(),
                            ))
                        }
                    };
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

#[cfg(test)]
mod tests {
    use super::list_tools;
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
}
