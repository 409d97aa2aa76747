//! What a box decides about, action by action and field by field.

/// What an action of a box is.
pub fn action(id: &str) -> Option<&'static str> {
    Some(match id {
        "fs:read" => {
            "Reading: the content of a file, what is known about it, the names in a folder, where a link leads, \
             entering a folder, or testing whether a file can be run."
        }
        "fs:write" => "Writing: the content of a file, a new folder, permissions, or a new link.",
        "fs:delete" => "Deleting a file or an empty folder.",
        "fs:move" => {
            "Renaming or moving. Both ends are decided: once with the old path and once with the new one."
        }
        "fs:other" => {
            "Whatever else might be done to a path; nothing a box does today is of this kind."
        }
        "net:connect" => {
            "Opening a connection to a host and port, before anything is sent. It is decided by name first, and \
             again with each address the name leads to."
        }
        "http:request" => {
            "One HTTP request that the box reads: it is decided before it is sent on, and the status of the reply \
             is recorded."
        }
        "shell:exec" => {
            "A command that the box's shell carries out itself, such as `echo` or `grep`. The files it touches \
             are decided one by one beside it."
        }
        "shell:spawn" => {
            "Starting a program of the host from the shell. What the program then does is held in by the sandbox."
        }
        "mcp:call" => {
            "A message of an agent to an MCP server: a tool, a prompt, a resource, or a list of them."
        }
        _ => return None,
    })
}

/// What a field of a box's action is; `output` fields are those of a response.
pub fn field(action: &str, path: &[&str]) -> Option<&'static str> {
    Some(match (action, path) {
        (_, ["input"]) => "What is asked for.",
        (_, ["output"]) => "What came of it; only responses have it.",
        (_, ["callerPrincipal"]) => "Who asked.",
        (_, ["callerResource"]) => "What it was asked of; in a box always the same.",
        (_, ["requestId"]) => {
            "The number of the request, the same in its request, response and error."
        }
        ("fs:read" | "fs:write" | "fs:delete" | "fs:move" | "fs:other", ["input", "path"]) => {
            "The path, absolute and with links resolved; under the operator's home it begins with `~/`."
        }
        ("fs:read" | "fs:write" | "fs:delete" | "fs:move" | "fs:other", ["input", "operation"]) => {
            "Which of the operations it is, as an entity: `Box::FsReadOperation::\"read_content\"`."
        }
        ("fs:read" | "fs:write" | "fs:delete" | "fs:move" | "fs:other", ["output", "result"]) => {
            "Whether it was completed, handed out as a descriptor whose bytes move later, or is not known."
        }
        ("net:connect" | "http:request", ["input", "host"]) => {
            "The name of the host, in lower case, or an address."
        }
        ("net:connect" | "http:request", ["input", "port"]) => "The port.",
        ("net:connect", ["input", "ip"]) => {
            "The address to connect to. It is absent in the first decision, which comes before any look-up."
        }
        ("http:request", ["input", "method"]) => "The method, in capitals: `GET`.",
        ("http:request", ["input", "path"]) => {
            "The path of the URL in its one spelling, without the query."
        }
        ("http:request", ["input", "body_bytes"]) => {
            "How many bytes of body are offered; of a response, how many were sent."
        }
        ("http:request", ["input", "intercepted"]) => {
            "Whether the box opened the TLS connection to read the request."
        }
        ("http:request", ["output", "status"]) => "The status of the reply: 200.",
        ("shell:exec" | "shell:spawn", ["input", "command"]) => {
            "The program and its arguments, expanded and joined by blanks."
        }
        ("shell:exec" | "shell:spawn", ["input", "program"]) => {
            "What is run, as its first word names it: `git`."
        }
        ("shell:spawn", ["input", "program_path"]) => {
            "The file that will run, absolute and with links resolved."
        }
        ("shell:exec" | "shell:spawn", ["input", "arg1"]) => {
            "The first argument; absent where there is none."
        }
        ("shell:exec" | "shell:spawn", ["input", "arg2"]) => {
            "The second argument; absent where there is none."
        }
        ("shell:exec" | "shell:spawn", ["input", "arg_count"]) => "How many arguments there are.",
        ("shell:exec" | "shell:spawn", ["input", "cwd"]) => "The folder the command runs in.",
        ("shell:spawn", ["input", "credential_reads"]) => {
            "The credential stores that the lists of the tool name; absent where there are none."
        }
        ("shell:exec" | "shell:spawn", ["output", "status"]) => "The exit status: 0 is success.",
        ("mcp:call", ["input", "server"]) => "The name of the server in `box.toml`.",
        ("mcp:call", ["input", "method"]) => "The method of the protocol: `tools/call`.",
        ("mcp:call", ["input", "tool"]) => "The tool, of `tools/call` only.",
        ("mcp:call", ["input", "prompt"]) => "The prompt, of `prompts/get` only.",
        ("mcp:call", ["input", "uri"]) => "The resource, of `resources/read` and its like only.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwood_compiler::schema::box_service;

    #[test]
    fn every_action_and_field_of_a_box_is_told_about() {
        let service = box_service();
        for event in service.events.events.values() {
            let id = event.id.action.id.as_str();
            assert!(action(id).is_some(), "{id}");
            for path in event.fields.keys().chain(&event.groups) {
                let words: Vec<&str> = path.iter().map(|word| word.as_str()).collect();
                assert!(field(id, &words).is_some(), "{id}: {words:?}");
            }
        }
    }
}
