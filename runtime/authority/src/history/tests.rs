//! Snapshots that cannot be used, tables that stay bounded, and files of other versions.

use super::*;
use crate::engine::{Compiled, Engine, Ruling};
use dogwood_compiler::event::Event;
use dogwood_compiler::value::{EntityUid, Record};
use redb::backends::InMemoryBackend;
use std::sync::atomic::AtomicBool;

/// Counts events, and its state says how many.
struct Counter(u64);

impl Engine for Counter {
    fn step(&mut self, _: &Event) -> Result<Option<Ruling>, String> {
        self.0 += 1;
        Ok(None)
    }

    fn what_if(&self, _: &Event) -> Result<Option<Ruling>, String> {
        Ok(None)
    }

    fn witness(&self, _: &Event, _: &Ruling) -> Vec<String> {
        Vec::new()
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(format!("{}{}", "0".repeat(99_999), self.0).into_bytes())
    }
}

struct Counting;

impl Compiled for Counting {
    fn start(&self) -> Box<dyn Engine> {
        Box::new(Counter(0))
    }

    fn load(&self, saved: &[u8]) -> Result<Box<dyn Engine>, String> {
        let number = std::str::from_utf8(saved).map_err(text)?;
        Ok(Box::new(Counter(number.parse().map_err(text)?)))
    }

    fn fingerprint(&self) -> String {
        "counting".into()
    }

    fn check(&self, _: &Event) -> Result<(), String> {
        Ok(())
    }

    fn possible(&self, _: &Event, among: &[usize]) -> Vec<usize> {
        among.into()
    }
}

fn history() -> History {
    History::open(InMemoryBackend::new(), Path::new("memory")).unwrap()
}

fn opened(path: &Path) -> History {
    History::open(file(path).unwrap(), Path::new("history.redb")).unwrap()
}

fn entry(time: i64) -> Entry {
    Entry {
        time,
        action: EntityUid::new("Box::Action", "fs:read"),
        kind: "response".into(),
        request_id: "1".into(),
        input: Record::new(),
        output: None,
        permitted: false,
        open_from: None,
    }
}

fn append(history: &mut History, time: i64) {
    history.append(entry(time)).unwrap();
    history.commit().unwrap();
}

/// A snapshot of what there is, as the parts it is stored in.
fn snapshot(history: &History) -> (Head, Vec<u8>) {
    let built = build(history);
    let saved = built.engine.save().unwrap();
    let head = Head {
        fingerprint: "counting".into(),
        sequence: built.through,
        lost: built.lost,
        chunks: u32::try_from(saved.len().div_ceil(CHUNK)).unwrap(),
        bytes: saved.len() as u64,
        sum: crc32fast::hash(&saved),
    };
    (head, saved)
}

fn store(history: &mut History, head: &Head, saved: &[u8]) {
    for (part, bytes) in (0..).zip(saved.chunks(CHUNK)) {
        history.put_snapshot(head, part, bytes).unwrap();
    }
}

fn build(history: &History) -> Built {
    let view = history.reader().view().unwrap();
    view.build(&Counting, &AtomicBool::new(false)).unwrap()
}

fn counted(built: &Built) -> u64 {
    let saved = built.engine.save().unwrap();
    std::str::from_utf8(&saved).unwrap().parse().unwrap()
}

#[test]
fn a_snapshot_stands_for_the_events_before_it() {
    let mut history = history();
    (0..5).for_each(|time| append(&mut history, time));
    let (head, saved) = snapshot(&history);
    store(&mut history, &head, &saved);
    append(&mut history, 6);
    let built = build(&history);
    assert!(built.from_snapshot);
    assert_eq!((built.through, built.stepped, counted(&built)), (6, 1, 6));
}

#[test]
fn a_snapshot_that_cannot_be_used_is_passed_over() {
    type Tamper = fn(&mut Head, &mut Vec<u8>);
    let tampered: [(&str, Tamper); 5] = [
        ("a bit", |_, saved| saved[70_000] ^= 1),
        ("cut short", |head, saved| {
            saved.truncate(10);
            head.chunks = 1;
        }),
        ("a part gone", |head, _| head.chunks += 1),
        ("from the future", |head, _| head.sequence += 10),
        ("not loadable", |head, saved| {
            saved[0] = b'x';
            head.sum = crc32fast::hash(saved);
        }),
    ];
    let mut said = String::new();
    for (name, tamper) in tampered {
        let mut history = history();
        (0..5).for_each(|time| append(&mut history, time));
        let (mut head, mut saved) = snapshot(&history);
        tamper(&mut head, &mut saved);
        // All parts first, then the head as if it were the last one's.
        for (part, bytes) in (0..).zip(saved.chunks(CHUNK)) {
            let whole = Head {
                chunks: part + 1,
                ..head.clone()
            };
            history.put_snapshot(&whole, part, bytes).unwrap();
        }
        history
            .tidily(|tx| {
                let sealed = super::entry::seal(b"head", &head)?;
                let mut table = tx.open_table(HEAD).map_err(text)?;
                table.insert("head", sealed.as_slice()).map_err(text)?;
                Ok(())
            })
            .unwrap();
        let built = build(&history);
        assert!(!built.from_snapshot, "{name}");
        assert_eq!((built.stepped, counted(&built)), (5, 5), "{name}");
        said += &format!("{name}: {}\n", built.passed_over.unwrap_or_default());
    }
    insta::assert_snapshot!(said, @"
    a bit: its checksum is wrong
    cut short: its checksum is wrong
    a part gone: a part of it is gone
    from the future: it holds events that the history does not
    not loadable: invalid digit found in string
    ");
}

#[test]
fn old_events_go_in_bounded_steps_and_leave_their_time() {
    let mut history = history();
    (0..100).for_each(|time| append(&mut history, time));
    let bounds = |history: &History| history.reader().view().unwrap().bounds().unwrap();
    assert!(history.untidy(50));
    history.stale = false;
    history.tidy(50, 30).unwrap();
    assert_eq!(bounds(&history), Some((31, 100)));
    history.tidy(50, 30).unwrap();
    assert_eq!(
        bounds(&history),
        Some((50, 100)),
        "exactly as old as what is kept stays"
    );
    assert!(!history.untidy(50));
    let view = history.reader().view().unwrap();
    assert_eq!(view.lost(), Ok(Some(48)));
    let built = build(&history);
    assert_eq!((built.lost, built.stepped), (Some(48), 51));
}

#[test]
fn events_of_one_transaction_lie_together() {
    let mut history = history();
    let long = |number: i64| Entry {
        request_id: format!("{number}{}", "x".repeat(1000)).into(),
        ..entry(if number < 4 { 0 } else { number / 50 })
    };
    for transaction in [0..3, 3..4, 4..104] {
        for number in transaction {
            history.append(long(number)).unwrap();
        }
        history.commit().unwrap();
    }
    let rows = |history: &History| {
        let events = history.reader().view().unwrap().table(EVENTS).unwrap();
        redb::ReadableTableMetadata::len(&events.unwrap()).unwrap()
    };
    // The last transaction is too long for one row, and over three seconds.
    assert_eq!(rows(&history), 1 + 1 + (2 + 2 + 1));
    let view = history.reader().view().unwrap();
    for number in 1..=104 {
        assert_eq!(view.entry(number), Ok(Some(long(number as i64 - 1))));
    }
    assert_eq!(view.entry(105), Ok(None));
    let mut seen = Vec::new();
    let each = view.each(50, |number, entry| {
        seen.push(number);
        (entry == long(number as i64 - 1))
            .then_some(())
            .ok_or(String::new())
    });
    assert_eq!((each, seen), (Ok(()), (50..=104).collect()));
    history.tidy(1, 64).unwrap();
    let view = history.reader().view().unwrap();
    assert_eq!(view.bounds(), Ok(Some((51, 104))));
    assert_eq!(view.lost(), Ok(Some(0)));
}

#[test]
fn a_row_that_is_gone_is_missed() {
    for gone in [2, 3, 4] {
        let mut history = history();
        (0..5).for_each(|time| append(&mut history, time));
        history
            .tidily(|tx| {
                let mut events = tx.open_table(EVENTS).map_err(text)?;
                events.remove(gone).map_err(text)?;
                Ok(())
            })
            .unwrap();
        let bounds = history.reader().view().unwrap().bounds();
        assert_eq!(bounds, Err("events are missing in its middle".into()));
    }
}

#[test]
fn an_event_that_was_changed_is_found_out() {
    let mut history = history();
    (0..5).for_each(|time| append(&mut history, time));
    history
        .tidily(|tx| {
            let mut events = tx.open_table(EVENTS).map_err(text)?;
            let third = events.get(3).map_err(text)?.unwrap().value().to_vec();
            events.insert(4, third.as_slice()).map_err(text)?;
            Ok(())
        })
        .unwrap();
    let view = history.reader().view().unwrap();
    let built = view.build(&Counting, &AtomicBool::new(false));
    insta::assert_snapshot!(built.err().unwrap(), @"event 4 is not readable: its checksum is wrong");
}

#[test]
fn parts_of_earlier_snapshots_are_removed() {
    let mut history = history();
    for round in 0..4 {
        append(&mut history, round);
        let (head, saved) = snapshot(&history);
        store(&mut history, &head, &saved);
        // Half of one that is never finished.
        append(&mut history, round);
        let (head, saved) = snapshot(&history);
        history.put_snapshot(&head, 0, &saved[..CHUNK]).unwrap();
    }
    let parts = |history: &History| {
        let view = history.reader().view().unwrap();
        let chunks = view.table(CHUNKS).unwrap().unwrap();
        redb::ReadableTableMetadata::len(&chunks).unwrap()
    };
    assert!(parts(&history) > 3);
    while history.untidy(1000) {
        history.tidy(1000, 16).unwrap();
    }
    // The snapshot's own two, and the one that is being written.
    assert_eq!(parts(&history), 3);
    assert!(build(&history).from_snapshot);
}

#[test]
fn keys_are_forgotten_from_the_oldest_on() {
    let mut history = history();
    append(&mut history, 0);
    let answered = |sequence| Answered {
        sequence,
        action: EntityUid::new("Box::Action", "fs:read"),
        input: Record::new(),
        denial: None,
    };
    let known = |history: &History, key: &str| history.answered(key).unwrap().is_some();
    for start in (0..MOST_KEYS + 6).step_by(1000) {
        history.append(entry(1)).unwrap();
        for n in start..(start + 1000).min(MOST_KEYS + 6) {
            let key = format!("key {n}");
            history.keep_answer(&key, &answered(n + 1)).unwrap();
            assert!(known(&history, &key), "before it is durable, too");
        }
        history.commit().unwrap();
    }
    assert!(!known(&history, "key 5"));
    assert!(known(&history, "key 6"));
}

#[test]
fn another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.redb");
    let opened = || History::open(file(&path).unwrap(), Path::new("history.redb"));
    let history = opened().unwrap();
    history
        .tidily(|tx| {
            let mut format = tx.open_table(FORMAT).map_err(text)?;
            format.insert("history", 1).map_err(text)?;
            Ok(())
        })
        .unwrap();
    drop(history);
    insta::assert_snapshot!(opened().err().unwrap(), @"the history history.redb was written by another version of box (format 1, this is 4); go on with that version, or delete the whole box directory to start over");
}

#[test]
fn format_2_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.redb");
    let opened = || opened(&path);
    let mut history = opened();
    (0..3).for_each(|time| append(&mut history, time));
    history
        .tidily(|tx| {
            tx.open_table(OPEN)
                .map_err(text)?
                .insert(2, ())
                .map_err(text)?;
            let mut format = tx.open_table(FORMAT).map_err(text)?;
            format.insert("history", 2).map_err(text)?;
            Ok(())
        })
        .unwrap();
    drop(history);
    for _ in 0..2 {
        let history = opened();
        assert_eq!(history.open_requests().collect::<Vec<_>>(), [2]);
        assert_eq!(history.next(), 4);
        assert!(
            history
                .reader()
                .view()
                .unwrap()
                .table(OPEN)
                .unwrap()
                .is_none()
        );
    }
    let mut history = opened();
    assert!(history.close(2));
    let mut end = entry(3);
    end.request_id = "2".into();
    history.append(end).unwrap();
    history.commit().unwrap();
    drop(history);
    assert_eq!(opened().open_requests().next(), None);
}

#[test]
fn events_of_format_3_are_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.redb");
    let opened = || opened(&path);
    let request = |sequence: u64, open_from: Option<u64>| Entry {
        kind: "request".into(),
        request_id: sequence.to_string().into(),
        permitted: true,
        open_from,
        ..entry(sequence as i64)
    };
    // One event in a row, as JSON. The last transaction had the last two.
    let before = [request(1, Some(1)), request(2, None), request(3, Some(1))];
    opened()
        .tidily(|tx| {
            let mut format = tx.open_table(FORMAT).map_err(text)?;
            format.insert("history", 3).map_err(text)?;
            let mut events = tx.open_table(EVENTS).map_err(text)?;
            for (sequence, entry) in (1u64..).zip(&before) {
                let json = super::entry::seal(&sequence.to_le_bytes(), entry)?;
                events.insert(sequence, json.as_slice()).map_err(text)?;
            }
            Ok(())
        })
        .unwrap();
    let mut history = opened();
    assert_eq!(history.open_requests().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(history.close(2));
    let mut end = entry(4);
    end.request_id = "2".into();
    history.append(end.clone()).unwrap();
    history.commit().unwrap();
    drop(history);
    let mut history = opened();
    assert_eq!(history.open_requests().collect::<Vec<_>>(), [1, 3]);
    let view = history.reader().view().unwrap();
    assert_eq!(view.bounds(), Ok(Some((1, 4))));
    let mut seen = Vec::new();
    let each = view.each(1, |_, entry| {
        seen.push((entry.time, entry.permitted));
        Ok(())
    });
    assert_eq!(each, Ok(()));
    assert_eq!(seen, [(1, true), (2, true), (3, true), (4, false)]);
    assert!(history.close(1) && history.close(3));
    history.append(end).unwrap();
    history.commit().unwrap();
    history.tidy(1, 64).unwrap();
    let view = history.reader().view().unwrap();
    assert_eq!(view.bounds(), Ok(Some((3, 5))));
}

#[test]
fn what_is_open_is_found_again_and_costs_an_event_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.redb");
    let opened = || opened(&path);
    let mut history = opened();
    let request = |number: u64| Entry {
        kind: "request".into(),
        request_id: number.to_string().into(),
        ..entry(0)
    };
    let mut sizes = Vec::new();
    for number in 1..=600 {
        let before = history.appended().1;
        history.append(request(number)).unwrap();
        // Every third was refused.
        if number % 3 > 0 {
            history.leave_open();
        }
        history.commit().unwrap();
        sizes.push(history.appended().1 - before);
    }
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() < 60);
    for number in (1..=500).filter(|number| number % 3 > 0) {
        assert!(history.close(number));
        let mut end = entry(0);
        end.request_id = number.to_string().into();
        history.append(end).unwrap();
    }
    history.commit().unwrap();
    drop(history);
    let expected: Vec<u64> = (501..=600).filter(|number| number % 3 > 0).collect();
    assert_eq!(opened().open_requests().collect::<Vec<_>>(), expected);
}
