//! An action schema from the list of tools an MCP server gives (language reference, "Action schema from
//! an MCP tool manifest").
//!
//! ```text
//! manifest ─ tools ─► Tool ─ convert ─► action `T`, types `TInput` and `TOutput`, entity types for objects
//! ```
//!
//! Every tool is an action in `CallTool`, and every action in `Mcp`: a rule can speak of one tool or of all.

mod convert;
mod error;
mod manifest;
mod names;

pub use error::{ManifestError, ManifestProblem};

use crate::compile::Source;
use crate::json;
use crate::schema::write;
use convert::Converter;
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{
    ActionRef, ActionSchemaFile, AppliesTo, AttrDecl, Decl, DeclKind, EntityBody, Namespace,
    RecordTy, Ty, TyKind,
};
use dogwood_grammar::diagnostic::Diagnostic;
use dogwood_grammar::print::lay_out_action_schema;
use names::Names;

/// The namespace of what is made.
pub const NAMESPACE: &str = "Drupe";
const PRINCIPAL: &str = "User";
const RESOURCE: &str = "Gateway";
/// The group of every action, and the group of every tool.
const ALL: &str = "Mcp";
const TOOLS: &str = "CallTool";
const SYSTEM: &str = "SystemContext";

/// The schema as text, or everything that is wrong with the manifest.
pub fn from_manifest(source: &Source) -> Result<String, Vec<Diagnostic>> {
    let text = match source.text.strip_prefix('\u{feff}') {
        // So that places stay what they are.
        Some(rest) => format!("   {rest}"),
        None => source.text.clone(),
    };
    let (file, errors) = match json::parse(&text) {
        Ok(manifest) => schema(&manifest),
        Err(error) => {
            let problem = ManifestProblem::NotJson(error.problem);
            let span = error.span;
            (
                ActionSchemaFile::default(),
                vec![ManifestError { span, problem }],
            )
        }
    };
    let mut found: Vec<Diagnostic> = errors.iter().map(ManifestError::diagnostic).collect();
    found.sort_by_key(|d| d.span.start);
    if found.is_empty() {
        Ok(lay_out_action_schema(&file))
    } else {
        Err(found)
    }
}

/// Converts what can be converted; the schema is to be used only if there is no error.
fn schema(manifest: &json::Json) -> (ActionSchemaFile, Vec<ManifestError>) {
    let mut errors = Vec::new();
    let tools = manifest::tools(manifest, &mut errors);
    let mut names = Names::reserving(&[PRINCIPAL, RESOURCE, SYSTEM, "Action"]);
    let mut decls = template();
    for tool in &tools {
        let mut converter = Converter::new(&mut names, &mut errors);
        let input = converter.params(&tool.name, "Input", tool.span, Some(tool.input));
        let output = converter.params(&tool.name, "Output", tool.span, tool.output);
        decls.append(&mut converter.finish());
        let context = vec![
            attr("input", false, named(&input)),
            attr("output", true, named(&output)),
            attr("system", false, named(SYSTEM)),
        ];
        decls.push(action(&tool.name, &[TOOLS], context));
    }
    let mut opaque = names.opaque();
    opaque.append(&mut decls);
    let namespace = Namespace {
        annotations: Vec::new(),
        name: Some(write::name(NAMESPACE)),
        decls: opaque,
        span: Span::default(),
    };
    let namespaces = vec![namespace];
    (ActionSchemaFile { namespaces }, errors)
}

/// What every schema has, whatever the tools are.
fn template() -> Vec<Decl> {
    let entity = |name| {
        write::decl(DeclKind::Entity {
            names: vec![write::ident(name)],
            body: EntityBody::Standard {
                parents: Vec::new(),
                attrs: None,
                tags: None,
            },
        })
    };
    let umbrella = || {
        vec![
            attr("isOutput", false, named("Bool")),
            attr("output", true, record(Vec::new())),
            attr("system", false, named(SYSTEM)),
        ]
    };
    vec![
        entity(PRINCIPAL),
        entity(RESOURCE),
        ty_decl(SYSTEM, record(vec![attr("now", false, named("datetime"))])),
        action(ALL, &[], umbrella()),
        action(TOOLS, &[ALL], umbrella()),
    ]
}

fn action(name: &str, parents: &[&str], context: Vec<AttrDecl>) -> Decl {
    let parent = |id: &&str| ActionRef {
        ty: None,
        id: write::string(id),
        span: Span::default(),
    };
    write::decl(DeclKind::Action {
        names: vec![write::string(name)],
        parents: parents.iter().map(parent).collect(),
        applies_to: Some(AppliesTo {
            principals: vec![write::name(PRINCIPAL)],
            resources: vec![write::name(RESOURCE)],
            context: Some(record(context)),
            span: Span::default(),
        }),
    })
}

fn attr(name: &str, optional: bool, ty: Ty) -> AttrDecl {
    AttrDecl {
        annotations: Vec::new(),
        name: write::string(name),
        optional,
        ty,
        span: Span::default(),
    }
}

fn named(name: &str) -> Ty {
    write::ty_of(TyKind::Name(write::name(name)))
}

fn record(attrs: Vec<AttrDecl>) -> Ty {
    let span = Span::default();
    write::ty_of(TyKind::Record(RecordTy { attrs, span }))
}

fn ty_decl(name: &str, ty: Ty) -> Decl {
    let name = write::ident(name);
    write::decl(DeclKind::Type { name, ty })
}

#[cfg(test)]
mod tests;
