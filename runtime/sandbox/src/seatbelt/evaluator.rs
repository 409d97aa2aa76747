//! Reads the subset of the profile language that is written here, and says what a profile permits.
//!
//! Made from the text alone, so that it also notices a path that broke out of its string. What it knows of
//! the system: an exact operation beats its wildcard, the last rule that matches wins, and some operations
//! are granted by the preamble until a rule names them exactly.

use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Word(String),
    Text(String),
    Pattern(String),
    List(Vec<Form>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    File,
    Directory,
}

/// What an operation is done to.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    Path(&'a str, Node),
    Port(&'a str, u16),
    Name(&'a str),
    Oneself,
    Nothing,
}

struct Rule {
    allow: bool,
    operations: Vec<String>,
    filters: Vec<Form>,
}

pub struct Evaluator {
    rules: Vec<Rule>,
}

/// Granted by the preamble, as far as it matters to the rules here.
const PREAMBLE: &[&str] = &[
    "file-map-executable",
    "file-test-existence",
    "file-clone",
    "file-link",
    "fs-snapshot-mount",
    "file-graft",
    "file-ungraft",
];

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn blank(&mut self) {
        while let Some(next) = self.rest.peek() {
            if *next == ';' {
                while self.rest.next().is_some_and(|c| c != '\n') {}
            } else if next.is_whitespace() {
                self.rest.next();
            } else {
                return;
            }
        }
    }

    fn string(&mut self) -> String {
        assert_eq!(self.rest.next(), Some('"'));
        let mut text = String::new();
        loop {
            match self.rest.next().expect("a string ends") {
                '"' => return text,
                '\\' => text.push(self.rest.next().expect("something is escaped")),
                c => text.push(c),
            }
        }
    }

    fn form(&mut self) -> Form {
        match self.rest.peek().expect("a form") {
            '(' => {
                self.rest.next();
                let mut forms = Vec::new();
                loop {
                    self.blank();
                    if self.rest.peek() == Some(&')') {
                        self.rest.next();
                        return Form::List(forms);
                    }
                    forms.push(self.form());
                }
            }
            '"' => Form::Text(self.string()),
            '#' => {
                self.rest.next();
                Form::Pattern(self.string())
            }
            _ => {
                let mut word = String::new();
                while let Some(c) = self.rest.peek() {
                    if c.is_whitespace() || "()\";".contains(*c) {
                        break;
                    }
                    word.push(*c);
                    self.rest.next();
                }
                assert!(!word.is_empty(), "a stray mark");
                Form::Word(word)
            }
        }
    }
}

fn word(form: &Form) -> &str {
    match form {
        Form::Word(word) => word,
        other => panic!("{other:?} is no word"),
    }
}

impl Evaluator {
    /// Fails on a profile that does not begin as every profile must.
    pub fn new(profile: &str) -> Evaluator {
        let mut reader = Reader {
            rest: profile.chars().peekable(),
        };
        let mut forms = Vec::new();
        loop {
            reader.blank();
            if reader.rest.peek().is_none() {
                break;
            }
            forms.push(reader.form());
        }
        let start = [["version", "1"], ["deny", "default"]]
            .map(|words| Form::List(words.map(|word| Form::Word(word.into())).to_vec()));
        assert_eq!(forms.get(..2), Some(start.as_slice()));
        let rules = forms.drain(..).skip(2).map(|form| {
            let Form::List(parts) = form else {
                panic!("{form:?} stands alone")
            };
            let (verb, rest) = parts.split_first().expect("a rule says something");
            let first_filter = rest
                .iter()
                .position(|part| matches!(part, Form::List(_)))
                .unwrap_or(rest.len());
            let (operations, filters) = rest.split_at(first_filter);
            assert!(!operations.is_empty());
            Rule {
                allow: match word(verb) {
                    "allow" => true,
                    "deny" => false,
                    other => panic!("{other} is no verb"),
                },
                operations: operations.iter().map(|part| word(part).into()).collect(),
                filters: filters.to_vec(),
            }
        });
        Evaluator {
            rules: rules.collect(),
        }
    }

    pub fn allows(&self, operation: &str, subject: Subject) -> bool {
        let exact = self.last(operation, subject);
        if let Some(decided) = exact {
            return decided;
        }
        if PREAMBLE.contains(&operation) {
            return true;
        }
        let mut end = operation.len();
        while let Some(dash) = operation[..end].rfind('-') {
            if let Some(decided) = self.last(&format!("{}*", &operation[..dash]), subject) {
                return decided;
            }
            end = dash;
        }
        self.last(&format!("{operation}*"), subject)
            .unwrap_or(false)
    }

    /// Reading the bytes of a file.
    pub fn reads(&self, path: &str) -> bool {
        self.allows("file-read-data", Subject::Path(path, Node::File))
    }

    pub fn lists(&self, path: &str) -> bool {
        self.allows("file-read-data", Subject::Path(path, Node::Directory))
    }

    pub fn looks_at(&self, path: &str) -> bool {
        self.allows("file-read-metadata", Subject::Path(path, Node::File))
    }

    pub fn sees(&self, path: &str) -> bool {
        self.allows("file-test-existence", Subject::Path(path, Node::File))
    }

    pub fn writes(&self, path: &str) -> bool {
        self.allows("file-write-data", Subject::Path(path, Node::File))
    }

    pub fn creates(&self, path: &str) -> bool {
        self.allows("file-write-create", Subject::Path(path, Node::File))
    }

    pub fn removes(&self, path: &str) -> bool {
        self.allows("file-write-unlink", Subject::Path(path, Node::Directory))
    }

    pub fn executes(&self, path: &str) -> bool {
        self.allows("process-exec", Subject::Path(path, Node::File))
    }

    pub fn maps(&self, path: &str) -> bool {
        self.allows("file-map-executable", Subject::Path(path, Node::File))
    }

    fn last(&self, operation: &str, subject: Subject) -> Option<bool> {
        let named = |rule: &&Rule| rule.operations.iter().any(|name| name == operation);
        let holds = |rule: &&Rule| {
            rule.filters.is_empty() || rule.filters.iter().any(|filter| matches(filter, subject))
        };
        let mut rules = self.rules.iter().filter(named).filter(holds);
        rules.next_back().map(|rule| rule.allow)
    }
}

fn matches(filter: &Form, subject: Subject) -> bool {
    let Form::List(parts) = filter else {
        panic!("{filter:?} is no filter")
    };
    let (name, rest) = parts.split_first().expect("a filter has a name");
    match (word(name), rest, subject) {
        ("require-all", parts, _) => parts.iter().all(|part| matches(part, subject)),
        ("literal", [Form::Text(text)], Subject::Path(path, _)) => text == path,
        ("subpath", [Form::Text(text)], Subject::Path(path, _)) => {
            Path::new(path).starts_with(Path::new(text))
        }
        ("vnode-type", [kind], Subject::Path(_, node)) => match word(kind) {
            "DIRECTORY" => node == Node::Directory,
            "REGULAR-FILE" => node == Node::File,
            other => panic!("{other} is no kind of file"),
        },
        ("regex", [Form::Pattern(pattern)], Subject::Path(path, _)) => {
            assert_eq!(pattern, "^/dev/ttys[0-9]+$");
            path.strip_prefix("/dev/ttys").is_some_and(|digits| {
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
            })
        }
        ("remote", [protocol, Form::Text(text)], Subject::Port(host, port)) => {
            assert_eq!(word(protocol), "tcp");
            *text == format!("{host}:{port}")
        }
        ("sysctl-name" | "global-name", [Form::Text(text)], Subject::Name(name)) => text == name,
        ("sysctl-name-prefix", [Form::Text(text)], Subject::Name(name)) => {
            name.starts_with(text.as_str())
        }
        ("socket-domain", [domain], Subject::Name(name)) => word(domain) == name,
        ("target", [whom], Subject::Oneself) => word(whom) == "self",
        (
            "literal" | "subpath" | "vnode-type" | "regex" | "remote" | "sysctl-name"
            | "global-name" | "sysctl-name-prefix" | "socket-domain" | "target",
            _,
            _,
        ) => false,
        (other, ..) => panic!("{other} is no filter written here"),
    }
}
