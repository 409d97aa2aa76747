//! Conversations with a remote server, played by hand: what is asked, what is sent, and what a client hears.

use super::{Correspondence, Reply};
use crate::broker::Installed;
use crate::catalogue::{Allowance, Catalogue, MAX_CHANGES};
use crate::frame::MAX_LINE;
use crate::relay::Policies;
use crate::remote::{Heard, Remote};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

struct Verdict(Mutex<Installed>);

impl Policies for Verdict {
    fn install(&self, _catalogue: &Catalogue) -> Installed {
        self.0.lock().unwrap().clone()
    }
}

/// A conversation, written down as it goes.
struct Play {
    with: Correspondence,
    verdict: Arc<Verdict>,
    text: String,
}

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";
const TOOLS: &str = r#"{"tools":[{"name":"charge","inputSchema":{"type":"object","properties":{"amount":{"type":"integer"}}}}]}"#;

fn reply(id: u32, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn request(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn charge(id: u32) -> String {
    request(
        id,
        "tools/call",
        r#"{"name":"charge","arguments":{"amount":5}}"#,
    )
}

impl Play {
    fn new() -> Play {
        let verdict = Arc::new(Verdict(Mutex::new(Installed::Typed)));
        let policies: Arc<dyn Policies> = verdict.clone();
        Play {
            with: Correspondence::new(Remote::new("pay", Allowance::default()), policies),
            verdict,
            text: String::new(),
        }
    }

    /// One exchange: a body in a session, and what the server answers.
    fn post(&mut self, session: &str, body: &str, kind: &str, pieces: &[&str]) -> &mut Play {
        writeln!(self.text, "client [{session}] {body}").unwrap();
        match self.with.request(session, body.as_bytes()) {
            Err(refusal) => {
                let body = String::from_utf8(refusal.body).unwrap();
                writeln!(self.text, "  refused {body}").unwrap();
            }
            Ok((inspected, waiting)) => {
                for call in &inspected.calls {
                    writeln!(self.text, "  ask {:?}", call.input()).unwrap();
                }
                match &inspected.tool {
                    Some(Err(denial)) => {
                        writeln!(self.text, "  refused {denial}").unwrap();
                        return self;
                    }
                    Some(Ok(action)) => writeln!(self.text, "  ask {}", action.target()).unwrap(),
                    None => {}
                }
                self.hear(waiting.reply(kind), pieces);
            }
        }
        self
    }

    fn hear(&mut self, mut reply: Reply, pieces: &[&str]) {
        let mut heard = Vec::new();
        for piece in pieces {
            heard.extend(reply.push(piece.as_bytes()));
        }
        heard.extend(reply.finish());
        for heard in heard {
            match heard {
                Heard::Ended(outcome) => writeln!(self.text, "  {outcome:?}"),
                Heard::Pass(text) => writeln!(self.text, "  → {}", text.replace('\n', "⏎")),
                Heard::Notice(text) => writeln!(self.text, "  notice {text}"),
            }
            .unwrap();
        }
    }

    fn listed(&mut self, session: &str) -> &mut Play {
        self.post(
            session,
            &request(1, "tools/list", "{}"),
            JSON,
            &[&reply(1, TOOLS)],
        );
        self.text.clear();
        self
    }
}

#[test]
fn a_tool_is_called_once_its_list_was_taken() {
    let mut play = Play::new();
    let hello = request(1, "initialize", "{}");
    let ready = reply(1, r#"{"protocolVersion":"2025-06-18"}"#);
    play.post("", &hello, JSON, &[&ready]);
    let initialised = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    play.post("s", initialised, "", &[]);
    play.post("s", &charge(2), JSON, &[]);
    let stream = format!(
        ": hi\n\nid: 1\ndata: \n\nid: 2\ndata: {}\n\n",
        reply(3, TOOLS)
    );
    let (one, two) = stream.split_at(40);
    play.post("s", &request(3, "tools/list", "{}"), STREAM, &[one, two]);
    let failed = r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"gone"}}"#;
    play.post("s", &charge(4), JSON, &[failed]);
    // Another session of the same sandbox knows the same tools.
    play.post("t", &charge(5), JSON, &[&reply(5, "{}")]);
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_list_is_a_chain_of_cursors_in_one_session() {
    let mut play = Play::new();
    let first = reply(1, r#"{"tools":[],"nextCursor":"2"}"#);
    let next = request(2, "tools/list", r#"{"cursor":"2"}"#);
    play.post("s", &request(1, "tools/list", "{}"), JSON, &[&first]);
    play.post("t", &next, JSON, &[&reply(2, TOOLS)]);
    play.post("s", &charge(3), JSON, &[]);
    play.post("s", &next, JSON, &[&reply(2, TOOLS)]);
    play.text.clear();
    play.post("s", &charge(4), JSON, &[&reply(4, "{}")]);
    insta::assert_snapshot!(play.text);
}

#[test]
fn what_the_policy_does_not_take_is_withdrawn() {
    let mut play = Play::new();
    play.listed("s");
    *play.verdict.0.lock().unwrap() = Installed::Refused("they are not those".into());
    let other = reply(2, r#"{"tools":[{"name":"wipe","inputSchema":{}}]}"#);
    play.post("s", &request(2, "tools/list", "{}"), JSON, &[&other]);
    play.post("s", &charge(3), JSON, &[]);
    let mut changing = Play::new();
    for turn in 0..=MAX_CHANGES + 1 {
        let id = u32::try_from(turn).unwrap();
        let tools = format!(r#"{{"tools":[{{"name":"t{turn}","inputSchema":{{}}}}]}}"#);
        changing.text.clear();
        changing.post(
            "s",
            &request(id, "tools/list", "{}"),
            JSON,
            &[&reply(id, &tools)],
        );
    }
    insta::assert_snapshot!(format!("{}{}", play.text, changing.text));
}

#[test]
fn questions_of_the_server_are_answered_once_and_decided() {
    let mut play = Play::new();
    play.listed("s");
    let roots = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let stream = format!(
        "data: {roots}\n\ndata: {ping}\n\ndata: {roots}\n\nevent: endpoint\ndata: /else\n\ndata: {}\n\n",
        reply(
            2,
            r#"{"inputRequests":{"q":{"method":"elicitation/create"}}}"#
        )
    );
    play.post("s", &charge(2), STREAM, &[&stream]);
    let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"roots":[]}}}}"#);
    play.post("t", &answer("r"), "", &[]);
    play.post("s", &answer("r"), "", &[]);
    play.post("s", &answer("r"), "", &[]);
    play.post("s", &answer("p"), "", &[]);
    let again = request(
        3,
        "tools/call",
        r#"{"name":"charge","arguments":{},"inputResponses":{"q":{}}}"#,
    );
    play.post("s", &again, JSON, &[&reply(3, "{}")]);
    insta::assert_snapshot!(play.text);
}

#[test]
fn replies_that_are_none_are_told_to_the_client() {
    let mut play = Play::new();
    play.listed("s");
    let long = format!("\"{}", "x".repeat(MAX_LINE));
    let long = long.as_str();
    for (kind, body) in [
        ("text/html", "<h1>hello</h1>"),
        (JSON, ""),
        (JSON, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#),
        (
            JSON,
            r#"{"jsonrpc":"2.0","id":2,"result":{},"result":{"a":1}}"#,
        ),
        (JSON, r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{}}"#),
        (JSON, long),
        (STREAM, "data: {}\n\n"),
        (STREAM, long),
        (
            JSON,
            r#"[{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        ),
    ] {
        play.post("s", &charge(2), kind, &[body]);
    }
    let old = reply(1, r#"{"protocolVersion":"1999-12-31"}"#);
    play.post("s", &request(1, "initialize", "{}"), JSON, &[&old]);
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_stream_of_its_own_carries_what_the_server_has_to_say() {
    let mut play = Play::new();
    let stream = format!(
        "data: {}\n\ndata: {}\n\ndata: []x\n\n",
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        reply(7, "{}")
    );
    let reply = play.with.listening("s").reply(STREAM);
    play.hear(reply, &[&stream]);
    insta::assert_snapshot!(play.text);
}
