//! Our language against the reference library, as a black box: random schemas, policies and traces must be
//! accepted or rejected alike, and decided alike.
//!
//! A few hundred policies by default. The long run, at least 20,000:
//!
//! ```text
//! DOGWOOD_DIFFERENTIAL=20000 cargo test -p dogwood-reference-tests --test differential -- --nocapture
//! ```
//!
//! With `--release` it takes a fraction of the time. It says how many accepted cases reached each feature of the
//! language, and fails where one was never reached.
//!
//! `DOGWOOD_DIFFERENTIAL_SEED` begins at another seed; a failure names its own. Where the language
//! reference lists a mistake not to copy, a test below says so and holds our answer.

#![allow(clippy::expect_used, clippy::panic)]

#[path = "differential/guard.rs"]
mod guard;
#[path = "differential/policy.rs"]
mod policy;
#[path = "differential/providers.rs"]
mod providers;
#[path = "differential/random.rs"]
mod random;
#[path = "differential/reach.rs"]
mod reach;
#[path = "differential/world.rs"]
mod world;

use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::monitor::{self, Policy};
use dogwood_compiler::providers::load_providers;
use dogwood_compiler::schema::Service;
use dogwood_compiler::trace;
use dogwood_language as reference;
use random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

/// A decision: when, whether it was allowed, by which rules, and whether anything could not be evaluated.
type Decided = (i64, bool, Vec<usize>, bool);

struct Theirs {
    service: reference::ServiceSchema,
    actions: reference::PolicySchema,
    /// Its events are pinned so that the history is parted.
    parted: bool,
}

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn our_service(schema: &str, events: &str, providers: Option<&str>) -> Result<Service, String> {
    let (mut service, _) = compile::load_service(
        Some(&source("actions.cedarschema", schema)),
        Some(&source("events.dwschema", events)),
    )
    .map_err(|said| said_of(&said))?;
    if let Some(declarations) = providers {
        let no_files = |_: &str| Err("there are no files here".to_owned());
        let (providers, _) = load_providers(&source("providers.json", declarations), &no_files)
            .map_err(|said| said_of(&said))?;
        service.providers = Arc::new(providers);
    }
    Ok(service)
}

fn said_of(said: &[dogwood_compiler::grammar::diagnostic::Diagnostic]) -> String {
    let said: Vec<String> = said
        .iter()
        .map(|d| format!("[{}] {} @{:?}", d.code, d.message, d.span))
        .collect();
    said.join("; ")
}

fn ours(policy: &str, service: &Service) -> Result<Arc<Policy>, String> {
    let checked = compile::check(
        &[source("policy.dw", policy)],
        None,
        service,
        &Options::default(),
    )
    .map_err(|said| said_of(&said))?;
    let rules: Vec<_> = checked.rules.into_iter().map(|c| c.rule).collect();
    Ok(Arc::new(Policy::new(&rules, service)))
}

fn their_service(schema: &str, events: &str, providers: Option<&str>) -> Result<Theirs, String> {
    let mut service = reference::ServiceSchema::builder().event_schema_str(events);
    if let Some(declarations) = providers {
        let declarations = reference::ProviderDeclarations::from_json(declarations)?;
        service = service.providers(declarations);
    }
    let service = service.build().map_err(|error| error.to_string())?;
    let actions =
        reference::PolicySchema::from_cedarschema_str(schema).map_err(|error| error.to_string())?;
    Ok(Theirs {
        service,
        actions,
        parted: false,
    })
}

fn theirs(policy: &str, with: &Theirs) -> Result<reference::LoweredPolicySet, String> {
    let lowered = reference::LoweredPolicySet::from_str(policy, &with.service, &with.actions)
        .map_err(|error| error.to_string())?;
    let result = reference::Validator::new().validate(&lowered);
    match result.validation_passed() {
        true => Ok(lowered),
        false => {
            let errors: Vec<String> = result
                .validation_errors()
                .map(|error| error.to_string())
                .collect();
            Err(errors.join("; "))
        }
    }
}

fn our_decisions(policy: Arc<Policy>, text: &str) -> Result<Vec<Decided>, String> {
    let (events, errors) = trace::parse(text);
    if !errors.is_empty() {
        return Err(format!("{errors:?}"));
    }
    let decided = monitor::replay(policy, &events).into_iter();
    Ok(decided
        .map(|(_, time, decision)| {
            let allowed = decision.allowed();
            (time, allowed, decision.rules, !decision.errors.is_empty())
        })
        .collect())
}

fn their_decisions(
    policies: reference::LoweredPolicySet,
    parted: bool,
    text: &str,
) -> Result<Vec<Decided>, String> {
    let events = reference::parse_trace(text).map_err(|error| error.to_string())?;
    let mut authorizer = match parted {
        false => reference::Authorizer::new(policies),
        true => reference::Authorizer::builder(policies)
            .partition_temporal()
            .build()
            .map_err(|error| error.to_string())?,
    };
    let mut decided = Vec::new();
    for event in &events {
        if let Some(response) = authorizer.is_authorized(event) {
            let mut rules: Vec<usize> = response
                .diagnostics()
                .reason()
                .map(|rule| rule.rule_index)
                .collect();
            rules.sort_unstable();
            let errors = response.diagnostics().errors().next().is_some();
            decided.push((event.timestamp(), response.allowed(), rules, errors));
        }
    }
    Ok(decided)
}

#[derive(Default)]
struct Totals {
    policies: usize,
    accepted: usize,
    decisions: usize,
    allowed: usize,
    reached: reach::Counts,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.policies += other.policies;
        self.accepted += other.accepted;
        self.decisions += other.decisions;
        self.allowed += other.allowed;
        for (name, n) in &other.reached {
            *self.reached.entry(name).or_default() += n;
        }
    }
}

/// Compares one policy over a trace; what differs.
fn compare(
    policy: &str,
    world: &World,
    service: &Service,
    with: &Theirs,
    trace: &str,
    totals: &mut Totals,
) -> Result<(), String> {
    totals.policies += 1;
    let (our, their) = match (ours(policy, service), theirs(policy, with)) {
        (Ok(our), Ok(their)) => (our, their),
        (Err(_), Err(_)) => return Ok(()),
        (Ok(_), Err(why)) => return Err(format!("accepted here, rejected there: {why}")),
        (Err(why), Ok(_)) => return Err(format!("rejected here, accepted there: {why}")),
    };
    totals.accepted += 1;
    let our = our_decisions(our, trace)?;
    // See `late_events_under_a_pin`.
    let times: Vec<i64> = trace.lines().filter_map(reach::time_of).collect();
    let late = !times.is_sorted() || totals.policies.is_multiple_of(2);
    let their = their_decisions(their, with.parted && late, trace)?;
    totals.decisions += our.len();
    totals.allowed += our.iter().filter(|decided| decided.1).count();
    if our != their {
        return Err(format!(
            "decided otherwise:\n  here  {our:?}\n  there {their:?}\n{trace}"
        ));
    }
    let case = reach::Case {
        policy,
        schema: &world.schema,
        events: &world.events,
        trace,
        failed: our.iter().any(|decided| decided.3),
    };
    reach::count(&case, &mut totals.reached);
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// One world and some policies over it; what differs.
fn world(seed: u64, policies: u64, totals: &mut Totals) -> Vec<String> {
    let mut random = Random::new(seed);
    let world = World::new(&mut random);
    let declared = world.providers.as_deref();
    let service = our_service(&world.schema, &world.events, declared);
    let with = their_service(&world.schema, &world.events, declared);
    let (service, with) = match (service, with) {
        (Ok(service), Ok(with)) => (
            service,
            Theirs {
                parted: world.parted,
                ..with
            },
        ),
        (our, their) => panic!(
            "seed {seed}: schemas: {:?} {:?}\n{}\n{}",
            our.err(),
            their.err(),
            world.schema,
            world.events
        ),
    };
    let mut wrong = Vec::new();
    for _ in 0..policies {
        let policy = policy::policy(&world, &mut random);
        let trace = world.trace(&mut random);
        if let Err(why) = compare(&policy, &world, &service, &with, &trace, totals) {
            wrong.push(format!(
                "seed {seed}: {why}\n{policy}{}{}{}",
                world.schema,
                world.events,
                declared.unwrap_or_default()
            ));
        }
    }
    wrong
}

#[test]
fn random_policies_are_accepted_and_decided_alike() {
    const POLICIES_A_WORLD: u64 = 10;
    const ENOUGH: usize = 20;
    let wanted = number("DOGWOOD_DIFFERENTIAL", 300);
    let first = number("DOGWOOD_DIFFERENTIAL_SEED", 1);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let next = AtomicU64::new(first);
    let last = first + wanted.div_ceil(POLICIES_A_WORLD);
    let work = || {
        let mut totals = Totals::default();
        let mut wrong = Vec::new();
        while wrong.len() < ENOUGH {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                break;
            }
            wrong.extend(world(seed, POLICIES_A_WORLD, &mut totals));
            let done = (seed - first + 1) * POLICIES_A_WORLD;
            if done.is_multiple_of(1000) {
                println!("differential: {done} policies begun");
            }
        }
        (totals, wrong)
    };
    let mut totals = Totals::default();
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (some, differ) = worker.join().expect("a worker panicked, see above");
            totals.add(&some);
            wrong.extend(differ);
        }
    });
    let reached: Vec<String> = totals
        .reached
        .iter()
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    println!(
        "differential, reached by accepted cases: {}",
        reached.join(", ")
    );
    println!(
        "differential: {} policies ({} accepted), {} decisions ({} allowed), {} differ",
        totals.policies,
        totals.accepted,
        totals.decisions,
        totals.allowed,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n=====\n"));
    // A generator that reaches nothing proves nothing.
    let unreached = reach::unreached(&totals.reached);
    assert!(
        unreached.is_empty(),
        "never reached: {}",
        unreached.join(", ")
    );
    assert!(
        totals.accepted * 2 > totals.policies,
        "too few are accepted"
    );
    assert!(
        totals.allowed * 10 > totals.decisions,
        "too few are allowed"
    );
}

// ------------------------------------------------------- what the reference gets wrong, and our answer

const DEPOT: &str = r#"
namespace Depot {
  entity Clerk = { rank: Long };
  entity Bay;
  action "move" appliesTo {
    principal: [Clerk], resource: [Bay], context: { input: { crate: String, kg?: Long }, output?: { ok: Bool } }
  };
}
"#;

const EVENTS: &str = "
decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
event <A>::response { ...inputs(A), ...outputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
";

/// Whether a policy of the depot is accepted: here, there.
fn accepted(policy: &str) -> (bool, bool) {
    let service = our_service(DEPOT, EVENTS, None).expect("sound schemas");
    let with = their_service(DEPOT, EVENTS, None).expect("sound schemas");
    let our = ours(policy, &service);
    let their = theirs(policy, &with);
    (our.is_ok(), their.is_ok())
}

fn moving(clauses: &str) -> String {
    format!("permit (principal, action == Depot::Action::\"move\", resource) when {clauses};")
}

fn seen(leaf: &str) -> String {
    moving(&format!("temporal {{ {leaf} }}")).replace("M{", "Depot::Action::\"move\"::request{")
}

/// A number that fits no 64 bits becomes 0 there: in a field, in a window. In a condition one above the
/// greatest is let through.
#[test]
fn numbers_that_do_not_fit_are_rejected() {
    assert_eq!(
        accepted(&seen("M{ input.kg: 99999999999999999999 }")),
        (false, true)
    );
    assert_eq!(
        accepted(&moving("{ 9223372036854775808 > 0 }")),
        (false, true)
    );
    assert_eq!(
        accepted(&seen("formerly within 99999999999999999999s M{}")),
        (false, false)
    );
    assert_eq!(
        accepted(&moving("{ -9223372036854775808 < 0 }")),
        (true, true)
    );
}

/// Of two equal keys, or two equal parameters, the last one counts there.
#[test]
fn what_is_given_twice_is_rejected() {
    assert_eq!(accepted(&moving("{ {a: 1, a: 2}.a == 2 }")), (false, true));
    let twice = format!(
        "def temporal f(?w, ?w) {{ formerly within ?w Depot::Action::\"move\"::request{{}} }};\n{}",
        seen("f(1h, 2h)")
    );
    assert_eq!(accepted(&twice), (false, true));
}

/// A macro called `exists` shadows the word there, and words of the temporal language may be glued together.
#[test]
fn words_of_the_language_stand_alone() {
    let exists = format!("def temporal exists(?p) {{ ?p }};\n{}", seen("exists(M{})"));
    assert_eq!(accepted(&exists), (false, true));
    assert_eq!(accepted(&seen("formerlywithin10s M{}")), (false, true));
}

/// Braces and quotes of a comment are counted there.
#[test]
fn a_comment_is_no_part_of_a_block() {
    assert_eq!(accepted(&seen("M{} // }\n")), (true, false));
}

/// Variables are lexically scoped, but the reference types them by name for a whole block: two binders of
/// one name and different types are mixed up.
#[test]
fn one_name_with_two_types() {
    let leaf = "(exists (z: Long). M{ input.kg: z }) && (exists (z: String). M{ input.crate: z })";
    assert_eq!(accepted(&seen(leaf)), (true, false));
    let service = our_service(DEPOT, EVENTS, None).expect("sound schemas");
    let policy = ours(&seen(leaf), &service).expect("accepted");
    let trace = "@1 scope(principal: Depot::Clerk::\"a\", resource: Depot::Bay::\"b\") request_context(input: { crate: \"c\", kg: 1 }) Depot::Action::\"move\"::request(input: { crate: \"c\", kg: 1 })\n@2 scope(principal: Depot::Clerk::\"a\", resource: Depot::Bay::\"b\") request_context(input: { crate: \"c\" }) Depot::Action::\"move\"::request(input: { crate: \"c\" })\n";
    let decided = our_decisions(policy, trace).expect("a sound trace");
    let allowed: Vec<bool> = decided.iter().map(|decided| decided.1).collect();
    assert_eq!(allowed, [true, false]);
}

/// Arguments of providers are read from the request, as everything else of a condition is. The reference
/// takes the principal that the event logs, so a request without one has no attributes.
#[test]
fn providers_are_asked_about_the_request() {
    let declared = r#"{ "availableProviders": { "Same::As": {
        "argumentTypes": [{ "paramType": "long" }], "outputType": { "paramType": "long" },
        "implementation": { "kind": "rhai", "script": "fn evaluate(n) { if n == () { -1 } else { n } }" } } } }"#;
    let service = our_service(DEPOT, EVENTS, Some(declared)).expect("sound schemas");
    let with = their_service(DEPOT, EVENTS, Some(declared)).expect("sound schemas");
    let ranks = |logged: &str| {
        let trace = format!(
            "@1 scope(principal: Depot::Clerk::\"a\", resource: Depot::Bay::\"b\") entities(Depot::Clerk::\"a\": {{ rank: 1 }}, Depot::Clerk::\"z\": {{ rank: 2 }}) request_context(input: {{ crate: \"c\" }}) Depot::Action::\"move\"::request(input: {{ crate: \"c\" }}{logged})\n"
        );
        let rank = |allows: &dyn Fn(&str) -> bool| {
            [-1, 1, 2].into_iter().find(|rank| {
                allows(&moving(&format!(
                    "{{ Same::As(principal.rank) == {rank} }}"
                )))
            })
        };
        let our = rank(&|policy| {
            let policy = ours(policy, &service).expect("accepted");
            our_decisions(policy, &trace).expect("a sound trace")[0].1
        });
        let their = rank(&|policy| {
            let policies = theirs(policy, &with).expect("accepted");
            their_decisions(policies, false, &trace).expect("a sound trace")[0].1
        });
        (our, their)
    };
    assert_eq!(
        ranks(", callerPrincipal: Depot::Clerk::\"a\""),
        (Some(1), Some(1))
    );
    assert_eq!(ranks(""), (Some(1), Some(-1)));
    assert_eq!(
        ranks(", callerPrincipal: Depot::Clerk::\"z\""),
        (Some(1), Some(2))
    );
}

/// Entities have no tags in a trace there; here they may. What reads a tag finds none either way, so long as
/// none is given.
#[test]
fn tags_in_a_trace() {
    let line = |tags: &str| {
        format!(
            "@1 scope(principal: Depot::Clerk::\"a\", resource: Depot::Bay::\"b\") entities(Depot::Clerk::\"a\": {{ rank: 1 }}{tags}) request_context(input: {{ crate: \"c\" }}) Depot::Action::\"move\"::request(input: {{ crate: \"c\" }})\n"
        )
    };
    let schema = DEPOT.replace("{ rank: Long }", "{ rank: Long } tags String");
    let service = our_service(&schema, EVENTS, None).expect("sound schemas");
    let with = their_service(&schema, EVENTS, None).expect("sound schemas");
    let policy = moving("{ principal.hasTag(\"t\") && principal.getTag(\"t\") == \"x\" }");
    let our = |trace: &str| {
        let policy = ours(&policy, &service).expect("accepted");
        our_decisions(policy, trace).map(|decided| decided[0].1)
    };
    let their = |trace: &str| {
        let policies = theirs(&policy, &with).expect("accepted");
        their_decisions(policies, false, trace).map(|decided| decided[0].1)
    };
    assert_eq!((our(&line("")), their(&line(""))), (Ok(false), Ok(false)));
    let tagged = line(" tags { t: \"x\" }");
    assert_eq!(our(&tagged), Ok(true));
    assert!(their(&tagged).is_err());
}

/// `integer` and `long` are two words for one type; the reference takes them for two where a method says
/// what it is called on.
#[test]
fn two_words_for_one_type() {
    let declarations = |word: &str| {
        format!(
            r#"{{ "availableProviders": {{ "Risk::Score": {{
                "outputType": {{ "paramType": "integer" }},
                "availableMethods": {{ "above": {{
                    "inputType": {{ "paramType": "{word}" }},
                    "argumentTypes": [{{ "paramType": "long" }}],
                    "outputType": {{ "paramType": "bool" }} }} }},
                "implementation": {{ "kind": "rhai", "script": "fn evaluate() {{ 3 }} fn above(input, n) {{ input > n }}" }}
            }} }} }}"#
        )
    };
    let both = |word| {
        let declared = declarations(word);
        let service = our_service(DEPOT, EVENTS, Some(&declared)).expect("sound schemas");
        let with = their_service(DEPOT, EVENTS, Some(&declared)).expect("sound schemas");
        let policy = moving("{ Risk::Score().above(2) }");
        (
            ours(&policy, &service).is_ok(),
            theirs(&policy, &with).is_ok(),
        )
    };
    assert_eq!(both("integer"), (true, true));
    assert_eq!(both("long"), (true, false));
    assert_eq!(both("string"), (false, false));
}

/// Of two declarations of one kind of event the first one wins there.
#[test]
fn an_event_declared_twice_is_rejected() {
    let twice = format!("{EVENTS}event <A>::response {{ ...inputs(A) }}\n");
    assert!(our_service(DEPOT, &twice, None).is_err());
    let with = their_service(DEPOT, &twice, None).expect("accepted there");
    assert!(theirs(&seen("M{}"), &with).is_ok());
}

/// Under a pin that parts the history, a request belongs to what its own logged field says. One without
/// the field sees nothing; the reference takes the principal of its scope instead, but not when it is told
/// to part the history itself.
#[test]
fn a_request_without_its_key() {
    let events = EVENTS.replace(
        "callerPrincipal: principalType(A)",
        "pin callerPrincipal: principalType(A) = principal",
    );
    let service = our_service(DEPOT, &events, None).expect("sound schemas");
    let with = their_service(DEPOT, &events, None).expect("sound schemas");
    let policy = seen("formerly within 1h Depot::Action::\"move\"::response{}");
    let input = "(input: { crate: \"c\" }";
    let ann = "Depot::Clerk::\"ann\"";
    let trace = format!(
        "@1 Depot::Action::\"move\"::response{input}, callerPrincipal: {ann})\n@2 scope(principal: {ann}, resource: Depot::Bay::\"b\") request_context{input}) Depot::Action::\"move\"::request{input})\n@3 scope(principal: {ann}, resource: Depot::Bay::\"b\") request_context{input}) Depot::Action::\"move\"::request{input}, callerPrincipal: {ann})\n"
    );
    let allowed =
        |decided: Vec<Decided>| -> Vec<bool> { decided.iter().map(|decided| decided.1).collect() };
    let our = ours(&policy, &service).expect("accepted");
    let our = our_decisions(our, &trace).expect("a sound trace");
    assert_eq!(allowed(our), [false, true]);
    let their = |parted| {
        let policies = theirs(&policy, &with).expect("accepted");
        allowed(their_decisions(policies, parted, &trace).expect("a sound trace"))
    };
    assert_eq!(their(false), [true, true]);
    assert_eq!(their(true), [false, true]);
}

/// Under such a pin `previous` is the event before in the same part, wherever its time lies. The reference
/// agrees where it parts the history itself; where it rewrites the conditions instead, a late request sees
/// past an event that is ahead of it in time.
#[test]
fn late_events_under_a_pin() {
    let events = EVENTS.replace(
        "callerPrincipal: principalType(A)",
        "pin callerPrincipal: principalType(A) = principal",
    );
    let service = our_service(DEPOT, &events, None).expect("sound schemas");
    let with = their_service(DEPOT, &events, None).expect("sound schemas");
    let policy = seen("previous within 1h Depot::Action::\"move\"::request{}");
    let line = |at: u32| {
        format!(
            "@{at} scope(principal: Depot::Clerk::\"ann\", resource: Depot::Bay::\"b\") request_context(input: {{ crate: \"c\" }}) Depot::Action::\"move\"::request(input: {{ crate: \"c\" }}, callerPrincipal: Depot::Clerk::\"ann\")\n"
        )
    };
    let trace = [line(21), line(37), line(27)].concat();
    let allowed =
        |decided: Vec<Decided>| -> Vec<bool> { decided.iter().map(|decided| decided.1).collect() };
    let our = ours(&policy, &service).expect("accepted");
    let our = our_decisions(our, &trace).expect("a sound trace");
    assert_eq!(allowed(our), [false, true, false]);
    let their = |parted| {
        let policies = theirs(&policy, &with).expect("accepted");
        allowed(their_decisions(policies, parted, &trace).expect("a sound trace"))
    };
    assert_eq!(their(true), [false, true, false]);
    assert_eq!(their(false), [false, true, true]);
}
