//! The standard input of a run, read only when somebody wants it.
//!
//! The interpreter takes its input whole before it starts, which a stream that stays open does not allow. So
//! the script is looked at first: where a builtin reads the run's own input, it is read to its end; otherwise
//! the interpreter gets a mark in its place, and a program that inherits the mark reads the stream itself.

use bashkit::parser::{
    Command, CompoundCommand, Parser, RedirectKind, Script, SimpleCommand, Word, WordPart,
};
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const CHUNK: usize = 16 * 1024;

/// How far nested commands are followed when looking for readers.
const MAX_DEPTH: usize = 64;

/// Builtins that read standard input whatever their arguments.
const READERS: [&str; 5] = ["read", "mapfile", "readarray", "tee", "xargs"];

/// Builtins that read standard input when no file is named.
const FILTERS: [&str; 24] = [
    "cat",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "grep",
    "sed",
    "awk",
    "base64",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "rev",
    "tac",
    "nl",
    "column",
    "paste",
    "fold",
    "od",
    "xxd",
    "jq",
];

/// Shells, and others that run a text the script does not show.
const SHELLS: [&str; 5] = ["bash", "sh", "source", ".", "eval"];

/// Who reads the run's own input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reader {
    Nobody,
    /// A nested script that is not part of the text.
    Perhaps,
    Builtin,
}

/// One reader at a time; what was read ahead for one is there for the next.
pub(crate) struct Stdin {
    state: tokio::sync::Mutex<State>,
    unread: tokio::sync::Mutex<Unread>,
}

enum State {
    Idle(Box<dyn Read + Send>),
    Running {
        want: Sender<()>,
        chunks: UnboundedReceiver<Vec<u8>>,
        asked: bool,
    },
    Ended,
}

/// Bytes that were read and are still to be given out.
#[derive(Default)]
struct Unread(Vec<u8>);

impl Stdin {
    pub(crate) fn new(stream: Box<dyn Read + Send>) -> Self {
        Self {
            state: tokio::sync::Mutex::new(State::Idle(stream)),
            unread: tokio::sync::Mutex::default(),
        }
    }

    /// Everything up to the end of the stream, or `limit` bytes.
    pub(crate) async fn rest(&self, limit: usize) -> Vec<u8> {
        let mut all = self.unread.lock().await;
        while all.0.len() < limit {
            match self.more().await {
                Some(bytes) => all.0.extend_from_slice(&bytes),
                None => break,
            }
        }
        std::mem::take(&mut all.0)
    }

    /// The same if the stream ends within `grace`; what was read stays for the next reader otherwise.
    pub(crate) async fn rest_within(&self, grace: Duration, limit: usize) -> Option<Vec<u8>> {
        tokio::time::timeout(grace, self.rest(limit)).await.ok()
    }

    /// The next bytes; `None` at the end. Safe to drop: bytes that arrive late go to the next caller.
    pub(crate) async fn next(&self) -> Option<Vec<u8>> {
        let unread = std::mem::take(&mut self.unread.lock().await.0);
        if !unread.is_empty() {
            return Some(unread);
        }
        self.more().await
    }

    async fn more(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock().await;
        if let State::Idle(_) = &*state
            && let State::Idle(stream) = std::mem::replace(&mut *state, State::Ended)
        {
            let (want, wanted) = channel();
            let (chunk, chunks) = unbounded_channel();
            // The thread may outlive the run when the stream never ends; it holds nothing else.
            if std::thread::Builder::new()
                .name("stdin".into())
                .spawn(|| pump(stream, wanted, chunk))
                .is_ok()
            {
                *state = State::Running {
                    want,
                    chunks,
                    asked: false,
                };
            }
        }
        let State::Running {
            want,
            chunks,
            asked,
        } = &mut *state
        else {
            return None;
        };
        if !*asked {
            *asked = want.send(()).is_ok();
        }
        let chunk = chunks.recv().await;
        *asked = false;
        if chunk.is_none() {
            *state = State::Ended;
        }
        chunk
    }
}

fn pump(mut stream: Box<dyn Read + Send>, wanted: Receiver<()>, chunk: UnboundedSender<Vec<u8>>) {
    let mut buffer = vec![0; CHUNK];
    while wanted.recv().is_ok() {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                let bytes = buffer.get(..n).unwrap_or_default().to_vec();
                if chunk.send(bytes).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                if chunk.send(Vec::new()).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Looks for a command that would read the run's own input.
pub(crate) fn reader(text: &str, max_depth: usize, max_operations: usize) -> Reader {
    let (script, _) = Parser::with_limits(text, max_depth, max_operations).parse_recovering();
    of_script(&script, 0)
}

fn of_script(script: &Script, depth: usize) -> Reader {
    of_all(&script.commands, depth)
}

fn of_all(commands: &[Command], depth: usize) -> Reader {
    commands
        .iter()
        .map(|command| of(command, depth))
        .max()
        .unwrap_or(Reader::Nobody)
}

fn of(command: &Command, depth: usize) -> Reader {
    if depth > MAX_DEPTH {
        return Reader::Perhaps;
    }
    let depth = depth + 1;
    match command {
        Command::Simple(simple) => of_simple(simple, depth),
        Command::Pipeline(pipeline) => pipeline
            .commands
            .first()
            .map_or(Reader::Nobody, |first| of(first, depth)),
        Command::List(list) => list
            .rest
            .iter()
            .map(|(_, command)| of(command, depth))
            .max()
            .unwrap_or(Reader::Nobody)
            .max(of(&list.first, depth)),
        // What a function reads is what its caller has; it is looked at where it stands.
        Command::Function(function) => of(&function.body, depth),
        Command::Compound(_, redirects) if redirects.iter().any(|r| is_input(&r.kind)) => {
            Reader::Nobody
        }
        Command::Compound(compound, _) => of_compound(compound, depth),
    }
}

fn of_compound(compound: &CompoundCommand, depth: usize) -> Reader {
    let all = |commands: &[Command]| of_all(commands, depth);
    match compound {
        CompoundCommand::If(c) => {
            let elifs = c
                .elif_branches
                .iter()
                .map(|(test, body)| all(test).max(all(body)))
                .max();
            all(&c.condition)
                .max(all(&c.then_branch))
                .max(elifs.unwrap_or(Reader::Nobody))
                .max(c.else_branch.as_deref().map_or(Reader::Nobody, all))
        }
        CompoundCommand::For(c) => all(&c.body),
        CompoundCommand::ArithmeticFor(c) => all(&c.body),
        CompoundCommand::While(c) => all(&c.condition).max(all(&c.body)),
        CompoundCommand::Until(c) => all(&c.condition).max(all(&c.body)),
        CompoundCommand::Case(c) => c
            .cases
            .iter()
            .map(|case| all(&case.commands))
            .max()
            .unwrap_or(Reader::Nobody),
        CompoundCommand::Select(_) => Reader::Builtin,
        CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => {
            all(commands)
        }
        CompoundCommand::Time(c) => c
            .command
            .as_deref()
            .map_or(Reader::Nobody, |command| of(command, depth)),
        _ => Reader::Nobody,
    }
}

fn is_input(kind: &RedirectKind) -> bool {
    matches!(
        kind,
        RedirectKind::Input
            | RedirectKind::HereDoc
            | RedirectKind::HereDocStrip
            | RedirectKind::HereString
    )
}

fn literal(word: &Word) -> Option<&str> {
    match word.parts.as_slice() {
        [WordPart::Literal(text)] => Some(text),
        _ => None,
    }
}

fn of_simple(simple: &SimpleCommand, depth: usize) -> Reader {
    let within = simple
        .args
        .iter()
        .chain(std::iter::once(&simple.name))
        .chain(
            simple
                .assignments
                .iter()
                .filter_map(|assignment| match &assignment.value {
                    bashkit::parser::AssignmentValue::Scalar(word) => Some(word),
                    bashkit::parser::AssignmentValue::Array(_) => None,
                }),
        )
        .flat_map(|word| &word.parts)
        .map(|part| match part {
            WordPart::CommandSubstitution(commands) => of_all(commands, depth),
            _ => Reader::Nobody,
        })
        .max()
        .unwrap_or(Reader::Nobody);
    if simple
        .redirects
        .iter()
        .any(|redirect| redirect.fd.unwrap_or(0) == 0 && is_input(&redirect.kind))
    {
        return within;
    }
    let Some(name) = literal(&simple.name) else {
        return within.max(Reader::Perhaps);
    };
    let operands = || {
        simple
            .args
            .iter()
            .filter(|word| literal(word).is_none_or(|text| !text.starts_with('-')))
    };
    let own = match name {
        _ if READERS.contains(&name) => Reader::Builtin,
        // A pattern or a program comes first, then files.
        "grep" | "sed" | "awk" | "jq" | "cut" if operands().count() > 1 => Reader::Nobody,
        "grep" | "sed" | "awk" | "jq" | "tr" => Reader::Builtin,
        _ if FILTERS.contains(&name) && operands().next().is_none() => Reader::Builtin,
        "bash" | "sh" => match simple
            .args
            .iter()
            .filter_map(literal)
            .skip_while(|word| *word != "-c")
            .nth(1)
        {
            Some(text) if depth < MAX_DEPTH => {
                let (script, _) = Parser::new(text).parse_recovering();
                of_script(&script, depth + 8)
            }
            _ => Reader::Perhaps,
        },
        _ if SHELLS.contains(&name) || name.contains('/') => Reader::Perhaps,
        _ => Reader::Nobody,
    };
    own.max(within)
}

#[cfg(test)]
mod tests {
    use super::{Reader, Stdin, reader};

    fn who(text: &str) -> Reader {
        reader(text, 100, 100_000)
    }

    #[test]
    fn readers_of_the_runs_own_input_are_found() {
        for text in [
            "cat",
            "read x; echo $x",
            "x=$(cat)",
            "while read l; do echo $l; done",
            "grep foo | wc -l",
            "bash -c 'cat'",
            "f() { cat; }; f",
            "if true; then sort; fi",
        ] {
            assert_eq!(who(text), Reader::Builtin, "{text}");
        }
        for text in [
            "ls | cat",
            "cat f",
            "cat < f",
            "grep foo f",
            "git status",
            "npm test | tail",
            "while read l; do :; done < f",
            "cat <<< x",
            "sed -n 1p f",
        ] {
            assert_eq!(who(text), Reader::Nobody, "{text}");
        }
        for text in ["bash hook.sh", ". ./env", "./run", "$cmd"] {
            assert_eq!(who(text), Reader::Perhaps, "{text}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_stream_is_read_piece_by_piece_to_its_end() {
        let stdin = Stdin::new(Box::new(&b"abc"[..]));
        assert_eq!(stdin.next().await.as_deref(), Some(&b"abc"[..]));
        assert_eq!(stdin.next().await, None);
        assert_eq!(stdin.next().await, None);
    }
}
