//! From the arguments of a command to checked rules, or to everything that is wrong with them.

use super::{
    Failure, Findings, Format, Outcome, PolicyArgs, counted, input, print, print_json, remark,
};
use dogwood_compiler::compile::{self, CalledMacro, Checked, CheckedRule, Options, Source};
use dogwood_compiler::diagnostic::{printable, tally};
use dogwood_compiler::explain::NamedRule;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::{Diagnostic, SourceId};
use dogwood_compiler::monitor::Policy;
use dogwood_compiler::schema::{Service, box_service};
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

/// Which schema the rules were checked against.
pub enum SchemaUsed {
    BuiltIn,
    /// A box's own, found by its `box.toml`.
    Box(String),
    Files(Vec<String>),
    /// None was asked for.
    None,
}

impl SchemaUsed {
    pub fn text(&self) -> String {
        match self {
            SchemaUsed::BuiltIn => "built-in Box schema".to_owned(),
            SchemaUsed::Box(path) => format!("Box schema (box.toml at {})", printable(path)),
            SchemaUsed::Files(names) => names.join(", "),
            SchemaUsed::None => "none".to_owned(),
        }
    }
}

/// A policy set and what checking it found.
pub struct Set {
    pub schema: SchemaUsed,
    pub service: Service,
    /// The policies, then the macro library, then the declarations of providers. Where the schemas or the
    /// declarations themselves are broken: these.
    pub texts: Vec<Source>,
    pub diagnostics: Vec<Diagnostic>,
    /// Nothing where there are errors.
    pub rules: Option<Vec<CheckedRule>>,
    /// What the rules call by name.
    pub macros: Vec<CalledMacro>,
}

impl Set {
    /// Reads and checks everything the arguments name.
    pub fn check(args: &PolicyArgs) -> Result<Set, Failure> {
        let quiet = Options {
            quiet: true,
            ..args.experiments.options()
        };
        Set::read(args, &|policies, macros, service| {
            compile::check(policies, macros, service, &quiet)
        })
    }

    /// The same with the lints: what is correct, but hardly meant.
    pub fn lint(args: &PolicyArgs) -> Result<Set, Failure> {
        Set::read(args, &|policies, macros, service| {
            compile::check(policies, macros, service, &args.experiments.options())
        })
    }

    /// The same for a command that can do without a schema: where none is named and nothing is about a box,
    /// rules that the built-in one does not know are only parsed.
    pub fn check_or_parse(args: &PolicyArgs) -> Result<Set, Failure> {
        let options = Options {
            quiet: true,
            ..args.experiments.options()
        };
        let named = args.policy_schema.is_some() || args.event_schema.is_some();
        let parsed = Cell::new(false);
        let mut set = Set::read(args, &|policies, macros, service| {
            let checked = compile::check(policies, macros, service, &options);
            let boxed = policies.iter().any(|policy| policy.text.contains("Box::"));
            if checked.is_ok() || named || boxed {
                return checked;
            }
            let without = compile::parse_only(policies, macros, &options);
            parsed.set(without.is_ok());
            without.or(checked)
        })?;
        if parsed.get() {
            set.schema = SchemaUsed::None;
            set.service = Service::default();
        }
        Ok(set)
    }

    /// The same without looking whether the rules fit the schemas.
    pub fn parse(args: &PolicyArgs) -> Result<Set, Failure> {
        Set::read(args, &|policies, macros, _| {
            compile::parse_only(policies, macros, &args.experiments.options())
        })
    }

    fn read(args: &PolicyArgs, check: &CheckSet) -> Result<Set, Failure> {
        args.only_one_stdin(None)?;
        let policies = args.policies()?;
        let macros = args.macros()?;
        let (schema, schema_texts, loaded) = args.schema()?;
        let declared = args.providers()?;
        let mut service = match loaded {
            Ok((service, warnings)) if warnings.is_empty() => service,
            // A warning about a schema is shown, but is nothing about the policy.
            Ok((service, warnings)) => {
                remark(&Findings::new(&warnings, &schema_texts).drawn());
                service
            }
            Err(diagnostics) => {
                let service = Service::default();
                return Ok(Set {
                    schema,
                    service,
                    texts: schema_texts,
                    diagnostics,
                    rules: None,
                    macros: Vec::new(),
                });
            }
        };
        let mut texts = policies.clone();
        texts.extend(macros.clone());
        if let Some((declarations, loaded)) = declared {
            let of_file = std::slice::from_ref(&declarations);
            match loaded {
                Ok((providers, warnings)) => {
                    if !warnings.is_empty() {
                        remark(&Findings::new(&warnings, of_file).drawn());
                    }
                    service.providers = Arc::new(providers);
                }
                Err(diagnostics) => {
                    return Ok(Set {
                        schema,
                        service,
                        texts: vec![declarations],
                        diagnostics,
                        rules: None,
                        macros: Vec::new(),
                    });
                }
            }
            texts.push(declarations);
        }
        let checked = check(&policies, macros.as_ref(), &service);
        Ok(match checked {
            Ok(checked) => {
                let diagnostics = checked.diagnostics;
                Set {
                    schema,
                    service,
                    texts,
                    diagnostics,
                    rules: Some(checked.rules),
                    macros: checked.macros,
                }
            }
            Err(diagnostics) => Set {
                schema,
                service,
                texts,
                diagnostics,
                rules: None,
                macros: Vec::new(),
            },
        })
    }

    pub fn findings(&self) -> Findings<'_> {
        Findings::new(&self.diagnostics, &self.texts)
    }

    /// `policy.dw:12`, where a rule begins.
    pub fn place(&self, rule: &CheckedRule) -> String {
        self.line(rule.source, rule.rule.span)
    }

    /// `policy.dw:12`, where a macro is declared.
    pub fn place_of_macro(&self, called: &CalledMacro) -> String {
        self.line(called.source, called.def.span)
    }

    fn line(&self, source: SourceId, span: Span) -> String {
        let Some(source) = self.texts.get(usize::from(source.0)) else {
            return String::new();
        };
        let before = source
            .text
            .get(..span.start as usize)
            .unwrap_or(&source.text);
        format!("{}:{}", source.name, 1 + before.matches('\n').count())
    }

    /// Its `@id`, or where it stands.
    pub fn name(&self, rule: &CheckedRule) -> String {
        match rule.rule.annotation("id").map(str::trim) {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => self.place(rule),
        }
    }

    /// The rules compiled, and by name.
    pub fn compiled(&self, rules: &[CheckedRule]) -> (Arc<Policy>, Vec<NamedRule>) {
        let trees: Vec<_> = rules.iter().map(|rule| rule.rule.clone()).collect();
        let named = rules.iter().map(|rule| NamedRule {
            rule: rule.rule.clone(),
            name: self.name(rule),
        });
        (
            Arc::new(Policy::new(&trees, &self.service)),
            named.collect(),
        )
    }

    /// The rules, or the answer of a command that cannot go on without them.
    pub fn rules_or_reject(
        &self,
        format: Format,
    ) -> Result<Result<&[CheckedRule], Outcome>, Failure> {
        if format == Format::Human {
            self.say_schema();
        }
        let Some(rules) = &self.rules else {
            return self.reject(format).map(Err);
        };
        // Warnings do not stop a command, and do not belong into its answer.
        if format == Format::Human && !self.diagnostics.is_empty() {
            remark_drawn(&self.findings().drawn());
        }
        Ok(Ok(rules))
    }

    /// The answer of a command that has nothing else to print: its output is for another program.
    pub fn reject(&self, format: Format) -> Result<Outcome, Failure> {
        match format {
            Format::Human => remark_drawn(&self.verdict(0, false)),
            Format::Json => self.print_verdict(format, 0, false)?,
        }
        Ok(Outcome::Rejected)
    }

    pub fn say_schema(&self) {
        if !matches!(self.schema, SchemaUsed::None) {
            remark(&format!("schema: {}", self.schema.text()));
        }
    }

    /// The findings and whether they pass, to read.
    fn verdict(&self, rules: usize, passed: bool) -> String {
        let (errors, warnings) = tally(&self.diagnostics);
        let mut out = self.findings().drawn();
        if !out.is_empty() {
            out.push('\n');
        }
        let warned = match warnings {
            0 => String::new(),
            n => format!(", {}", counted(n, "warning")),
        };
        out.push_str(&if passed {
            format!("OK: {}{warned}\n", counted(rules, "rule"))
        } else {
            format!(
                "FAILED: {}, {}\n",
                counted(errors, "error"),
                counted(warnings, "warning")
            )
        });
        out
    }

    /// The findings and whether they pass.
    pub fn print_verdict(&self, format: Format, rules: usize, passed: bool) -> Result<(), Failure> {
        match format {
            Format::Human => print(&self.verdict(rules, passed)),
            Format::Json => {
                let warnings = tally(&self.diagnostics).1;
                let all = self.findings().json();
                let of = |severity: &str| -> Vec<&serde_json::Value> {
                    all.as_array()
                        .into_iter()
                        .flatten()
                        .filter(|d| d["severity"] == severity)
                        .collect()
                };
                let answer = json!({
                    "passed": passed,
                    "passed_without_warnings": passed && warnings == 0,
                    "schema": self.schema.text(),
                    "rules": rules,
                    "errors": of("error"),
                    "warnings": of("warning"),
                });
                print_json(&with_first_error(answer))
            }
        }
    }
}

/// The first of its errors also stands in the answer itself, for scripts that look for one problem there.
pub fn with_first_error(mut answer: Value) -> Value {
    let first = answer["errors"].get(0).and_then(Value::as_object).cloned();
    if let (Some(first), Some(fields)) = (first, answer.as_object_mut()) {
        for (name, value) in first {
            fields.entry(name).or_insert(value);
        }
        // Every problem has a place.
        fields.insert("spanned".to_owned(), Value::Bool(true));
    }
    answer
}

/// Drawn diagnostics beside the answer.
pub fn remark_drawn(text: &str) {
    use std::io::Write;
    _ = anstream::stderr().write_all(text.as_bytes());
}

type CheckSet<'a> =
    dyn Fn(&[Source], Option<&Source>, &Service) -> Result<Checked, Vec<Diagnostic>> + 'a;

type Loaded = Result<(Service, Vec<Diagnostic>), Vec<Diagnostic>>;

impl PolicyArgs {
    /// `also` is a further file the command reads.
    pub fn only_one_stdin(&self, also: Option<&Path>) -> Result<(), Failure> {
        let others = [
            &self.policy_schema,
            &self.event_schema,
            &self.macros,
            &self.providers,
        ];
        let files = others.into_iter().flatten().map(|path| path.as_path());
        input::only_one_stdin(
            self.policies
                .iter()
                .map(|path| path.as_path())
                .chain(files)
                .chain(also),
        )
    }

    pub fn policies(&self) -> Result<Vec<Source>, Failure> {
        self.policies.iter().map(|path| input::read(path)).collect()
    }

    pub fn macros(&self) -> Result<Option<Source>, Failure> {
        self.macros.as_deref().map(input::read).transpose()
    }

    fn providers(&self) -> Result<Option<(Source, input::Loaded)>, Failure> {
        let path = self.providers.as_deref();
        path.map(input::read_providers).transpose()
    }

    fn schema(&self) -> Result<(SchemaUsed, Vec<Source>, Loaded), Failure> {
        let actions = self.policy_schema.as_deref().map(input::read).transpose()?;
        let events = self.event_schema.as_deref().map(input::read).transpose()?;
        if actions.is_none() && events.is_none() {
            let used = match self
                .policies
                .first()
                .and_then(|policy| input::nearest_box(policy))
            {
                Some(found) => SchemaUsed::Box(found.display().to_string()),
                None => SchemaUsed::BuiltIn,
            };
            return Ok((used, Vec::new(), Ok((box_service(), Vec::new()))));
        }
        let loaded = compile::load_service(actions.as_ref(), events.as_ref());
        let texts: Vec<Source> = actions.into_iter().chain(events).collect();
        let names = texts
            .iter()
            .map(|text| printable(&text.name).into_owned())
            .collect();
        Ok((SchemaUsed::Files(names), texts, loaded))
    }
}
