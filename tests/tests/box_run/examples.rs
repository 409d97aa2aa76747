//! The boxes of `docs/examples` that talk to somebody, run as they are. Only the port of the stand-in differs.

use crate::{Scratch, both, cannot_run, chapter, copy_tree, text};
use dogwood_tests::{has, program, workspace};
use stand_in::Upstream;
use stand_in::example::{KEYS, identity, service};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

macro_rules! needs_a_box {
    ($($program:literal)?) => {
        let missing = None$(.or((!has($program)).then(|| concat!($program, " is not installed").into())))?;
        if let Some(reason) = cannot_run().or(missing) {
            println!("skipped: {reason}");
            return;
        }
    };
}

/// A copy of an example in a scratch folder, beside a server that stands for its services.
struct Example {
    scratch: Scratch,
    folder: PathBuf,
    upstream: Upstream,
    environment: Vec<(&'static str, String)>,
}

impl Example {
    /// Under the home of whoever runs it, where the example that names files by their whole path wants to be.
    fn new(name: &str) -> Example {
        let scratch = Scratch::new();
        let folder = scratch.path("home").join(name);
        copy_tree(&workspace().join("docs/examples").join(name), &folder);
        let identity = identity();
        let upstream = Upstream::start(Some(&identity), service());
        fs::write(folder.join("stand-in.pem"), &identity.root_pem).unwrap();
        let config = folder.join("box.toml");
        let written = fs::read_to_string(&config).unwrap();
        let here = format!("127.0.0.1:{}", upstream.port);
        fs::write(config, written.replace("127.0.0.1:8443", &here)).unwrap();
        Example {
            scratch,
            folder,
            upstream,
            environment: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Example {
        self.environment.push((name, value.into()));
        self
    }

    /// With its `bin` on the path, as its README says.
    fn with_bin(self) -> Example {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.join("bin").display());
        self.with("PATH", path)
    }

    fn command(&self) -> Command {
        let mut command = self.scratch.command(&self.folder.join("box.toml"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What the agent says when all goes as the story has it.
    fn story(&self, arguments: &[&str]) -> (String, Output) {
        let output = self.command().arg("--").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", both(&output));
        (text(&output.stdout), output)
    }

    /// The requests that reached the server, without their headers.
    fn reached(&self) -> Vec<String> {
        let heads = self.upstream.requests();
        let first = |head: &String| head.lines().next().unwrap_or_default().to_owned();
        heads.iter().map(first).collect()
    }

    /// Everything that the box wrote down.
    fn written(&self) -> String {
        let mut found = String::new();
        let mut folders = vec![self.scratch.path("home/.local")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => {
                        found.push_str(&text(&fs::read(entry.path()).unwrap()));
                    }
                    _ => {}
                }
            }
        }
        assert!(found.contains("http:request") || found.contains("mcp:call"));
        found
    }
}

#[track_caller]
fn says(part: &str, words: &[&str]) {
    for word in words {
        assert!(part.contains(word), "no {word:?} in {part}");
    }
}

#[track_caller]
fn says_not(part: &str, words: &[&str]) {
    for word in words {
        assert!(!part.contains(word), "{word:?} is in {part}");
    }
}

fn sealed_by(reader: &str) {
    let example = Example::new("seal-after-reading");
    let (story, output) = example.story(&[reader]);
    let before = chapter(&story, "Before it has read anything");
    assert_eq!(before.matches("HTTP 200").count(), 2, "{}", both(&output));
    let listed = chapter(&story, "It looks at the folder");
    says(listed, &["customers.csv", "HTTP 200"]);
    says(
        chapter(&story, "It reads a customer file"),
        &["Ann Example"],
    );
    let after = chapter(&story, "After that");
    assert_eq!(after.matches("HTTP 403").count(), 2, "{}", both(&output));
    says(
        after,
        &[
            "sealed",
            "Customer data was read in the last 8 hours",
            "customers.csv",
        ],
    );
    assert_eq!(example.reached(), ["GET /status"; 3]);

    // The history outlives the box.
    let (again, output) = example.story(&[reader]);
    says_not(&again, &["HTTP 200"]);
    assert_eq!(again.matches("HTTP 403").count(), 5, "{}", both(&output));
    assert_eq!(example.reached().len(), 3);
}

#[test]
fn what_the_shell_read_seals_the_network() {
    needs_a_box!("curl");
    sealed_by("shell");
}

#[test]
fn what_python_read_seals_the_network() {
    needs_a_box!("curl");
    sealed_by("python");
}

#[test]
fn a_file_the_seal_does_not_know_is_not_read() {
    needs_a_box!("curl");
    let example = Example::new("seal-after-reading");
    fs::write(
        example.folder.join("work/customer-data/new.csv"),
        "secret\n",
    )
    .unwrap();
    let agent = "bash -c 'cat customer-data/new.csv; head -1 < customer-data/new.csv'\n\
                 python3 -c 'print(open(\"customer-data/new.csv\").read())'\n\
                 bash -c 'mv customer-data/customers.csv x; cp customer-data/customers.csv x; cat x'; :\n";
    fs::write(example.folder.join("agent/agent.sh"), agent).unwrap();
    let (story, output) = example.story(&[]);
    says_not(&story, &["secret", "Ann Example"]);
    says(&text(&output.stderr), &["known_customer_files"]);
}

#[test]
fn the_fourth_post_waits_its_turn() {
    needs_a_box!("curl");
    let example = Example::new("webhook-pace");
    let (story, output) = example.story(&[]);
    let posted = chapter(&story, "Three messages");
    assert_eq!(posted.matches("HTTP 200").count(), 3, "{}", both(&output));
    let fourth = chapter(&story, "The fourth");
    says(fourth, &["HTTP 403", "chat_pace", "At most 3 messages"]);
    // Ten minutes, less the seconds that the four took.
    let (_, wait) = fourth.split_once("allowed again in ").unwrap();
    assert!(wait.starts_with("9m") || wait.starts_with("10m"), "{wait}");
    says(chapter(&story, "Python is no way around"), &["HTTP 403"]);
    assert_eq!(example.reached(), ["POST /hooks/deploys"; 3]);

    // A cap that was reached before a restart holds after it.
    let (again, output) = example.story(&[]);
    says_not(&again, &["HTTP 200"]);
    assert_eq!(again.matches("HTTP 403").count(), 5, "{}", both(&output));
    assert_eq!(example.reached().len(), 3);
}

#[test]
fn payments_stop_at_the_amount_and_at_the_number() {
    needs_a_box!();
    let example = Example::new("payment-caps").with_bin();
    let (story, output) = example.story(&[]);
    let large = chapter(&story, "A charge of 500");
    says(large, &["\"code\":-32001", "one_charge"]);
    let charges = chapter(&story, "Two charges of 40");
    assert_eq!(
        charges.matches("\"result\"").count(),
        3,
        "{}",
        both(&output)
    );
    let over = chapter(&story, "One more");
    says(
        over,
        &["\"code\":-32001", "daily_amount", "100 a day are used up"],
    );
    let calls = chapter(&story, "Calls that pay nothing");
    says(
        calls,
        &["100 calls were made", "\"code\":-32001", "daily_calls"],
    );
    says(calls, &["allowed again in"]);

    let (again, _) = example.story(&[]);
    says_not(&again, &["\"text\":\"done\""]);
}

/// What a reader would generate is what lies there.
#[test]
fn the_tools_of_the_payments_server_are_those_of_the_schema() {
    needs_a_box!();
    let example = Example::new("payment-caps").with_bin();
    let shipped = |name: &str| fs::read_to_string(example.folder.join(name)).unwrap();
    let files = ["actions.cedarschema", "events.dwschema"];
    let before = files.map(shipped);
    let output = Command::new(example.scratch.path("box"))
        .args(["policy", "generate-schema", "--config"])
        .arg(example.folder.join("box.toml"))
        .arg("--output-dir")
        .arg(&example.folder)
        .env_clear()
        .env("HOME", example.scratch.path("home"))
        .envs(
            example
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", both(&output));
    assert_eq!(files.map(shipped), before);
}

#[test]
fn the_sixty_first_call_of_an_hour_is_refused() {
    needs_a_box!();
    let example = Example::new("mcp-hourly").with_bin();
    let (story, output) = example.story(&[]);
    let searches = chapter(&story, "It searches");
    says(
        searches,
        &["60 searches were answered", "\"code\":-32001", "mcp_hourly"],
    );
    says(searches, &["allowed again in"]);
    let listed = chapter(&story, "What is not a call");
    assert!(listed.contains("\"inputSchema\""), "{}", both(&output));
}

#[test]
fn a_key_works_and_is_never_seen() {
    needs_a_box!("curl");
    const KEY: &str = "sk-real-value-5b1f0c7a";
    let example = Example::new("hidden-key").with("LLM_KEY", KEY);
    let (story, output) = example.story(&[]);
    let own = chapter(&story, "What the agent has");
    let placeholder = own.lines().nth(2).unwrap_or_default();
    assert!(placeholder.starts_with("strands_box_"), "{}", both(&output));
    for used in ["It is good for the service", "The same from Python"] {
        says(
            chapter(&story, used),
            &["GET llm.example.test/v1/models", "x-api-key: [REDACTED]"],
        );
    }
    let elsewhere = chapter(&story, "And for nothing else");
    assert_eq!(
        elsewhere.matches("HTTP 403").count(),
        2,
        "{}",
        both(&output)
    );

    let seen = example.upstream.requests();
    assert_eq!(example.reached(), ["GET /v1/models"; 2]);
    for request in &seen {
        says(request, &["host: llm.example.test", KEY]);
        says_not(request, &[placeholder]);
    }
    let told = format!("{}{}", both(&output), example.written());
    says_not(&told, &[KEY]);
    assert!(!example.written().contains(placeholder));
}

#[test]
fn the_server_finds_every_signature_good() {
    needs_a_box!("curl");
    let credentials = workspace().join("docs/examples/signed-requests/aws-credentials");
    let example = Example::new("signed-requests").with(
        "AWS_SHARED_CREDENTIALS_FILE",
        credentials.display().to_string(),
    );
    let (story, output) = example.story(&[]);
    let own = chapter(&story, "What the agent has");
    says_not(own, &[KEYS.access_key_id, KEYS.secret_access_key]);
    for sent in [
        "An unsigned request",
        "signed with the placeholders",
        "From Python",
    ] {
        let part = chapter(&story, sent);
        says(part, &["the signature is good", "HTTP 200"]);
    }
    says(chapter(&story, "What no rule permits"), &["HTTP 403"]);
    assert_eq!(
        example.reached(),
        ["POST /1/orders"; 3],
        "{}",
        both(&output)
    );
    let told = format!("{}{}", both(&output), example.written());
    says_not(&told, &[KEYS.secret_access_key]);
}

#[test]
fn every_policy_of_the_examples_passes_the_checks_and_its_tests() {
    let dogwood = program("dogwood-compiler", "dogwood").unwrap();
    let examples = workspace().join("docs/examples");
    let mut checked = 0;
    for entry in fs::read_dir(&examples).unwrap().flatten() {
        let policy = entry.path().join("policy.dw");
        let mut command = Command::new(&dogwood);
        command.args(["check", "--deny-warnings"]).arg(&policy);
        let beside = |name: &str| Some(policy.with_file_name(name)).filter(|file| file.exists());
        for (option, name) in [
            ("--policy-schema", "actions.cedarschema"),
            ("--event-schema", "events.dwschema"),
        ] {
            if let Some(file) = beside(name) {
                command.arg(option).arg(file);
            }
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            policy.display(),
            both(&output)
        );
        checked += 1;
    }
    assert!(checked >= 7, "{checked}");
    let tested = Command::new(&dogwood)
        .arg("test")
        .arg(&examples)
        .output()
        .unwrap();
    assert!(tested.status.success(), "{}", both(&tested));
}
