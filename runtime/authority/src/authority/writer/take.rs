//! What one message does: to the transaction, to the state of the policy, and to who sent it.

use crate::action::{Action, Outcome};
use crate::authority::judge::{Judged, Live};
use crate::authority::{Granted, Message, outcome_entry, unknown_end};
use crate::denial::{Denial, DenyCause};
use crate::engine::{RuleCard, Ruling};
use crate::gate::Caller;
use crate::history::{Answered, Batch, Entry};
use crate::records::{self, Decided, Records};
use dogwood_compiler::value::Value;
use smol_str::{SmolStr, format_smolstr};
use std::sync::mpsc::SyncSender;

/// No key is longer, in bytes.
const LONGEST_KEY: usize = 256;

/// A decision made and not yet answered.
pub(in crate::authority) struct Decision {
    entry: Entry,
    caller: Caller,
    action: Action,
    pub verdict: Result<Granted, Denial>,
    governing: Option<usize>,
    determining: Vec<usize>,
    /// 0 where nothing was appended.
    sequence: u64,
    repeated: bool,
}

/// What happened in one transaction, in order, to be recorded after the commit.
pub(in crate::authority) enum Done {
    Decision(Box<Decision>, SyncSender<Result<Granted, Denial>>),
    WhatIf(Result<(), Denial>, SyncSender<Result<(), Denial>>),
    Outcome {
        sequence: u64,
        entry: Entry,
    },
    /// An outcome that does not fit the schema, and was recorded as unknown.
    Misfit(String),
    Refused {
        caller: Caller,
        action: Box<Action>,
        denial: Box<Denial>,
    },
}

fn fault(action: &Action, reason: impl Into<String>) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Fault(reason.into()),
    }
}

impl Decision {
    fn new(time: i64, sequence: u64, caller: Caller, action: Action) -> Decision {
        Decision {
            entry: Entry {
                time,
                action: action.uid(),
                kind: SmolStr::new_static("request"),
                request_id: format_smolstr!("{sequence}"),
                input: action.input(),
                output: None,
                permitted: false,
                open_from: None,
            },
            verdict: Err(fault(&action, "the request was not made durable")),
            caller,
            action,
            governing: None,
            determining: Vec::new(),
            sequence: 0,
            repeated: false,
        }
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.verdict = Err(fault(&self.action, reason));
    }

    fn grant(&mut self, sequence: u64) {
        self.verdict = Ok(Granted {
            sequence,
            request_id: format_smolstr!("{sequence}"),
            uid: self.entry.action.clone(),
            input: self.entry.input.clone(),
            unknown: unknown_end(&self.entry.action),
            repeated: self.repeated,
        });
    }

    fn judged(&mut self, judged: Judged) {
        self.governing = judged.governing;
        self.determining = judged.determining;
        match judged.verdict {
            Ok(()) => self.grant(self.sequence),
            Err(cause) => {
                self.verdict = Err(Denial {
                    action: self.action.name().into(),
                    target: self.action.target(),
                    cause,
                });
            }
        }
    }

    /// The answer of the first request with this key.
    fn repeat(&mut self, key: &str, before: Answered) {
        if before.action != self.entry.action || before.input != self.entry.input {
            self.fail(format!("the key `{key}` belongs to another request"));
            return;
        }
        self.repeated = true;
        match before.denial {
            None => self.grant(before.sequence),
            Some(denial) => self.verdict = Err(denial),
        }
    }
}

/// Keys of different callers are different keys.
fn place(caller: &Caller, key: &str) -> Result<String, String> {
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(format!("a key has 1 to {LONGEST_KEY} bytes"));
    }
    Ok(format!("{}\0{key}", records::caller(caller)))
}

/// One transaction as it is filled.
pub(super) struct Taking<'w> {
    pub live: &'w mut Live,
    pub fault: &'w mut Option<String>,
    pub time: i64,
    pub done: &'w mut Vec<Done>,
}

impl Taking<'_> {
    /// Appends one message to the transaction and, for a request, decides it.
    pub fn take(&mut self, message: Message, batch: &mut Batch<'_>) -> Result<(), String> {
        match message {
            Message::Decide {
                caller,
                action,
                key,
                answer,
            } => {
                let mut decision = Decision::new(self.time, batch.next(), caller, action);
                let appended = self.decide(&mut decision, key.as_deref(), batch);
                // The caller must hear of it even if the append failed.
                self.done.push(Done::Decision(Box::new(decision), answer));
                appended
            }
            Message::Complete { granted, outcome } => self.complete(&granted, &outcome, batch),
            other => {
                self.aside(other);
                Ok(())
            }
        }
    }

    /// What leaves no event.
    pub fn aside(&mut self, message: Message) {
        match message {
            Message::WhatIf { action, answer } => {
                let verdict = self.what_if(action);
                self.done.push(Done::WhatIf(verdict, answer));
            }
            Message::Refused {
                caller,
                action,
                denial,
            } => self.done.push(Done::Refused {
                caller,
                action,
                denial,
            }),
            Message::Decide { .. }
            | Message::Complete { .. }
            | Message::Install { .. }
            | Message::Rejected(_)
            | Message::Stop => {}
        }
    }

    fn decide(
        &mut self,
        decision: &mut Decision,
        key: Option<&str>,
        batch: &mut Batch<'_>,
    ) -> Result<(), String> {
        let place = match key.map(|key| place(&decision.caller, key)).transpose() {
            Ok(place) => place,
            Err(reason) => {
                decision.fail(reason);
                return Ok(());
            }
        };
        if let (Some(place), Some(key)) = (&place, key)
            && let Some(before) = batch.answered(place)?
        {
            decision.repeat(key, before);
            return Ok(());
        }
        if let Some(reason) = self.fault.as_ref() {
            decision.fail(reason.as_str());
            return Ok(());
        }
        let event = decision.entry.event();
        if let Err(reason) = self.live.compiled.check(&event) {
            decision.fail(reason);
            return Ok(());
        }
        decision.sequence = batch.append(&decision.entry)?;
        match ruled(self.live.step(&event)) {
            Ok(ruling) => {
                let judged = self.live.judge(&decision.action, &event, ruling, true);
                decision.judged(judged);
            }
            // The state of the policy may have lost this event, so nothing after it can be decided.
            Err(reason) => {
                decision.fail(reason.as_str());
                *self.fault = Some(reason);
                return Ok(());
            }
        }
        if decision.verdict.is_ok() {
            batch.leave_open();
        }
        if let Some(place) = place {
            let answered = Answered {
                sequence: decision.sequence,
                action: decision.entry.action.clone(),
                input: decision.entry.input.clone(),
                denial: decision.verdict.as_ref().err().cloned(),
            };
            batch.keep_answer(&place, &answered)?;
        }
        Ok(())
    }

    fn what_if(&mut self, action: Action) -> Result<(), Denial> {
        let mut decision = Decision::new(self.time, 0, Caller::Agent, action);
        let event = decision.entry.event();
        if let Some(reason) = self.fault.as_ref() {
            return Err(fault(&decision.action, reason.as_str()));
        }
        let ruling = self
            .live
            .compiled
            .check(&event)
            .and_then(|()| ruled(self.live.what_if(&event)));
        match ruling {
            Ok(ruling) => decision.judged(self.live.judge(&decision.action, &event, ruling, false)),
            Err(reason) => decision.fail(reason),
        }
        decision.verdict.map(drop)
    }

    fn complete(
        &mut self,
        granted: &Granted,
        outcome: &Outcome,
        batch: &mut Batch<'_>,
    ) -> Result<(), String> {
        // The first end counts.
        if !batch.close(granted.sequence) {
            return Ok(());
        }
        let ended = |outcome: &Outcome| {
            let (id, input) = (&granted.request_id, &granted.input);
            outcome_entry(self.time, &granted.uid, id, input, outcome)
        };
        let mut entry = ended(outcome);
        let mut event = entry.event();
        if let Err(reason) = self.live.compiled.check(&event) {
            entry = ended(&granted.unknown);
            event = entry.event();
            self.done.push(Done::Misfit(reason));
        }
        batch.append(&entry)?;
        if let Err(reason) = self.live.step(&event) {
            self.fault
                .get_or_insert(format!("the policy cannot follow the history: {reason}"));
        }
        self.done.push(Done::Outcome {
            sequence: granted.sequence,
            entry,
        });
        Ok(())
    }
}

fn ruled(stepped: Result<Option<Ruling>, String>) -> Result<Ruling, String> {
    stepped?.ok_or_else(|| "the policy does not decide requests of this action".into())
}

/// What becomes of a message once something broke.
pub(super) fn refused(message: Message, reason: &str, now: i64) -> Option<Done> {
    match message {
        Message::Decide {
            caller,
            action,
            answer,
            ..
        } => {
            let mut decision = Decision::new(now, 0, caller, action);
            decision.fail(reason);
            Some(Done::Decision(Box::new(decision), answer))
        }
        Message::WhatIf { action, answer } => {
            Some(Done::WhatIf(Err(fault(&action, reason)), answer))
        }
        Message::Refused {
            caller,
            action,
            denial,
        } => Some(Done::Refused {
            caller,
            action,
            denial,
        }),
        Message::Complete { .. }
        | Message::Install { .. }
        | Message::Rejected(_)
        | Message::Stop => None,
    }
}

impl Done {
    /// Takes the answer back: what the policy said is not known to be durable.
    pub fn refuse(&mut self, reason: &str) {
        if let Done::Decision(decision, _) = self {
            decision.fail(reason);
        }
    }

    pub fn record(
        &self,
        rules: &[RuleCard],
        records: &mut Records,
        now: i64,
    ) -> std::io::Result<()> {
        match self {
            Done::Decision(decision, _) if decision.repeated => Ok(()),
            Done::Decision(decision, _) => {
                let card = decision.governing.and_then(|rule| rules.get(rule));
                let decided = Decided {
                    time: decision.entry.time,
                    request_id: match decision.sequence {
                        0 => "",
                        _ => &decision.entry.request_id,
                    },
                    caller: &decision.caller,
                    action: &decision.action,
                    verdict: decision.verdict.as_ref().map(drop),
                    rule: card.map(|card| (&card.name, card.description.as_ref())),
                    determining: decision
                        .determining
                        .iter()
                        .filter_map(|rule| rules.get(*rule))
                        .map(|card| card.name.to_string())
                        .collect(),
                };
                records.decision(decision.sequence, &decided)
            }
            Done::Outcome { sequence, entry } => {
                let output = entry.output.as_ref();
                let output = output.and_then(|fields| fields.iter().next());
                let output = output.map(|(field, value)| {
                    let value = match value {
                        Value::Int(n) => n.to_string(),
                        Value::Entity(uid) => uid.id.to_string(),
                        _ => String::new(),
                    };
                    (field.as_str(), value)
                });
                let (id, action) = (&entry.request_id, &entry.action.id);
                records.outcome(*sequence, entry.time, id, action, &entry.kind, output)
            }
            Done::Misfit(reason) => records.control(now, "outcome_misfit", "refused", reason),
            Done::Refused {
                caller,
                action,
                denial,
            } => {
                let decided = Decided {
                    time: now,
                    request_id: "",
                    caller,
                    action,
                    verdict: Err(denial),
                    rule: None,
                    determining: Vec::new(),
                };
                records.decision(0, &decided)
            }
            Done::WhatIf(..) => Ok(()),
        }
    }
}
