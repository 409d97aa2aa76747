//! Commands named by a path. The interpreter would read any such file as a script; here a shell script stays in
//! process, and anything else is a host program.

use crate::admission::{Owner, refused};
use crate::host::{Found, Spot};
use crate::spawn::{Ready, Spawner, is_executable};
use bashkit::{
    Builtin, BuiltinContext, ExecResult, ExecutionPlan, FileSystem, InMemoryFs, SubCommand,
    async_trait,
};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Bytes looked at to tell a script from a program.
const HEAD: u64 = 512;

/// What a path names as a command.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Script,
    Program(PathBuf),
    Not { status: i32, why: &'static str },
}

pub(crate) struct ByPath {
    name: String,
    spawner: Weak<Spawner>,
}

impl ByPath {
    pub(crate) fn new(name: &str, spawner: Arc<Spawner>) -> Self {
        Self {
            name: name.to_owned(),
            spawner: Arc::downgrade(&spawner),
        }
    }

    fn named(&self, spawner: &Spawner, cwd: &Path) -> Named {
        let path = crate::host::lexical(&cwd.join(&self.name));
        match spawner.host.find(&path, true) {
            Ok(Found::Here(spot)) => in_reach(&spot),
            Ok(Found::Outside(path)) => outside(&path, &spawner.memory),
            Err(_) => Named::Not {
                status: 127,
                why: "No such file or directory",
            },
        }
    }
}

fn in_reach(spot: &Spot) -> Named {
    if !spot.exists() {
        return Named::Not {
            status: 127,
            why: "No such file or directory",
        };
    }
    if spot.is_dir() {
        return Named::Not {
            status: 126,
            why: "Is a directory",
        };
    }
    if !spot.is_file() || !spot.is_executable() {
        return Named::Not {
            status: 126,
            why: "Permission denied",
        };
    }
    let mut head = Vec::new();
    // A file that may be run but not read is a program.
    let read = spot
        .open_content()
        .and_then(|file| file.take(HEAD).read_to_end(&mut head));
    if read.is_ok() && is_shell_script(&head) {
        Named::Script
    } else {
        Named::Program(spot.path.clone())
    }
}

fn outside(path: &Path, memory: &InMemoryFs) -> Named {
    match ready(memory.stat(path)) {
        Some(Ok(metadata)) if metadata.file_type.is_file() => {
            if metadata.mode & 0o111 == 0 {
                return Named::Not {
                    status: 126,
                    why: "Permission denied",
                };
            }
            match ready(memory.read_file(path)) {
                Some(Ok(content)) if is_shell_script(content.get(..512).unwrap_or(&content)) => {
                    Named::Script
                }
                _ => Named::Not {
                    status: 126,
                    why: "only shell scripts can run from memory",
                },
            }
        }
        Some(Ok(metadata)) if metadata.file_type.is_dir() && !is_executable(path) => Named::Not {
            status: 126,
            why: "Is a directory",
        },
        _ => match path.canonicalize() {
            Ok(program) if is_executable(&program) => Named::Program(program),
            Ok(program) if program.is_dir() => Named::Not {
                status: 126,
                why: "Is a directory",
            },
            Ok(_) => Named::Not {
                status: 126,
                why: "Permission denied",
            },
            Err(_) => Named::Not {
                status: 127,
                why: "No such file or directory",
            },
        },
    }
}

/// The memory file system answers at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future
        .as_mut()
        .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

/// `#!` with a POSIX shell, or text without `#!`.
fn is_shell_script(head: &[u8]) -> bool {
    if let Some(rest) = head.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line
            .split_whitespace()
            .map(|word| word.rsplit('/').next().unwrap_or(word));
        let mut interpreter = words.next();
        if interpreter == Some("env") {
            interpreter = words.find(|word| !word.starts_with('-') && !word.contains('='));
        }
        return matches!(interpreter, Some("sh" | "bash"));
    }
    !head.contains(&0)
}

#[async_trait]
impl Builtin for ByPath {
    /// A script takes its input whole, a program as it comes. Where it runs from is a guess in interpreter
    /// copies; a wrong one costs streaming, not a decision.
    fn streams_io(&self) -> bool {
        self.spawner.upgrade().is_some_and(|spawner| {
            !spawner.session.is_reading()
                && !matches!(self.named(&spawner, &spawner.session.cwd()), Named::Script)
        })
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        let Some(spawner) = self.spawner.upgrade() else {
            return Err(bashkit::Error::Cancelled);
        };
        let (id, args) = spawner.session.unmark(ctx.args);
        let ready = match self.named(&spawner, ctx.cwd) {
            Named::Program(program) => spawner.ask(&self.name, args, ctx.cwd, program),
            Named::Not { status, why } => Ready::Not {
                status,
                text: format!("bash: {}: {why}", self.name),
            },
            Named::Script => match spawner.session.admit_script(&self.name, args, ctx.cwd) {
                Err(text) => Ready::Not { status: 126, text },
                Ok(()) => {
                    let words: Vec<String> =
                        std::iter::once(&self.name).chain(args).cloned().collect();
                    spawner.session.excuse("bash", words.clone());
                    return Ok(Some(ExecutionPlan::Env {
                        command: SubCommand {
                            name: "bash".to_owned(),
                            args: words,
                            stdin: ctx.stdin.cloned(),
                            assignments: Vec::new(),
                        },
                        clear: false,
                        unset: Vec::new(),
                        set: Vec::new(),
                        chdir: None,
                    }));
                }
            },
        };
        spawner.session.open_redirects_of(id.map(Owner::Program));
        spawner.put(id, ready);
        Ok(None)
    }

    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        match self.spawner.upgrade() {
            Some(spawner) => spawner.execute(&self.name, ctx).await,
            None => Ok(refused("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_shell_script;

    #[test]
    fn shell_scripts_are_told_from_programs() {
        for head in [
            &b"#!/bin/sh\n"[..],
            b"#!/usr/bin/env bash\nx",
            b"#! /bin/bash -e\n",
            b"echo hi\n",
            b"",
        ] {
            assert!(is_shell_script(head), "{head:?}");
        }
        for head in [
            &b"#!/usr/bin/env python3\n"[..],
            b"\x7fELF\x02\0",
            b"#!/usr/bin/node",
            b"#!/usr/bin/env -S deno run",
        ] {
            assert!(!is_shell_script(head), "{head:?}");
        }
    }
}
