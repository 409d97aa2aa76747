//! The one place every command passes before it runs, whichever route led to it.
//!
//! Two signals of the interpreter meet here. The *trace* says that a command of the main interpreter is about
//! to be looked up, and later how it ended. The *hook* says that a builtin is about to run, in any
//! interpreter, also in the copies that run pipeline stages and background jobs; those send no trace. A
//! command is decided at whichever signal knows enough first:
//!
//! * a plain builtin of the main interpreter: at its trace, so that a refusal can stand in for it (status 126);
//! * other builtins, and builtins of copies: at their hook;
//! * host programs and names with `/`: when their stand-in is asked for its plan ([`crate::spawn`]);
//! * a function: at the first thing that happens inside it.

mod names;
mod wording;

pub(crate) use wording::{Refused, refused};

use crate::decide::{Asker, refusal_text};
use crate::spawn::Spawner;
use bashkit::hooks::{HookAction, ToolEvent};
use bashkit::{BuiltinRegistry, TraceEvent, TraceEventDetails};
use box_authority::action::Outcome;
use box_authority::gate::Permit;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The helper that a refused `eval`, `bash`, `command` … is turned into.
pub(crate) const REFUSED: &str = "__box_refused";

/// Where a refused `source` is sent; [`crate::fs`] serves it.
pub(crate) const REFUSED_DIR: &str = "/.box-refused";

/// Builtins that the interpreter dispatches before it looks at the registry.
const DISPATCHED_FIRST: [&str; 22] = [
    ".", "bash", "bind", "builtin", "command", "compgen", "complete", "compopt", "declare", "eval",
    "exec", "export", "fc", "getopts", "history", "let", "local", "readonly", "sh", "source",
    "typeset", "unset",
];

/// Builtins whose output reaches a redirection in pieces.
const STREAMING: [&str; 5] = ["cat", "grep", "seq", "tr", "yes"];

/// What the interpreter may keep of one run's commands; a run that goes on longer is ended.
const MAX_TRACED: usize = 512 << 20;

/// What a run knows about its commands.
pub(crate) struct Session {
    pub(crate) ask: Asker,
    registry: BuiltinRegistry,
    builtins: OnceLock<HashSet<String>>,
    spawner: OnceLock<Weak<Spawner>>,
    nonce: String,
    start: PathBuf,
    /// Ends the run from inside.
    cancel: OnceLock<Arc<AtomicBool>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Commands of the main interpreter, innermost last.
    frames: Vec<Frame>,
    /// The builtin or program that acts now, as far as can be told.
    tool: Option<Tool>,
    /// A shell started by the checkpoint itself, for a script whose command was already decided.
    excused: Option<(String, Vec<String>)>,
    /// Permits of commands in interpreter copies, whose end is not seen.
    strays: Vec<Box<dyn Permit>>,
    /// Texts for refusals that the interpreter words itself, oldest first.
    unworded: VecDeque<(String, String)>,
    texts: HashMap<String, String>,
    /// Refused file operations whose text a utility may have kept to itself: the file's name, the text.
    unsaid: VecDeque<(String, String)>,
    functions: HashSet<String>,
    programs: HashSet<String>,
    /// A loop reads its input line by line: programs in it must leave the rest alone.
    reading: bool,
    /// Copies of the interpreter have acted: what acts now is less certain.
    copies: bool,
    opening: Option<Owner>,
    grants: Vec<(PathBuf, Owner)>,
    next_id: u64,
    /// Bytes of all traces: the interpreter keeps them until the run ends.
    traced: usize,
    /// Counts the signals, so that others notice when a new command acts.
    serial: u64,
}

struct Frame {
    name: String,
    args: Vec<String>,
    cwd: PathBuf,
    stage: Stage,
    /// The builtin that `command` or `builtin` runs: it ends as they do.
    inner: Option<Box<dyn Permit>>,
}

impl Frame {
    /// True when this is `command NAME …` and the like, about to run just that.
    fn runs(&self, event: &ToolEvent) -> bool {
        ["command", "builtin"].contains(&self.name.as_str())
            && self.inner.is_none()
            && self
                .args
                .strip_suffix(event.args.as_slice())
                .and_then(<[String]>::last)
                == Some(&event.name)
    }
}

enum Stage {
    /// About to be looked up; nothing decided.
    Named,
    /// Decided and permitted; `hooked` once the builtin itself has been reached.
    Admitted {
        permit: Box<dyn Permit>,
        hooked: bool,
    },
    /// Decided and refused before the look-up; a stand-in waits in the registry.
    Refused,
    /// A function whose call was refused: nothing inside it may happen. The text until it was shown.
    RefusedCall(Option<String>),
    /// Nothing to decide here: the checkpoint's own helper, or somebody else's command.
    Elsewhere,
}

/// Who acts on the file system.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    /// In the main interpreter, which is alone: its end will be seen.
    pub(crate) main: bool,
    /// It runs other text, whose own looks at files come while it is at work.
    pub(crate) runs_text: bool,
}

impl Tool {
    fn new(name: &str, args: &[String], main: bool) -> Self {
        let runs_text = DISPATCHED_FIRST.contains(&name);
        Self {
            name: name.to_owned(),
            args: args.to_vec(),
            main,
            runs_text,
        }
    }
}

/// Whose redirection a file was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Program(u64),
    Frame(usize),
    Copy,
}

impl Session {
    pub(crate) fn new(ask: Asker, registry: BuiltinRegistry, start: PathBuf) -> Self {
        Self {
            ask,
            registry,
            builtins: OnceLock::new(),
            spawner: OnceLock::new(),
            nonce: nonce(),
            start,
            cancel: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// The shell's own names, known once it is built, and the stand-ins for everything else.
    pub(crate) fn furnish(
        &self,
        builtins: HashSet<String>,
        spawner: &Arc<Spawner>,
        programs: HashSet<String>,
    ) {
        let _ = self.builtins.set(builtins);
        let _ = self.spawner.set(Arc::downgrade(spawner));
        self.state().programs = programs;
    }

    pub(crate) fn ends_with(&self, cancel: Arc<AtomicBool>) {
        let _ = self.cancel.set(cancel);
    }

    /// True when the run was ended for the number and size of its commands.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.state().traced > MAX_TRACED
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_builtin(&self, name: &str) -> bool {
        self.builtins
            .get()
            .is_some_and(|names| names.contains(name))
    }

    /// The working directory, as far as the main interpreter has told.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.state()
            .frames
            .last()
            .map_or_else(|| self.start.clone(), |frame| frame.cwd.clone())
    }

    // --- the two signals ---

    pub(crate) fn on_trace(&self, event: &TraceEvent) {
        if let TraceEventDetails::CommandStart { command, argv, cwd } = &event.details {
            let words: usize = argv
                .iter()
                .map(|word| word.len() + size_of::<String>())
                .sum();
            let mut state = self.state();
            state.traced = state
                .traced
                .saturating_add(words + command.len() + cwd.len() + 2 * size_of::<TraceEvent>());
            if state.traced > MAX_TRACED
                && let Some(cancel) = self.cancel.get()
            {
                cancel.store(true, Ordering::Relaxed);
            }
        }
        match &event.details {
            TraceEventDetails::CommandStart { command, argv, cwd } => {
                self.on_start(command, argv, Path::new(cwd));
            }
            TraceEventDetails::CommandExit {
                command, exit_code, ..
            } => self.on_exit(command, *exit_code),
            _ => {}
        }
    }

    fn on_start(&self, name: &str, args: &[String], cwd: &Path) {
        self.settle();
        self.learn_from(name, args);
        let mut state = self.state();
        state.serial += 1;
        state.tool = None;
        state.opening = None;
        let excused = state
            .excused
            .as_ref()
            .is_some_and(|(n, a)| n == name && a == args);
        if excused {
            state.excused = None;
        }
        let plain = self.is_builtin(name)
            && !dispatched_first(name, args)
            && !state.functions.contains(name);
        drop(state);
        let stage = if excused || name == REFUSED {
            Stage::Elsewhere
        } else if plain {
            // Left over if a function that was never seen defined took an earlier refusal's place.
            self.registry.remove(name);
            match self.admit(name, args, cwd) {
                Ok(permit) => Stage::Admitted {
                    permit,
                    hooked: false,
                },
                Err(text) => {
                    self.registry.insert(
                        name,
                        Arc::new(Refused {
                            text: Some(text),
                            session: None,
                        }),
                    );
                    Stage::Refused
                }
            }
        } else {
            Stage::Named
        };
        self.state().frames.push(Frame {
            name: name.to_owned(),
            args: args.to_vec(),
            cwd: cwd.to_path_buf(),
            stage,
            inner: None,
        });
    }

    fn on_exit(&self, name: &str, status: i32) {
        let mut state = self.state();
        state.serial += 1;
        state.tool = None;
        state.opening = None;
        // The last `read` of a loop finds the end.
        state.reading &= name != "read" || status == 0;
        // `find` goes on looking after each command it ran.
        if let [.., parent, last] = state.frames.as_slice()
            && parent.name == "find"
            && last.name == name
            && matches!(parent.stage, Stage::Admitted { hooked: true, .. })
        {
            let tool = Tool::new("find", &parent.args, !state.copies);
            state.tool = Some(tool);
        }
        // Frames above the one that ended were left through an error: their outcome is not known.
        if let Some(at) = state.frames.iter().rposition(|frame| frame.name == name) {
            let mut ended = state.frames.split_off(at);
            state
                .grants
                .retain(|(_, owner)| !matches!(owner, Owner::Frame(depth) if *depth > at));
            drop(state);
            if !ended.is_empty() {
                let frame = ended.swap_remove(0);
                drop(ended);
                if let Some(inner) = frame.inner {
                    inner.complete(Outcome::Status(i64::from(status)));
                }
                match frame.stage {
                    Stage::Admitted { permit, .. } => {
                        permit.complete(Outcome::Status(i64::from(status)))
                    }
                    Stage::Refused => {
                        self.registry.remove(name);
                    }
                    _ => {}
                }
            }
        }
    }

    /// A builtin, or a stand-in of ours, is about to run.
    pub(crate) fn on_tool(&self, mut event: ToolEvent) -> HookAction<ToolEvent> {
        if event.name == REFUSED {
            return HookAction::Continue(event);
        }
        let mut state = self.state();
        state.serial += 1;
        state.grants.retain(|(_, owner)| *owner != Owner::Copy);
        state.opening = None;
        let depth = state.frames.len();
        let mut cwd = None;
        let mut decided = false;
        let mut within = false;
        if let Some(frame) = state.frames.last_mut()
            && frame.name == event.name
            && frame.args == event.args
        {
            match &mut frame.stage {
                Stage::Admitted { hooked, .. } if !*hooked => {
                    *hooked = true;
                    decided = true;
                    cwd = Some(frame.cwd.clone());
                }
                Stage::Refused => {
                    // The look-up has fetched the stand-in; the next use is decided anew.
                    frame.stage = Stage::Elsewhere;
                    drop(state);
                    self.registry.remove(&event.name);
                    return HookAction::Continue(event);
                }
                Stage::Elsewhere => return HookAction::Continue(event),
                Stage::Named => cwd = Some(frame.cwd.clone()),
                _ => {}
            }
        }
        if let Some(frame) = state
            .frames
            .last()
            .filter(|frame| cwd.is_none() && frame.runs(&event))
        {
            cwd = Some(frame.cwd.clone());
            within = true;
        }
        let main = cwd.is_some();
        state.copies |= !main;
        state.reading |= event.name == "read";
        let sure = main && !state.copies;
        if !main
            && state
                .excused
                .as_ref()
                .is_some_and(|(n, a)| *n == event.name && *a == event.args)
        {
            state.excused = None;
            return HookAction::Continue(event);
        }
        let ours = !decided && (state.programs.contains(&event.name) || event.name.contains('/'));
        drop(state);
        if !main {
            self.settle();
        }
        self.learn_from(&event.name, &event.args);

        if ours {
            // The plan of the stand-in decides: it alone knows the working directory in every interpreter.
            let mut state = self.state();
            state.next_id += 1;
            let id = state.next_id;
            if main
                && !within
                && let Some(frame) = state.frames.last_mut()
            {
                frame.stage = Stage::Elsewhere;
            }
            state.tool = Some(Tool::new(&event.name, &event.args, sure));
            event.args.insert(0, format!("{}{id}", self.nonce));
            return HookAction::Continue(event);
        }
        if !decided {
            let at = cwd.unwrap_or_else(|| self.cwd());
            match self.admit(&event.name, &event.args, &at) {
                Ok(permit) => {
                    let mut state = self.state();
                    match state.frames.last_mut() {
                        Some(frame) if within => frame.inner = Some(permit),
                        Some(frame) if main => {
                            frame.stage = Stage::Admitted {
                                permit,
                                hooked: true,
                            }
                        }
                        _ => state.strays.push(permit),
                    }
                }
                Err(text) => {
                    if main
                        && !within
                        && let Some(frame) = self.state().frames.last_mut()
                    {
                        frame.stage = Stage::Elsewhere;
                    }
                    return self.refuse(event, text);
                }
            }
        }
        let mut state = self.state();
        if STREAMING.contains(&event.name.as_str()) {
            state.opening = Some(if main {
                Owner::Frame(depth)
            } else {
                Owner::Copy
            });
        }
        state.tool = Some(Tool::new(&event.name, &event.args, sure));
        HookAction::Continue(event)
    }

    // --- deciding ---

    /// Asks for a command of the shell's own; the text of the refusal otherwise.
    fn admit(&self, name: &str, args: &[String], cwd: &Path) -> Result<Box<dyn Permit>, String> {
        if let Some(text) = self.refused_call() {
            return Err(text);
        }
        self.ask
            .exec(name, args, cwd)
            .map_err(|denial| refusal_text(&denial))
    }

    /// The innermost command was named and something else happens now: so it is a function, and this is
    /// its first act.
    pub(crate) fn settle(&self) {
        let (name, args, cwd) = {
            let state = self.state();
            match state.frames.last() {
                Some(Frame {
                    name,
                    args,
                    cwd,
                    stage: Stage::Named,
                    ..
                }) => (name.clone(), args.clone(), cwd.clone()),
                _ => return,
            }
        };
        let stage = match self.admit(&name, &args, &cwd) {
            Ok(permit) => Stage::Admitted {
                permit,
                hooked: true,
            },
            Err(text) => Stage::RefusedCall(Some(text).filter(|text| !text.is_empty())),
        };
        if let Some(frame) = self.state().frames.last_mut() {
            frame.stage = stage;
        }
    }

    /// The refusal to show when the run is inside a function whose call was refused; shown once, then empty.
    pub(crate) fn refused_call(&self) -> Option<String> {
        let mut state = self.state();
        let mut refused = None;
        for frame in &mut state.frames {
            if let Stage::RefusedCall(text) = &mut frame.stage {
                refused = Some(text.take().unwrap_or_default());
                break;
            }
        }
        refused
    }

    /// A shell that the checkpoint starts itself, for a script already decided as a command.
    pub(crate) fn excuse(&self, name: &str, args: Vec<String>) {
        self.state().excused = Some((name.to_owned(), args));
    }

    pub(crate) fn admit_script(
        &self,
        name: &str,
        args: &[String],
        cwd: &Path,
    ) -> Result<(), String> {
        let permit = self.admit(name, args, cwd)?;
        let mut state = self.state();
        match state.frames.last_mut() {
            Some(frame)
                if frame.name == name
                    && frame.args == args
                    && matches!(frame.stage, Stage::Elsewhere) =>
            {
                frame.stage = Stage::Admitted {
                    permit,
                    hooked: true,
                };
            }
            _ => state.strays.push(permit),
        }
        Ok(())
    }

    /// Splits the mark that [`Self::on_tool`] puts before a stand-in's arguments from them.
    pub(crate) fn unmark<'a>(&self, args: &'a [String]) -> (Option<u64>, &'a [String]) {
        match args.split_first() {
            Some((first, rest)) => match first
                .strip_prefix(&self.nonce)
                .and_then(|id| id.parse().ok())
            {
                Some(id) => (Some(id), rest),
                None => (None, args),
            },
            None => (None, args),
        }
    }

    // --- what the file system asks ---

    pub(crate) fn tool(&self) -> Option<Tool> {
        self.state().tool.clone()
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.state().reading
    }

    pub(crate) fn serial(&self) -> u64 {
        self.state().serial
    }

    pub(crate) fn open_redirects_of(&self, owner: Option<Owner>) {
        self.state().opening = owner;
    }

    /// The redirection that is being opened, if any.
    pub(crate) fn opening(&self) -> Option<Owner> {
        self.state().opening
    }

    pub(crate) fn grant(&self, path: &Path, owner: Owner) {
        self.state().grants.push((path.to_path_buf(), owner));
    }

    /// True while a redirection that was decided keeps this file open.
    pub(crate) fn granted(&self, path: &Path) -> bool {
        self.state()
            .grants
            .iter()
            .any(|(granted, _)| granted == path)
    }

    pub(crate) fn end_grants(&self, owner: Owner) {
        self.state().grants.retain(|(_, held)| *held != owner);
    }

    pub(crate) fn add_program(&self, name: &str) {
        self.state().programs.insert(name.to_owned());
    }

    /// The run is over: what is still open gets the outcome that is known of it.
    pub(crate) fn close(&self) {
        let (frames, strays) = {
            let mut state = self.state();
            (
                std::mem::take(&mut state.frames),
                std::mem::take(&mut state.strays),
            )
        };
        drop(frames);
        for permit in strays {
            permit.complete(Outcome::Status(-1));
        }
    }
}

/// True when the registry is not asked, so that nothing can stand in.
fn dispatched_first(name: &str, args: &[String]) -> bool {
    DISPATCHED_FIRST.contains(&name) || (name == "set" && args.is_empty())
}

/// Unguessable, so that no script can mark its own arguments.
pub(crate) fn nonce() -> String {
    use std::hash::{BuildHasher, RandomState};
    let word = |salt: u8| RandomState::new().hash_one(salt);
    format!("\u{1}{:016x}{:016x}:", word(0), word(1))
}
