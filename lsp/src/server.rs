//! The life of a connection: one thread, one message after the other.

mod capabilities;
mod commands;
mod notifications;
mod requests;

use crate::feature::diagnostics::{Checker, Findings};
use crate::feature::lens::Slow;
use crate::shelf::{Disk, Settings, Shelf};
use crate::snapshot::Snapshot;
use crate::text::Encoding;
use crate::uri;
use crate::wire::Wire;
use crate::worker::{Done, Job, Worker};
use crossbeam_channel::select;
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    InitializeParams, MessageType, PositionEncodingKind, PublishDiagnosticsParams,
    ShowMessageParams, WorkspaceFolders,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub enum ServerError {
    /// The editor does not speak the protocol.
    Protocol(lsp_server::ProtocolError),
    /// What it says first is no `initialize`.
    Initialize(serde_json::Error),
    /// Reading or writing failed, or no thread could be started.
    Io(std::io::Error),
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerError::Protocol(error) => write!(f, "{error}"),
            ServerError::Initialize(error) => write!(f, "cannot read `initialize`: {error}"),
            ServerError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ServerError {}

impl From<std::io::Error> for ServerError {
    fn from(error: std::io::Error) -> ServerError {
        ServerError::Io(error)
    }
}

impl From<lsp_server::ProtocolError> for ServerError {
    fn from(error: lsp_server::ProtocolError) -> ServerError {
        ServerError::Protocol(error)
    }
}

/// Serves one editor until it says goodbye.
pub fn run(connection: &Connection, disk: Arc<dyn Disk>) -> Result<(), ServerError> {
    let (id, params) = connection.initialize_start()?;
    let params: InitializeParams =
        serde_json::from_value(params).map_err(ServerError::Initialize)?;
    let mut server = Server::new(connection, disk, &params)?;
    let result = json!({
        "capabilities": capabilities::capabilities(server.wire.encoding, server.pulled),
        "serverInfo": { "name": "dogwood-lsp", "version": env!("CARGO_PKG_VERSION") },
    });
    connection.initialize_finish(id, result)?;
    server.serve()
}

struct Server<'c> {
    connection: &'c Connection,
    shelf: Shelf,
    wire: Wire,
    worker: Worker,
    /// Counts every change of anything.
    revision: u64,
    /// The last revision that changed a document, or what it is checked against.
    changed: BTreeMap<PathBuf, u64>,
    checker: Checker,
    findings: BTreeMap<PathBuf, Arc<Findings>>,
    slow: BTreeMap<PathBuf, Slow>,
    /// The revision that the verdicts of a policy are asked for, or known at.
    verdicts_at: BTreeMap<PathBuf, u64>,
    /// Documents whose diagnostics are to be told.
    pending: BTreeSet<PathBuf>,
    /// The editor asks for diagnostics itself.
    pulled: bool,
    /// It opens the addresses of what is built in.
    opens_builtin: bool,
    /// It can be told to ask again.
    refreshes: Refreshes,
    requests: i32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Refreshes {
    lenses: bool,
    diagnostics: bool,
}

impl<'c> Server<'c> {
    fn new(
        connection: &'c Connection,
        disk: Arc<dyn Disk>,
        params: &InitializeParams,
    ) -> Result<Server<'c>, ServerError> {
        let general = params.capabilities.general.as_ref();
        let encodings = general.and_then(|general| general.position_encodings.as_ref());
        let bytes = encodings.is_some_and(|all| all.contains(&PositionEncodingKind::UTF8));
        let workspace = params.capabilities.workspace.as_ref();
        let refreshes = Refreshes {
            lenses: workspace
                .and_then(|workspace| workspace.code_lens.as_ref())
                .and_then(|lens| lens.refresh_support)
                .unwrap_or(false),
            diagnostics: workspace
                .and_then(|workspace| workspace.diagnostics.as_ref())
                .and_then(|diagnostics| diagnostics.refresh_support)
                .unwrap_or(false),
        };
        let texts = params.capabilities.text_document.as_ref();
        let pulled = texts.is_some_and(|texts| texts.diagnostic.is_some());
        let own = params.capabilities.experimental.as_ref();
        let opens_builtin = own
            .and_then(|own| own.pointer("/dogwood/source")?.as_bool())
            .unwrap_or(false);
        let mut shelf = Shelf::new(disk);
        shelf.roots = match &params.workspace_folders_initialize_params.workspace_folders {
            Some(WorkspaceFolders::WorkspaceFolderList(folders)) => folders
                .iter()
                .map(|folder| uri::path(&folder.uri.0))
                .collect(),
            _ => {
                #[allow(deprecated, reason = "older editors send nothing else")]
                let root = params.root_uri.as_ref();
                root.map(|root| uri::path(&root.0)).into_iter().collect()
            }
        };
        if let Some(options) = &params.initialization_options {
            shelf.settings = settings(options);
        }
        Ok(Server {
            connection,
            shelf,
            wire: Wire {
                encoding: if bytes {
                    Encoding::Utf8
                } else {
                    Encoding::Utf16
                },
            },
            worker: Worker::start()?,
            revision: 0,
            changed: BTreeMap::new(),
            checker: Checker::default(),
            findings: BTreeMap::new(),
            slow: BTreeMap::new(),
            verdicts_at: BTreeMap::new(),
            pending: BTreeSet::new(),
            pulled,
            opens_builtin,
            refreshes,
            requests: 0,
        })
    }

    fn serve(&mut self) -> Result<(), ServerError> {
        self.say_missing();
        loop {
            // Nothing is told about a text while its next edit waits.
            if self.connection.receiver.is_empty()
                && let Some(path) = self.pending.pop_first()
            {
                self.publish(&path);
                continue;
            }
            let connection = self.connection;
            let done = self.worker.done.clone();
            select! {
                recv(connection.receiver) -> message => match message {
                    Err(_) => return Ok(()),
                    Ok(Message::Request(request)) => {
                        if connection.handle_shutdown(&request)? {
                            return Ok(());
                        }
                        self.request(request);
                    }
                    Ok(Message::Notification(notification)) => self.notification(notification),
                    // Of what we ask, no answer matters.
                    Ok(Message::Response(_)) => {}
                },
                recv(done) -> done => {
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
            }
        }
    }

    fn send(&self, message: Message) {
        // An editor that is gone hears nothing; the loop ends with its next message.
        _ = self.connection.sender.send(message);
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(Message::Notification(Notification {
            method: method.to_owned(),
            params,
        }));
    }

    /// Without the files that the settings name rules are only parsed; nobody would know.
    fn say_missing(&self) {
        for (setting, path) in self.shelf.missing() {
            let message = format!(
                "`{setting}` names {}, and there is no such file: rules are not checked.",
                path.display()
            );
            let kind = MessageType::Warning;
            if let Ok(params) = serde_json::to_value(ShowMessageParams { kind, message }) {
                self.notify("window/showMessage", params);
            }
        }
    }

    fn ask(&mut self, method: &str) {
        self.requests += 1;
        self.send(Message::Request(Request {
            id: RequestId::from(self.requests),
            method: method.to_owned(),
            params: Value::Null,
        }));
    }

    fn respond(&self, id: RequestId, result: Value) {
        self.send(Message::Response(Response::new_ok(id, result)));
    }

    fn snapshot(&self, path: &Path) -> Option<Snapshot> {
        Snapshot::new(&self.shelf, path)
    }

    fn findings(&mut self, snapshot: &Snapshot) -> Arc<Findings> {
        let path = &snapshot.document.path;
        if let Some(known) = self.findings.get(path) {
            return Arc::clone(known);
        }
        let found = Arc::new(self.checker.diagnostics(snapshot));
        self.findings.insert(path.clone(), Arc::clone(&found));
        found
    }

    fn publish(&mut self, path: &Path) {
        let Some(snapshot) = self.snapshot(path) else {
            return;
        };
        let findings = self.findings(&snapshot);
        let document = &snapshot.document;
        let params = PublishDiagnosticsParams {
            uri: crate::wire::address(path),
            version: Some(document.version),
            diagnostics: self.wire.diagnostics(document, &self.shelf, &findings),
        };
        if let Ok(params) = serde_json::to_value(params) {
            self.notify("textDocument/publishDiagnostics", params);
        }
    }

    /// One document has another text.
    fn edited(&mut self, path: &Path, only_this: bool) {
        self.revision += 1;
        self.changed.insert(path.to_path_buf(), self.revision);
        self.findings.remove(path);
        let others: Vec<PathBuf> = self
            .shelf
            .opened()
            .map(|document| document.path.clone())
            .filter(|other| {
                !only_this || crate::document::Kind::of(other) == Some(crate::document::Kind::Tests)
            })
            .filter(|other| other != path)
            .collect();
        for other in others {
            self.findings.remove(&other);
            self.changed.insert(other.clone(), self.revision);
            if !self.pulled {
                self.pending.insert(other);
            }
        }
        if !self.pulled {
            self.pending.insert(path.to_path_buf());
        } else if !only_this && self.refreshes.diagnostics {
            self.ask("workspace/diagnostic/refresh");
        }
    }

    /// Anything may be different.
    fn all_changed(&mut self) {
        self.shelf.forget();
        self.revision += 1;
        self.findings.clear();
        let open: Vec<PathBuf> = self
            .shelf
            .opened()
            .map(|document| document.path.clone())
            .collect();
        for path in open {
            self.changed.insert(path.clone(), self.revision);
            if !self.pulled {
                self.pending.insert(path);
            }
        }
        if self.pulled && self.refreshes.diagnostics {
            self.ask("workspace/diagnostic/refresh");
        }
    }

    fn revision_of(&self, path: &Path) -> u64 {
        self.changed.get(path).copied().unwrap_or(0)
    }

    /// Has the trace beside a policy replayed, unless that is done or under way.
    fn want_verdicts(&mut self, snapshot: &Snapshot) {
        let path = &snapshot.document.path;
        let revision = self.revision_of(path);
        if self.verdicts_at.get(path) == Some(&revision) {
            return;
        }
        self.verdicts_at.insert(path.clone(), revision);
        self.worker.ask(Job::Verdicts {
            revision,
            snapshot: Box::new(snapshot.clone()),
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Verdicts {
                revision,
                path,
                verdicts,
            } => {
                if self.revision_of(&path) != revision {
                    return;
                }
                let slow = self.slow.entry(path).or_default();
                if slow.verdicts != verdicts {
                    slow.verdicts = verdicts;
                    self.refresh_lenses();
                }
            }
            Done::Tests {
                revision,
                path,
                partial,
                runs,
                request,
            } => {
                self.respond(request, commands::test_summary(&runs));
                if self.revision_of(&path) != revision {
                    return;
                }
                for run in &runs {
                    let slow = self.slow.entry(run.path.clone()).or_default();
                    match slow.tests.as_mut().and_then(|known| known.first_mut()) {
                        // One test was run again: the others stay as they were.
                        Some(known) if partial => {
                            for outcome in &run.outcomes {
                                known.outcomes.retain(|old| old.name != outcome.name);
                                known.outcomes.push(outcome.clone());
                            }
                        }
                        _ => slow.tests = Some(vec![run.clone()]),
                    }
                }
                if !partial {
                    self.slow.entry(path).or_default().tests = Some(runs);
                }
                self.refresh_lenses();
            }
        }
    }

    fn refresh_lenses(&mut self) {
        if self.refreshes.lenses {
            self.ask("workspace/codeLens/refresh");
        }
    }
}

/// Settings as an editor sends them: ours alone, or under `dogwood`.
fn settings(value: &Value) -> Settings {
    let own = value.get("dogwood").unwrap_or(value);
    serde_json::from_value(own.clone()).unwrap_or_default()
}
