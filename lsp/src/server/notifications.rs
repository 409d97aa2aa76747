//! What an editor tells: texts opened, edited and closed.

use super::{Server, settings};
use crate::document::{Document, Kind};
use crate::uri;
use crate::wire::point;
use lsp_server::Notification;
use lsp_types::{
    DidChangeConfigurationParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, PublishDiagnosticsParams, TextDocumentContentChangeEvent,
};
use serde::de::DeserializeOwned;

impl Server<'_> {
    pub(super) fn notification(&mut self, notification: Notification) {
        // What cannot be read cannot be answered either: a notification has no reply.
        match notification.method.as_str() {
            "textDocument/didOpen" => self.with(notification, Self::opened),
            "textDocument/didChange" => self.with(notification, Self::changed),
            "textDocument/didClose" => self.with(notification, Self::closed),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.all_changed(),
            "workspace/didChangeConfiguration" => self.with(notification, Self::configured),
            _ => {}
        }
    }

    fn with<P: DeserializeOwned>(
        &mut self,
        notification: Notification,
        act: impl FnOnce(&mut Self, P),
    ) {
        if let Ok(params) = serde_json::from_value(notification.params) {
            act(self, params);
        }
    }

    fn opened(&mut self, params: DidOpenTextDocumentParams) {
        let item = params.text_document;
        let path = uri::path(&item.uri.0);
        let language = item.language_id.to_string();
        let Some(kind) = Kind::of(&path).or(Kind::named(&language)) else {
            return;
        };
        let document = Document::new(path.clone(), kind, item.version, item.text);
        self.shelf.open(document);
        self.edited(&path, false);
    }

    fn changed(&mut self, params: DidChangeTextDocumentParams) {
        let path = uri::path(&params.text_document.text_document_identifier.uri.0);
        let version = params.text_document.version;
        if !self.shelf.is_open(&path) {
            return;
        }
        // Asked before the edit, which makes the shelf forget what goes with what.
        let of_policy = self
            .shelf
            .document(&path)
            .is_some_and(|document| document.kind == Kind::Policy);
        let only_this = of_policy && !self.shelf.is_library(&path);
        for change in params.content_changes {
            let Some(document) = self.shelf.document(&path) else {
                return;
            };
            let edited = match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => document
                    .edited(
                        version,
                        point(part.range.start),
                        point(part.range.end),
                        &part.text,
                        self.wire.encoding,
                    ),
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    Document::new(path.clone(), document.kind, version, whole.text)
                }
            };
            self.shelf.replace(edited);
        }
        self.edited(&path, only_this);
    }

    fn closed(&mut self, params: DidCloseTextDocumentParams) {
        let path = uri::path(&params.text_document.uri.0);
        self.shelf.close(&path);
        self.checker.forget(&path);
        self.slow.remove(&path);
        self.verdicts_at.remove(&path);
        self.edited(&path, false);
        self.pending.remove(&path);
        if !self.pulled {
            let gone = PublishDiagnosticsParams {
                uri: params.text_document.uri,
                version: None,
                diagnostics: Vec::new(),
            };
            if let Ok(gone) = serde_json::to_value(gone) {
                self.notify("textDocument/publishDiagnostics", gone);
            }
        }
    }

    fn configured(&mut self, params: DidChangeConfigurationParams) {
        self.shelf.settings = settings(&params.settings);
        self.say_missing();
        self.all_changed();
    }
}
