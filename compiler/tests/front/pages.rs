//! The pages of `dogwood explain-error`: what each wrong example is told, and that each right one is told nothing.
//!
//! How a page marks its examples is said in `diagnostic/pages.rs`.

use super::screen::{apply, said, source, uniform_text, ununiform};
use dogwood_compiler::compile::{self, Options, Source, load_service};
use dogwood_compiler::diagnostic::pages::PAGES;
use dogwood_compiler::diagnostic::{Style, codes, render};
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Fix, Severity};
use dogwood_compiler::schema::Service;
use dogwood_compiler::{lower, mcp_schema, providers};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Pages whose wrong example is not printed, and why. The tests below make it.
const MADE: &[(&str, &str)] = &[
    ("blank-schema", "an empty file cannot be shown"),
    ("expansion-too-deep", "two hundred levels"),
    ("expansion-too-large", "forty calls inside one another"),
    ("nesting-too-deep", "seventy groups inside one another"),
    ("too-deep", "two hundred and fifty levels"),
    ("too-many-fields", "twenty thousand attributes"),
    ("type-too-deep", "two hundred types"),
    ("types-too-large", "forty types that double"),
];

/// Every kind of file, with the name it gets here.
const KINDS: &[(&str, &str)] = &[
    ("policy", "policy.dw"),
    ("macro library", "macros.dw"),
    ("providers", "providers.json"),
    ("action schema", "actions.cedarschema"),
    ("event schema", "events.dwschema"),
    ("manifest", "tools.json"),
    ("trace", "trace.log"),
    ("test file", "policy.dwtest.toml"),
];

/// Texts by kind of file.
type Files = BTreeMap<&'static str, String>;

#[derive(Default)]
struct Page {
    prose: String,
    wrong: Option<Files>,
    right: Option<Files>,
    options: Options,
}

fn kind(name: &str) -> &'static str {
    let found = KINDS.iter().find(|(kind, _)| *kind == name);
    found
        .unwrap_or_else(|| panic!("there are no examples of the kind {name:?}"))
        .0
}

fn name(kind: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).unwrap().1
}

/// The heading of an example, without its colon.
fn heading(line: &str) -> Option<&str> {
    let first = line.split([' ', ':']).next()?;
    ["With", "Wrong", "Right"]
        .contains(&first)
        .then(|| line.strip_suffix(':'))?
}

fn read(code: &str, text: &str) -> Page {
    let mut page = Page::default();
    let mut shared = Files::new();
    let mut examples: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{code}: too wide: {line}");
        assert_eq!(line.trim_end(), line, "{code}");
        if let Some(heading) = heading(line) {
            examples.push((heading, String::new()));
        } else if let Some((_, example)) = examples.last_mut() {
            let inside = line.strip_prefix("    ");
            assert!(
                inside.is_some() || line.is_empty(),
                "{code}: neither heading nor example: {line}"
            );
            *example += inside.unwrap_or_default();
            example.push('\n');
        } else {
            page.prose += line;
            page.prose.push('\n');
        }
    }
    let mut wrong = Files::new();
    let mut right = Files::new();
    for (heading, example) in examples {
        let (first, rest) = heading.split_once(' ').unwrap_or((heading, "policy"));
        let example = format!("{}\n", example.trim());
        let files = match first {
            "Wrong" => &mut wrong,
            "Right" => &mut right,
            _ if rest == "`--experimental-arithmetic`" => {
                page.options.arithmetic = true;
                continue;
            }
            _ => &mut shared,
        };
        let rest = rest
            .trim_start_matches("this ")
            .trim_start_matches("these ");
        files.insert(kind(rest), example);
    }
    let with_shared = |files: Files| {
        let own = !files.is_empty();
        own.then(|| shared.clone().into_iter().chain(files).collect())
    };
    page.wrong = with_shared(wrong);
    page.right = with_shared(right);
    page
}

/// What is said, and the texts it is said about.
struct Answer {
    said: Vec<Diagnostic>,
    texts: Vec<Source>,
}

impl Answer {
    fn drawn(&self) -> String {
        let texts: Vec<(&str, &str)> = self
            .texts
            .iter()
            .map(|text| (text.name.as_str(), text.text.as_str()))
            .collect();
        render(&self.said, &texts, Style::Plain)
    }
}

fn no_files(name: &str) -> Result<String, String> {
    Err(format!("there is no {name} here"))
}

/// What the library says about these files, in the order in which commands read them.
fn ask(files: &Files, options: &Options) -> Answer {
    let file = |kind: &str| files.get(kind).map(|text| source(name(kind), text));
    if let Some(manifest) = file("manifest") {
        let said = mcp_schema::from_manifest(&manifest)
            .err()
            .unwrap_or_default();
        return Answer {
            said,
            texts: vec![manifest],
        };
    }
    let (actions, events) = (file("action schema"), file("event schema"));
    let loaded = load_service(actions.as_ref(), events.as_ref());
    let texts: Vec<Source> = actions.into_iter().chain(events).collect();
    let service = match loaded {
        Ok((service, said)) if said.is_empty() => service,
        Ok((_, said)) | Err(said) => return Answer { said, texts },
    };
    let declared = file("providers");
    let service = match &declared {
        None => service,
        Some(text) => match providers::load_providers(text, &no_files) {
            Ok((found, said)) if said.is_empty() => Service {
                providers: Arc::new(found),
                ..service
            },
            Ok((_, said)) | Err(said) => {
                return Answer {
                    said,
                    texts: vec![text.clone()],
                };
            }
        },
    };
    let policy = file("policy").unwrap_or_else(|| source("policy.dw", ""));
    let macros = file("macro library");
    let checked = compile::check(
        std::slice::from_ref(&policy),
        macros.as_ref(),
        &service,
        options,
    );
    let texts = [Some(policy), macros, declared]
        .into_iter()
        .flatten()
        .collect();
    match checked {
        Err(said) => Answer { said, texts },
        Ok(checked) => {
            let mut said = checked.diagnostics;
            if let Err(errors) = lower::lower(&checked.rules, &service, "policy") {
                said.extend(errors.iter().map(lower::LowerError::diagnostic));
            }
            Answer { said, texts }
        }
    }
}

/// What the program says about a trace or a test file, and the codes in it.
fn run(files: &Files) -> (Vec<String>, String) {
    let place = tempfile::tempdir().unwrap();
    for (kind, text) in files {
        std::fs::write(place.path().join(name(kind)), text).unwrap();
    }
    let mut program = Command::new(env!("CARGO_BIN_EXE_dogwood"));
    match files.contains_key("trace") {
        true => program.args(["replay", "policy.dw", "--trace", "trace.log"]),
        false => program.args(["test", "policy.dwtest.toml"]),
    };
    let output = program.current_dir(place.path()).output().unwrap();
    // A trace that cannot be read is told of beside the answer, after the schema.
    let told = if files.contains_key("trace") {
        output.stderr
    } else {
        output.stdout
    };
    let told = String::from_utf8(told).unwrap();
    let drawn: String = told
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("schema: "))
        .collect();
    let codes = drawn
        .lines()
        .filter_map(|line| line.strip_prefix("error[")?.split_once(']'))
        .map(|(code, _)| code.to_owned())
        .collect::<Vec<_>>();
    let status = output.status.code();
    assert_eq!(
        status,
        Some(if codes.is_empty() { 0 } else { 2 }),
        "{drawn}"
    );
    let end = drawn.find("\n\nFAILED").map_or(drawn.len(), |end| end + 1);
    (codes, drawn[..end].to_owned())
}

fn by_program(files: &Files) -> bool {
    files.contains_key("trace") || files.contains_key("test file")
}

/// Everything that is wrong with the pages; one run shows all.
#[derive(Default)]
struct Faults(String);

impl Faults {
    #[track_caller]
    fn unless(&mut self, sound: bool, code: &str, what: impl std::fmt::Display) {
        if !sound {
            self.0 += &format!("{code}: {what}\n");
        }
    }

    /// Said in one way, and with what to do.
    fn uniform(&mut self, said: &Diagnostic) {
        for fault in ununiform(said) {
            self.unless(false, said.code, fault);
        }
        let help = said.help.is_some() || said.fix.is_some() || !said.label.is_empty();
        self.unless(
            help || said.code == "syntax",
            said.code,
            format!("no help: {}", said.message),
        );
    }
}

fn mended(answer: &Answer, files: &Files, said: &Diagnostic, fix: &Fix) -> Files {
    let text = &answer.texts[usize::from(said.source.0)];
    let kind = KINDS.iter().find(|(_, name)| *name == text.name).unwrap().0;
    let mut files = files.clone();
    files.insert(kind, apply(&text.text, fix));
    files
}

/// What a wrong example is told, its fixes tried.
fn wrong(code: &str, files: &Files, options: &Options, faults: &mut Faults) -> String {
    let answer = ask(files, options);
    let mut out = answer.drawn();
    let only = answer.said.iter().all(|said| said.code == code);
    faults.unless(
        !answer.said.is_empty() && only,
        code,
        format!("wrong:\n{out}"),
    );
    for said in &answer.said {
        faults.uniform(said);
        let Some(fix) = &said.fix else { continue };
        let mended = mended(&answer, files, said, fix);
        let after = ask(&mended, options);
        let same = after.said.iter().filter(|said| said.code == code).count();
        let other = after
            .said
            .iter()
            .any(|said| said.code != code && said.severity == Severity::Error);
        faults.unless(
            same < answer.said.len() && !other,
            code,
            format!("mended:\n{}", after.drawn()),
        );
    }
    out.push('\n');
    out
}

/// The same, of a file that only the program reads.
fn wrong_by_program(code: &str, files: &Files, faults: &mut Faults) -> String {
    let (codes, drawn) = run(files);
    faults.unless(codes == [code], code, format!("wrong:\n{drawn}"));
    for line in drawn.lines() {
        let help = line.trim_start().strip_prefix("= help: ");
        let message = line
            .strip_prefix("error[")
            .and_then(|rest| rest.split_once("]: "));
        for text in help.into_iter().chain(message.map(|(_, message)| message)) {
            faults.unless(uniform_text(text), code, format!("another style: {text}"));
        }
    }
    format!("{drawn}\n")
}

#[test]
fn every_code_has_a_page_with_a_wrong_and_a_right_example() {
    assert_eq!(PAGES.len(), codes::CODES.len());
    let mut screens = String::new();
    let mut faults = Faults::default();
    for (code, text) in PAGES {
        let page = read(code, text);
        faults.unless(
            page.prose.trim().len() > 40,
            code,
            "the page says too little",
        );
        let made = MADE.iter().any(|(made, _)| made == code);
        faults.unless(
            made == page.wrong.is_none(),
            code,
            "a wrong example is printed, or made and on the list",
        );
        faults.unless(made || page.right.is_some(), code, "no right example");
        if let Some(files) = &page.wrong {
            screens += &match by_program(files) {
                true => wrong_by_program(code, files, &mut faults),
                false => wrong(code, files, &page.options, &mut faults),
            };
        }
        if let Some(files) = &page.right {
            let (silent, drawn) = if by_program(files) {
                let (codes, drawn) = run(files);
                (codes.is_empty(), drawn)
            } else {
                let answer = ask(files, &page.options);
                (answer.said.is_empty(), answer.drawn())
            };
            faults.unless(silent, code, format!("right:\n{drawn}"));
        }
    }
    assert!(faults.0.is_empty(), "{}", faults.0);
    said!(screens);
}

#[test]
fn a_folder_of_pages_without_leftovers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/diagnostic/pages");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = name.strip_suffix(".md").unwrap();
        assert!(codes::meaning(code).is_some(), "{name} belongs to no code");
    }
}

/// The examples that are too long for a page.
#[test]
fn the_examples_that_are_not_printed() {
    let exec = "permit (principal, action == Box::Action::\"shell:exec\", resource)";
    let nested = |open: &str, times: usize, inside: &str, close: &str| {
        format!("{}{inside}{}", open.repeat(times), close.repeat(times))
    };
    let doubling: String = (1..40)
        .map(|n| format!("type T{n} = {{ a: T{0}, b: T{0} }};\n", n - 1))
        .collect();
    let chain: String = (0..200)
        .map(|n| format!("type T{n} = Set<T{}>;\n", n + 1))
        .collect();
    let wide: String = (0..20_000).map(|n| format!("f{n}: Long,")).collect();
    let made = |code: &str| -> (&'static str, String) {
        match code {
            "blank-schema" => ("event schema", " \n".to_owned()),
            "expansion-too-deep" => {
                let body = nested("!(", 60, "?x", ")");
                let call = nested("nest(", 4, "true", ")");
                (
                    "policy",
                    format!("def cedar nest(?x) {{ {body} }};\n{exec} when {{ {call} }};\n"),
                )
            }
            "expansion-too-large" => {
                let call = nested("double(", 40, "true", ")");
                (
                    "policy",
                    format!("def cedar double(?x) {{ ?x && ?x }};\n{exec} when {{ {call} }};\n"),
                )
            }
            "nesting-too-deep" => {
                let group = nested("a: { ", 70, "x: Long", " }");
                (
                    "event schema",
                    format!("decision event <A>::request {{ {group} }}\n"),
                )
            }
            "too-deep" => (
                "policy",
                format!("{exec} when {{ {} }};\n", nested("!(", 250, "true", ")")),
            ),
            "too-many-fields" => (
                "action schema",
                format!(
                    "entity E; action go appliesTo {{ principal: E, resource: E, context: {{ input: {{ {wide} }} }} }};\n"
                ),
            ),
            "type-too-deep" => ("action schema", format!("{chain}type T200 = Long;\n")),
            "types-too-large" => (
                "action schema",
                format!("type T0 = {{ a: Long }};\n{doubling}"),
            ),
            other => panic!("{other} is not made"),
        }
    };
    let mut faults = Faults::default();
    for (code, why) in MADE {
        assert!(!why.is_empty());
        let (kind, text) = made(code);
        let mut files = Files::from([(kind, text)]);
        if *code == "too-many-fields" {
            files.insert(
                "event schema",
                "decision event <A>::request { ...inputs(A) }\n".to_owned(),
            );
        }
        let answer = ask(&files, &Options::default());
        let only = answer.said.iter().all(|said| said.code == *code);
        faults.unless(!answer.said.is_empty() && only, code, answer.said.len());
        answer.said.iter().for_each(|said| faults.uniform(said));
    }
    assert!(faults.0.is_empty(), "{}", faults.0);
}
