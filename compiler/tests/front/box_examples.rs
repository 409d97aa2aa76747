//! Policies people write for a box check without a word.

use super::lints::warnings;
use super::screen::{draw, service};
use dogwood_compiler::schema::{BOX_ACTIONS, BOX_EVENTS, Service, box_service};

#[track_caller]
fn clean(policy: &str, service: &Service) {
    says(policy, service, &[]);
}

#[track_caller]
fn says(policy: &str, service: &Service, codes: &[&str]) {
    let said = warnings(policy, service);
    let found: Vec<&str> = said.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(found, codes, "{}", draw(policy, &said));
}

#[test]
fn box_schema_has_ten_actions_and_three_events_each() {
    let service = box_service();
    let ids: Vec<&str> = service
        .actions
        .actions
        .keys()
        .map(|uid| uid.id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "fs:read",
            "fs:write",
            "fs:delete",
            "fs:move",
            "fs:other",
            "net:connect",
            "http:request",
            "shell:exec",
            "shell:spawn",
            "mcp:call"
        ]
    );
    assert_eq!(service.events.events.len(), 30);
    assert_eq!(service.events.max_window, 24 * 3600);
    assert_eq!(service.events.universal_pin, None);
    assert_eq!(
        service.events.decision_kinds.iter().collect::<Vec<_>>(),
        ["request"]
    );
}

#[test]
fn push_after_green_tests() {
    clean(
        r#"
@id("git_verbs")
permit (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program_path == "/usr/bin/git" && context.input has arg1 &&
  ["status", "diff", "add", "commit", "push"].contains(context.input.arg1)
};

@id("run_checks")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program_path == "/usr/bin/make" && context.input has arg1 && context.input.arg1 == "check" };

@id("push_gate")
@description("Push needs a passing `make check` in the last 45 minutes and no edit after it.")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program_path == "/usr/bin/git" &&
  context.input has arg1 && context.input.arg1 == "push"
}
unless temporal {
  !Box::Action::"fs:write"::response{ input.operation: Box::FsWriteOperation::"write_content" }
  since within 45m
  Box::Action::"shell:spawn"::response{ input.program_path: "/usr/bin/make", input.arg1: "check", output.status: 0 }
};

@id("push_gate_ignoring_redirects")
forbid (principal, action == Box::Action::"shell:spawn", resource)
unless temporal {
  !(exists (p: String). (
    Box::Action::"fs:write"::response{ input.path: p, input.operation: Box::FsWriteOperation::"write_content" }
    && p != "/dev/null"
  ))
  since within 45m
  Box::Action::"shell:spawn"::response{ input.program_path: "/usr/bin/make", input.arg1: "check", output.status: 0 }
};
"#,
        &box_service(),
    );
}

#[test]
fn the_two_rules_people_quote() {
    says(
        r#"
@id("push_gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{
    input.program: "npm", input.arg1: "test", input.arg_count: 1, input.cwd: "~/my-project", output.status: 0
  }
};

@id("call_cap")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.server == "aws" && context.input.method == "tools/call" }
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where
      formerly within 1h (
        Box::Action::"mcp:call"::request{ input.server: "aws", input.method: "tools/call" } && tp(t)
      )
    ) == n && n >= 60
  )
};
"#,
        &box_service(),
        // It lets 59 pass.
        &["cap-counts-itself"],
    );
}

#[test]
fn no_http_after_a_sensitive_read() {
    clean(
        r#"
@id("sealed_after_payroll")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.host != "llm.example.net" }
when temporal {
  formerly within 8h (
    Box::Action::"fs:read"::response{ input.path: "~/payroll/2026.csv", input.operation: Box::FsReadOperation::"read_content" }
  )
};
"#,
        &box_service(),
    );
}

#[test]
fn three_messages_in_ten_minutes() {
    clean(
        r#"
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.host == "slack.com" && context.input.path == "/api/chat.postMessage" }
when temporal {
  exists (sent: Long). (
    (count for (t: Timepoint). where (
      formerly within 10m (
        Box::Action::"http:request"::response{ input.host: "slack.com", input.path: "/api/chat.postMessage" } && tp(t)
      )
    )) == sent && sent >= 3
  )
};
"#,
        &box_service(),
    );
}

#[test]
fn a_hundred_dollars_a_day() {
    let payments = r#"
namespace payments {
  entity Agent;
  entity Resource;
  type ChargeInput = { amount_cents?: Long, note?: String };
  action "charge" appliesTo {
    principal: [Box::Agent], resource: [Box::Resource], context: { input: ChargeInput }
  };
}
"#;
    clean(
        r#"
forbid (principal, action == payments::Action::"charge", resource)
when { !(context.input has amount_cents && context.input.amount_cents > 0 && context.input.amount_cents <= 2000) };

forbid (principal, action == payments::Action::"charge", resource)
when temporal {
  exists (spent: Long). (
    (sum c for (c: Long), (t: Timepoint). where (
      formerly within 24h ( payments::Action::"charge"::request{ input.amount_cents: c } && c > 0 && tp(t) )
    )) == spent && spent > 10000
  )
};
"#,
        &service(&format!("{BOX_ACTIONS}\n{payments}"), BOX_EVENTS),
    );
}

#[test]
fn sixty_tool_calls_an_hour() {
    says(
        r#"
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "tools/call" }
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where (
      formerly within 1h ( Box::Action::"mcp:call"::request{ input.method: "tools/call", input.server: context.input.server } && tp(t) )
    )) == n && n > 60
  )
};
forbid (principal, action == Box::Action::"mcp:call", resource)
when temporal { count_within(1h, Box::Action::"mcp:call"::request{}) >= 60 };
"#,
        &box_service(),
        // The first lets 60 pass, the second 59.
        &["cap-counts-itself"],
    );
}

#[test]
fn one_rule_for_several_actions() {
    clean(
        r#"
permit (
  principal,
  action in [Box::Action::"fs:read", Box::Action::"http:request", Box::Action::"shell:exec"],
  resource
)
when {
  if context.input has operation then
    context.input.operation == Box::FsReadOperation::"read_content" && context.input.path like "~/project/*"
  else
    context.input has host && context.input.host in_allowed_list || context.input has program
};
"#
        .replace("in_allowed_list", "== \"example.net\"")
        .as_str(),
        &box_service(),
    );
}
