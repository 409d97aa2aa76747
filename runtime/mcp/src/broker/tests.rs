//! The broker played by hand: what either side says, what is asked, and what comes of it.

use super::{Broker, Installed, MAX_OUTSTANDING, Step, Ticket};
use crate::catalogue::Allowance;
use box_authority::action::Action;
use box_authority::denial::{Denial, DenyCause, RuleName};
use std::fmt::Write;

/// A conversation, written down as it goes.
struct Play {
    broker: Broker,
    /// Refuses actions of which this says true.
    refuse: fn(&Action) -> bool,
    install: Installed,
    text: String,
    /// Where to stop a listing: an install is then left open.
    hold: bool,
    /// The latest page that the server has some time for.
    page: Option<Ticket>,
}

fn denial(action: &Action) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Forbidden {
            rule: RuleName {
                id: Some("daily_budget".into()),
                place: "policy.dw:3".into(),
            },
            description: Some("The budget is used up.".into()),
            witness: vec!["spent 120 of 100".into(), "lifts at 11:40".into()],
        },
    }
}

impl Play {
    fn new() -> Play {
        Play {
            broker: Broker::new("pay", Allowance::default()),
            refuse: |_| false,
            install: Installed::Typed,
            text: String::new(),
            hold: false,
            page: None,
        }
    }

    fn client(&mut self, line: &str) -> &mut Play {
        writeln!(self.text, "client {line}").unwrap();
        let steps = self.broker.from_client(line.as_bytes());
        self.walk(steps)
    }

    fn server(&mut self, line: &str) -> &mut Play {
        writeln!(self.text, "server {line}").unwrap();
        let steps = self.broker.from_server(line.as_bytes());
        self.walk(steps)
    }

    fn walk(&mut self, steps: Vec<Step>) -> &mut Play {
        for step in steps {
            let more = match step {
                Step::ToServer(line) => {
                    writeln!(self.text, "  → server {line}").unwrap();
                    Vec::new()
                }
                Step::ToClient(line) => {
                    writeln!(self.text, "  → client {line}").unwrap();
                    Vec::new()
                }
                Step::Timed(page) => {
                    self.page = Some(page);
                    Vec::new()
                }
                Step::Ask { ticket, action } => {
                    let refused = (self.refuse)(&action);
                    let verdict = if refused { "refused" } else { "permitted" };
                    writeln!(
                        self.text,
                        "  ask #{} {} {:?}: {verdict}",
                        ticket.0,
                        action.uid(),
                        action.input()
                    )
                    .unwrap();
                    let verdict = if refused {
                        Err(denial(&action))
                    } else {
                        Ok(())
                    };
                    self.broker.answered(ticket, verdict)
                }
                Step::Complete { ticket, outcome } => {
                    writeln!(self.text, "  complete #{} {outcome:?}", ticket.0).unwrap();
                    Vec::new()
                }
                Step::Install { ticket, catalogue } => {
                    let names: Vec<_> = catalogue.tools.keys().collect();
                    writeln!(self.text, "  install #{} {names:?}", ticket.0).unwrap();
                    if self.hold {
                        Vec::new()
                    } else {
                        self.broker.installed(ticket, self.install.clone())
                    }
                }
                Step::Refused { denial, .. } => {
                    writeln!(self.text, "  record {denial}").unwrap();
                    Vec::new()
                }
                Step::Notice(text) => {
                    writeln!(self.text, "  notice {text}").unwrap();
                    Vec::new()
                }
            };
            self.walk(more);
        }
        self
    }

    /// The tools `charge` and `wipe` are listed and accepted; of that nothing is written down.
    fn listed(&mut self) -> &mut Play {
        let refuse = std::mem::replace(&mut self.refuse, |_| false);
        self.client(&request(1000, "tools/list", "{}"));
        self.server(&reply(1000, TOOLS));
        self.refuse = refuse;
        self.text.clear();
        self
    }
}

const TOOLS: &str = r#"{"tools":[{"name":"charge","inputSchema":{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}},{"name":"wipe","inputSchema":{"type":"object"}}]}"#;

fn request(id: usize, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn reply(id: usize, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn charge(id: usize, arguments: &str) -> String {
    request(
        id,
        "tools/call",
        &format!(r#"{{"name":"charge","arguments":{arguments}}}"#),
    )
}

fn is_tool(action: &Action) -> bool {
    matches!(action, Action::Tool { .. })
}

#[test]
fn a_tool_call_is_decided_twice_and_completed_twice() {
    let mut play = Play::new();
    play.client(&request(1, "tools/list", "{}"))
        .server(&reply(1, TOOLS))
        .client(&charge(2, r#"{"amount":5}"#))
        .server(&reply(2, r#"{"content":[],"isError":true}"#))
        .client(&request(3, "tools/call", r#"{"name":"wipe"}"#))
        .server(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"half way"}}"#)
        .client(&request(4, "tools/call", r#"{"name":"wipe"}"#))
        .server(r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no such method"}}"#);
    insta::assert_snapshot!(play.text);
}

#[test]
fn what_only_keeps_the_connection_up_is_not_decided() {
    let mut play = Play::new();
    play.refuse = |_| true;
    play.client(&request(1, "initialize", r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1","extra":true}}"#))
        .server(&reply(1, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#))
        .client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .client(&request(2, "ping", "{}"))
        .client(&request(3, "server/discover", "{}"))
        .client(&request(4, "subscriptions/listen", "{}"))
        .client(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}"#)
        .client(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#)
        .client("   ");
    insta::assert_snapshot!(play.text);
}

#[test]
fn everything_else_is_decided_also_what_nobody_knows() {
    let mut play = Play::new();
    play.client(&request(1, "prompts/get", r#"{"name":"greet"}"#))
        .client(&request(
            2,
            "resources/read",
            r#"{"uri":"FILE:///srv/x/%2e%2e/a.txt"}"#,
        ))
        .client(&request(3, "resources/subscribe", r#"{"uri":"note:a"}"#))
        .client(&request(4, "completion/complete", "{}"))
        .client(&request(5, "logging/setLevel", r#"{"level":"debug"}"#))
        .client(&request(6, "vendor/explode", r#"{"when":"now"}"#))
        .client(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#);
    play.refuse = |_| true;
    play.client(&request(7, "vendor/explode", "{}"))
        .client(&request(8, "tools/list", "{}"))
        .client(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#);
    insta::assert_snapshot!(play.text);
}

#[test]
fn refusals_are_errors_with_the_rule_in_them() {
    let mut play = Play::new();
    play.listed().refuse = |action| !is_tool(action);
    play.client(&charge(1, r#"{"amount":5}"#));
    play.refuse = is_tool;
    play.client(&charge(2, r#"{"amount":5}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn the_catalogue_comes_before_every_decision() {
    let mut play = Play::new();
    play.client(&charge(1, r#"{"amount":5}"#));
    play.listed()
        .client(&request(2, "tools/call", r#"{"name":"Charge"}"#))
        .client(&request(3, "tools/call", r#"{"name":"charge "}"#))
        .client(&charge(4, r#"{"amount":19.99}"#))
        .client(&charge(5, r#"{"amount":"5"}"#))
        .client(&charge(6, r#"{"amonut":5}"#))
        .client(&charge(7, "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_list_refused_by_the_policy_leaves_no_tools() {
    let mut play = Play::new();
    play.install = Installed::Refused("the tool changed".into());
    play.client(&request(1, "tools/list", "{}"))
        .server(&reply(1, TOOLS))
        .client(&charge(2, r#"{"amount":5}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn without_rules_about_tools_one_decision_is_enough() {
    let mut play = Play::new();
    play.install = Installed::Untyped;
    play.listed().client(&charge(2, r#"{"amount":"anything"}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_list_is_held_until_its_tools_are_in_the_policy() {
    let mut play = Play::new();
    play.hold = true;
    play.client(&request(1, "tools/list", "{}"))
        .server(&reply(
            1,
            r#"{"tools":[{"name":"wipe","inputSchema":{}}],"nextCursor":"p2"}"#,
        ))
        .client(&request(2, "tools/list", r#"{"cursor":"p2"}"#))
        .server(&reply(
            2,
            r#"{"tools":[{"name":"charge","inputSchema":{}}]}"#,
        ))
        .client(&request(3, "tools/call", r#"{"name":"wipe"}"#));
    let steps = play.broker.installed(super::Ticket(3), Installed::Typed);
    play.walk(steps)
        .client(&request(4, "tools/call", r#"{"name":"wipe"}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_list_with_a_cursor_of_the_clients_own_is_not_captured() {
    let mut play = Play::new();
    play.client(&request(1, "tools/list", r#"{"cursor":"made-up"}"#))
        .server(&reply(1, TOOLS))
        .client(&request(2, "tools/call", r#"{"name":"wipe"}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_changed_list_replaces_the_tools_and_between_only_the_shared_ones_pass() {
    let mut play = Play::new();
    play.listed()
        .client(&request(1, "tools/list", "{}"))
        .server(&reply(1, TOOLS));
    play.hold = true;
    let changed = r#"{"tools":[{"name":"charge","inputSchema":{"type":"object"}},{"name":"wipe","inputSchema":{"type":"object"}}]}"#;
    play.client(&request(2, "tools/list", "{}"))
        .server(&reply(2, changed))
        .client(&charge(3, r#"{"amount":5}"#))
        .client(&request(4, "tools/call", r#"{"name":"wipe"}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn tools_may_not_change_without_end() {
    let mut play = Play::new();
    play.listed();
    for turn in 0..=crate::catalogue::MAX_CHANGES {
        play.text.clear();
        let tools = format!(r#"{{"tools":[{{"name":"t{turn}","inputSchema":{{}}}}]}}"#);
        play.client(&request(turn, "tools/list", "{}"))
            .server(&reply(turn, &tools));
    }
    insta::assert_snapshot!(play.text);
}

#[test]
fn lists_that_are_none_fail_by_name() {
    let mut play = Play::new();
    play.client(&request(1, "tools/list", "{}"))
        .server(&reply(1, "{}"))
        .client(&request(2, "tools/list", "{}"))
        .server(&reply(
            2,
            r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{}}]}"#,
        ))
        .client(&request(3, "tools/list", "{}"))
        .server(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"later"}}"#);
    insta::assert_snapshot!(play.text);
}

#[test]
fn frames_that_are_none_are_answered_and_go_nowhere() {
    let mut play = Play::new();
    play.client("garbage")
        .client(&format!("[{}]", request(1, "ping", "{}")))
        .client(r#"{"jsonrpc":"2.0","id":2,"method":"ping","method":"tools/call"}"#)
        .client(r#"{"jsonrpc":"2.0","id":3,"method":"ping","Method":"tools/call"}"#)
        .client(r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{"code":1,"message":"m"}}"#)
        .client(&request(5, "tools/call", r#"{"name":"a","Name":"b"}"#))
        .client(&request(6, "tools/call", r#"{"name":7}"#))
        .client(&request(7, "tools/call", r#"{"name":"a","arguments":[1]}"#))
        .client(&request(8, "prompts/get", "{}"))
        .client(&request(9, "resources/read", r#"{"uri":"file:///a/..%2fb"}"#))
        .client(&request(10, "tools/list", r#"{"cursor":1}"#))
        .client(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"wipe"}}"#)
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#)
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestid":2}}"#);
    let steps = play.broker.client_line_too_long();
    play.walk(steps);
    insta::assert_snapshot!(play.text);
}

#[test]
fn an_id_names_one_request_at_a_time() {
    let mut play = Play::new();
    play.client(&request(1, "resources/list", "{}"))
        .client(&request(1, "resources/list", "{}"))
        .client(r#"{"jsonrpc":"2.0","id":"1","method":"resources/list"}"#)
        .server(&reply(1, "{}"))
        .client(&request(1, "resources/list", "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_page_that_does_not_come_in_time_is_given_up() {
    let mut play = Play::new();
    let page = |result: &str| format!(r#"{{"tools":[],"nextCursor":"{result}"}}"#);
    play.client(&request(1, "tools/list", "{}"));
    let first = play.page.unwrap();
    play.server(&reply(1, &page("2")));
    play.client(&request(2, "tools/list", r#"{"cursor":"2"}"#));
    // The first came in time; the second did not, and what still comes of it is nobody's.
    let steps = play.broker.overdue(first);
    play.walk(steps);
    let second = play.page.unwrap();
    let steps = play.broker.overdue(second);
    play.walk(steps);
    play.server(&reply(2, TOOLS));
    play.client(&charge(3, "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn the_number_of_open_requests_is_bounded() {
    let mut play = Play::new();
    for id in 0..MAX_OUTSTANDING {
        play.client(&request(id, "resources/list", "{}"));
    }
    play.text.clear();
    play.client(&request(5000, "resources/list", "{}"));
    let client = std::mem::take(&mut play.text);
    for id in 0..MAX_OUTSTANDING {
        play.server(&request(id, "roots/list", "{}"));
    }
    play.text = client;
    play.server(&request(5000, "roots/list", "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_connection_is_initialised_once_in_a_revision_that_is_read() {
    let mut play = Play::new();
    play.client(&request(1, "initialize", "{}"))
        .server(&reply(1, r#"{"protocolVersion":"2031-01-01"}"#))
        .client(&request(2, "initialize", "{}"))
        .server(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#)
        .client(&request(3, "initialize", "{}"))
        .server(&reply(3, r#"{"protocolVersion":"2025-06-18"}"#))
        .client(&request(4, "initialize", "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn the_reply_to_a_request_of_the_server_is_decided_by_its_method() {
    let mut play = Play::new();
    play.server(&request(1, "roots/list", "{}"))
        .server(&request(2, "sampling/createMessage", r#"{"messages":[]}"#))
        .server(&request(3, "elicitation/create", "{}"))
        .server(&request(4, "ping", "{}"))
        .client(&reply(1, r#"{"roots":[]}"#));
    play.refuse = |_| true;
    play.client(&reply(2, r#"{"content":"the key"}"#))
        .client(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"the key"}}"#)
        .client(&reply(4, r#"{"smuggled":"the key"}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_reply_is_taken_once_and_only_to_a_question() {
    let mut play = Play::new();
    play.client(&reply(1, "{}"))
        .server(&request(1, "roots/list", "{}"))
        .server(&request(1, "roots/list", "{}"))
        .client(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#)
        .client(&reply(1, "{}"))
        .client(&reply(1, "{}"))
        .server(&request(2, "roots/list", "{}"))
        .server(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#)
        .client(&reply(2, "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn questions_inside_replies_are_answered_under_their_own_method() {
    let mut play = Play::new();
    play.listed()
        .client(&charge(1, r#"{"amount":5}"#))
        .server(&reply(1, r#"{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{}}}}"#))
        .client(&request(2, "tools/call", r#"{"name":"charge","arguments":{"amount":5},"inputResponses":{"q":{"content":"x"}}}"#))
        .client(&request(3, "tools/call", r#"{"name":"charge","arguments":{"amount":5},"inputResponses":{"other":{}}}"#));
    play.refuse = |action| matches!(action, Action::McpCall { method, .. } if method == "sampling/createMessage");
    play.client(&request(
        4,
        "tools/call",
        r#"{"name":"charge","arguments":{"amount":5},"inputResponses":{"q":{"content":"x"}}}"#,
    ));
    insta::assert_snapshot!(play.text);
}

#[test]
fn what_a_server_says_wrong_is_dropped_and_told() {
    let mut play = Play::new();
    play.client(&request(1, "resources/list", "{}"))
        .server("Listening on stdio…")
        .server(&reply(9, "{}"))
        .server(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#)
        .server(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#)
        .server(r#"[{"jsonrpc":"2.0","method":"notifications/message"},7]"#)
        .server(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":"both"}"#);
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_cancelled_request_may_have_happened_and_its_late_reply_is_dropped() {
    let mut play = Play::new();
    play.listed()
        .client(&charge(1, r#"{"amount":5}"#))
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .client(&charge(1, r#"{"amount":5}"#))
        .server(&reply(1, "{}"))
        .client(&charge(1, r#"{"amount":5}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_server_that_ends_owes_its_replies() {
    let mut play = Play::new();
    play.listed()
        .client(&charge(1, r#"{"amount":5}"#))
        .client(&request(2, "ping", "{}"));
    let steps = play.broker.server_ended();
    play.walk(steps).client(&charge(3, r#"{"amount":5}"#));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_client_that_ends_leaves_what_may_have_happened() {
    let mut play = Play::new();
    play.listed().client(&charge(1, r#"{"amount":5}"#));
    let steps = play.broker.client_ended();
    play.walk(steps).server(&reply(1, "{}"));
    insta::assert_snapshot!(play.text);
}

#[test]
fn a_server_that_ends_while_a_call_is_decided_gets_nothing() {
    let mut broker = Broker::new("pay", Allowance::default());
    let steps = broker.from_client(request(1, "resources/list", "{}").as_bytes());
    let Some(Step::Ask { ticket, .. }) = steps.first() else {
        panic!("a list of resources is decided");
    };
    let ticket = *ticket;
    assert_eq!(broker.server_ended(), []);
    let steps = broker.answered(ticket, Ok(()));
    assert!(matches!(
        steps.as_slice(),
        [
            Step::Complete {
                outcome: box_authority::action::Outcome::Failed,
                ..
            },
            Step::ToClient(_)
        ]
    ));
}
