//! What the server says it can do.

use super::commands::{EXPLAIN, TEST};
use crate::feature::tokens::{MODIFIERS, TYPES};
use crate::text::Encoding;
use lsp_types::*;
use serde_json::json;

pub fn capabilities(encoding: Encoding, pulled: bool) -> ServerCapabilities {
    let strings = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSync::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::Incremental),
            save: Some(Save::Bool(true)),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProvider::Bool(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(strings(&[".", ":", "\"", "@", "{", "?"])),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(strings(&["(", ","])),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(DefinitionProvider::Bool(true)),
        references_provider: Some(ReferencesProvider::Bool(true)),
        document_highlight_provider: Some(DocumentHighlightProvider::Bool(true)),
        document_symbol_provider: Some(DocumentSymbolProvider::Bool(true)),
        workspace_symbol_provider: Some(WorkspaceSymbolProvider::Bool(true)),
        code_action_provider: Some(CodeActionProvider::CodeActionOptions(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QuickFix,
                CodeActionKind::RefactorExtract,
                CodeActionKind::RefactorRewrite,
            ]),
            ..CodeActionOptions::default()
        })),
        code_lens_provider: Some(CodeLensOptions::default()),
        document_formatting_provider: Some(DocumentFormattingProvider::Bool(true)),
        document_range_formatting_provider: Some(DocumentRangeFormattingProvider::Bool(true)),
        document_on_type_formatting_provider: Some(DocumentOnTypeFormattingOptions {
            first_trigger_character: ";".to_owned(),
            // The end of an event.
            more_trigger_character: Some(strings(&["}"])),
        }),
        rename_provider: Some(RenameProvider::RenameOptions(RenameOptions {
            prepare_provider: Some(true),
            ..RenameOptions::default()
        })),
        folding_range_provider: Some(FoldingRangeProvider::Bool(true)),
        selection_range_provider: Some(SelectionRangeProvider::Bool(true)),
        inlay_hint_provider: Some(InlayHintProvider::Bool(true)),
        semantic_tokens_provider: Some(SemanticTokensProvider::SemanticTokensOptions(
            SemanticTokensOptions {
                legend: SemanticTokensLegend {
                    token_types: strings(TYPES),
                    token_modifiers: strings(MODIFIERS),
                },
                range: Some(SemanticTokensOptionsRange::Bool(true)),
                full: Some(Full::Bool(true)),
                ..SemanticTokensOptions::default()
            },
        )),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: strings(&[TEST, EXPLAIN]),
            ..ExecuteCommandOptions::default()
        }),
        diagnostic_provider: pulled.then(|| {
            DiagnosticProvider::DiagnosticOptions(DiagnosticOptions {
                identifier: Some("dogwood".to_owned()),
                inter_file_dependencies: true,
                workspace_diagnostics: false,
                ..DiagnosticOptions::default()
            })
        }),
        // `dogwood/source` gives the text of what is built in, to those who say the same.
        experimental: Some(json!({ "dogwood": { "source": true } })),
        ..ServerCapabilities::default()
    }
}
