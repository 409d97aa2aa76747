//! The broker between two byte streams and a gate: one thread a direction, and every step done in its order.

use crate::broker::{Broker, Installed, Step, Ticket};
use crate::catalogue::{Allowance, Catalogue};
use crate::frame::MAX_LINE;
use box_authority::gate::{Caller, Gate, Permit};
use smol_str::SmolStr;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// For a server to answer with a page of its tools.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes in one direction and bytes in the other, of a client or of a server.
pub struct Ends {
    pub reader: Box<dyn Read + Send>,
    pub writer: Box<dyn Write + Send>,
}

/// Who knows which tools the policy was compiled with, or can compile it anew.
pub trait Policies: Send + Sync {
    /// A finished list, whose last page is held back until this returns.
    fn install(&self, catalogue: &Catalogue) -> Installed;
}

/// A policy compiled once, with these catalogues.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    pub servers: BTreeMap<SmolStr, Catalogue>,
}

impl Policies for Fixed {
    fn install(&self, catalogue: &Catalogue) -> Installed {
        let Some(known) = self.servers.get(&catalogue.server) else {
            return Installed::Untyped;
        };
        let differing = known.differing(catalogue);
        if differing.is_empty() {
            return Installed::Typed;
        }
        Installed::Refused(format!(
            "these tools are not those the policy was compiled with: {}. Start the box again to take them up",
            differing.join(", ")
        ))
    }
}

/// What a connection is decided by.
pub struct Deciders {
    pub gate: Arc<dyn Gate>,
    pub caller: Caller,
    pub policies: Arc<dyn Policies>,
    /// Shared by all connections of the server.
    pub allowance: Allowance,
    /// For one page of its tools; [`PATIENCE`].
    pub patience: Duration,
    /// Lines for the operator.
    pub notice: Box<dyn Fn(&str) + Send + Sync>,
}

struct Shared {
    broker: Mutex<Broker>,
    permits: Mutex<BTreeMap<Ticket, Box<dyn Permit>>>,
    /// Absent once the server has ended: the client sees the end of its output.
    to_client: Mutex<Option<Box<dyn Write + Send>>>,
    /// Absent once the client has ended: the server sees the end of its input.
    to_server: Mutex<Option<Box<dyn Write + Send>>>,
    /// Pages that were asked for, and when.
    timed: Mutex<Sender<(Ticket, Instant)>>,
    deciders: Deciders,
}

/// Relays until the server's output ends, and everything it still owed is answered with an error.
///
/// The client's side is read on a thread of its own, which ends with the client's input.
pub fn relay(server: &str, client: Ends, process: Ends, deciders: Deciders) -> std::io::Result<()> {
    let (timed, pages) = channel();
    let patience = deciders.patience;
    let shared = Arc::new(Shared {
        broker: Mutex::new(Broker::new(server, deciders.allowance.clone())),
        permits: Mutex::new(BTreeMap::new()),
        to_client: Mutex::new(Some(client.writer)),
        to_server: Mutex::new(Some(process.writer)),
        timed: Mutex::new(timed),
        deciders,
    });
    let watched = Arc::downgrade(&shared);
    std::thread::Builder::new()
        .name(format!("mcp patience with {server}"))
        .spawn(move || watch(&watched, &pages, patience))?;
    let listening = Arc::clone(&shared);
    std::thread::Builder::new()
        .name(format!("mcp client of {server}"))
        .spawn(move || listening.hear_client(client.reader))?;
    shared.hear_server(process.reader);
    Ok(())
}

/// Ends the waiting for each page in its turn: they all may take equally long.
fn watch(shared: &Weak<Shared>, pages: &Receiver<(Ticket, Instant)>, patience: Duration) {
    while let Ok((page, asked)) = pages.recv() {
        std::thread::sleep(patience.saturating_sub(asked.elapsed()));
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let steps = locked(&shared.broker).overdue(page);
        shared.walk(steps);
    }
}

impl Shared {
    fn hear_client(&self, reader: Box<dyn Read + Send>) {
        let mut reader = BufReader::new(reader);
        while let Ok(Some(line)) = next_line(&mut reader) {
            let mut broker = locked(&self.broker);
            let steps = match line {
                Line::Whole(line) => broker.from_client(&line),
                Line::TooLong => broker.client_line_too_long(),
            };
            drop(broker);
            self.walk(steps);
        }
        let steps = locked(&self.broker).client_ended();
        self.walk(steps);
        *locked(&self.to_server) = None;
    }

    fn hear_server(&self, reader: Box<dyn Read + Send>) {
        let mut reader = BufReader::new(reader);
        while let Ok(Some(line)) = next_line(&mut reader) {
            match line {
                Line::Whole(line) => {
                    let steps = locked(&self.broker).from_server(&line);
                    self.walk(steps);
                }
                // Which request it answers cannot be known, so nothing after it can be trusted to be in step.
                Line::TooLong => {
                    (self.deciders.notice)(&format!(
                        "a server sent a line of more than {MAX_LINE} bytes and is no longer heard"
                    ));
                    break;
                }
            }
        }
        let steps = locked(&self.broker).server_ended();
        self.walk(steps);
        *locked(&self.to_client) = None;
        *locked(&self.to_server) = None;
    }

    fn walk(&self, steps: Vec<Step>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            let more = self.take(step);
            for step in more.into_iter().rev() {
                steps.push_front(step);
            }
        }
    }

    /// Does one step; what the broker makes of its answer comes next.
    fn take(&self, step: Step) -> Vec<Step> {
        let Deciders {
            gate,
            caller,
            policies,
            notice,
            ..
        } = &self.deciders;
        match step {
            // A side that no longer listens is noticed where it is read.
            Step::ToClient(line) => {
                if let Some(client) = locked(&self.to_client).as_mut() {
                    let _ = write_line(&mut **client, &line);
                }
            }
            Step::ToServer(line) => {
                if let Some(server) = locked(&self.to_server).as_mut() {
                    let _ = write_line(&mut **server, &line);
                }
            }
            // The watch ends with the connection, and then nobody waits.
            Step::Timed(page) => {
                let _ = locked(&self.timed).send((page, Instant::now()));
            }
            Step::Ask { ticket, action } => {
                let verdict = gate.decide(caller, action).map(|permit| {
                    locked(&self.permits).insert(ticket, permit);
                });
                return locked(&self.broker).answered(ticket, verdict);
            }
            Step::Complete { ticket, outcome } => {
                let permit = locked(&self.permits).remove(&ticket);
                if let Some(permit) = permit {
                    permit.complete(outcome);
                }
            }
            Step::Install { ticket, catalogue } => {
                let installed = policies.install(&catalogue);
                if let Installed::Refused(reason) = &installed {
                    notice(&format!(
                        "the tools of the MCP server {:?} are refused: {reason}",
                        catalogue.server
                    ));
                }
                return locked(&self.broker).installed(ticket, installed);
            }
            Step::Refused { action, denial } => gate.record_refusal(caller, &action, &denial),
            Step::Notice(text) => notice(&text),
        }
        Vec::new()
    }
}

/// A thread that panicked left nothing half done: every lock is held for one call.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write_line(writer: &mut dyn Write, line: &str) -> std::io::Result<()> {
    writer.write_all(line.as_bytes())?;
    writer.write_all(b"\n")?;
    writer.flush()
}

pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Skipped to its end.
    TooLong,
}

/// The next line, without its end. `None` at the end of the input; a line cut off there counts.
pub(crate) fn next_line(reader: &mut impl BufRead) -> std::io::Result<Option<Line>> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_LINE)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let read = reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(Line::Whole(line)));
    }
    if line.len() <= MAX_LINE {
        return Ok(Some(Line::Whole(line)));
    }
    drop(line);
    reader.skip_until(b'\n')?;
    Ok(Some(Line::TooLong))
}

#[cfg(test)]
mod tests {
    use super::{Deciders, Ends, Fixed, Line, Policies, next_line, relay};
    use crate::broker::Installed;
    use crate::catalogue::{Allowance, Catalogue, page};
    use crate::frame::MAX_LINE;
    use box_authority::action::{Action, Outcome};
    use box_authority::denial::Denial;
    use box_authority::gate::{Caller, Gate, Permit};
    use serde_json::json;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::time::Duration;

    struct Open;

    impl Permit for Open {
        fn complete(self: Box<Self>, _outcome: Outcome) {}
    }

    impl Gate for Open {
        fn decide(&self, _: &Caller, _: Action) -> Result<Box<dyn Permit>, Denial> {
            Ok(Box::new(Open))
        }
    }

    #[test]
    fn a_client_does_not_wait_for_ever_for_a_list() {
        let ends = |stream: &UnixStream| Ends {
            reader: Box::new(stream.try_clone().unwrap()),
            writer: Box::new(stream.try_clone().unwrap()),
        };
        let (client, clients) = UnixStream::pair().unwrap();
        let (server, servers) = UnixStream::pair().unwrap();
        let deciders = Deciders {
            gate: Arc::new(Open),
            caller: Caller::Agent,
            policies: Arc::new(Fixed::default()),
            allowance: Allowance::default(),
            patience: Duration::from_millis(5),
            notice: Box::new(|_| {}),
        };
        let (clients, servers) = (ends(&clients), ends(&servers));
        let relayed = std::thread::spawn(move || relay("slow", clients, servers, deciders));
        writeln!(
            &client,
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"}}"#
        )
        .unwrap();
        let mut told = String::new();
        BufReader::new(&client).read_line(&mut told).unwrap();
        assert!(told.contains("it did not answer in time"), "{told}");
        // The server had it, and its end is the end of all.
        let mut asked = String::new();
        BufReader::new(&server).read_line(&mut asked).unwrap();
        assert!(asked.contains("tools/list"));
        drop(server);
        relayed.join().unwrap().unwrap();
    }

    #[test]
    fn lines_are_kept_to_their_limit() {
        let mut text = b"one\n\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', MAX_LINE));
        text.extend(b"\n");
        text.extend(std::iter::repeat_n(b'y', 2 * MAX_LINE));
        text.extend(b"\nlast");
        let mut reader = text.as_slice();
        let mut lengths = Vec::new();
        while let Some(line) = next_line(&mut reader).unwrap() {
            lengths.push(match line {
                Line::Whole(line) => Some(line.len()),
                Line::TooLong => None,
            });
        }
        assert_eq!(lengths, [Some(3), Some(0), Some(MAX_LINE), None, Some(4)]);
    }

    #[test]
    fn a_policy_compiled_once_takes_only_the_tools_it_knows() {
        let catalogue = |server: &str, schema| {
            let result = json!({"tools": [{"name": "charge", "inputSchema": schema}]});
            Catalogue::new(server, page(&result).unwrap().0).unwrap()
        };
        let known = catalogue("pay", json!({"type": "object"}));
        let changed = catalogue(
            "pay",
            json!({"type": "object", "properties": {"to": {"type": "string"}}}),
        );
        let policy = Fixed {
            servers: [("pay".into(), known.clone())].into(),
        };
        assert_eq!(policy.install(&known), Installed::Typed);
        assert_eq!(
            policy.install(&catalogue("other", json!({}))),
            Installed::Untyped
        );
        let Installed::Refused(reason) = policy.install(&changed) else {
            panic!("changed tools are refused");
        };
        insta::assert_snapshot!(reason);
    }
}
