//! Real peers on both sides of the broker, and the real authority between them: an rmcp client, an rmcp server
//! that charges a card, and a policy with a cap.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use box_authority::Authority;
use box_authority::clock::Clock;
use box_authority::engine::PolicySet;
use box_authority::gate::{Caller, Gate};
use box_authority::records::{Records, RunIdentity};
use box_mcp::catalogue::{Allowance, Catalogue};
use box_mcp::discover::list_tools;
use box_mcp::relay::{Deciders, Ends, Fixed, PATIENCE, relay};
use box_mcp::schema::generate_schema;
use dogwood_compiler::compile::{Options, Source, check, load_service};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, ServerCapabilities, ServerConfig};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Charge {
    amount: i64,
    note: Option<String>,
}

#[derive(Clone, Default)]
struct Payments {
    /// What was charged, in order.
    charged: Arc<Mutex<Vec<i64>>>,
    wiped: Arc<AtomicI64>,
}

#[tool_router]
impl Payments {
    #[tool(description = "Charges the card")]
    fn charge(&self, Parameters(Charge { amount, note }): Parameters<Charge>) -> String {
        self.charged.lock().unwrap().push(amount);
        format!("charged {amount} {}", note.unwrap_or_default())
    }

    #[tool(description = "Deletes everything")]
    fn wipe(&self) -> String {
        self.wiped.fetch_add(1, Ordering::SeqCst);
        "gone".into()
    }
}

#[tool_handler(router = Self::tool_router())]
impl ServerHandler for Payments {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> i64 {
        1_800_000_000
    }
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const POLICY: &str = r#"
@id("calls")
permit (principal, action == Box::Action::"mcp:call", resource);

@id("no_wiping")
@description("Nothing is deleted here.")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input has tool && context.input.tool == "wipe" };

@id("ceiling")
@description("One charge is at most 60.")
forbid (principal, action == payments::Action::"charge", resource)
when { context.input.amount > 60 };

@id("daily_budget")
@description("The budget of 100 a day is used up.")
forbid (principal, action == payments::Action::"charge", resource)
when temporal {
  exists (spent: Long). (
    (sum c for (c: Long), (t: Timepoint). where (
      formerly within 24h ( payments::Action::"charge"::response{ input.amount: c } && tp(t) )
    )) == spent && spent >= 100
  )
};
"#;

struct Room {
    authority: Arc<Authority>,
    known: Catalogue,
    records: Kept,
    payments: Payments,
    _dir: tempfile::TempDir,
}

fn ends(stream: UnixStream) -> Ends {
    Ends {
        reader: Box::new(stream.try_clone().unwrap()),
        writer: Box::new(stream),
    }
}

/// A server on the far side of a stream.
fn serve(payments: Payments) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
    tokio::spawn(async move {
        if let Ok(serving) = payments.serve(theirs).await {
            let _ = serving.waiting().await;
        }
    });
    ours
}

async fn room() -> Room {
    let payments = Payments::default();
    let process = ends(serve(payments.clone()));
    let known = tokio::task::spawn_blocking(move || list_tools("payments", process))
        .await
        .unwrap()
        .expect("the server lists its tools");
    let actions = Source {
        name: "actions.cedarschema".into(),
        text: generate_schema(std::slice::from_ref(&known)).expect("a schema"),
    };
    let events = Source {
        name: "events.dwschema".into(),
        text: dogwood_compiler::schema::BOX_EVENTS.into(),
    };
    let (service, _) = load_service(Some(&actions), Some(&events)).expect("schemas that load");
    let sources = [Source {
        name: "policy.dw".into(),
        text: POLICY.into(),
    }];
    let checked =
        check(&sources, None, &service, &Options::default()).expect("a policy without errors");
    let dir = tempfile::tempdir().unwrap();
    let records = Kept::default();
    let authority = Authority::open(
        dir.path(),
        PolicySet::new(&checked, &sources, &service),
        Arc::new(Noon),
        Records::new(
            Box::new(records.clone()),
            RunIdentity {
                box_id: "box-1".into(),
                run_id: 1,
            },
        ),
    )
    .expect("the authority opens");
    Room {
        authority: Arc::new(authority),
        known,
        records,
        payments,
        _dir: dir,
    }
}

impl Room {
    /// A client whose frames go through the broker.
    async fn client(&self) -> RunningService<RoleClient, ()> {
        let process = ends(serve(self.payments.clone()));
        let (agent, ours) = UnixStream::pair().unwrap();
        let gate: Arc<dyn Gate> = Arc::clone(&self.authority) as Arc<dyn Gate>;
        let deciders = Deciders {
            gate,
            caller: Caller::Agent,
            policies: Arc::new(Fixed {
                servers: [("payments".into(), self.known.clone())].into(),
            }),
            allowance: Allowance::default(),
            patience: PATIENCE,
            notice: Box::new(|_| {}),
        };
        std::thread::spawn(move || relay("payments", ends(ours), process, deciders));
        agent.set_nonblocking(true).unwrap();
        let agent = tokio::net::UnixStream::from_std(agent).unwrap();
        ().serve(agent).await.expect("the client is initialised")
    }
}

/// The text of the result, or the error.
async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> String {
    let params = CallToolRequestParams::new(tool)
        .with_arguments(arguments.as_object().cloned().unwrap_or_default());
    match client.call_tool(params).await {
        Ok(result) => {
            let result = serde_json::to_value(result).unwrap();
            let text = result.pointer("/content/0/text").and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        }
        Err(rmcp::ServiceError::McpError(error)) => {
            let data = error.data.unwrap_or_default();
            format!("{} {}\n{data}", error.code.0, error.message)
        }
        Err(other) => other.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capped_card_behind_the_broker() {
    let room = room().await;
    let client = room.client().await;
    let mut told = vec![call(&client, "charge", json!({"amount": 1})).await];
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 2);
    told.push(call(&client, "charge", json!({"amount": 61})).await);
    told.push(call(&client, "charge", json!({"amount": 60, "note": "rent"})).await);
    told.push(call(&client, "charge", json!({"amount": 9.5})).await);
    told.push(call(&client, "wipe", json!({})).await);
    told.push(call(&client, "charge", json!({"amount": 40})).await);
    told.push(call(&client, "charge", json!({"amount": 1})).await);
    // A second connection is a second server, and the same budget.
    let other = room.client().await;
    other.list_all_tools().await.unwrap();
    told.push(call(&other, "charge", json!({"amount": 1})).await);
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(*room.payments.charged.lock().unwrap(), [60, 40]);
    assert_eq!(room.payments.wiped.load(Ordering::SeqCst), 0);

    drop((client, other));
    room.authority.close();
    let records = String::from_utf8(room.records.0.lock().unwrap().clone()).unwrap();
    let count = |what: &str| records.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("enforcement:mcp-catalog"), 1, "{records}");
    assert_eq!(count("enforcement:mcp-arguments"), 1, "{records}");
    assert!(count("<no-rule>") >= 2, "{records}");
}
