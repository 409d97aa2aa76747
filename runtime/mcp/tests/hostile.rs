//! Frames made to confuse. Nothing reaches the server that was not permitted, or does not need to be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use box_authority::action::Action;
use box_authority::denial::{Denial, DenyCause};
use box_mcp::broker::{Broker, Installed, Step, Ticket};
use box_mcp::frame::Frame;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const UNDECIDED: [&str; 8] = [
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

fn word() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(vec![
        "initialize",
        "ping",
        "tools/call",
        "tools/list",
        "resources/read",
        "prompts/get",
        "roots/list",
        "sampling/createMessage",
        "vendor/x",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/x",
        "name",
        "Name",
        "uri",
        "arguments",
        "amount",
        "cursor",
        "requestId",
        "inputResponses",
        "inputRequests",
        "tools",
        "nextCursor",
        "inputSchema",
        "protocolVersion",
        "2025-11-25",
        "charge",
        "wipe",
        "method",
        "type",
        "object",
        "file:///a/../b",
        "",
    ])
    .prop_map(str::to_owned)
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i8>().prop_map(|n| n.to_string()),
        Just("1.5".to_owned()),
        Just("true".to_owned()),
        word().prop_map(|w| format!("{w:?}")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((word(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("{name:?}:{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Mostly frames, sometimes nearly.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![
        (0..4).prop_map(|n| format!(r#","id":{n}"#)),
        Just(r#","id":"1""#.to_owned()),
        Just(String::new()),
        json().prop_map(|id| format!(r#","id":{id}"#)),
    ];
    let method = word().prop_map(|m| format!(r#","method":{m:?}"#));
    let body = prop_oneof![
        (method.clone(), json())
            .prop_map(|(method, params)| format!(r#"{method},"params":{params}"#)),
        method.clone(),
        (method, "charge|wipe|Charge", json()).prop_map(|(method, tool, arguments)| {
            format!(
                r#"{method},"params":{{"name":{tool:?},"uri":"note:x","arguments":{arguments}}}"#
            )
        }),
        json().prop_map(|result| format!(r#","result":{result}"#)),
        Just(format!(r#","result":{TOOLS}"#)),
        Just(r#","error":{"code":-32601,"message":"no"}"#.to_owned()),
    ];
    prop_oneof![
        9 => (id, body).prop_map(|(id, body)| format!(r#"{{"jsonrpc":"2.0"{id}{body}}}"#).into_bytes()),
        1 => json().prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

const TOOLS: &str = r#"{"tools":[{"name":"charge","inputSchema":{"type":"object","properties":{"amount":{"type":"number"}}}},{"name":"wipe","inputSchema":{"type":"object"}}]}"#;

#[derive(Clone, Debug)]
enum Turn {
    Client(Vec<u8>),
    Server(Vec<u8>),
}

/// What was asked about one frame of the client, and how it went.
#[derive(Default)]
struct Seen {
    permitted: Vec<Action>,
    refused: bool,
    open: BTreeMap<Ticket, Action>,
    completed: BTreeSet<Ticket>,
    requests: BTreeMap<String, String>,
}

fn play(turns: Vec<Turn>, verdicts: Vec<bool>) -> Result<(), TestCaseError> {
    let mut broker = Broker::new("pay", box_mcp::catalogue::Allowance::default());
    let mut verdicts = verdicts.into_iter().cycle();
    let mut seen = Seen::default();
    for turn in turns {
        seen.permitted.clear();
        seen.refused = false;
        let (client, mut steps) = match &turn {
            Turn::Client(line) => (true, broker.from_client(line)),
            Turn::Server(line) => (false, broker.from_server(line)),
        };
        while !steps.is_empty() {
            let step = steps.remove(0);
            let more = match step {
                Step::Timed(page) => broker.overdue(page),
                Step::Ask { ticket, action } => {
                    prop_assert!(client, "only frames of the client are asked about");
                    let permit = verdicts.next().unwrap_or(true);
                    let verdict = if permit {
                        seen.open.insert(ticket, action.clone());
                        seen.permitted.push(action);
                        Ok(())
                    } else {
                        seen.refused = true;
                        Err(Denial {
                            action: action.name().into(),
                            target: action.target(),
                            cause: DenyCause::NoPermit {
                                witness: Vec::new(),
                            },
                        })
                    };
                    broker.answered(ticket, verdict)
                }
                Step::Complete { ticket, .. } => {
                    prop_assert!(
                        seen.open.remove(&ticket).is_some(),
                        "completed without a permit"
                    );
                    prop_assert!(seen.completed.insert(ticket), "completed twice");
                    Vec::new()
                }
                Step::Install { ticket, .. } => {
                    let installed = if verdicts.next().unwrap_or(true) {
                        Installed::Typed
                    } else {
                        Installed::Untyped
                    };
                    broker.installed(ticket, installed)
                }
                Step::ToClient(line) => {
                    prop_assert!(!line.contains('\n'));
                    prop_assert!(serde_json::from_str::<Value>(&line).is_ok());
                    if let Ok(Frame::Request { id, method, .. }) = Frame::parse(line.as_bytes()) {
                        seen.requests.insert(id.to_string(), method.to_string());
                    }
                    Vec::new()
                }
                Step::ToServer(line) => {
                    examined(&line, client, &seen)?;
                    Vec::new()
                }
                Step::Refused { .. } | Step::Notice(_) => Vec::new(),
            };
            steps.splice(0..0, more);
        }
    }
    for step in broker.server_ended() {
        if let Step::Complete { ticket, .. } = step {
            prop_assert!(seen.open.remove(&ticket).is_some());
        }
    }
    prop_assert!(
        seen.open.is_empty(),
        "permits nobody completed: {:?}",
        seen.open
    );
    Ok(())
}

/// A line to the server is an error of ours, or was examined and permitted.
fn examined(line: &str, client: bool, seen: &Seen) -> Result<(), TestCaseError> {
    prop_assert!(!line.contains('\n'));
    let frame = Frame::parse(line.as_bytes());
    let Ok(frame) = frame else {
        return Err(TestCaseError::fail(format!("no frame: {line}")));
    };
    let asked = |wanted: &str| {
        seen.permitted
            .iter()
            .any(|action| matches!(action, Action::McpCall { method, .. } if method == wanted))
    };
    match &frame {
        Frame::Request { method, params, .. } => {
            prop_assert!(client && !seen.refused, "{line}");
            prop_assert!(
                UNDECIDED.contains(&method.as_str()) || asked(method),
                "{line}"
            );
            let tool = params
                .as_ref()
                .and_then(|params| params.get("name"))
                .and_then(Value::as_str);
            if method == "tools/call" {
                let named = seen.permitted.iter().any(
                    |action| matches!(action, Action::McpCall { tool: Some(name), .. } if Some(name.as_str()) == tool),
                );
                prop_assert!(named, "{line}");
            }
        }
        Frame::Notification { method, .. } => {
            prop_assert!(client && !seen.refused, "{line}");
            prop_assert!(
                UNDECIDED.contains(&method.as_str()) || asked(method),
                "{line}"
            );
        }
        Frame::Response { id, .. } => {
            let ours = line.contains(r#""code":-32001"#) || line.contains(r#""code":-32600"#);
            let pong = line.contains(r#""result":{}"#);
            let question = seen.requests.get(&id.to_string());
            let decided = question.is_some_and(|method| asked(method)) && !seen.refused;
            prop_assert!(ours || pong || decided, "{line}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn nothing_unexamined_reaches_the_server(
        turns in prop::collection::vec(
            prop_oneof![line().prop_map(Turn::Client), line().prop_map(Turn::Server)],
            1..30,
        ),
        verdicts in prop::collection::vec(prop::bool::weighted(0.8), 1..8),
    ) {
        play(turns, verdicts)?;
    }

    /// The same, after the tools were listed, so that calls get further.
    #[test]
    fn nothing_unexamined_reaches_the_server_after_a_list(
        mut turns in prop::collection::vec(
            prop_oneof![line().prop_map(Turn::Client), line().prop_map(Turn::Server)],
            1..30,
        ),
        verdicts in prop::collection::vec(prop::bool::weighted(0.8), 1..8),
    ) {
        turns.insert(0, Turn::Client(br#"{"jsonrpc":"2.0","id":99,"method":"tools/list"}"#.to_vec()));
        turns.insert(1, Turn::Server(format!(r#"{{"jsonrpc":"2.0","id":99,"result":{TOOLS}}}"#).into_bytes()));
        let verdicts = [true, true].into_iter().chain(verdicts).collect();
        play(turns, verdicts)?;
    }

    #[test]
    fn a_frame_is_written_as_it_is_read(line in line()) {
        if let Ok(frame) = Frame::parse(&line) {
            prop_assert_eq!(Frame::parse(frame.line().as_bytes()), Ok(frame));
        }
    }
}
