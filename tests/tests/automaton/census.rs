//! Temporary: which leaves hold more than the windows.
use super::formulas::{Writer, services};
use super::stage::{record, try_rules};
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::monitor::{Config, Monitor, Policy};
use dogwood_compiler::value::{EntityUid, Record, Value};
use std::sync::Arc;
use std::time::Instant;

struct Rng(u64);
impl Rng {
    fn next(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }
}

fn event(time: i64, card: usize, rng: &mut Rng) -> Event {
    let action = ["move", "move", "weigh", "move"][rng.next(4)];
    let kind = ["request", "request", "response"][rng.next(3)];
    let clerk = EntityUid::new("Yard::Clerk", &format!("u{}", rng.next(card)));
    let input = |rng: &mut Rng| {
        let mut fields = Record::new();
        fields.insert(
            "crate".into(),
            Value::String(format!("c{}", rng.next(card)).into()),
        );
        fields.insert("kg".into(), Value::Int(rng.next(card) as i64));
        fields.insert(
            "tare".into(),
            Value::Decimal(format!("{}.0", rng.next(card)).into()),
        );
        fields
    };
    let mut logged = Record::new();
    logged.insert("input".into(), Value::Object(input(rng)));
    logged.insert("callerPrincipal".into(), clerk.clone().into());
    logged.insert("sessionId".into(), Value::String("s".into()));
    let mut context = Record::new();
    context.insert("input".into(), Value::Object(input(rng)));
    context.insert("sessionId".into(), Value::String("s".into()));
    let _ = record;
    Event {
        time,
        action: EntityUid::new("Yard::Action", action),
        kind: kind.into(),
        logged,
        request: (kind == "request").then(|| RequestPart {
            principal: Some(clerk),
            resource: Some(EntityUid::new("Yard::Bay", "b")),
            context,
            ..RequestPart::default()
        }),
    }
}

fn run(policy: &Arc<Policy>, n: usize) -> (usize, f64) {
    let mut monitor = Monitor::new(policy.clone(), Config::default());
    let mut rng = Rng(88172645463325252);
    let base = monitor.size().bytes;
    let mut worst = 0;
    let begun = Instant::now();
    for at in 0..n {
        monitor.step(&event(at as i64, n / 8, &mut rng)).unwrap();
        if begun.elapsed().as_secs() > 5 {
            return (usize::MAX / 2, 9e9);
        }
    }
    worst = worst.max(monitor.size().bytes - base);
    (worst, begun.elapsed().as_secs_f64())
}

#[test]
#[ignore]
fn census() {
    let services = services();
    let mut rng = Rng(std::env::var("SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(12345678901));
    let (mut all, mut over) = (0, 0);
    let begun = Instant::now();
    while begun.elapsed().as_secs() < 240 {
        let choices: Vec<u8> = (0..120).map(|_| rng.next(256) as u8).collect();
        let mut leaf = Writer::new(&choices).leaf();
        for n in (1..=20).rev() {
            leaf = leaf.replace(&format!("within {n}s"), "within 9999s");
        }
        if leaf.len() > 420 {
            continue;
        }
        let text = format!(
            "permit(principal, action in Yard::Action::\"Any\", resource) when temporal {{ {leaf} }};"
        );
        let Ok(rules) = try_rules(&text, &services[0]) else {
            continue;
        };
        let policy = Arc::new(Policy::new(&rules, &services[0]));
        all += 1;
        let (few, _) = run(&policy, 80);
        let (many, _) = run(&policy, 320);
        let factor = many as f64 / few.max(2000) as f64;
        if factor > 7.5 {
            over += 1;
            let kinds: Vec<_> = policy.cells().iter().map(|c| c.kind).collect();
            println!("{factor:.1} {} {kinds:?} {leaf}\n", many / 320);
        }
    }
    println!("{over} of {all}");
}
