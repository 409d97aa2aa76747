//! Between our shapes and those of the protocol.

use crate::document::Document;
use crate::feature::action::ActionKind;
use crate::feature::completion::{Item, ItemKind};
use crate::feature::diagnostics::{Findings, Tag, tag};
use crate::feature::inlay::{Hint, HintKind};
use crate::feature::symbols::{Symbol, SymbolKind};
use crate::feature::tokens::Token;
use crate::shelf::Shelf;
use crate::snapshot::Place;
use crate::text::{Encoding, Point};
use crate::uri;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Edit, Severity};
use std::path::Path;

#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    pub encoding: Encoding,
}

pub fn point(position: lsp_types::Position) -> Point {
    Point {
        line: position.line,
        column: position.character,
    }
}

pub fn address(path: &Path) -> lsp_types::Uri {
    lsp_types::Uri(uri::of(path))
}

pub fn markdown(text: String) -> lsp_types::MarkupContent {
    lsp_types::MarkupContent {
        kind: lsp_types::MarkupKind::Markdown,
        value: text,
    }
}

impl Wire {
    pub fn offset(self, document: &Document, position: lsp_types::Position) -> usize {
        document
            .lines
            .offset(&document.text, point(position), self.encoding)
    }

    pub fn position(self, document: &Document, offset: usize) -> lsp_types::Position {
        let point = document.lines.point(&document.text, offset, self.encoding);
        lsp_types::Position {
            line: point.line,
            character: point.column,
        }
    }

    pub fn range(self, document: &Document, span: Span) -> lsp_types::Range {
        lsp_types::Range {
            start: self.position(document, span.start as usize),
            end: self.position(document, span.end.max(span.start) as usize),
        }
    }

    pub fn span(self, document: &Document, range: lsp_types::Range) -> Span {
        let start = self.offset(document, range.start);
        let end = self.offset(document, range.end);
        Span::new(start.min(end), start.max(end))
    }

    pub fn location(self, place: &Place) -> lsp_types::Location {
        lsp_types::Location {
            uri: address(&place.document.path),
            range: self.range(&place.document, place.span),
        }
    }

    pub fn edit(self, document: &Document, edit: &Edit) -> lsp_types::TextEdit {
        lsp_types::TextEdit {
            range: self.range(document, edit.span),
            new_text: edit.text.clone(),
        }
    }

    pub fn diagnostics(
        self,
        document: &Document,
        shelf: &Shelf,
        findings: &Findings,
    ) -> Vec<lsp_types::Diagnostic> {
        let all = findings.diagnostics.iter();
        all.map(|found| self.diagnostic(document, shelf, findings, found))
            .collect()
    }

    pub fn diagnostic(
        self,
        document: &Document,
        shelf: &Shelf,
        findings: &Findings,
        found: &Diagnostic,
    ) -> lsp_types::Diagnostic {
        let mut message = found.message.clone();
        if !found.label.is_empty() {
            message.push_str(": ");
            message.push_str(&found.label);
        }
        if let Some(help) = &found.help {
            message.push_str("\nhelp: ");
            message.push_str(help);
        }
        let related: Vec<lsp_types::DiagnosticRelatedInformation> = found
            .labels
            .iter()
            .filter_map(|label| {
                let path = findings.sources.get(usize::from(label.source.0))?;
                let range = if *path == document.path {
                    self.range(document, label.span)
                } else {
                    let other = shelf.document(path)?;
                    self.range(&other, label.span)
                };
                Some(lsp_types::DiagnosticRelatedInformation {
                    location: lsp_types::Location {
                        uri: address(path),
                        range,
                    },
                    message: label.text.clone(),
                })
            })
            .collect();
        let tags = tag(found.code).map(|tag| {
            vec![match tag {
                Tag::Unnecessary => lsp_types::DiagnosticTag::Unnecessary,
                Tag::Deprecated => lsp_types::DiagnosticTag::Deprecated,
            }]
        });
        lsp_types::Diagnostic {
            range: self.range(document, found.span),
            severity: Some(match found.severity {
                Severity::Error => lsp_types::DiagnosticSeverity::Error,
                Severity::Warning => lsp_types::DiagnosticSeverity::Warning,
            }),
            code: Some(lsp_types::Code::String(found.code.to_owned())),
            code_description: None,
            source: Some("dogwood".to_owned()),
            message: lsp_types::Message::String(message),
            tags,
            related_information: (!related.is_empty()).then_some(related),
            data: None,
        }
    }

    pub fn item(self, document: &Document, item: &Item, at: usize) -> lsp_types::CompletionItem {
        let kind = match item.kind {
            ItemKind::Keyword => lsp_types::CompletionItemKind::Keyword,
            ItemKind::Snippet => lsp_types::CompletionItemKind::Snippet,
            ItemKind::Action | ItemKind::EventKind => lsp_types::CompletionItemKind::Event,
            ItemKind::Field => lsp_types::CompletionItemKind::Field,
            ItemKind::Value => lsp_types::CompletionItemKind::Value,
            ItemKind::Type => lsp_types::CompletionItemKind::Class,
            ItemKind::Macro | ItemKind::Function => lsp_types::CompletionItemKind::Function,
            ItemKind::Variable => lsp_types::CompletionItemKind::Variable,
            ItemKind::Rule => lsp_types::CompletionItemKind::Reference,
            ItemKind::Code => lsp_types::CompletionItemKind::Constant,
        };
        let edit = lsp_types::TextEdit {
            range: self.range(document, item.replace),
            new_text: item.insert.clone(),
        };
        lsp_types::CompletionItem {
            label: item.label.clone(),
            kind: Some(kind),
            detail: (!item.detail.is_empty()).then(|| item.detail.clone()),
            documentation: item
                .about
                .clone()
                .map(|about| lsp_types::Documentation::MarkupContent(markdown(about))),
            // The order we chose, which is not that of the alphabet.
            sort_text: Some(format!("{at:04}")),
            insert_text_format: Some(if item.snippet {
                lsp_types::InsertTextFormat::Snippet
            } else {
                lsp_types::InsertTextFormat::PlainText
            }),
            text_edit: Some(lsp_types::CompletionItemTextEdit::TextEdit(edit)),
            ..lsp_types::CompletionItem::default()
        }
    }

    pub fn symbol(self, document: &Document, symbol: &Symbol) -> lsp_types::DocumentSymbol {
        let children: Vec<lsp_types::DocumentSymbol> = symbol
            .children
            .iter()
            .map(|child| self.symbol(document, child))
            .collect();
        #[allow(deprecated, reason = "the field is there, whether it is used or not")]
        lsp_types::DocumentSymbol {
            name: symbol.name.clone(),
            detail: (!symbol.detail.is_empty()).then(|| symbol.detail.clone()),
            kind: symbol_kind(symbol.kind),
            tags: None,
            deprecated: None,
            range: self.range(document, symbol.span),
            selection_range: self.range(document, symbol.selection),
            children: (!children.is_empty()).then_some(children),
        }
    }

    pub fn hint(self, document: &Document, hint: &Hint) -> lsp_types::InlayHint {
        lsp_types::InlayHint {
            position: self.position(document, hint.offset),
            label: lsp_types::Label::String(hint.text.clone()),
            kind: match hint.kind {
                HintKind::Type => Some(lsp_types::InlayHintKind::Type),
                HintKind::Rule | HintKind::Window => None,
            },
            text_edits: None,
            tooltip: None,
            padding_left: Some(hint.kind == HintKind::Window),
            padding_right: Some(hint.kind == HintKind::Rule),
            data: None,
        }
    }

    /// Tokens, each relative to the one before.
    pub fn tokens(self, document: &Document, tokens: &[Token]) -> Vec<lsp_types::SemanticToken> {
        let mut last = lsp_types::Position {
            line: 0,
            character: 0,
        };
        let mut out = Vec::with_capacity(tokens.len());
        for token in tokens {
            let range = self.range(document, token.span);
            let start = range.start;
            let same = start.line == last.line;
            let before = if same { last.character } else { 0 };
            out.push(lsp_types::SemanticToken {
                delta_line: start.line.saturating_sub(last.line),
                delta_start: start.character.saturating_sub(before),
                length: range.end.character.saturating_sub(start.character),
                token_type: token.kind,
                token_modifiers_bitset: token.modifiers,
            });
            last = start;
        }
        out
    }
}

pub fn symbol_kind(kind: SymbolKind) -> lsp_types::SymbolKind {
    match kind {
        SymbolKind::Rule => lsp_types::SymbolKind::Object,
        SymbolKind::Macro => lsp_types::SymbolKind::Function,
        SymbolKind::Namespace => lsp_types::SymbolKind::Namespace,
        SymbolKind::Entity => lsp_types::SymbolKind::Class,
        SymbolKind::Enum => lsp_types::SymbolKind::Enum,
        SymbolKind::Choice => lsp_types::SymbolKind::EnumMember,
        SymbolKind::Action => lsp_types::SymbolKind::Event,
        SymbolKind::Type => lsp_types::SymbolKind::Struct,
        SymbolKind::Field => lsp_types::SymbolKind::Field,
        SymbolKind::Event => lsp_types::SymbolKind::Event,
        SymbolKind::Test => lsp_types::SymbolKind::Method,
    }
}

pub fn action_kind(kind: ActionKind) -> lsp_types::CodeActionKind {
    match kind {
        ActionKind::Fix => lsp_types::CodeActionKind::QuickFix,
        ActionKind::Rewrite => lsp_types::CodeActionKind::RefactorRewrite,
        ActionKind::Extract => lsp_types::CodeActionKind::RefactorExtract,
    }
}
