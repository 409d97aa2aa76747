//! A remote MCP server, the one of the protocol's own library, behind TLS: asked from inside a box.

use crate::scene::{Scene, policy};
use http_body_util::BodyExt;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};
use stand_in::{Identity, Service, Upstream};
use std::sync::{Arc, Mutex};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Charge {
    amount: i64,
}

#[derive(Clone, Default)]
struct Payments {
    charged: Arc<Mutex<Vec<i64>>>,
}

#[tool_router]
impl Payments {
    #[tool(description = "Charges the card")]
    fn charge(&self, Parameters(Charge { amount }): Parameters<Charge>) -> String {
        self.charged.lock().unwrap().push(amount);
        format!("charged {amount}")
    }

    #[tool(description = "Says what it was sent")]
    fn key(&self) -> String {
        "the key is the-real-value-0123456789".into()
    }
}

#[tool_handler(router = Self::tool_router())]
impl ServerHandler for Payments {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

const HOST: &str = "pay.test";

fn server(identity: &Identity, payments: &Payments) -> Upstream {
    let made = payments.clone();
    let config = StreamableHttpServerConfig::default().with_allowed_hosts([HOST]);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(made.clone()), sessions, config);
    let service: Service = Arc::new(move |request| {
        let service = service.clone();
        Box::pin(async move {
            let (parts, body) = service.handle(request).await.into_parts();
            http::Response::from_parts(parts, body.boxed_unsync())
        })
    });
    Upstream::start(Some(identity), service)
}

const TABLES: &str = r#"
[mcp.pay]
type = "http"
destinations = ["pay.test/mcp"]
secret = { ref = "env://API_KEY" }
"#;

/// A client of MCP in the words of a shell. Its first argument is the placeholder.
const CLIENT: &str = r#"
post() {
  curl -sS -i -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' ${session:+-H "Mcp-Session-Id: $session"} -d "$1" https://pay.test/mcp
}
show() { tr -d '\r' | grep -E '^(HTTP|x-box-rule|content-type|data: .|.?\{)'; }
request() { post "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"$2\",\"params\":$3}"; }
call() { request "$1" tools/call "{\"name\":\"$2\",\"arguments\":$3}" | show; }
key=$1
hello='{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}'
session=$(request 1 initialize "$hello" | tr -d '\r' | grep -i '^mcp-session-id:' | sed 's/.*: //')
post '{"jsonrpc":"2.0","method":"notifications/initialized"}' | show
"#;

struct Room {
    scene: Scene,
    payments: Payments,
    server: Upstream,
}

impl Room {
    fn new(forbids: &str) -> Room {
        let identity = Identity::of(&[HOST]);
        let payments = Payments::default();
        let server = server(&identity, &payments);
        let policy = policy(forbids);
        let scene = Scene::new(&[HOST], server.port, &identity.root_pem, &policy, TABLES);
        Room {
            scene,
            payments,
            server,
        }
    }

    /// What the client of the agent prints in one session.
    fn client(&self, script: &str) -> String {
        self.scene
            .write("project/client.sh", &format!("{CLIENT}{script}"));
        self.scene.agent("bash client.sh \"$API_KEY\"")
    }

    /// The same, without how long it will be: that depends on how fast the test was.
    fn timeless(&self, script: &str) -> String {
        let said = self.client(script);
        let mut parts = said.split("allowed again in ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let rest = part.find(" if").map_or(part, |at| &part[at..]);
            format!("{text}allowed again in TIME{rest}")
        })
    }

    fn charged(&self) -> Vec<i64> {
        self.payments.charged.lock().unwrap().clone()
    }
}

#[test]
fn a_remote_server_is_read_decided_and_scrubbed() {
    let room = Room::new(
        r#"
@id("no_prompts")
@description("Prompts of strangers are not taken.")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "prompts/list" };
"#,
    );
    let said = room.client(
        r#"
echo '- before the list'
call 2 charge '{"amount":5}'
echo '- the list'
request 3 tools/list '{}' | show
echo '- after it'
call 4 charge '{"amount":5}'
call 5 key '{}'
call 6 wipe '{}'
echo '- a rule'
request 7 prompts/list '{}' | show
echo '- no message'
post '[{"jsonrpc":"2.0","id":8,"method":"ping"}]' | show
post '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"key","name":"charge"}}' | show
curl -sS -i -X PUT -H "Authorization: Bearer $key" -d x https://pay.test/mcp | show
echo '- without the placeholder, and elsewhere on the host'
curl -sS -i -d '{"jsonrpc":"2.0","id":10,"method":"ping"}' https://pay.test/mcp | show
curl -sS -i -d 'a=b' https://pay.test/token | show
"#,
    );
    insta::assert_snapshot!(said);
    assert_eq!(room.charged(), [5]);
    assert!(!room.scene.written().contains("the-real-value"));
    let asked = room.server.requests().join("\n");
    assert!(
        asked.contains("Bearer the-real-value-0123456789"),
        "{asked}"
    );
}

#[test]
fn tools_of_a_remote_server_are_actions_of_the_policy() {
    let rules = r#"
@id("ceiling")
@description("One charge is at most 60.")
forbid (principal, action == pay::Action::"charge", resource)
when { context.input.amount > 60 };
@id("budget")
@description("The budget of 100 is used up.")
forbid (principal, action == pay::Action::"charge", resource)
when temporal {
  exists (spent: Long). (
    (sum c for (c: Long), (t: Timepoint). where (
      formerly within 24h ( pay::Action::"charge"::response{ input.amount: c } && tp(t) )
    )) == spent && spent >= 100
  )
};
"#;
    let room = Room::new(rules);
    // No rule waits for a server to say which tools it has.
    let early = room.client("");
    assert!(
        early.contains("`box policy generate-schema` writes it"),
        "{early}"
    );
    room.scene.write("box/policy.dw", &policy(""));
    let config = room.scene.path("box/box.toml").display().to_string();
    let folder = room.scene.path("box").display().to_string();
    let words = [
        "policy",
        "generate-schema",
        "--config",
        &config,
        "--output-dir",
        &folder,
    ];
    let generated = room.scene.run(&words);
    let told = String::from_utf8_lossy(&generated.stderr).into_owned();
    assert!(generated.status.success(), "{told}");
    let schema = std::fs::read_to_string(room.scene.path("box/actions.cedarschema")).unwrap();
    let own = schema.find("// The tools of the MCP server").unwrap();
    room.scene.write("box/policy.dw", &policy(rules));
    let script = r#"
request 2 tools/list '{}' | show | grep -c charge
call 3 charge '{"amount":60}'
call 4 charge '{"amount":61}'
call 5 charge '{"amount":"40"}'
call 6 charge '{"amount":40}'
call 7 charge '{"amount":1}'
"#;
    let first = room.timeless(script);
    // What was spent before a restart is spent after it.
    let again = room.timeless(
        "request 2 tools/list '{}' | show | grep -c charge\ncall 3 charge '{\"amount\":1}'\n",
    );
    insta::assert_snapshot!(format!("{}\n{first}\n---\n{again}", &schema[own..]));
    assert_eq!(room.charged(), [60, 40]);
}
