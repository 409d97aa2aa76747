//! Whole rules for what people write policies about.

/// A rule to fill in: `${1:name}` marks what an author changes.
pub struct Idiom {
    pub label: &'static str,
    pub about: &'static str,
    pub body: &'static str,
}

/// For a box.
pub const IDIOMS: &[Idiom] = &[
    Idiom {
        label: "push gate",
        about: "A command only after another has succeeded, and nothing was changed since.",
        body: r#"@id("${1:push_after_tests}")
@description("${2:Run the tests, then push.}")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program == "${3:git}" &&
  context.input has arg1 &&
  context.input.arg1 == "${4:push}"
}
unless temporal {
  !Box::Action::"fs:write"::response{}
  since within ${5:15m}
  Box::Action::"shell:spawn"::response{ input.program: "${6:run-tests}", output.status: 0 }
};"#,
    },
    Idiom {
        label: "cap per hour",
        about: "At most so many requests within a time; the count includes the one being decided.",
        body: r#"@id("${1:hourly_cap}")
@description("${2:60 tool calls an hour. Wait, or ask for more in one call.}")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "tools/call" }
when temporal {
  count_within(${3:1h}, Box::Action::"mcp:call"::request{ input.method: "tools/call" }) > ${4:60}
};"#,
    },
    Idiom {
        label: "budget",
        about: "At most so much in all within a time; the sum includes the request being decided.",
        body: r#"@id("${1:upload_budget}")
@description("${2:A million bytes a day may leave.}")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  sum_within(${3:sent}, ${4:24h}, Box::Action::"http:request"::request{ input.body_bytes: ${3:sent} }) > ${5:1000000}
};"#,
    },
    Idiom {
        label: "no http after read",
        about: "Once something secret was read, nothing goes out.",
        body: r#"@id("${1:seal_after_reading}")
@description("${2:The customer data was read, so nothing is sent any more.}")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  formerly within ${3:24h} Box::Action::"fs:read"::response{ input.path: "${4:~/work/customers.csv}" }
};"#,
    },
    Idiom {
        label: "pace",
        about: "The same thing not twice within a time.",
        body: r#"@id("${1:webhook_pace}")
@description("${2:One message a minute to each host.}")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  count_within(${3:1m}, Box::Action::"http:request"::request{ input.host: context.input.host }) > ${4:1}
};"#,
    },
    Idiom {
        label: "work on a folder",
        about: "Files in one folder, and nothing else.",
        body: r#"@id("${1:files}")
permit (
  principal,
  action in [
    Box::Action::"fs:read",
    Box::Action::"fs:write",
    Box::Action::"fs:delete",
    Box::Action::"fs:move"
  ],
  resource
)
when { context.input.path like "${2:~/work}/*" };"#,
    },
    Idiom {
        label: "verbs of a program",
        about: "Only some first arguments of a program.",
        body: r#"@id("${1:git}")
permit (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program == "${2:git}" &&
  context.input has arg1 &&
  ["${3:status}", "${4:log}"].contains(context.input.arg1)
};"#,
    },
    Idiom {
        label: "one host",
        about: "Requests to one host over TLS, reading only.",
        body: r#"@id("${1:docs}")
permit (
  principal,
  action in [Box::Action::"net:connect", Box::Action::"http:request"],
  resource
)
when { context.input.host == "${2:docs.example.com}" && context.input.port == 443 };"#,
    },
];

/// The body as it stands when nothing is filled in.
pub fn plain(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((hole, behind)) = after.split_once('}') else {
            break;
        };
        out.push_str(hole.split_once(':').map_or("", |(_, word)| word));
        rest = behind;
    }
    out.push_str(rest);
    out
}
