//! What could stand at the cursor.

mod idioms;
mod policy;
mod schema;
mod tests;

use crate::cursor::Cursor;
use crate::document::Kind;
use crate::snapshot::Snapshot;
use dogwood_compiler::grammar::Span;

pub use idioms::{IDIOMS, plain};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Keyword,
    Snippet,
    Action,
    EventKind,
    Field,
    Value,
    Type,
    Macro,
    Function,
    Variable,
    Rule,
    Code,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub label: String,
    pub kind: ItemKind,
    /// Beside the label: a type, a short word.
    pub detail: String,
    /// Markdown.
    pub about: Option<String>,
    /// What replaces `replace`.
    pub insert: String,
    /// `insert` has places to fill in: `${1:name}`.
    pub snippet: bool,
    pub replace: Span,
}

/// Gathers what could stand there.
struct Items {
    replace: Span,
    all: Vec<Item>,
}

impl Items {
    fn word(&mut self, kind: ItemKind, label: &str, detail: &str, about: Option<String>) {
        self.push(kind, label, detail, about, label.to_owned(), false);
    }

    fn snippet(
        &mut self,
        kind: ItemKind,
        label: &str,
        detail: &str,
        about: Option<String>,
        insert: String,
    ) {
        self.push(kind, label, detail, about, insert, true);
    }

    fn push(
        &mut self,
        kind: ItemKind,
        label: &str,
        detail: &str,
        about: Option<String>,
        insert: String,
        snippet: bool,
    ) {
        if self.all.iter().any(|item| item.label == label) {
            return;
        }
        self.all.push(Item {
            label: label.to_owned(),
            kind,
            detail: detail.to_owned(),
            about,
            insert,
            snippet,
            replace: self.replace,
        });
    }

    fn keywords(&mut self, words: &[&str]) {
        for word in words {
            let about = super::words::keyword(word).map(|about| about.meaning.to_owned());
            self.word(ItemKind::Keyword, word, "", about);
        }
    }
}

pub fn completion(snapshot: &Snapshot, offset: usize) -> Vec<Item> {
    let document = &snapshot.document;
    if document.kind == Kind::Tests {
        return tests::complete(snapshot, offset);
    }
    let cursor = Cursor::at(document, offset);
    if cursor.in_comment {
        return Vec::new();
    }
    let mut items = Items {
        replace: cursor.typed,
        all: Vec::new(),
    };
    match document.kind {
        Kind::Policy => policy::complete(snapshot, offset, &cursor, &mut items),
        Kind::ActionSchema => schema::actions(snapshot, offset, &cursor, &mut items),
        Kind::EventSchema => schema::events(snapshot, &cursor, &mut items),
        Kind::Tests | Kind::Other => {}
    }
    items.all
}

/// A text as it stands in a snippet.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('$', "\\$")
        .replace('}', "\\}")
}
