//! The process that interprets. It gives up every right before it reads the script, and has one socket: on it
//! it asks for effects, and the trusted process decides and performs them.

mod answer;
#[cfg(target_os = "linux")]
mod confine;
mod link;

use crate::protocol::{Longest, Order, Report, WorkerLimits};
use crate::subset;
use answer::Answer;
use link::{Link, Output};
use monty::{MontyRun, RunProgress};
use monty_types::{
    AssertMessageAnnotations, CompileOptions, ExcType, MontyException, MontyObject,
    NameLookupResult, PrintWriter, ResourceLimits, ResourceTracker,
};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, RawFd};
use std::process::exit;
use std::time::Duration;

/// `argv[0]` of a worker.
pub const WORKER: &str = "box-python-worker";

/// The functions of ours that a script can call.
pub(crate) const OURS: [&str; 4] = ["fetch", "sleep", "exit", "quit"];

/// What the trusted process sends may be long: it has bounded it.
const TRUSTED: Longest = Longest {
    head: 64 << 20,
    bytes: 256 << 20,
};

/// Whether this process was started as a worker.
pub fn is_worker(argv0: &OsStr) -> bool {
    argv0 == WORKER
}

/// Runs one script for the process at the other end of standard input. Call it first thing in `main`, while
/// there is one thread.
pub fn worker_main() -> ! {
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else {
        exit(1)
    };
    let link = Link::new(File::from(socket));
    let Ok((Order::Run { name, limits }, source)) = link.receive(TRUSTED) else {
        exit(1)
    };
    if let Err(reason) = confine(&limits, link.descriptor()) {
        link.send(&Report::NotConfined(reason), b"");
        exit(1);
    }
    let link = link.with_longest(limits.content);
    // Already text when it was sent; a broken sender is no reason to go on.
    let Ok(source) = String::from_utf8(source) else {
        exit(1)
    };
    run(&link, &name, source, &limits);
    exit(0)
}

#[cfg(target_os = "linux")]
fn confine(limits: &WorkerLimits, socket: RawFd) -> Result<(), String> {
    confine::confine(limits, socket)
}

/// Nothing weaker runs in its place.
#[cfg(not(target_os = "linux"))]
fn confine(_limits: &WorkerLimits, _socket: RawFd) -> Result<(), String> {
    Err("this platform has no confinement for the Python worker yet".into())
}

fn options() -> CompileOptions {
    CompileOptions {
        assert_message_annotations: AssertMessageAnnotations::Off,
    }
}

fn run(link: &Link, name: &str, source: String, limits: &WorkerLimits) {
    if let Err(fault) = monty_alloc::set_limit(Some(limits.memory), false) {
        link.send(&Report::NotConfined(fault.into()), b"");
        return;
    }
    let findings = subset::findings(&source);
    if !findings.is_empty() {
        let text = subset::text(name, &source, &findings);
        link.send(&Report::Refused, text.as_bytes());
        return;
    }
    let program = match MontyRun::new(source.clone(), name, Vec::new(), options()) {
        Ok(program) => program,
        Err(exception) if exception.exc_type() == ExcType::SyntaxError => {
            ended(link, &exception);
            return;
        }
        Err(exception) => {
            let finding = subset::Finding::left_over(&exception);
            let text = subset::text(name, &source, &[finding]);
            link.send(&Report::Refused, text.as_bytes());
            return;
        }
    };
    let tracker = ResourceTracker::new(
        ResourceLimits::default()
            .max_duration(Duration::from_millis(limits.execution))
            .max_memory(limits.memory)
            .max_recursion_depth(limits.recursion),
    );
    let mut output = Output::new(link);
    let result = drive(link, &mut output, program, tracker);
    output.flush();
    match result {
        Ok(()) => link.send(&Report::Ended { status: 0 }, b""),
        Err(exception) => ended(link, &exception),
    }
}

fn drive(
    link: &Link,
    output: &mut Output<'_>,
    program: MontyRun,
    tracker: ResourceTracker,
) -> Result<(), MontyException> {
    let mut progress = program.start(Vec::new(), tracker, PrintWriter::Callback(output))?;
    loop {
        progress = match progress {
            RunProgress::Complete(_) => return Ok(()),
            RunProgress::OsCall(mut call) => {
                // Taken out rather than copied: it may hold a whole file.
                let wanted = std::mem::replace(
                    &mut call.function_call,
                    monty_types::OsFunctionCall::DateToday,
                );
                output.flush();
                match answer::system(link, wanted) {
                    Answer::Value(value) => call.resume(value, PrintWriter::Callback(output))?,
                    Answer::Raise(exception) => {
                        call.resume(exception, PrintWriter::Callback(output))?
                    }
                    Answer::End(exception) => {
                        call.abort(exception, PrintWriter::Callback(output))?
                    }
                    Answer::Unknown(_) => return Err(lost()),
                }
            }
            RunProgress::FunctionCall(call) => {
                output.flush();
                match answer::function(link, &call.function_name, &call.args, &call.kwargs) {
                    Answer::Value(value) => call.resume(value, PrintWriter::Callback(output))?,
                    Answer::Raise(exception) => {
                        call.resume(exception, PrintWriter::Callback(output))?
                    }
                    Answer::End(exception) => {
                        call.abort(exception, PrintWriter::Callback(output))?
                    }
                    Answer::Unknown(name) => call.resume(
                        monty_types::ExtFunctionResult::NotFound(name),
                        PrintWriter::Callback(output),
                    )?,
                }
            }
            RunProgress::NameLookup(lookup) => {
                let known = OURS.contains(&lookup.name.as_str()) && lookup.object_id().is_none();
                let found = known.then(|| MontyObject::Function {
                    name: lookup.name.clone(),
                    docstring: None,
                });
                lookup.resume(NameLookupResult::from(found), PrintWriter::Callback(output))?
            }
            // Nothing of ours is ever pending.
            RunProgress::ResolveFutures(_) => return Err(lost()),
        };
    }
}

fn lost() -> MontyException {
    MontyException::runtime_error("the interpreter waits for something that nobody does")
}

/// Tells how an exception that nobody caught ends the run.
fn ended(link: &Link, exception: &MontyException) {
    if exception.exc_type() == ExcType::SystemExit {
        let (status, text) = exit_status(exception.message());
        link.send(&Report::Ended { status }, text.as_bytes());
        return;
    }
    let text = format!("{exception}\n");
    link.send(&Report::Ended { status: 1 }, text.as_bytes());
}

/// As Python does: no argument is 0, a number is the status, anything else is printed and the status is 1.
fn exit_status(argument: Option<&str>) -> (i32, String) {
    match argument {
        None | Some("None") => (0, String::new()),
        Some(text) => match text.parse::<i64>() {
            Ok(status) => (i32::from((status & 0xff) as u8), String::new()),
            Err(_) => (1, format!("{text}\n")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::exit_status;

    #[test]
    fn an_exit_has_the_status_it_names() {
        assert_eq!(exit_status(None), (0, String::new()));
        assert_eq!(exit_status(Some("3")), (3, String::new()));
        assert_eq!(exit_status(Some("-1")), (255, String::new()));
        assert_eq!(exit_status(Some("no input")), (1, "no input\n".into()));
    }
}
