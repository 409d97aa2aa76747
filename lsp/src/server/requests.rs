//! What an editor asks: each request is read, answered by a feature, and put in the protocol's words.

use super::Server;
use super::commands::{SOURCE, TEST};
use crate::builtin;
use crate::document::Kind;
use crate::feature::lens::Slow;
use crate::feature::rename::Changes;
use crate::feature::{
    action, completion, definition, folding, formatting, highlight, hover, inlay, lens, references,
    rename, selection, signature, symbols, tokens,
};
use crate::snapshot::{Place, Snapshot};
use crate::uri;
use crate::wire::{Wire, action_kind, address, markdown, symbol_kind};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Edit;
use lsp_server::{ErrorCode, Message, Request as Asked, RequestId, Response};
use lsp_types::*;
use serde_json::json;
use std::collections::HashMap;

/// Why there is no answer.
#[derive(Debug)]
enum Unanswered {
    /// The parameters are not those of the request.
    Params(String),
    /// It cannot be done, and why.
    Refused(String),
}

type Answer<T> = Result<T, Unanswered>;

/// A request about a place in a document.
trait At {
    fn at(&self) -> &TextDocumentPositionParams;
}

macro_rules! at {
    ($($params:ty),*) => {
        $(impl At for $params {
            fn at(&self) -> &TextDocumentPositionParams {
                &self.text_document_position_params
            }
        })*
    };
}

at!(
    HoverParams,
    CompletionParams,
    SignatureHelpParams,
    DefinitionParams,
    ReferenceParams,
    DocumentHighlightParams,
    PrepareRenameParams,
    RenameParams
);

impl Server<'_> {
    pub(super) fn request(&mut self, asked: Asked) {
        match asked.method.as_str() {
            "textDocument/hover" => self.answer::<HoverRequest>(asked, Self::hover),
            "textDocument/completion" => self.answer::<CompletionRequest>(asked, Self::complete),
            "textDocument/signatureHelp" => {
                self.answer::<SignatureHelpRequest>(asked, Self::signature);
            }
            "textDocument/definition" => self.answer::<DefinitionRequest>(asked, Self::definition),
            "textDocument/references" => self.answer::<ReferencesRequest>(asked, Self::references),
            "textDocument/documentHighlight" => {
                self.answer::<DocumentHighlightRequest>(asked, Self::highlight);
            }
            "textDocument/documentSymbol" => {
                self.answer::<DocumentSymbolRequest>(asked, Self::symbols);
            }
            "workspace/symbol" => self.answer::<WorkspaceSymbolRequest>(asked, Self::workspace),
            "textDocument/codeAction" => self.answer::<CodeActionRequest>(asked, Self::actions),
            "textDocument/codeLens" => self.answer::<CodeLensRequest>(asked, Self::lenses),
            "textDocument/formatting" => {
                self.answer::<DocumentFormattingRequest>(asked, Self::format);
            }
            "textDocument/rangeFormatting" => {
                self.answer::<DocumentRangeFormattingRequest>(asked, Self::format_range);
            }
            "textDocument/onTypeFormatting" => {
                self.answer::<DocumentOnTypeFormattingRequest>(asked, Self::format_typed);
            }
            "textDocument/prepareRename" => {
                self.answer::<PrepareRenameRequest>(asked, Self::prepare_rename);
            }
            "textDocument/rename" => self.answer::<RenameRequest>(asked, Self::rename),
            "textDocument/foldingRange" => self.answer::<FoldingRangeRequest>(asked, Self::folds),
            "textDocument/selectionRange" => {
                self.answer::<SelectionRangeRequest>(asked, Self::selections);
            }
            "textDocument/inlayHint" => self.answer::<InlayHintRequest>(asked, Self::hints),
            "textDocument/semanticTokens/full" => {
                self.answer::<SemanticTokensRequest>(asked, Self::tokens);
            }
            "textDocument/semanticTokens/range" => {
                self.answer::<SemanticTokensRangeRequest>(asked, Self::tokens_in);
            }
            "textDocument/diagnostic" => {
                self.answer::<DocumentDiagnosticRequest>(asked, Self::diagnostics);
            }
            "workspace/executeCommand" => self.command(asked),
            SOURCE => self.source(asked),
            method => {
                let said = format!("`{method}` is not something this server answers");
                self.fail(asked.id, ErrorCode::MethodNotFound, said);
            }
        }
    }

    fn answer<R: Request>(
        &mut self,
        asked: Asked,
        give: impl FnOnce(&mut Self, R::Params) -> Answer<R::Result>,
    ) {
        let answer = match serde_json::from_value(asked.params) {
            Ok(params) => give(self, params),
            Err(error) => Err(Unanswered::Params(error.to_string())),
        };
        let written = answer.and_then(|result| {
            serde_json::to_value(result).map_err(|error| Unanswered::Refused(error.to_string()))
        });
        match written {
            Ok(result) => self.respond(asked.id, result),
            Err(Unanswered::Params(said)) => self.fail(asked.id, ErrorCode::InvalidParams, said),
            Err(Unanswered::Refused(said)) => self.fail(asked.id, ErrorCode::RequestFailed, said),
        }
    }

    pub(super) fn fail(&self, id: RequestId, code: ErrorCode, said: String) {
        self.send(Message::Response(Response::new_err(id, code as i32, said)));
    }

    /// The document a request is about. One that is neither open nor on disk has no answers.
    fn about(&self, document: &TextDocumentIdentifier) -> Answer<Snapshot> {
        let path = uri::path(&document.uri.0);
        let missing = || Unanswered::Params(format!("no document {}", document.uri.0));
        self.snapshot(&path).ok_or_else(missing)
    }

    fn place(&self, params: &impl At) -> Answer<(Snapshot, usize)> {
        let at = params.at();
        let snapshot = self.about(&at.text_document)?;
        let offset = self.wire.offset(&snapshot.document, at.position);
        Ok((snapshot, offset))
    }

    fn hover(&mut self, params: HoverParams) -> Answer<Option<Hover>> {
        let (snapshot, offset) = self.place(&params)?;
        let found = hover::hover(&snapshot, offset);
        Ok(found.map(|found| Hover {
            contents: Contents::MarkupContent(markdown(found.text)),
            range: Some(self.wire.range(&snapshot.document, found.span)),
        }))
    }

    fn complete(&mut self, params: CompletionParams) -> Answer<Option<CompletionResponse>> {
        let (snapshot, offset) = self.place(&params)?;
        let items = completion::completion(&snapshot, offset);
        let items = items
            .iter()
            .enumerate()
            .map(|(at, item)| self.wire.item(&snapshot.document, item, at));
        Ok(Some(CompletionResponse::CompletionItemList(
            items.collect(),
        )))
    }

    fn signature(&mut self, params: SignatureHelpParams) -> Answer<Option<SignatureHelp>> {
        let (snapshot, offset) = self.place(&params)?;
        let Some(found) = signature::signature(&snapshot, offset) else {
            return Ok(None);
        };
        let parameters = found.parameters.iter().map(|range| ParameterInformation {
            // By its text: offsets would be counted in a unit of their own.
            label: ParameterInformationLabel::String(
                found.label.get(range.clone()).unwrap_or("").to_owned(),
            ),
            documentation: None,
        });
        let parameters: Vec<ParameterInformation> = parameters.collect();
        let active = u32::try_from(found.active).unwrap_or(u32::MAX);
        Ok(Some(SignatureHelp {
            signatures: vec![SignatureInformation {
                label: found.label.clone(),
                documentation: found
                    .about
                    .map(|about| Documentation::MarkupContent(markdown(about))),
                parameters: Some(parameters),
                active_parameter: None,
            }],
            active_signature: Some(0),
            active_parameter: Some(ActiveParameter::Int(active)),
        }))
    }

    fn definition(&mut self, params: DefinitionParams) -> Answer<Option<DefinitionResponse>> {
        let (snapshot, offset) = self.place(&params)?;
        let places = self.opened_by_editor(definition::definition(&snapshot, offset));
        if places.is_empty() {
            return Ok(None);
        }
        let locations = places
            .iter()
            .map(|place| self.wire.location(place))
            .collect();
        Ok(Some(DefinitionResponse::Definition(
            Definition::LocationList(locations),
        )))
    }

    fn references(&mut self, params: ReferenceParams) -> Answer<Option<Vec<Location>>> {
        let (snapshot, offset) = self.place(&params)?;
        let declaration = params.context.include_declaration;
        let places = references::references(&snapshot, offset, declaration);
        let places = self.opened_by_editor(places);
        Ok(Some(
            places
                .iter()
                .map(|place| self.wire.location(place))
                .collect(),
        ))
    }

    fn highlight(
        &mut self,
        params: DocumentHighlightParams,
    ) -> Answer<Option<Vec<DocumentHighlight>>> {
        let (snapshot, offset) = self.place(&params)?;
        let found = highlight::highlights(&snapshot, offset);
        let shown = found.iter().map(|found| DocumentHighlight {
            range: self.wire.range(&snapshot.document, found.span),
            kind: Some(if found.writes {
                DocumentHighlightKind::Write
            } else {
                DocumentHighlightKind::Read
            }),
        });
        Ok(Some(shown.collect()))
    }

    fn symbols(&mut self, params: DocumentSymbolParams) -> Answer<Option<DocumentSymbolResponse>> {
        let snapshot = self.about(&params.text_document)?;
        let document = &snapshot.document;
        let found = symbols::symbols(document);
        let shown = found
            .iter()
            .map(|symbol| self.wire.symbol(document, symbol));
        Ok(Some(DocumentSymbolResponse::DocumentSymbolList(
            shown.collect(),
        )))
    }

    fn workspace(
        &mut self,
        params: WorkspaceSymbolParams,
    ) -> Answer<Option<WorkspaceSymbolResponse>> {
        let found = symbols::workspace(&self.shelf, &params.query);
        #[allow(deprecated, reason = "the field is there, whether it is used or not")]
        let shown = found.iter().map(|(symbol, place)| SymbolInformation {
            deprecated: None,
            location: self.wire.location(place),
            base_symbol_information: BaseSymbolInformation {
                name: symbol.name.clone(),
                kind: symbol_kind(symbol.kind),
                tags: None,
                container_name: None,
            },
        });
        Ok(Some(WorkspaceSymbolResponse::SymbolInformationList(
            shown.collect(),
        )))
    }

    fn actions(&mut self, params: CodeActionParams) -> Answer<Option<Vec<CodeActionResponse>>> {
        let snapshot = self.about(&params.text_document)?;
        let document = &snapshot.document;
        let findings = self.findings(&snapshot);
        let range = self.wire.span(document, params.range);
        let wanted = |kind: &CodeActionKind| match &params.context.only {
            None => true,
            Some(only) => only.iter().any(|only| {
                let (only, kind) = (only.to_string(), kind.to_string());
                kind == only || kind.starts_with(&format!("{only}."))
            }),
        };
        let mut shown = Vec::new();
        for found in action::actions(&snapshot, &findings, range) {
            let kind = action_kind(found.kind);
            if !wanted(&kind) {
                continue;
            }
            let mends = found.mends.and_then(|at| findings.diagnostics.get(at));
            let diagnostics = mends.map(|mends| {
                vec![
                    self.wire
                        .diagnostic(document, &self.shelf, &findings, mends),
                ]
            });
            shown.push(CodeActionResponse::CodeAction(CodeAction {
                title: found.title,
                kind: Some(kind),
                is_preferred: diagnostics.is_some().then_some(true),
                diagnostics,
                edit: Some(WorkspaceEdit {
                    changes: Some(HashMap::from([(
                        params.text_document.uri.clone(),
                        self.edits(&snapshot, &found.edits),
                    )])),
                    ..WorkspaceEdit::default()
                }),
                ..CodeAction::default()
            }));
        }
        Ok(Some(shown))
    }

    fn edits(&self, snapshot: &Snapshot, edits: &[Edit]) -> Vec<TextEdit> {
        edits
            .iter()
            .map(|edit| self.wire.edit(&snapshot.document, edit))
            .collect()
    }

    fn lenses(&mut self, params: CodeLensParams) -> Answer<Option<Vec<CodeLens>>> {
        let snapshot = self.about(&params.text_document)?;
        let document = &snapshot.document;
        if document.kind == Kind::Policy {
            self.want_verdicts(&snapshot);
        }
        let none = Slow::default();
        let slow = self.slow.get(&document.path).unwrap_or(&none);
        let shown = lens::lenses(&snapshot, slow).into_iter().map(|found| {
            let arguments = found.runs.as_ref().map(|run| {
                let mut arguments = vec![json!(uri::of(&run.path))];
                arguments.extend(run.test.as_ref().map(|test| json!(test)));
                arguments
            });
            CodeLens {
                range: self.wire.range(document, found.span),
                command: Some(Command {
                    title: found.title,
                    tooltip: None,
                    // Without a command a lens is only a text.
                    command: arguments.as_ref().map_or("", |_| TEST).to_owned(),
                    arguments,
                }),
                data: None,
            }
        });
        Ok(Some(shown.collect()))
    }

    fn format(&mut self, params: DocumentFormattingParams) -> Answer<Option<Vec<TextEdit>>> {
        let snapshot = self.about(&params.text_document)?;
        let edits = formatting::document(&snapshot.document);
        Ok(edits.map(|edits| self.edits(&snapshot, &edits)))
    }

    fn format_range(
        &mut self,
        params: DocumentRangeFormattingParams,
    ) -> Answer<Option<Vec<TextEdit>>> {
        let snapshot = self.about(&params.text_document)?;
        let range = self.wire.span(&snapshot.document, params.range);
        let edits = formatting::range(&snapshot.document, range);
        Ok(edits.map(|edits| self.edits(&snapshot, &edits)))
    }

    fn format_typed(
        &mut self,
        params: DocumentOnTypeFormattingParams,
    ) -> Answer<Option<Vec<TextEdit>>> {
        let snapshot = self.about(&params.text_document)?;
        let offset = self.wire.offset(&snapshot.document, params.position);
        let edits = formatting::on_type(&snapshot.document, offset);
        Ok(edits.map(|edits| self.edits(&snapshot, &edits)))
    }

    fn prepare_rename(
        &mut self,
        params: PrepareRenameParams,
    ) -> Answer<Option<PrepareRenameResult>> {
        let (snapshot, offset) = self.place(&params)?;
        let (span, placeholder) = rename::prepare(&snapshot, offset)
            .map_err(|refusal| Unanswered::Refused(refusal.to_string()))?;
        Ok(Some(PrepareRenameResult::PrepareRenamePlaceholder(
            PrepareRenamePlaceholder {
                range: self.wire.range(&snapshot.document, span),
                placeholder,
            },
        )))
    }

    fn rename(&mut self, params: RenameParams) -> Answer<Option<WorkspaceEdit>> {
        let (snapshot, offset) = self.place(&params)?;
        let changes = rename::rename(&snapshot, offset, &params.new_name)
            .map_err(|refusal| Unanswered::Refused(refusal.to_string()))?;
        Ok(Some(workspace_edit(self.wire, &changes)))
    }

    fn folds(&mut self, params: FoldingRangeParams) -> Answer<Option<Vec<FoldingRange>>> {
        let snapshot = self.about(&params.text_document)?;
        let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
        let folds = folding::folds(&snapshot);
        let shown = folds.iter().map(|fold| FoldingRange {
            start_line: line(fold.first),
            end_line: line(fold.last),
            kind: fold.comment.then_some(FoldingRangeKind::Comment),
            ..FoldingRange::default()
        });
        Ok(Some(shown.collect()))
    }

    fn selections(&mut self, params: SelectionRangeParams) -> Answer<Option<Vec<SelectionRange>>> {
        let snapshot = self.about(&params.text_document)?;
        let document = &snapshot.document;
        let chain = |position: &Position| {
            let offset = self.wire.offset(document, *position);
            let spans = selection::selection(&snapshot, offset);
            let mut parent: Option<Box<SelectionRange>> = None;
            for span in spans.iter().rev() {
                let range = self.wire.range(document, *span);
                parent = Some(Box::new(SelectionRange { range, parent }));
            }
            // Each place asked about needs an answer.
            parent.map_or_else(
                || SelectionRange {
                    range: self.wire.range(document, Span::at(offset)),
                    parent: None,
                },
                |whole| *whole,
            )
        };
        Ok(Some(params.positions.iter().map(chain).collect()))
    }

    fn hints(&mut self, params: InlayHintParams) -> Answer<Option<Vec<InlayHint>>> {
        let snapshot = self.about(&params.text_document)?;
        let range = self.wire.span(&snapshot.document, params.range);
        let hints = inlay::hints(&snapshot, range);
        let shown = hints
            .iter()
            .map(|hint| self.wire.hint(&snapshot.document, hint));
        Ok(Some(shown.collect()))
    }

    fn tokens(&mut self, params: SemanticTokensParams) -> Answer<Option<SemanticTokens>> {
        let snapshot = self.about(&params.text_document)?;
        let whole = Span::new(0, snapshot.text().len());
        Ok(Some(self.tokens_of(&snapshot, whole)))
    }

    fn tokens_in(&mut self, params: SemanticTokensRangeParams) -> Answer<Option<SemanticTokens>> {
        let snapshot = self.about(&params.text_document)?;
        let range = self.wire.span(&snapshot.document, params.range);
        Ok(Some(self.tokens_of(&snapshot, range)))
    }

    fn tokens_of(&self, snapshot: &Snapshot, range: Span) -> SemanticTokens {
        let found = tokens::tokens(&snapshot.document, range);
        SemanticTokens {
            result_id: None,
            data: self.wire.tokens(&snapshot.document, &found),
        }
    }

    fn diagnostics(
        &mut self,
        params: DocumentDiagnosticParams,
    ) -> Answer<DocumentDiagnosticReport> {
        let snapshot = self.about(&params.text_document)?;
        let findings = self.findings(&snapshot);
        let items = self
            .wire
            .diagnostics(&snapshot.document, &self.shelf, &findings);
        Ok(
            DocumentDiagnosticReport::RelatedFullDocumentDiagnosticReport(
                RelatedFullDocumentDiagnosticReport {
                    related_documents: None,
                    full_document_diagnostic_report: FullDocumentDiagnosticReport {
                        result_id: None,
                        items,
                    },
                },
            ),
        )
    }

    /// Places that the editor can open.
    fn opened_by_editor(&self, places: Vec<Place>) -> Vec<Place> {
        let mut places = places;
        places.retain(|place| self.opens_builtin || !builtin::is(&place.document.path));
        places
    }
}

fn workspace_edit(wire: Wire, changes: &Changes) -> WorkspaceEdit {
    let by_document = changes.iter().map(|(document, edits)| {
        let edits = edits.iter().map(|edit| wire.edit(document, edit)).collect();
        (address(&document.path), edits)
    });
    WorkspaceEdit {
        changes: Some(by_document.collect()),
        ..WorkspaceEdit::default()
    }
}
