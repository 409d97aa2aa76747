//! Information providers: values computed outside the policy, declared in a JSON file and asked with
//! `Ns::Name(…)` (language reference, section 5).
//!
//! ```text
//! providers.json ─ declare ─► Providers ─ export ─► enumerated types beside the action schema
//!                                 │
//! Ns::F(…).m(…) ─ chain ─► Call ─ answer ─► Value        (resolver, else script; then the methods)
//! ```
//!
//! Reading a script from its file is the business of whoever calls [`load_providers`].

mod answer;
mod call;
mod chain;
mod declare;
mod error;
mod export;
mod script;

pub use answer::ProviderError;
pub use chain::{Chain, chain, chains};
pub use error::{DeclarationError, DeclarationProblem};
pub use export::{Export, ExportClash, exports, home};
pub use script::{ScriptError, Stage};

pub(crate) use call::{Arg, Call, argument};

use crate::compile::{Source, finish, without_mark};
use crate::json;
use crate::schema::Type;
use crate::value::Value;
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use script::Script;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The providers a policy may ask, and what answers for them.
#[derive(Clone, Debug, Default)]
pub struct Providers {
    providers: BTreeMap<SmolStr, Provider>,
    /// By the name declared, as policies write it.
    enums: BTreeMap<SmolStr, EnumType>,
    resolver: Option<Arc<dyn Resolver>>,
}

/// One declared provider. The types name entities as the declarations do.
#[derive(Clone, Debug)]
pub struct Provider {
    pub args: Vec<Type>,
    pub output: Type,
    pub methods: BTreeMap<SmolStr, ProviderMethod>,
    /// Of its name in the declarations.
    pub span: Span,
    script: Option<Arc<dyn Script>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderMethod {
    pub args: Vec<Type>,
    pub output: Type,
    /// What the stage before must give, where the declaration says.
    pub input: Option<Type>,
}

/// An enumerated entity type that providers may give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumType {
    pub choices: Vec<SmolStr>,
    pub annotations: BTreeMap<SmolStr, SmolStr>,
    /// Of its name in the declarations.
    pub span: Span,
}

/// A host that answers for providers itself.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The base value of a call, before any methods; nothing to let the declared script answer. An
    /// argument that is not there is `Null`.
    fn resolve(&self, provider: &str, args: &[Value]) -> Option<Result<Value, String>>;
}

impl Providers {
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &SmolStr> {
        self.providers.keys()
    }

    pub fn enums(&self) -> &BTreeMap<SmolStr, EnumType> {
        &self.enums
    }

    /// These providers, with a host that is asked before their scripts.
    #[must_use]
    pub fn resolved_by(mut self, resolver: Arc<dyn Resolver>) -> Providers {
        self.resolver = Some(resolver);
        self
    }
}

impl Provider {
    /// The entity types its declaration names, in order of their names.
    pub fn entity_types(&self) -> impl Iterator<Item = &SmolStr> {
        let methods = self.methods.values().flat_map(|method| {
            let input = method.input.iter();
            method.args.iter().chain(input).chain([&method.output])
        });
        let mut found = std::collections::BTreeSet::new();
        for ty in self.args.iter().chain([&self.output]).chain(methods) {
            entities_in(ty, &mut |name| {
                found.insert(name);
            });
        }
        found.into_iter()
    }
}

pub(crate) fn entities_in<'t>(ty: &'t Type, found: &mut dyn FnMut(&'t SmolStr)) {
    match ty {
        Type::Entity(name) => found(name),
        Type::Set(element) => entities_in(element, found),
        Type::Record(record) => {
            for attr in record.attrs.values() {
                entities_in(&attr.ty, found);
            }
        }
        _ => {}
    }
}

/// Reads declarations and compiles their scripts; `scripts` reads the file a `scriptFile` names. With
/// warnings, or everything that is wrong.
pub fn load_providers(
    source: &Source,
    scripts: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(Providers, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (providers, found) = read(source, Some(scripts));
    let warnings = finish(found)?;
    Ok((providers, warnings))
}

/// Checks declarations by themselves; a script in a file of its own is not looked at.
pub fn check(source: &Source) -> Vec<Diagnostic> {
    let (_, found) = read(source, None);
    finish(found).unwrap_or_else(|all| all)
}

/// Reads the file a `scriptFile` names; none where scripts are not looked at.
type ReadScript<'a> = Option<&'a dyn Fn(&str) -> Result<String, String>>;

fn read(source: &Source, scripts: ReadScript<'_>) -> (Providers, Vec<Diagnostic>) {
    let text = without_mark(&source.text);
    let (providers, errors) = match json::parse(&text) {
        Ok(root) => declare::providers(&root, scripts),
        Err(error) => (
            Providers::default(),
            vec![DeclarationError {
                span: error.span,
                problem: DeclarationProblem::NotJson(error.problem),
            }],
        ),
    };
    let found = errors.iter().map(DeclarationError::diagnostic).collect();
    (providers, found)
}
