//! Requests that carry messages: read whole, asked about one by one, written anew; and their replies read as they come.

use crate::support::{Setup, World, steady};
use box_authority::action::{Action, Outcome};
use box_authority::denial::{Denial, DenyCause};
use box_authority::gate::Caller;
use box_gateway::authority::Host;
use box_gateway::messages::{
    Answer, Carrier, Heard, LONGEST, Letter, Messages, Question, Replies, Unreadable,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use stand_in::{Identity, Service, Upstream, reply};
use std::sync::{Arc, Mutex};

const KEY: &str = "the-real-api-key-0123456789";

/// A protocol of words: `do X and Y` asks for both, `never` is refused, and what is no text is unreadable.
struct Words;

fn ask(word: &str) -> Action {
    Action::McpCall {
        server: "words".into(),
        method: word.into(),
        tool: None,
        prompt: None,
        uri: None,
    }
}

fn denial(word: &str) -> Denial {
    Denial {
        action: "mcp:call".into(),
        target: word.into(),
        cause: DenyCause::Enforcement {
            gate: "words",
            reason: "nobody may".into(),
        },
    }
}

impl Messages for Words {
    fn at(&self, host: &Host) -> bool {
        host.text() == "words.test"
    }

    fn read(&self, _caller: &Caller, request: &Carrier<'_>) -> Result<Letter, Unreadable> {
        let text = request
            .body
            .map(|body| String::from_utf8_lossy(body).into_owned());
        let Some(text) = text.filter(|text| text.is_empty() || text.starts_with("do ")) else {
            return Err(Unreadable {
                action: ask("(none)"),
                denial: denial("(none)"),
                body: b"that is no message".to_vec(),
            });
        };
        let words = text.strip_prefix("do ").unwrap_or_default();
        let questions = words.split(" and ").filter(|word| !word.is_empty());
        let questions = questions.map(|word| match word {
            "never" => Question::Refuse(ask(word), denial(word)),
            word => Question::Decide(ask(word)),
        });
        Ok(Letter {
            questions: questions.collect(),
            forward: Bytes::from(text.replace("%6b", "k")),
            headers: vec![
                ("x-words".parse().unwrap(), Some("judged".parse().unwrap())),
                ("x-away".parse().unwrap(), None),
            ],
            answer: Box::new(Quote),
        })
    }
}

/// Passes replies on in brackets, a sentence at a time.
struct Quote;

impl Answer for Quote {
    fn refusal(&self, denial: &Denial) -> Vec<u8> {
        format!("no: {}", denial.action).into_bytes()
    }

    fn begin(self: Box<Self>, kind: &str) -> Option<Box<dyn Replies>> {
        (kind != "text/plain").then(|| Box::new(Quoting::default()) as Box<dyn Replies>)
    }
}

#[derive(Default)]
struct Quoting(String);

impl Replies for Quoting {
    fn push(&mut self, piece: &[u8]) -> Vec<Heard> {
        self.0.push_str(&String::from_utf8_lossy(piece));
        let mut heard = Vec::new();
        while let Some((sentence, rest)) = self.0.split_once('.') {
            if sentence.contains("done") {
                heard.push(Heard::Ended(Outcome::Done));
            }
            heard.push(Heard::Pass(format!("<{sentence}.>").into()));
            self.0 = rest.to_owned();
        }
        heard
    }

    fn finish(&mut self) -> Vec<Heard> {
        vec![Heard::Notice(format!("{:?} was left over", self.0))]
    }
}

const ROUTES: &str = r#"
[mcp.words]
destinations = ["words.test/in"]
secret = { ref = "env://API_KEY", header = "x-key" }
"#;

type Bodies = Arc<Mutex<Vec<String>>>;

fn room(deny: fn(&Action) -> bool) -> (World, Upstream, Bodies) {
    let identity = Identity::of(&["words.test", "other.test"]);
    let bodies = Bodies::default();
    let kept = Arc::clone(&bodies);
    let service: Service = Arc::new(move |request| {
        let kept = Arc::clone(&kept);
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let bytes = request.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            kept.lock().unwrap().push(format!("{path} {text}"));
            let json = ("content-type", "application/json; charset=utf-7");
            match path.as_str() {
                "/in/plain" => reply(200, &[("content-type", "text/plain")], "as it is"),
                "/in/empty" => reply(202, &[], ""),
                "/in/gone" => reply(404, &[json], "no such thing"),
                "/in/packed" => reply(200, &[json, ("content-encoding", "gzip")], "?"),
                "/in/both" => reply(200, &[json, ("content-type", "text/plain")], "?"),
                "/in/stream" => {
                    let kind = ("content-type", "text/event-stream");
                    let mut answer = reply(200, &[kind], "");
                    let text = format!("hello. done, {KEY}. rest");
                    *answer.body_mut() = Full::new(Bytes::from(text)).boxed_unsync();
                    answer
                }
                _ => reply(200, &[json], "done."),
            }
        })
    });
    let server = Upstream::start(Some(&identity), service);
    let world = Setup {
        toml: ROUTES,
        secrets: vec![("API_KEY", KEY)],
        deny: Arc::new(deny),
        roots: vec![identity.root_pem],
        ports: vec![(443, server.port), (8443, server.port)],
        messages: Some(Arc::new(Words)),
        ..Setup::default()
    }
    .start();
    (world, server, bodies)
}

fn post(world: &World, to: &str, path: &str, body: &str) -> String {
    let key = &world.gateway.placeholders()["API_KEY"];
    let host = to.trim_end_matches(":443");
    let length = body.len();
    let said = world.secure(
        to,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-Key: {key}\r\nX-Words: mine\r\nX-Away: 1\r\nContent-Type: text/x\r\n\
             Content-Encoding: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ),
    );
    steady(&said)
}

/// What was asked about messages, and what became of it.
fn asked(world: &World) -> String {
    let log = world.log();
    let lines = log.lines().filter(|line| !line.contains("net:connect"));
    let lines = lines.map(|line| {
        let method = line.split_once("method: \"").map(|(before, after)| {
            let (method, rest) = after.split_once('"').unwrap_or((after, ""));
            let end = rest.rsplit_once("->").map_or("", |(_, end)| end);
            format!(
                "{} {method}{end}",
                before.split(" McpCall").next().unwrap_or_default()
            )
        });
        method.unwrap_or_else(|| line.to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_message_is_asked_about_after_its_request_and_written_anew() {
    let (world, server, bodies) = room(|_| false);
    let said = post(&world, "words.test:443", "/in", "do loo%6b and jump");
    let requests = server.requests().join("\n");
    let sent: Vec<&str> = requests
        .lines()
        .map(str::trim)
        .filter(|line| {
            line.starts_with("content-") || line.starts_with("x-") || line.starts_with("accept-")
        })
        .collect();
    insta::assert_snapshot!(format!(
        "{said}\n---\n{}\n---\n{}\n---\n{}",
        asked(&world),
        sent.join("\n"),
        bodies.lock().unwrap().join("\n")
    ));
}

#[test]
fn one_denied_question_stops_it_and_nothing_of_it_happened() {
    let (world, server, _) =
        room(|action| matches!(action, Action::McpCall { method, .. } if method == "jump"));
    let said = [
        post(&world, "words.test:443", "/in", "do look and jump and sing"),
        post(&world, "words.test:443", "/in", "do look and never"),
        post(&world, "words.test:443", "/in", "dance"),
        post(
            &world,
            "words.test:443",
            "/in",
            &format!("do {}", "x".repeat(LONGEST)),
        ),
    ];
    assert!(server.requests().is_empty());
    insta::assert_snapshot!(format!("{}\n---\n{}", said.join("\n---\n"), asked(&world)));
}

#[test]
fn a_refused_request_is_told_in_words_of_its_message() {
    let (world, server, _) = room(|action| matches!(action, Action::HttpRequest { .. }));
    let said = post(&world, "words.test:443", "/in", "do look");
    assert!(server.requests().is_empty());
    insta::assert_snapshot!(said);
}

#[test]
fn every_port_and_path_of_the_host_is_read() {
    let (world, server, _) = room(|_| false);
    let key = &world.gateway.placeholders()["API_KEY"];
    let request = |host: &str, path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nConnection: close\r\n\r\ndance"
        )
    };
    let elsewhere = world.secure("words.test:8443", &request("words.test:8443", "/else"));
    assert!(elsewhere.contains("that is no message"), "{elsewhere}");
    assert!(server.requests().is_empty());
    // Another host is none of it.
    let other = world.secure("other.test:443", &request("other.test", "/x"));
    assert!(other.ends_with("done."), "{other}");
    // The secret belongs to one path of the host.
    let stray =
        request("words.test", "/else").replace("Content-L", &format!("X-Key: {key}\r\nContent-L"));
    let stray = world.secure("words.test:443", &stray);
    assert!(stray.contains("the placeholder of API_KEY"), "{stray}");
}

#[test]
fn replies_are_heard_before_the_client_hears_them() {
    let (world, _server, _) = room(|_| false);
    let said = [
        "/in/stream",
        "/in/plain",
        "/in/empty",
        "/in/gone",
        "/in/packed",
        "/in/both",
    ]
    .map(|path| {
        format!(
            "{path}\n{}",
            post(&world, "words.test:443", path, "do look")
        )
    });
    world.until("the last word", |world| {
        asked(world).matches("look").count() >= 12
    });
    insta::assert_snapshot!(format!(
        "{}\n---\n{}\n---\n{}",
        said.join("\n---\n"),
        asked(&world),
        world.notices()
    ));
}

#[test]
fn what_stands_plain_only_after_reading_is_looked_for_too() {
    let (world, server, _) = room(|_| false);
    let hidden = KEY.replace('k', "%6b");
    let said = post(&world, "words.test:443", "/in", &format!("do {hidden}"));
    assert!(said.contains("a real secret stands in the body"), "{said}");
    assert!(server.requests().is_empty());
}
