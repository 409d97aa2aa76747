//! What a worker asks for, done or refused. Nothing here is done without a decision, save telling the time and
//! waiting.

use super::files::Files;
use super::{Stop, Until};
use crate::fetch::{FetchError, FetchRequest, joined, reachable};
use crate::protocol::{Effect, Exception, Raised, Reply};
use crate::{Python, Request};
use box_authority::gate::Caller;
use std::time::{Duration, UNIX_EPOCH};

pub(super) struct Performer<'p> {
    python: &'p Python,
    caller: Caller,
    files: Files<'p>,
    until: Until,
    slept: Duration,
}

type Answer = (Reply, Vec<u8>);

impl<'p> Performer<'p> {
    pub(super) fn new(python: &'p Python, request: &Request, until: Until) -> Self {
        Self {
            python,
            caller: request.caller.clone(),
            files: Files::new(python, request),
            until,
            slept: Duration::ZERO,
        }
    }

    pub(super) fn perform(&mut self, effect: Effect, bytes: Vec<u8>) -> Result<Answer, Stop> {
        let plain = |reply: Result<Reply, Raised>| (reply.unwrap_or_else(Reply::Raise), Vec::new());
        let files = &self.files;
        Ok(match effect {
            Effect::Look { path, aspect } => plain(files.look(&path, aspect).map(Reply::Truth)),
            Effect::Stat { path } => plain(files.stat(&path).map(Reply::Stat)),
            Effect::List { path } => plain(files.list(&path).map(Reply::Names)),
            Effect::Locate { path, call } => plain(files.locate(&path, &call)),
            Effect::Read { path } => match files.read(&path) {
                Ok(content) => (Reply::Content, content),
                Err(raised) => plain(Err(raised)),
            },
            Effect::Write { path, append } => {
                plain(files.write(&path, &bytes, append).map(|()| Reply::Done))
            }
            Effect::Open { path, mode } => plain(files.open(&path, mode).map(|()| Reply::Done)),
            Effect::MakeDir {
                path,
                parents,
                exist_ok,
            } => plain(
                files
                    .make_dir(&path, parents, exist_ok)
                    .map(|()| Reply::Done),
            ),
            Effect::RemoveFile { path } => {
                plain(files.remove_file(&path).map(|()| Reply::Done))
            }
            Effect::RemoveDir { path } => plain(files.remove_dir(&path).map(|()| Reply::Done)),
            Effect::Rename { from, to } => {
                plain(files.rename(&from, &to).map(|()| Reply::Done))
            }
            Effect::Environment => plain(Err(Exception::Runtime.says(
                "environment variables are not available to Python in a box: they hold placeholders. \
                 Write the value into the script, or read it from a file",
            ))),
            Effect::Now => plain(Ok(Reply::Time(self.now()))),
            Effect::Sleep { seconds } => plain(self.sleep(seconds)?.map(|()| Reply::Done)),
            Effect::Fetch {
                url,
                method,
                headers,
            } => self.fetch(FetchRequest {
                url,
                method,
                headers,
                body: bytes,
                longest_reply: self.python.config.limits.reply,
            }),
        })
    }

    /// Microseconds since 1970.
    fn now(&self) -> i64 {
        let now = self.python.clock.now();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn sleep(&mut self, seconds: f64) -> Result<Result<(), Raised>, Stop> {
        let most = self.python.config.limits.sleep;
        if seconds.is_nan() || seconds < 0.0 {
            let text = "sleep length must be a non-negative number";
            return Ok(Err(Exception::Value.says(text)));
        }
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let total = self.slept.saturating_add(time);
        if total > most {
            let text = format!("a script may sleep {} seconds in all", most.as_secs_f64());
            return Ok(Err(Exception::Timeout.says(text)));
        }
        self.slept = total;
        self.until.wait(time).map(Ok)
    }

    fn fetch(&self, request: FetchRequest) -> Answer {
        let longest = request.longest_reply;
        let fetched = reachable(&request.url)
            .and_then(|()| self.python.web.fetch(&self.caller, request))
            .and_then(|reply| match reply.body.len() > longest {
                true => Err(FetchError::Long(longest)),
                false => Ok(reply),
            });
        match fetched {
            Ok(reply) => {
                let answer = Reply::Fetched {
                    status: reply.status,
                    headers: joined(reply.headers),
                };
                (answer, reply.body)
            }
            Err(error) => {
                let exception = match error {
                    FetchError::TimedOut => Exception::Timeout,
                    _ => Exception::Os,
                };
                (Reply::Raise(exception.says(error.to_string())), Vec::new())
            }
        }
    }
}
