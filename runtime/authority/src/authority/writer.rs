//! The writer thread: everything waiting becomes one transaction, then one round of answers.

use super::{BATCH, Granted, Message, outcome_entry, step, unknown_end};
use crate::action::Action;
use crate::clock::Clock;
use crate::denial::{Denial, DenyCause};
use crate::engine::{Engine, RuleCard};
use crate::gate::Caller;
use crate::history::{Batch, Entry, History};
use crate::records::{Decided, Records};
use dogwood_compiler::value::Value;
use smol_str::{SmolStr, format_smolstr};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

pub(super) struct Writer {
    pub(super) history: History,
    pub(super) engine: Box<dyn Engine>,
    pub(super) rules: Vec<RuleCard>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) records: Records,
    /// Where a permit that nobody received is reported back to.
    pub(super) returns: SyncSender<Message>,
    /// Set once, never cleared: what broke.
    pub(super) fault: Option<String>,
    pub(super) _lock: File,
}

/// A decision made and not yet answered.
struct Decision {
    entry: Entry,
    caller: Caller,
    action: Action,
    verdict: Result<Granted, Denial>,
    governing: Option<usize>,
    determining: Vec<usize>,
    sequence: u64,
}

/// What happened in one transaction, in order, to be recorded after the commit.
enum Done {
    Decision(Box<Decision>, SyncSender<Result<Granted, Denial>>),
    Outcome {
        sequence: u64,
        entry: Entry,
    },
    Refused {
        caller: Caller,
        action: Box<Action>,
        denial: Box<Denial>,
    },
}

impl Writer {
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut going = true;
        while going {
            let Ok(first) = messages.recv() else { break };
            let mut waiting = vec![first];
            waiting.extend(messages.try_iter().take(BATCH - 1));
            if let Some(stop) = waiting
                .iter()
                .position(|message| matches!(message, Message::Stop))
            {
                waiting.truncate(stop);
                going = false;
            }
            self.serve(waiting);
        }
        let _ = self
            .records
            .control(self.clock.now(), "box_stopped", "ok", "");
        let _ = self.records.flush();
    }

    /// One transaction: everything waiting.
    fn serve(&mut self, waiting: Vec<Message>) {
        let mut done = Vec::with_capacity(waiting.len());
        if self.fault.is_none() && !waiting.is_empty() {
            let time = self.history.stamp(self.clock.now());
            let Writer {
                history,
                engine,
                rules,
                fault,
                ..
            } = self;
            let committed = history.transact(|batch| {
                for message in waiting {
                    take(message, time, batch, &mut **engine, rules, fault, &mut done)?;
                }
                Ok(())
            });
            if let Err(reason) = committed {
                self.fault
                    .get_or_insert(format!("the history cannot be written: {reason}"));
                self.refuse_all(&mut done);
            }
        } else {
            for message in waiting {
                self.take_faulted(message, &mut done);
            }
        }
        if let Err(e) = self.record(&done) {
            self.fault
                .get_or_insert(format!("the decision records cannot be written: {e}"));
            self.refuse_all(&mut done);
        }
        for done in done {
            if let Done::Decision(decision, answer) = done {
                let Decision { verdict, .. } = *decision;
                if let Err(unheard) = answer.send(verdict)
                    && let Ok(granted) = unheard.0
                {
                    let outcome = granted.unknown.clone();
                    let _ = self
                        .returns
                        .try_send(Message::Complete { granted, outcome });
                }
            }
        }
    }

    /// Once something broke, nothing is asked any more: it is recorded as refused, if that still works.
    fn take_faulted(&self, message: Message, done: &mut Vec<Done>) {
        let reason = self.fault.clone().unwrap_or_default();
        match message {
            Message::Decide {
                caller,
                action,
                answer,
            } => {
                let entry = request_entry(self.clock.now(), &action, 0);
                let verdict = Err(fault(&action, reason));
                let decision = Decision {
                    entry,
                    caller,
                    action,
                    verdict,
                    governing: None,
                    determining: Vec::new(),
                    sequence: 0,
                };
                done.push(Done::Decision(Box::new(decision), answer));
            }
            Message::Refused {
                caller,
                action,
                denial,
            } => done.push(Done::Refused {
                caller,
                action,
                denial,
            }),
            Message::Complete { .. } | Message::Stop => {}
        }
    }

    /// Nothing of this batch is durable, so none of it may be answered with leave.
    fn refuse_all(&self, done: &mut [Done]) {
        let reason = self.fault.clone().unwrap_or_default();
        for done in done {
            if let Done::Decision(decision, _) = done
                && decision.verdict.is_ok()
            {
                decision.verdict = Err(fault(&decision.action, reason.clone()));
            }
        }
    }

    fn record(&mut self, done: &[Done]) -> std::io::Result<()> {
        for done in done {
            match done {
                Done::Decision(decision, _) => {
                    let card = decision.governing.and_then(|rule| self.rules.get(rule));
                    let decided = Decided {
                        time: decision.entry.time,
                        request_id: &decision.entry.request_id,
                        caller: &decision.caller,
                        action: &decision.action,
                        verdict: decision.verdict.as_ref().map(drop),
                        rule: card.map(|card| (&card.name, card.description.as_ref())),
                        determining: decision
                            .determining
                            .iter()
                            .filter_map(|rule| self.rules.get(*rule))
                            .map(|card| card.name.to_string())
                            .collect(),
                    };
                    self.records.decision(decision.sequence, &decided)?;
                }
                Done::Outcome { sequence, entry } => {
                    let output = entry
                        .output
                        .as_ref()
                        .and_then(|fields| fields.iter().next());
                    let output = output.map(|(field, value)| {
                        let value = match value {
                            Value::Int(n) => n.to_string(),
                            Value::Entity(uid) => uid.id.to_string(),
                            _ => String::new(),
                        };
                        (field.as_str(), value)
                    });
                    let (id, action) = (&entry.request_id, &entry.action.id);
                    self.records
                        .outcome(*sequence, entry.time, id, action, &entry.kind, output)?;
                }
                Done::Refused {
                    caller,
                    action,
                    denial,
                } => {
                    let decided = Decided {
                        time: self.clock.now(),
                        request_id: "",
                        caller,
                        action,
                        verdict: Err(denial),
                        rule: None,
                        determining: Vec::new(),
                    };
                    self.records.decision(0, &decided)?;
                }
            }
        }
        self.records.flush()
    }
}

/// Appends one message to the transaction and, for a request, decides it.
fn take(
    message: Message,
    time: i64,
    batch: &mut Batch<'_>,
    engine: &mut dyn Engine,
    rules: &[RuleCard],
    broken: &mut Option<String>,
    done: &mut Vec<Done>,
) -> Result<(), String> {
    match message {
        Message::Decide {
            caller,
            action,
            answer,
        } => {
            let entry = request_entry(time, &action, batch.next());
            let mut decision = Decision {
                verdict: Err(fault(&action, "the request was not made durable".into())),
                entry,
                caller,
                action,
                governing: None,
                determining: Vec::new(),
                sequence: 0,
            };
            // The caller must hear of it even if the append fails, so it is listed before.
            let appended = batch.append(&decision.entry);
            if let Ok(sequence) = appended {
                decision.sequence = sequence;
                rule(&mut decision, engine, rules, broken);
                if decision.verdict.is_ok()
                    && let Err(reason) = batch.leave_open(sequence)
                {
                    done.push(Done::Decision(Box::new(decision), answer));
                    return Err(reason);
                }
            }
            done.push(Done::Decision(Box::new(decision), answer));
            appended.map(drop)
        }
        Message::Complete { granted, outcome } => {
            let entry = outcome_entry(
                time,
                &granted.uid,
                &granted.request_id,
                &granted.input,
                &outcome,
            );
            batch.append(&entry)?;
            batch.close(granted.sequence)?;
            if let Err(reason) = step(engine, &entry) {
                broken.get_or_insert(format!("the policy cannot follow the history: {reason}"));
            }
            done.push(Done::Outcome {
                sequence: granted.sequence,
                entry,
            });
            Ok(())
        }
        Message::Refused {
            caller,
            action,
            denial,
        } => {
            done.push(Done::Refused {
                caller,
                action,
                denial,
            });
            Ok(())
        }
        Message::Stop => Ok(()),
    }
}

fn request_entry(time: i64, action: &Action, sequence: u64) -> Entry {
    Entry {
        time,
        action: action.uid(),
        kind: SmolStr::new_static("request"),
        request_id: format_smolstr!("{sequence}"),
        input: action.input(),
        output: None,
    }
}

fn fault(action: &Action, reason: String) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Fault(reason),
    }
}

/// Asks the policy about a request and turns its ruling into a verdict.
fn rule(
    decision: &mut Decision,
    engine: &mut dyn Engine,
    rules: &[RuleCard],
    broken: &mut Option<String>,
) {
    if let Some(reason) = broken {
        decision.verdict = Err(fault(&decision.action, reason.clone()));
        return;
    }
    let ruling = match step(engine, &decision.entry) {
        Ok(Some(ruling)) => ruling,
        Ok(None) => {
            let reason = broken.insert("the policy does not decide requests of this action".into());
            decision.verdict = Err(fault(&decision.action, reason.clone()));
            return;
        }
        Err(reason) => {
            let reason = broken.insert(reason);
            decision.verdict = Err(fault(&decision.action, reason.clone()));
            return;
        }
    };
    decision.governing = ruling.determining.first().copied();
    decision.determining.clone_from(&ruling.determining);
    let card = decision.governing.and_then(|rule| rules.get(rule));
    let witness = || {
        let event = decision.entry.event();
        // An explanation that breaks must not take the verdict with it.
        catch_unwind(AssertUnwindSafe(|| engine.witness(&event, &ruling))).unwrap_or_default()
    };
    let cause = match (ruling.allow, card, ruling.errors.first()) {
        (false, Some(card), _) => DenyCause::Forbidden {
            rule: card.name.clone(),
            description: card.description.clone(),
            witness: witness(),
        },
        // A rule that could not be evaluated might have forbidden it.
        (_, _, Some((rule, reason))) => {
            decision.governing = *rule;
            match rule.and_then(|rule| rules.get(rule)) {
                Some(card) => DenyCause::Fault(format!(
                    "rule {} could not be evaluated: {reason}",
                    card.name
                )),
                None => DenyCause::Fault(reason.clone()),
            }
        }
        // A tool call was permitted as `mcp:call` before; its own action only narrows that.
        (false, None, None) if !matches!(decision.action, Action::Tool { .. }) => {
            DenyCause::NoPermit { witness: witness() }
        }
        (true, _, None) | (false, None, None) => {
            decision.verdict = Ok(Granted {
                sequence: decision.sequence,
                request_id: decision.entry.request_id.clone(),
                uid: decision.entry.action.clone(),
                input: decision.entry.input.clone(),
                unknown: unknown_end(&decision.entry.action),
            });
            return;
        }
    };
    decision.verdict = Err(Denial {
        action: decision.action.name().into(),
        target: decision.action.target(),
        cause,
    });
}
