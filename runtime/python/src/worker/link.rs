//! The worker's end of the socket. When the other end is gone there is nobody to work for.

use crate::protocol::{
    Effect, Exception, FrameFault, Longest, Order, Reply, Report, receive, send,
};
use monty_types::{MontyException, PrintWriterCallback};
use std::borrow::Cow;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::process::exit;

/// Bytes of output gathered before they are sent.
const CHUNK: usize = 16 << 10;

/// Reads and writes only: the worker may make no other call on the socket.
pub(super) struct Link {
    socket: File,
    /// Bytes that may go with one effect.
    longest: usize,
}

impl Link {
    pub(super) fn new(socket: File) -> Self {
        Self {
            socket,
            longest: usize::MAX,
        }
    }

    pub(super) fn with_longest(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(super) fn receive(&self, longest: Longest) -> Result<(Order, Vec<u8>), FrameFault> {
        receive(&mut &self.socket, longest)
    }

    pub(super) fn send(&self, report: &Report, bytes: &[u8]) {
        if send(&mut &self.socket, report, bytes).is_err() {
            exit(1);
        }
    }

    /// Asks for an effect and waits for what came of it.
    pub(super) fn ask(&self, effect: Effect, bytes: &[u8]) -> (Reply, Vec<u8>) {
        if bytes.len() > self.longest {
            let text = format!("more than {} bytes at once", self.longest);
            return (Reply::Raise(Exception::Os.says(text)), Vec::new());
        }
        self.send(&Report::Ask(effect), bytes);
        match self.receive(super::TRUSTED) {
            Ok((Order::Answer(reply), bytes)) => (reply, bytes),
            _ => exit(1),
        }
    }
}

/// Standard output of the script, in chunks.
pub(super) struct Output<'l> {
    link: &'l Link,
    gathered: String,
}

impl<'l> Output<'l> {
    pub(super) fn new(link: &'l Link) -> Self {
        Self {
            link,
            gathered: String::new(),
        }
    }

    pub(super) fn flush(&mut self) {
        let mut rest = self.gathered.as_bytes();
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(rest.len().min(CHUNK));
            self.link.send(&Report::Output, chunk);
            rest = later;
        }
        self.gathered.clear();
    }
}

impl PrintWriterCallback for Output<'_> {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.gathered.push_str(&output);
        if self.gathered.len() >= CHUNK {
            self.flush();
        }
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.gathered.push(end);
        Ok(())
    }

    fn poll_flush(&mut self) -> Result<(), MontyException> {
        self.flush();
        Ok(())
    }
}
