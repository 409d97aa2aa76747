//! One conversation: a byte says who speaks and whether the next question is permitted, a line follows. Whatever
//! comes, every permit is completed once, and nothing but whole frames is sent.

#![no_main]

use box_mcp::broker::{Broker, Installed, Step};
use box_mcp::frame::Frame;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

fuzz_target!(|data: &[u8]| {
    let mut broker = Broker::new("fuzz", box_mcp::catalogue::Allowance::default());
    let mut open = BTreeSet::new();
    for turn in data.split(|byte| *byte == b'\n') {
        let Some((first, line)) = turn.split_first() else {
            continue;
        };
        let mut steps = if first & 1 == 0 {
            broker.from_client(line)
        } else {
            broker.from_server(line)
        };
        while !steps.is_empty() {
            let more = match steps.remove(0) {
                // Nobody is given leave here, or everybody: what may pass either way is held by the tests.
                Step::Ask { ticket, action } => {
                    if first & 2 == 0 {
                        open.insert(ticket);
                        broker.answered(ticket, Ok(()))
                    } else {
                        let denial = box_mcp::examine::fixed(&action, "fuzz", "no");
                        broker.answered(ticket, Err(denial))
                    }
                }
                Step::Complete { ticket, .. } => {
                    assert!(open.remove(&ticket));
                    Vec::new()
                }
                Step::Install { ticket, .. } => broker.installed(ticket, Installed::Typed),
                Step::ToServer(line) => {
                    assert!(Frame::parse(line.as_bytes()).is_ok());
                    Vec::new()
                }
                Step::ToClient(_) | Step::Refused { .. } | Step::Notice(_) => Vec::new(),
            };
            steps.splice(0..0, more);
        }
    }
    for step in broker.server_ended() {
        if let Step::Complete { ticket, .. } = step {
            assert!(open.remove(&ticket));
        }
    }
    assert!(open.is_empty());
});
