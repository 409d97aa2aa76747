//! What durability costs: decisions of the authority over a real file, against one synced write of the store
//! underneath, and one caller against sixteen.
//!
//! ```text
//! cargo bench -p dogwood-tests --bench durable [-- DIRECTORY]
//! ```
//!
//! The directory (by default the system's for temporary files) decides which disk is measured. Figures are
//! medians; a figure printed as missed is missed, whatever the goal says.

#![allow(clippy::print_stdout)]

use box_authority::Authority;
use box_authority::action::{Action, Command, Outcome, Spawn};
use box_authority::clock::Clock;
use box_authority::engine::PolicySet;
use box_authority::gate::{Caller, Gate};
use box_authority::records::{Records, RunIdentity};
use dogwood_compiler::compile::{Options, Source, check, load_service};
use redb::{Database, TableDefinition};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const POLICY: &str = r#"
permit (principal, action == Box::Action::"shell:spawn", resource);

@id("push_cap")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.command == "git push" }
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where (
      formerly within 1h ( Box::Action::"shell:spawn"::request{ input.command: "git push" } && tp(t) )
    )) == n && n > 3
  )
};
"#;

/// Writes and decisions take turns, so many of each at a time: a disk is slow for a second, and that falls on both
/// alike.
const TURN: usize = 50;
const TURNS: usize = 30;
/// So many times, and each time many callers after one.
const ROUNDS: usize = 7;
const CALLERS: usize = 16;
/// Decisions of many callers in a round.
const TOGETHER: usize = 6000;
const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");

struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> i64 {
        1_796_000_000 + self.0.fetch_add(1, Ordering::Relaxed) / 1000
    }
}

fn open(dir: &Path) -> Authority {
    let sources = [Source {
        name: "policy.dw".into(),
        text: POLICY.into(),
    }];
    let (service, _) = load_service(None, None).expect("the built-in schema");
    let checked = check(&sources, None, &service, &Options::default()).expect("a sound policy");
    let records = std::fs::File::create(dir.join("records.jsonl")).expect("a file for records");
    let run = RunIdentity {
        box_id: "box-0000000000000001".into(),
        run_id: 1,
    };
    let records = Records::new(Box::new(std::io::BufWriter::new(records)), run);
    let policy = PolicySet::new(&checked, &sources, &service);
    Authority::open(dir, policy, Arc::new(Ticking(0.into())), records).expect("an authority")
}

fn spawn(words: &str) -> Action {
    Action::ShellSpawn(Spawn {
        command: Command {
            words: words.split(' ').map(Into::into).collect(),
            program: "git".into(),
            cwd: "~/project".into(),
        },
        program_path: "/usr/bin/git".into(),
        credential_reads: Vec::new(),
    })
}

/// One caller: each decision, and the outcome of each, which nobody waits for.
fn ask(authority: &Authority, caller: usize, many: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(many);
    for n in 0..many {
        let action = spawn(&format!("git status {caller}.{n}"));
        let begun = Instant::now();
        let permit = authority.decide(&Caller::Agent, action);
        times.push(begun.elapsed());
        permit.expect("a permit").complete(Outcome::Status(0));
    }
    times
}

/// A row between an event (190 bytes) and what a decision here stores: the end of the request before, and its own.
const ROW: [u8; 300] = [7; 300];

/// One row in one transaction, synced.
fn store(db: &Database, first: u64) -> Vec<Duration> {
    let rows = first..first + TURN as u64;
    rows.map(|n| {
        let begun = Instant::now();
        let tx = db.begin_write().expect("a transaction");
        tx.open_table(TABLE)
            .expect("a table")
            .insert(n, ROW.as_slice())
            .expect("a row");
        tx.commit().expect("a commit");
        begun.elapsed()
    })
    .collect()
}

/// As many rows as the history has events: in a tree of another size a write touches other pages.
fn fill(db: &Database, rows: std::ops::Range<u64>) {
    let tx = db.begin_write().expect("a transaction");
    {
        let mut table = tx.open_table(TABLE).expect("a table");
        for n in rows {
            table.insert(n, ROW.as_slice()).expect("a row");
        }
    }
    tx.commit().expect("a commit");
}

fn median<T: Ord + Copy>(mut of: Vec<T>) -> T {
    of.sort_unstable();
    of[of.len() / 2]
}

fn at(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn main() {
    let dir: PathBuf = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with('-'))
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let place = tempfile::tempdir_in(&dir).expect("a directory");
    let db = Database::create(place.path().join("raw.redb")).expect("a store");
    let authority = open(place.path());
    let (mut raw, mut one, mut alone, mut together) = (vec![], vec![], vec![], vec![]);
    let mut rows = 0;
    let mut grow = |db: &Database, raw: usize, decisions: usize| {
        let first = rows + raw as u64;
        rows += 2 * decisions as u64;
        fill(db, first..rows);
        rows
    };
    let mut next = 0;
    for _ in 0..ROUNDS {
        let mut spent = Duration::ZERO;
        for _ in 0..TURNS {
            raw.extend(store(&db, next));
            let begun = Instant::now();
            one.extend(ask(&authority, 0, TURN));
            spent += begun.elapsed();
            next = grow(&db, TURN, TURN);
        }
        alone.push(spent / u32::try_from(TURN * TURNS).expect("a small number"));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                let authority = &authority;
                scope.spawn(move || ask(authority, caller, TOGETHER / CALLERS));
            }
        });
        together.push(begun.elapsed() / u32::try_from(TOGETHER).expect("a small number"));
        next = grow(&db, 0, TOGETHER);
    }
    let (store_p50, decision_p50) = (at(&mut raw, 50), at(&mut one, 50));
    println!("disk: {}", dir.display());
    println!(
        "one synced write of the store   p50 {store_p50:>8.1?}  p99 {:>8.1?}",
        at(&mut raw, 99)
    );
    println!(
        "one caller, a decision          p50 {decision_p50:>8.1?}  p99 {:>8.1?}",
        at(&mut one, 99)
    );
    let cost = decision_p50.as_secs_f64() / store_p50.as_secs_f64();
    println!(
        "one caller / store              {cost:.2} (goal: at most 1.2): {}",
        verdict(cost <= 1.2)
    );
    let (alone, together) = (median(alone), median(together));
    let rate = |each: Duration| 1.0 / each.as_secs_f64();
    println!(
        "one caller                      {:>8.0} decisions/s",
        rate(alone)
    );
    println!(
        "{CALLERS} callers                      {:>8.0} decisions/s",
        rate(together)
    );
    let gain = rate(together) / rate(alone);
    println!(
        "{CALLERS} callers / one caller         {gain:.1} (goal: at least 5): {}",
        verdict(gain >= 5.0)
    );
}
