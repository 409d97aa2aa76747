//! Calls of information providers: their names, what they are given, and what can be done with what they give.

use super::Here;
use crate::cursor::is_name;
use crate::feature::completion::{ItemKind, Items};
use crate::mark::Root;
use dogwood_compiler::providers::{Provider, ProviderMethod};
use dogwood_compiler::schema::{RecordType, Type};

/// Paths into a request are offered this long.
const LONGEST: usize = 4;

/// What stands behind a call of a provider: `.name` or `.name(…)`.
struct Step<'t> {
    name: &'t str,
    called: bool,
}

/// What a chain of a provider gives, as far as it is written.
pub(super) struct Stage<'a> {
    provider: &'a Provider,
    pub(super) ty: Type,
    /// Nothing but the provider's own methods stands behind its call.
    own: bool,
}

impl<'a> Here<'a> {
    pub(super) fn word(&self, at: usize) -> &'a str {
        self.cursor.before.get(at).map_or("", |word| word.text)
    }

    /// The qualified name that ends before a token.
    fn qualified_before(&self, end: usize) -> Option<String> {
        let mut at = end.checked_sub(1)?;
        let mut words = vec![self.word(at)];
        while at >= 2 && self.word(at - 1) == "::" && is_name(self.word(at - 2)) {
            at -= 2;
            words.push(self.word(at));
        }
        words.reverse();
        (words.len() > 1 && words.iter().all(|word| is_name(word))).then(|| words.join("::"))
    }

    /// The parenthesis that the one at `close` closes.
    pub(super) fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in (0..=close).rev() {
            match self.word(at) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }

    /// What the call of a provider gives that ends before a token, with what stands behind it.
    pub(super) fn stage(&self, end: usize) -> Option<Stage<'a>> {
        let mut end = end;
        let mut steps: Vec<Step<'a>> = Vec::new();
        let provider = loop {
            let last = end.checked_sub(1)?;
            let called = self.word(last) == ")";
            let name = if called {
                self.opening(last)?.checked_sub(1)?
            } else {
                last
            };
            let before = name.checked_sub(1)?;
            match self.word(before) {
                "." if is_name(self.word(name)) => {
                    let name = self.word(name);
                    steps.push(Step { name, called });
                    end = before;
                }
                "::" if called => {
                    let full = self.qualified_before(name + 1)?;
                    break self.snapshot.setup.service.providers.get(&full)?;
                }
                _ => return None,
            }
        };
        let mut stage = Stage {
            provider,
            ty: provider.output.clone(),
            own: true,
        };
        for step in steps.iter().rev() {
            stage = self.after(stage, step)?;
        }
        Some(stage)
    }

    fn after(&self, stage: Stage<'a>, step: &Step<'_>) -> Option<Stage<'a>> {
        let provider = stage.provider;
        if step.called {
            let method = provider.methods.get(step.name).filter(|_| stage.own)?;
            return Some(Stage {
                provider,
                ty: method.output.clone(),
                own: true,
            });
        }
        let attr = self.attributes(&stage.ty)?.attrs.get(step.name)?;
        Some(Stage {
            provider,
            ty: attr.ty.clone(),
            own: false,
        })
    }

    fn attributes<'t>(&self, ty: &'t Type) -> Option<&'t RecordType>
    where
        'a: 't,
    {
        match ty {
            Type::Record(record) => Some(record),
            Type::Entity(name) => {
                let types = &self.snapshot.setup.service.actions.entity_types;
                types.get(name).map(|entity| &entity.attrs)
            }
            _ => None,
        }
    }

    /// Behind the dot after a call: the provider's methods that take what stands before, and its fields.
    pub(super) fn of_stage(&self, stage: &Stage<'_>, items: &mut Items) {
        if stage.own {
            let methods = stage.provider.methods.iter();
            let takes = |method: &ProviderMethod| {
                let input = method.input.as_ref();
                input.is_none_or(|input| *input == stage.ty)
            };
            for (name, method) in methods.filter(|(_, method)| takes(method)) {
                let detail = signature(&method.args, &method.output);
                items.snippet(
                    ItemKind::Function,
                    name,
                    &detail,
                    None,
                    call(name, &method.args),
                );
            }
        }
        for (name, attr) in self
            .attributes(&stage.ty)
            .into_iter()
            .flat_map(|record| &record.attrs)
        {
            items.word(ItemKind::Field, name, &typed(&attr.ty, attr.required), None);
        }
    }

    /// Providers behind `Ns::`, and the values of the enumerated types they give.
    pub(super) fn provided(&self, path: &str, items: &mut Items) {
        let providers = &self.snapshot.setup.service.providers;
        if let Some(given) = providers.enums().get(path) {
            for choice in &given.choices {
                let label = if self.cursor.in_string {
                    choice.to_string()
                } else {
                    format!("\"{choice}\"")
                };
                items.word(ItemKind::Value, &label, path, None);
            }
        }
        // A temporal condition asks no provider.
        if self.cursor.in_string || self.cursor.temporal() {
            return;
        }
        let prefix = format!("{path}::");
        for name in providers.names() {
            let Some(rest) = name.strip_prefix(&prefix) else {
                continue;
            };
            match (rest.split_once("::"), providers.get(name)) {
                (None, Some(provider)) => self.provider(rest, provider, items),
                (Some((next, _)), _) => items.word(ItemKind::Type, next, name, None),
                (None, None) => {}
            }
        }
        for name in providers.enums().keys() {
            if let Some(rest) = name.strip_prefix(&prefix) {
                let next = rest.split("::").next().unwrap_or(rest);
                items.word(ItemKind::Type, next, name, None);
            }
        }
    }

    pub(super) fn provider(&self, label: &str, provider: &Provider, items: &mut Items) {
        let detail = signature(&provider.args, &provider.output);
        let about = Some("A value computed outside the policy.".to_owned());
        let insert = call(label, &provider.args);
        items.snippet(ItemKind::Function, label, &detail, about, insert);
    }

    /// What the provider, or its method, takes at the cursor. Whether the cursor is there.
    pub(super) fn argument(&self, items: &mut Items) -> bool {
        let Some((name, position)) = self.cursor.call() else {
            return false;
        };
        let directly = self.cursor.inside().is_some_and(|(_, at)| at == name + 1);
        if !directly || !matches!(self.cursor.back(1), "(" | ",") {
            return false;
        }
        let args = match self.word(name.saturating_sub(1)) {
            "::" => {
                let full = self.qualified_before(name + 1).unwrap_or_default();
                let providers = &self.snapshot.setup.service.providers;
                providers.get(&full).map(|provider| &provider.args)
            }
            "." => self.stage(name - 1).and_then(|stage| {
                let methods = &stage.provider.methods;
                let method = methods.get(self.word(name)).filter(|_| stage.own)?;
                Some(&method.args)
            }),
            _ => None,
        };
        let Some(args) = args else { return false };
        if let Some(ty) = args.get(position) {
            self.values(ty, items);
            self.paths_to(ty, items);
        }
        true
    }

    /// Fields of the request that have a type.
    fn paths_to(&self, ty: &Type, items: &mut Items) {
        for root in [Root::Context, Root::Principal, Root::Resource] {
            for record in self.snapshot.records_of(self.rule, root) {
                self.paths_in(&record, ty, root.word(), LONGEST, items);
            }
        }
    }

    fn paths_in(
        &self,
        record: &RecordType,
        ty: &Type,
        path: &str,
        longest: usize,
        items: &mut Items,
    ) {
        let Some(left) = longest.checked_sub(1) else {
            return;
        };
        for (name, attr) in &record.attrs {
            // Names that are no words cannot stand behind a dot.
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                continue;
            }
            let path = format!("{path}.{name}");
            if attr.ty == *ty {
                items.word(ItemKind::Field, &path, &typed(ty, attr.required), None);
            } else if let Type::Record(inner) = &attr.ty {
                self.paths_in(inner, ty, &path, left, items);
            }
        }
    }
}

fn typed(ty: &Type, required: bool) -> String {
    let optional = if required { "" } else { " (may be absent)" };
    format!("{ty}{optional}")
}

fn signature(args: &[Type], output: &Type) -> String {
    let args: Vec<String> = args.iter().map(Type::to_string).collect();
    format!("({}): {output}", args.join(", "))
}

fn call(name: &str, args: &[Type]) -> String {
    if args.is_empty() {
        format!("{name}()")
    } else {
        format!("{name}($0)")
    }
}
