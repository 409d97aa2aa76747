//! Policies and schemas in the one layout: a whole file, some of its statements, or the one just finished.
//! Of a test file its lines.

use crate::document::{Document, Kind};
use crate::snapshot::item_span;
use dogwood_compiler::format;
use dogwood_compiler::grammar::ast::Item;
use dogwood_compiler::grammar::ast::action_schema::DeclKind;
use dogwood_compiler::grammar::diagnostic::Edit;
use dogwood_compiler::grammar::print::{lay_out, lay_out_declaration};
use dogwood_compiler::grammar::{Language, Span, SyntaxError};

/// Edits that lay out the whole text: none where it does not parse, and no answer where it has no layout.
pub fn document(document: &Document) -> Option<Vec<Edit>> {
    if document.kind == Kind::Tests {
        return test_lines(document, |_| true);
    }
    let language = document.kind.language()?;
    Some(match format::format(&document.text, language) {
        Ok(laid) => difference(&document.text, 0, &laid).into_iter().collect(),
        Err(_) => Vec::new(),
    })
}

/// Edits that lay out the statements touching a range.
pub fn range(document: &Document, range: Span) -> Option<Vec<Edit>> {
    let touches =
        |span: Span| span.start < range.end.max(range.start + 1) && range.start < span.end;
    match document.kind {
        Kind::Tests => test_lines(document, touches),
        _ => edits(document, touches),
    }
}

/// Edits of the lines of a test file: none where it is not TOML.
fn test_lines(document: &Document, wanted: impl Fn(Span) -> bool) -> Option<Vec<Edit>> {
    let mut edits = format::test_edits(&document.text).unwrap_or_default();
    edits.retain(|edit| wanted(edit.span));
    Some(edits)
}

/// Edits that lay out the statement that ends at the cursor, after its `;` or `}` was typed.
pub fn on_type(document: &Document, offset: usize) -> Option<Vec<Edit>> {
    edits(document, |span| span.end as usize == offset)
}

fn edits(document: &Document, wanted: impl Fn(Span) -> bool) -> Option<Vec<Edit>> {
    document.kind.language()?;
    let statements = statements(document).into_iter();
    Some(
        statements
            .filter(|statement| wanted(statement.span()))
            .filter_map(|statement| statement.edit(document))
            .collect(),
    )
}

/// What is laid out alone.
enum Statement<'d> {
    Item(&'d Item),
    Declaration {
        span: Span,
        language: Language,
        indent: usize,
    },
}

fn statements(document: &Document) -> Vec<Statement<'_>> {
    match document.kind {
        Kind::Policy => {
            let items = document.policy().tree.items.iter();
            items
                .filter(|item| !matches!(item, Item::Broken(_)))
                .map(Statement::Item)
                .collect()
        }
        Kind::ActionSchema if document.is_json() => Vec::new(),
        Kind::ActionSchema => {
            let namespaces = document.action_schema().tree.namespaces.iter();
            let declared = namespaces.flat_map(|namespace| {
                let indent = if namespace.name.is_some() { 2 } else { 0 };
                let read = namespace
                    .decls
                    .iter()
                    .filter(|decl| decl.kind != DeclKind::Broken);
                read.map(move |decl| Statement::Declaration {
                    span: decl.span,
                    language: Language::ActionSchema,
                    indent,
                })
            });
            declared.collect()
        }
        Kind::EventSchema => {
            let events = document.event_schema().tree.events.iter();
            events
                .map(|event| Statement::Declaration {
                    span: event.span,
                    language: Language::EventSchema,
                    indent: 0,
                })
                .collect()
        }
        Kind::Tests | Kind::Other => Vec::new(),
    }
}

fn errors(document: &Document) -> &[SyntaxError] {
    match document.kind {
        Kind::Policy => &document.policy().errors,
        Kind::ActionSchema => &document.action_schema().errors,
        Kind::EventSchema => &document.event_schema().errors,
        Kind::Tests | Kind::Other => &[],
    }
}

impl Statement<'_> {
    fn span(&self) -> Span {
        match self {
            Statement::Item(item) => item_span(item),
            Statement::Declaration { span, .. } => *span,
        }
    }

    /// None where it is laid out, or where something in it is wrong.
    fn edit(&self, document: &Document) -> Option<Edit> {
        let text = &document.text;
        let mut span = self.span();
        let inside = |at: Span| span.start <= at.start && at.start <= span.end;
        if errors(document).iter().any(|error| inside(error.span)) {
            return None;
        }
        let laid = match self {
            Statement::Item(item) => lay_out(item, text, &document.policy().trivia)?,
            Statement::Declaration {
                language, indent, ..
            } => {
                let laid = lay_out_declaration(text, span, *language, *indent)?;
                let before = text.get(..span.start as usize)?;
                let line = before.rfind('\n').map_or(0, |end| end + 1);
                if before.get(line..)?.trim().is_empty() {
                    // The first on its line: its indent is laid out with it.
                    span.start = u32::try_from(line).ok()?;
                    format!("{}{laid}", " ".repeat(*indent))
                } else {
                    laid
                }
            }
        };
        difference(span.text(text), span.start as usize, &laid)
    }
}

/// The one edit that makes `new` of `old`, without what both begin and end with.
fn difference(old: &str, start: usize, new: &str) -> Option<Edit> {
    if old == new {
        return None;
    }
    let common = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| -> usize {
        a.zip(b)
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum()
    };
    let head = common(&mut old.chars(), &mut new.chars());
    let old_rest = old.get(head..).unwrap_or("");
    let new_rest = new.get(head..).unwrap_or("");
    let tail = common(&mut old_rest.chars().rev(), &mut new_rest.chars().rev());
    let text = new_rest.get(..new_rest.len() - tail).unwrap_or("");
    Some(Edit {
        span: Span::new(start + head, start + old.len() - tail),
        text: text.to_owned(),
    })
}
