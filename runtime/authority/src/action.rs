//! The actions a box can ask about: one variant each, so that no checkpoint can leave out a field.
//!
//! The shapes are those of the Box action schema in `stdlib-policies/box/`; a test holds the two equal.

use dogwood_compiler::value::{EntityUid, Record, Value};
use smol_str::SmolStr;

/// A request to do something outside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    FsRead {
        path: SmolStr,
        operation: FsRead,
    },
    FsWrite {
        path: SmolStr,
        operation: FsWrite,
    },
    FsDelete {
        path: SmolStr,
        operation: FsDelete,
    },
    FsMove {
        path: SmolStr,
    },
    ShellExec(Command),
    ShellSpawn(Spawn),
    NetConnect {
        host: SmolStr,
        port: i64,
        ip: Option<SmolStr>,
    },
    HttpRequest {
        host: SmolStr,
        port: i64,
        method: SmolStr,
        path: SmolStr,
        body_bytes: i64,
        intercepted: bool,
    },
    McpCall {
        server: SmolStr,
        method: SmolStr,
        tool: Option<SmolStr>,
        prompt: Option<SmolStr>,
        uri: Option<SmolStr>,
    },
    /// A generated action: `<namespace>::Action::"<tool>"` with the tool's own arguments.
    Tool {
        namespace: SmolStr,
        tool: SmolStr,
        arguments: Record,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsRead {
    ReadContent,
    ReadMetadata,
    Enumerate,
    ReadLink,
    ChangeDir,
    Exec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsWrite {
    WriteContent,
    CreateDir,
    SetPermissions,
    Symlink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsDelete {
    RemoveFile,
    RemoveDir,
}

/// A command after parsing and expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments as words, expanded.
    pub words: Vec<SmolStr>,
    /// What the first word resolved to; for a spawn, the word as typed.
    pub program: SmolStr,
    /// In the spelling of rules: `~/project`.
    pub cwd: SmolStr,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spawn {
    pub command: Command,
    /// The canonical binary, `~/…` under the home.
    pub program_path: SmolStr,
    /// Credential stores that the matching tool's lists name.
    pub credential_reads: Vec<SmolStr>,
}

/// How a permitted action ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It happened, or may have: a file operation.
    Fs(FsResult),
    /// It happened: a command or an exchange, with its exit or HTTP status.
    Status(i64),
    /// It happened and has no output.
    Done,
    /// It definitely did not happen.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsResult {
    Completed,
    DescriptorIssued,
    Indeterminate,
}

impl FsRead {
    pub fn id(self) -> &'static str {
        match self {
            FsRead::ReadContent => "read_content",
            FsRead::ReadMetadata => "read_metadata",
            FsRead::Enumerate => "enumerate",
            FsRead::ReadLink => "read_link",
            FsRead::ChangeDir => "change_dir",
            FsRead::Exec => "exec",
        }
    }
}

impl FsWrite {
    pub fn id(self) -> &'static str {
        match self {
            FsWrite::WriteContent => "write_content",
            FsWrite::CreateDir => "create_dir",
            FsWrite::SetPermissions => "set_permissions",
            FsWrite::Symlink => "symlink",
        }
    }
}

impl FsDelete {
    pub fn id(self) -> &'static str {
        match self {
            FsDelete::RemoveFile => "remove_file",
            FsDelete::RemoveDir => "remove_dir",
        }
    }
}

impl FsResult {
    pub fn id(self) -> &'static str {
        match self {
            FsResult::Completed => "completed",
            FsResult::DescriptorIssued => "descriptor_issued",
            FsResult::Indeterminate => "indeterminate",
        }
    }
}

fn choice(ty: &str, id: &str) -> Value {
    Value::Entity(EntityUid::new(ty, id))
}

fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Record {
    pairs
        .into_iter()
        .map(|(name, value)| (SmolStr::new(name), value))
        .collect()
}

impl Command {
    fn record(&self) -> Record {
        let mut record = fields([
            ("command", Value::str(self.words.join(" "))),
            ("program", Value::String(self.program.clone())),
            ("cwd", Value::String(self.cwd.clone())),
            (
                "arg_count",
                Value::Int(i64::try_from(self.words.len().saturating_sub(1)).unwrap_or(i64::MAX)),
            ),
        ]);
        for (name, word) in ["arg1", "arg2"].into_iter().zip(self.words.iter().skip(1)) {
            record.insert(name.into(), Value::String(word.clone()));
        }
        record
    }
}

impl Action {
    /// The action as rules name it: `Box::Action::"shell:spawn"`.
    pub fn uid(&self) -> EntityUid {
        match self {
            Action::Tool {
                namespace, tool, ..
            } => EntityUid::new(format!("{namespace}::Action"), tool.clone()),
            _ => EntityUid::new("Box::Action", self.name()),
        }
    }

    /// The bare name: `shell:spawn`, or the tool's.
    pub fn name(&self) -> &str {
        match self {
            Action::FsRead { .. } => "fs:read",
            Action::FsWrite { .. } => "fs:write",
            Action::FsDelete { .. } => "fs:delete",
            Action::FsMove { .. } => "fs:move",
            Action::ShellExec(_) => "shell:exec",
            Action::ShellSpawn(_) => "shell:spawn",
            Action::NetConnect { .. } => "net:connect",
            Action::HttpRequest { .. } => "http:request",
            Action::McpCall { .. } => "mcp:call",
            Action::Tool { tool, .. } => tool,
        }
    }

    /// `context.input`.
    pub fn input(&self) -> Record {
        match self {
            Action::FsRead { path, operation } => fields([
                ("path", Value::String(path.clone())),
                ("operation", choice("Box::FsReadOperation", operation.id())),
            ]),
            Action::FsWrite { path, operation } => fields([
                ("path", Value::String(path.clone())),
                ("operation", choice("Box::FsWriteOperation", operation.id())),
            ]),
            Action::FsDelete { path, operation } => fields([
                ("path", Value::String(path.clone())),
                (
                    "operation",
                    choice("Box::FsDeleteOperation", operation.id()),
                ),
            ]),
            Action::FsMove { path } => fields([
                ("path", Value::String(path.clone())),
                ("operation", choice("Box::FsMoveOperation", "rename")),
            ]),
            Action::ShellExec(command) => command.record(),
            Action::ShellSpawn(spawn) => {
                let mut record = spawn.command.record();
                record.insert(
                    "program_path".into(),
                    Value::String(spawn.program_path.clone()),
                );
                if !spawn.credential_reads.is_empty() {
                    let stores = spawn
                        .credential_reads
                        .iter()
                        .cloned()
                        .map(Value::String)
                        .collect();
                    record.insert("credential_reads".into(), Value::Array(stores));
                }
                record
            }
            Action::NetConnect { host, port, ip } => {
                let mut record = fields([
                    ("host", Value::String(host.clone())),
                    ("port", Value::Int(*port)),
                ]);
                if let Some(ip) = ip {
                    record.insert("ip".into(), Value::String(ip.clone()));
                }
                record
            }
            Action::HttpRequest {
                host,
                port,
                method,
                path,
                body_bytes,
                intercepted,
            } => fields([
                ("host", Value::String(host.clone())),
                ("port", Value::Int(*port)),
                ("method", Value::String(method.clone())),
                ("path", Value::String(path.clone())),
                ("body_bytes", Value::Int(*body_bytes)),
                ("intercepted", Value::Bool(*intercepted)),
            ]),
            Action::McpCall {
                server,
                method,
                tool,
                prompt,
                uri,
            } => {
                let mut record = fields([
                    ("server", Value::String(server.clone())),
                    ("method", Value::String(method.clone())),
                ]);
                for (name, value) in [("tool", tool), ("prompt", prompt), ("uri", uri)] {
                    if let Some(value) = value {
                        record.insert(name.into(), Value::String(value.clone()));
                    }
                }
                record
            }
            Action::Tool { arguments, .. } => arguments.clone(),
        }
    }

    /// What the action is about, as denials and records name it: a path, a program, `host:port`.
    pub fn target(&self) -> String {
        match self {
            Action::FsRead { path, .. }
            | Action::FsWrite { path, .. }
            | Action::FsDelete { path, .. }
            | Action::FsMove { path } => path.to_string(),
            Action::ShellExec(command) => command.program.to_string(),
            Action::ShellSpawn(spawn) => spawn.program_path.to_string(),
            Action::NetConnect { host, port, .. } => format!("{host}:{port}"),
            Action::HttpRequest {
                host, port, path, ..
            } => format!("{host}:{port}{path}"),
            Action::McpCall {
                server,
                method,
                tool,
                ..
            } => {
                format!("{server}/{}", tool.as_ref().unwrap_or(method))
            }
            Action::Tool {
                namespace, tool, ..
            } => format!("{namespace}/{tool}"),
        }
    }
}

impl Outcome {
    /// The event kind this outcome is recorded as, and `context.output` if it has one.
    pub fn record(&self) -> (&'static str, Option<Record>) {
        match self {
            Outcome::Fs(result) => (
                "response",
                Some(fields([(
                    "result",
                    choice("Box::FsResponseResult", result.id()),
                )])),
            ),
            Outcome::Status(status) => {
                ("response", Some(fields([("status", Value::Int(*status))])))
            }
            Outcome::Done => ("response", None),
            Outcome::Failed => ("error", None),
        }
    }
}
