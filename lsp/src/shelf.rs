//! All documents: those an editor has open, over those on disk, and which schemas go with which.
//!
//! A shelf is cheap to clone and does not change under who holds it, apart from what it remembers of the disk.

use crate::builtin;
use crate::document::{Document, Kind};
use dogwood_compiler::compile::Source;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::macros::Library;
use dogwood_compiler::project::{self, Files, Tested};
use dogwood_compiler::providers::{Providers, load_providers};
use dogwood_compiler::schema::{self, Service, box_service, default_events};
use dogwood_compiler::suite;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The file system, as far as a language server looks at it.
pub trait Disk: Files + Send + Sync {
    fn read(&self, path: &Path) -> Option<String>;
    fn folders(&self, folder: &Path) -> Vec<PathBuf>;
}

/// What an author says in the settings of the editor: the options of `dogwood check`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    pub policy_schema: Option<PathBuf>,
    pub event_schema: Option<PathBuf>,
    pub macros: Option<PathBuf>,
    pub providers: Option<PathBuf>,
    /// Permit the experimental arithmetic of temporal blocks.
    pub experimental_arithmetic: bool,
}

/// Which schema a document is read against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    /// A box's own, by its `box.toml`.
    Box(PathBuf),
    Files,
}

/// What a policy is checked against.
#[derive(Debug)]
pub struct Setup {
    pub origin: Origin,
    /// As much of it as could be read.
    pub service: Arc<Service>,
    pub action_schema: Option<Arc<Document>>,
    pub event_schema: Option<Arc<Document>>,
    pub macros: Option<Arc<Document>>,
    pub providers: Option<Source>,
    /// A schema or the declarations are broken: rules cannot be checked against them.
    pub broken: Vec<PathBuf>,
    /// The macros every policy has, or those of the library instead.
    pub library: Library,
    pub arithmetic: bool,
}

impl Setup {
    /// Where the information provider of a name is declared.
    pub fn provider(&self, name: &str) -> Option<(Arc<Document>, Span)> {
        let declared = self.service.providers.get(name)?;
        let source = self.providers.as_ref()?;
        let (path, text) = (PathBuf::from(&source.name), source.text.clone());
        let document = Document::new(path, Kind::Other, 0, text);
        Some((Arc::new(document), declared.span))
    }

    /// The action schema, whether somebody wrote it or it is built in.
    pub fn actions(&self) -> &Arc<Document> {
        self.action_schema.as_ref().unwrap_or(builtin::actions())
    }

    /// The event schema, whether somebody wrote it or it is built in.
    pub fn events(&self) -> &Arc<Document> {
        match (&self.event_schema, &self.action_schema) {
            (Some(written), _) => written,
            (None, Some(_)) => builtin::default_events(),
            (None, None) => builtin::box_events(),
        }
    }
}

#[derive(Default)]
struct Memory {
    documents: BTreeMap<PathBuf, Option<Arc<Document>>>,
    setups: BTreeMap<PathBuf, Arc<Setup>>,
    all: Option<Arc<BTreeSet<PathBuf>>>,
}

#[derive(Clone)]
pub struct Shelf {
    disk: Arc<dyn Disk>,
    open: BTreeMap<PathBuf, Arc<Document>>,
    pub roots: Vec<PathBuf>,
    pub settings: Settings,
    memory: Arc<Mutex<Memory>>,
}

/// Most files of a workspace that are looked into.
const MOST_FILES: usize = 2_000;
const DEEPEST: usize = 16;

impl Shelf {
    pub fn new(disk: Arc<dyn Disk>) -> Shelf {
        Shelf {
            disk,
            open: BTreeMap::new(),
            roots: Vec::new(),
            settings: Settings::default(),
            memory: Arc::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // What is remembered can be read again; a panic elsewhere leaves it whole.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something beside the open texts may have changed.
    pub fn forget(&mut self) {
        self.memory = Arc::default();
    }

    pub fn open(&mut self, document: Document) {
        self.forget();
        self.open.insert(document.path.clone(), Arc::new(document));
    }

    /// An open document after an edit.
    pub fn replace(&mut self, document: Document) {
        if document.kind == Kind::Policy && !self.is_library(&document.path) {
            // Of other documents, a policy matters to its tests only, and they read it anew.
        } else {
            self.forget();
        }
        self.open.insert(document.path.clone(), Arc::new(document));
    }

    /// Whether another open document takes its macros from here.
    pub fn is_library(&self, path: &Path) -> bool {
        let mut others = self.open.keys().filter(|other| *other != path);
        others.any(|other| {
            let macros = &self.setup(other).macros;
            macros.as_ref().is_some_and(|macros| macros.path == path)
        })
    }

    pub fn close(&mut self, path: &Path) {
        self.open.remove(path);
        self.forget();
    }

    pub fn opened(&self) -> impl Iterator<Item = &Arc<Document>> {
        self.open.values()
    }

    pub fn is_open(&self, path: &Path) -> bool {
        self.open.contains_key(path)
    }

    /// The text of any file, as the editor has it or as it is on disk.
    pub fn read(&self, path: &Path) -> Option<String> {
        match self.open.get(path) {
            Some(document) => Some(document.text.clone()),
            None => self.disk.read(path),
        }
    }

    pub fn document(&self, path: &Path) -> Option<Arc<Document>> {
        if let Some(document) = self.open.get(path) {
            return Some(Arc::clone(document));
        }
        if let Some(document) = builtin::document(path) {
            return Some(Arc::clone(document));
        }
        if let Some(known) = self.memory().documents.get(path) {
            return known.clone();
        }
        let read = Kind::of(path).and_then(|kind| {
            let text = self.disk.read(path)?;
            Some(Arc::new(Document::new(path.to_path_buf(), kind, 0, text)))
        });
        self.memory()
            .documents
            .insert(path.to_path_buf(), read.clone());
        read
    }

    /// A document that somebody says is of a kind, whatever its name ends with.
    fn named_as(&self, path: &Path, kind: Kind) -> Option<Arc<Document>> {
        if Kind::of(path) == Some(kind) {
            return self.document(path);
        }
        let text = self.read(path)?;
        Some(Arc::new(Document::new(path.to_path_buf(), kind, 0, text)))
    }

    /// A file of any kind, to lead to.
    pub fn file(&self, path: &Path) -> Option<Arc<Document>> {
        let kind = Kind::of(path).unwrap_or(Kind::Other);
        self.named_as(path, kind)
    }

    /// Every document of the workspace, and those beside the open ones.
    pub fn all(&self) -> Arc<BTreeSet<PathBuf>> {
        if let Some(all) = &self.memory().all {
            return Arc::clone(all);
        }
        let mut found: BTreeSet<PathBuf> = self.open.keys().cloned().collect();
        for root in &self.roots {
            self.below(root, 0, &mut found);
        }
        let folders: BTreeSet<&Path> = self.open.keys().filter_map(|path| path.parent()).collect();
        for folder in folders {
            found.extend(self.beside(folder));
        }
        let all = Arc::new(found);
        self.memory().all = Some(Arc::clone(&all));
        all
    }

    fn beside(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let files = self.disk.list(folder).into_iter();
        files.filter(|path| Kind::of(path).is_some())
    }

    fn below(&self, folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
        if depth > DEEPEST || found.len() > MOST_FILES {
            return;
        }
        found.extend(self.beside(folder));
        for inner in self.disk.folders(folder) {
            let name = inner.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                self.below(&inner, depth + 1, found);
            }
        }
    }

    /// The files directly in a folder, whatever they are.
    pub fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let mut all: BTreeSet<PathBuf> = self
            .disk
            .list(folder)
            .into_iter()
            .map(|path| plain(&path))
            .collect();
        let open = self.open.keys();
        all.extend(open.filter(|path| path.parent() == Some(folder)).cloned());
        all.into_iter().collect()
    }

    /// What a test file is about, as far as it can be read.
    pub fn tested(&self, test: &Document) -> Result<Tested, Box<Diagnostic>> {
        let (header, _) = suite::header_of(test.tests());
        let tested = project::tested(&test.path, &header, self)?;
        let optional = |path: Option<PathBuf>| path.map(|path| plain(&path));
        Ok(Tested {
            policies: tested.policies.iter().map(|path| plain(path)).collect(),
            policy_schema: optional(tested.policy_schema),
            event_schema: optional(tested.event_schema),
            macros: optional(tested.macros),
            providers: optional(tested.providers),
        })
    }

    /// The test files about a policy.
    pub fn tests_of(&self, policy: &Path) -> Vec<Arc<Document>> {
        let mut all = self.all();
        if !all.contains(policy) {
            // Of no folder that is open.
            let beside = policy.parent().into_iter();
            let beside = beside.flat_map(|folder| self.beside(folder));
            all = Arc::new(all.iter().cloned().chain(beside).collect());
        }
        let tests = all
            .iter()
            .filter(|path| Kind::of(path) == Some(Kind::Tests));
        tests
            .filter_map(|path| self.document(path))
            .filter(|test| {
                let tested = self.tested(test);
                tested.is_ok_and(|tested| tested.policies.iter().any(|path| path == policy))
            })
            .collect()
    }

    /// What a document is read against: what its tests or the settings name, else what `check` finds.
    pub fn setup(&self, path: &Path) -> Arc<Setup> {
        if let Some(setup) = self.memory().setups.get(path) {
            return Arc::clone(setup);
        }
        let setup = Arc::new(self.load(path));
        self.memory()
            .setups
            .insert(path.to_path_buf(), Arc::clone(&setup));
        setup
    }

    /// The files that the settings name.
    fn set(&self) -> Tested {
        let absolute = |path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            let root = self.roots.first();
            Some(plain(
                &root.map_or_else(|| path.clone(), |root| root.join(path)),
            ))
        };
        Tested {
            policies: Vec::new(),
            policy_schema: absolute(&self.settings.policy_schema),
            event_schema: absolute(&self.settings.event_schema),
            macros: absolute(&self.settings.macros),
            providers: absolute(&self.settings.providers),
        }
    }

    /// What the settings name and is not there: the setting, and the file.
    pub fn missing(&self) -> Vec<(&'static str, PathBuf)> {
        let set = self.set();
        let all = [
            ("policySchema", set.policy_schema),
            ("eventSchema", set.event_schema),
            ("macros", set.macros),
            ("providers", set.providers),
        ];
        let named = all
            .into_iter()
            .filter_map(|(setting, path)| Some((setting, path?)));
        named
            .filter(|(_, path)| !Files::is_file(self, path))
            .collect()
    }

    fn named(&self, path: &Path) -> Tested {
        let settings = self.set();
        let by_tests = match Kind::of(path) {
            Some(Kind::Tests) => self
                .document(path)
                .and_then(|test| self.tested(&test).ok())
                .into_iter()
                .collect(),
            Some(Kind::Policy) => {
                let tests = self.tests_of(path);
                let named = tests.iter().filter_map(|test| self.tested(test).ok());
                named.collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        let first =
            |of: fn(&Tested) -> &Option<PathBuf>| by_tests.iter().find_map(|t| of(t).clone());
        Tested {
            policies: Vec::new(),
            policy_schema: first(|t| &t.policy_schema).or(settings.policy_schema),
            event_schema: first(|t| &t.event_schema).or(settings.event_schema),
            macros: first(|t| &t.macros).or(settings.macros),
            providers: first(|t| &t.providers).or(settings.providers),
        }
    }

    fn load(&self, path: &Path) -> Setup {
        let mut named = self.named(path);
        // A schema that is being written is read against itself.
        match Kind::of(path) {
            Some(Kind::ActionSchema) => named.policy_schema = Some(path.to_path_buf()),
            Some(Kind::EventSchema) => {
                named.event_schema = Some(path.to_path_buf());
                if named.policy_schema.is_none() {
                    named.policy_schema = self.only_schema_beside(path);
                }
            }
            _ => {}
        }
        let mut broken = Vec::new();
        let mut find = |path: &Option<PathBuf>, kind: Kind| {
            let path = path.as_ref()?;
            let found = self.named_as(path, kind);
            if found.is_none() {
                broken.push(path.clone());
            }
            found
        };
        let action_schema = find(&named.policy_schema, Kind::ActionSchema);
        let event_schema = find(&named.event_schema, Kind::EventSchema);
        let macros = find(&named.macros, Kind::Policy);
        let mut service = match (&action_schema, &event_schema) {
            (None, None) => boxed().clone(),
            (actions, events) => {
                let actions = match actions {
                    None => boxed().actions.clone(),
                    Some(document) => {
                        let (actions, errors) = resolved(document);
                        if errors {
                            broken.push(document.path.clone());
                        }
                        actions
                    }
                };
                let events = match events {
                    None => default_events(&actions),
                    Some(document) => {
                        let parsed = document.event_schema();
                        let (events, errors) = schema::derive(&parsed.tree, &actions);
                        if !errors.is_empty() || !parsed.errors.is_empty() {
                            broken.push(document.path.clone());
                        }
                        events
                    }
                };
                Service {
                    actions,
                    events,
                    ..Service::default()
                }
            }
        };
        let mut providers = None;
        if let Some(path) = &named.providers {
            match self.providers(path) {
                Some((source, Some(loaded))) => {
                    service.providers = Arc::new(loaded);
                    providers = Some(source);
                }
                Some((source, None)) => {
                    broken.push(path.clone());
                    providers = Some(source);
                }
                None => broken.push(path.clone()),
            }
        }
        let origin = match path.parent() {
            _ if action_schema.is_some() || event_schema.is_some() => Origin::Files,
            Some(folder) => match project::nearest_box(folder, self) {
                Some(found) => Origin::Box(found),
                None => Origin::BuiltIn,
            },
            None => Origin::BuiltIn,
        };
        let library = match &macros {
            Some(document) => Library::define(&document.policy().tree).0,
            None => Library::builtin(),
        };
        Setup {
            origin,
            service: Arc::new(service),
            action_schema,
            event_schema,
            macros,
            providers,
            broken,
            library,
            arithmetic: self.settings.experimental_arithmetic,
        }
    }

    fn only_schema_beside(&self, path: &Path) -> Option<PathBuf> {
        let folder = path.parent()?;
        let mut beside = self.list(folder);
        beside.retain(|path| Kind::of(path) == Some(Kind::ActionSchema));
        match beside.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    fn providers(&self, path: &Path) -> Option<(Source, Option<Providers>)> {
        let source = Source {
            name: path.display().to_string(),
            text: self.read(path)?,
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let script = |name: &str| {
            let text = self.read(&folder.join(name));
            text.ok_or_else(|| "there is no such file".to_owned())
        };
        let loaded = load_providers(&source, &script).ok().map(|(all, _)| all);
        Some((source, loaded))
    }
}

fn resolved(document: &Document) -> (schema::ActionSchema, bool) {
    if document.is_json() {
        let (tree, unread) = schema::json::read(&document.text);
        let (actions, errors) = schema::resolve(&tree);
        return (actions, !unread.is_empty() || !errors.is_empty());
    }
    let parsed = document.action_schema();
    let (actions, errors) = schema::resolve(&parsed.tree);
    (actions, !errors.is_empty() || !parsed.errors.is_empty())
}

/// What a box decides about, read once.
fn boxed() -> &'static Service {
    static BOX: OnceLock<Service> = OnceLock::new();
    BOX.get_or_init(box_service)
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

impl Files for Shelf {
    fn is_file(&self, path: &Path) -> bool {
        self.open.contains_key(path) || self.disk.is_file(path)
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        Shelf::list(self, folder)
    }
}
