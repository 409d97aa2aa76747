//! The Python checkpoint as the box runs it: for aliases, and for `python` typed in the shell.

use crate::network::Network;
use box_authority::gate::{Caller, Gate};
use box_gateway::{Fetch, FetchFault};
use box_python::{
    Config, FetchError, FetchReply, FetchRequest, HELP, Invocation, Python, Request, Source,
    Streams, VERSION, arguments,
};
use box_shell::ProgramRun;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const USAGE: i32 = 2;

pub struct Interpreter {
    python: Python,
}

impl Interpreter {
    pub fn new(config: Config, gate: Arc<dyn Gate>, network: &Arc<Network>) -> Interpreter {
        let web = Arc::new(Web(Arc::clone(network)));
        Interpreter {
            python: Python::new(config, gate, web),
        }
    }

    pub fn run(
        &self,
        source: Source,
        cwd: PathBuf,
        caller: Caller,
        cancel: &Arc<AtomicBool>,
        io: Streams,
    ) -> i32 {
        let request = Request {
            source,
            cwd,
            caller,
            cancel: Some(Arc::clone(cancel)),
        };
        self.python.run(request, io)
    }

    /// Runs a command of the shell: its script is read here, as one decision.
    pub fn typed(&self, run: ProgramRun, cancel: &Arc<AtomicBool>) -> i32 {
        let ProgramRun {
            argv,
            cwd,
            stdin,
            stdout,
            stderr,
            ..
        } = run;
        let (mut stdout, mut stderr) = (File::from(stdout), File::from(stderr));
        let source = match arguments(argv.into_iter().skip(1)) {
            Ok(Invocation::Command(text)) => Source::Command(text),
            Ok(Invocation::File(file)) => Source::File(cwd.join(file)),
            Ok(Invocation::Input) => Source::Input,
            // Whoever does not read what it asked for is not told.
            Ok(Invocation::Version) => {
                let _ = writeln!(stdout, "{VERSION}");
                return 0;
            }
            Ok(Invocation::Help) => {
                let _ = stdout.write_all(HELP.as_bytes());
                return 0;
            }
            Err(refused) => {
                let _ = writeln!(stderr, "{refused}");
                return USAGE;
            }
        };
        let io = Streams {
            stdin: Box::new(File::from(stdin)),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        };
        // The shell is the agent's, and only the agent's.
        self.run(source, cwd, Caller::Agent, cancel, io)
    }
}

/// Requests of scripts, through the gateway's own decisions.
struct Web(Arc<Network>);

impl box_python::Fetch for Web {
    fn fetch(&self, caller: &Caller, request: FetchRequest) -> Result<FetchReply, FetchError> {
        let FetchRequest {
            url,
            method,
            headers,
            body,
            longest_reply,
        } = request;
        let method = method
            .parse()
            .map_err(|_| FetchError::Failed(format!("{method:?} is no HTTP method")))?;
        let wanted = Fetch {
            method,
            url,
            headers,
            body,
            longest_reply,
        };
        match self.0.gateway().fetch(caller, wanted) {
            Ok(reply) => Ok(FetchReply {
                status: reply.status,
                headers: reply.headers,
                body: reply.body,
            }),
            Err(FetchFault::Long(longest)) => Err(FetchError::Long(longest)),
            Err(fault) => Err(FetchError::Failed(fault.to_string())),
        }
    }
}
