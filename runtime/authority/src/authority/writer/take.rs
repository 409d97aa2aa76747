//! What one message does: to the transaction, to the state of the policy, and to who sent it.

use crate::action::{Action, Outcome};
use crate::authority::answer::Answer;
use crate::authority::judge::{Judged, Live};
use crate::authority::{Granted, Message, outcome_entry, unknown_end};
use crate::denial::{Denial, DenyCause};
use crate::engine::{RuleCard, Ruling};
use crate::gate::Caller;
use crate::history::{Answered, Entry, History};
use crate::records::{self, Decided, Ended, Records};
use dogwood_compiler::event::Event;
use dogwood_compiler::value::{EntityUid, Record, Value};
use smol_str::{SmolStr, format_smolstr};

/// No key is longer, in bytes.
const LONGEST_KEY: usize = 256;

/// A decision made and not yet answered.
pub(in crate::authority) struct Decision {
    time: i64,
    uid: EntityUid,
    caller: Caller,
    action: Action,
    pub verdict: Result<Granted, Denial>,
    governing: Option<usize>,
    determining: Vec<usize>,
    /// 0 where nothing was appended.
    sequence: u64,
    repeated: bool,
}

/// What happened in one transaction, in order, to be recorded with the commit.
pub(in crate::authority) enum Done {
    Decision(Box<Decision>, Answer<Result<Granted, Denial>>),
    WhatIf(Result<(), Denial>, Answer<Result<(), Denial>>),
    Outcome(Ended),
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
    fn new(time: i64, caller: Caller, action: Action) -> Decision {
        Decision {
            time,
            uid: action.uid(),
            verdict: Err(fault(&action, "the request was not made durable")),
            caller,
            action,
            governing: None,
            determining: Vec::new(),
            sequence: 0,
            repeated: false,
        }
    }

    /// The request as an event of the history.
    fn entry(&self, sequence: u64) -> Entry {
        Entry {
            time: self.time,
            action: self.uid.clone(),
            kind: SmolStr::new_static("request"),
            request_id: format_smolstr!("{sequence}"),
            input: self.action.input(),
            output: None,
            permitted: false,
            open_from: None,
        }
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.verdict = Err(fault(&self.action, reason));
    }

    fn grant(&mut self, sequence: u64, input: Record) {
        self.verdict = Ok(Granted {
            sequence,
            unknown: unknown_end(&self.uid),
            uid: self.uid.clone(),
            input,
            repeated: self.repeated,
        });
    }

    fn judged(&mut self, judged: Judged, event: Event) {
        self.governing = judged.governing;
        self.determining = judged.determining;
        match judged.verdict {
            Ok(()) => self.grant(self.sequence, input(event)),
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
        if before.action != self.uid || before.input != self.action.input() {
            self.fail(format!("the key `{key}` belongs to another request"));
            return;
        }
        self.repeated = true;
        match before.denial {
            None => self.grant(before.sequence, before.input),
            Some(denial) => self.verdict = Err(denial),
        }
    }
}

/// What was asked for.
fn input(mut event: Event) -> Record {
    match event.logged.remove("input") {
        Some(Value::Object(input)) => input,
        _ => Record::new(),
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
    pub history: &'w mut History,
    pub live: &'w mut Live,
    pub fault: &'w mut Option<String>,
    pub time: i64,
    pub done: &'w mut Vec<Done>,
}

impl Taking<'_> {
    /// Appends one message to the history and, for a request, decides it.
    pub fn take(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Decide {
                caller,
                action,
                key,
                answer,
            } => {
                let mut decision = Decision::new(self.time, caller, action);
                let appended = self.decide(&mut decision, key.as_deref());
                // The caller must hear of it even if the append failed.
                self.done.push(Done::Decision(Box::new(decision), answer));
                appended
            }
            Message::Complete { granted, outcome } => self.complete(granted, &outcome),
            Message::WhatIf { action, answer } => {
                let verdict = self.what_if(action);
                self.done.push(Done::WhatIf(verdict, answer));
                Ok(())
            }
            Message::Refused {
                caller,
                action,
                denial,
            } => {
                self.done.push(Done::Refused {
                    caller,
                    action,
                    denial,
                });
                Ok(())
            }
            Message::Install { .. } | Message::Rejected(_) | Message::Stop => Ok(()),
        }
    }

    fn decide(&mut self, decision: &mut Decision, key: Option<&str>) -> Result<(), String> {
        let place = match key.map(|key| place(&decision.caller, key)).transpose() {
            Ok(place) => place,
            Err(reason) => {
                decision.fail(reason);
                return Ok(());
            }
        };
        if let (Some(place), Some(key)) = (&place, key)
            && let Some(before) = self.history.answered(place)?
        {
            decision.repeat(key, before);
            return Ok(());
        }
        if let Some(reason) = self.fault.as_ref() {
            decision.fail(reason.as_str());
            return Ok(());
        }
        let entry = decision.entry(self.history.next());
        let event = entry.event();
        if let Err(reason) = self.live.compiled.check(&event) {
            decision.fail(reason);
            return Ok(());
        }
        let asked = place.is_some().then(|| entry.input.clone());
        decision.sequence = self.history.append(entry)?;
        match ruled(self.live.step(&event)) {
            Ok(ruling) => {
                let judged = self.live.judge(&decision.action, &event, ruling, true);
                decision.judged(judged, event);
            }
            // The state of the policy may have lost this event, so nothing after it can be decided.
            Err(reason) => {
                decision.fail(reason.as_str());
                *self.fault = Some(reason);
                return Ok(());
            }
        }
        if decision.verdict.is_ok() {
            self.history.leave_open();
        }
        if let Some((place, input)) = place.zip(asked) {
            let answered = Answered {
                sequence: decision.sequence,
                action: decision.uid.clone(),
                input,
                denial: decision.verdict.as_ref().err().cloned(),
            };
            self.history.keep_answer(&place, &answered)?;
        }
        Ok(())
    }

    fn what_if(&mut self, action: Action) -> Result<(), Denial> {
        let mut decision = Decision::new(self.time, Caller::Agent, action);
        let event = decision.entry(0).event();
        if let Some(reason) = self.fault.as_ref() {
            return Err(fault(&decision.action, reason.as_str()));
        }
        let ruling = self
            .live
            .compiled
            .check(&event)
            .and_then(|()| ruled(self.live.what_if(&event)));
        match ruling {
            Ok(ruling) => {
                let judged = self.live.judge(&decision.action, &event, ruling, false);
                decision.judged(judged, event);
            }
            Err(reason) => decision.fail(reason),
        }
        decision.verdict.map(drop)
    }

    fn complete(&mut self, granted: Granted, outcome: &Outcome) -> Result<(), String> {
        let sequence = granted.sequence;
        // The first end counts.
        if !self.history.close(sequence) {
            return Ok(());
        }
        let id = format_smolstr!("{sequence}");
        let mut entry = outcome_entry(self.time, granted.uid, id, granted.input, outcome);
        let mut event = entry.event();
        if let Err(reason) = self.live.compiled.check(&event) {
            let Entry {
                action,
                request_id,
                input,
                ..
            } = entry;
            entry = outcome_entry(self.time, action, request_id, input, &granted.unknown);
            event = entry.event();
            self.done.push(Done::Misfit(reason));
        }
        self.done.push(Done::Outcome(ended(sequence, &entry)));
        self.history.append(entry)?;
        if let Err(reason) = self.live.step(&event) {
            self.fault
                .get_or_insert(format!("the policy cannot follow the history: {reason}"));
        }
        Ok(())
    }
}

fn ended(sequence: u64, entry: &Entry) -> Ended {
    let output = entry.output.as_ref();
    let output = output.and_then(|fields| fields.iter().next());
    Ended {
        sequence,
        time: entry.time,
        action: entry.action.id.clone(),
        kind: entry.kind.clone(),
        output: output.map(|(field, value)| {
            let value = match value {
                Value::Int(n) => format_smolstr!("{n}"),
                Value::Entity(uid) => uid.id.clone(),
                _ => SmolStr::default(),
            };
            (field.clone(), value)
        }),
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
            let mut decision = Decision::new(now, caller, action);
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
                let request_id = match decision.sequence {
                    0 => SmolStr::default(),
                    sequence => format_smolstr!("{sequence}"),
                };
                let decided = Decided {
                    time: decision.time,
                    request_id: &request_id,
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
            Done::Outcome(ended) => records.outcome(ended),
            Done::Misfit(reason) => records.misfit(now, reason),
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
