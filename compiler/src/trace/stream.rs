//! A trace read a line at a time, so that it may be larger than memory.

use super::skim_event;
use std::io::{self, BufRead};

/// The lines of a trace that are not blank.
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// Of the line last read, from 1.
    number: usize,
    /// Bytes before the line last read.
    before: usize,
}

#[derive(Debug)]
pub enum LineError {
    Read(io::Error),
    /// Not UTF-8: in which line, from 1, and at which byte of the whole trace, from 0.
    NotText {
        line: usize,
        byte: usize,
    },
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Lines<R> {
        Lines {
            input,
            line: Vec::new(),
            number: 0,
            before: 0,
        }
    }

    /// The next line, without its end, and its number; nothing at the end of the trace.
    pub fn next_line(&mut self) -> Result<Option<(usize, &str)>, LineError> {
        loop {
            self.before += self.line.len();
            self.line.clear();
            self.read_line().map_err(LineError::Read)?;
            if self.line.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            // Nearly always the first byte tells.
            let visible = self.line.iter().any(u8::is_ascii_graphic);
            if visible || !self.text()?.trim().is_empty() {
                break;
            }
        }
        Ok(Some((self.number, self.text()?)))
    }

    /// As `read_until` does, which looks for the end more slowly.
    fn read_line(&mut self) -> io::Result<()> {
        loop {
            let ahead = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                ahead => ahead?,
            };
            let end = memchr::memchr(b'\n', ahead);
            let read = end.map_or(ahead.len(), |end| end + 1);
            self.line
                .extend_from_slice(ahead.get(..read).unwrap_or_default());
            self.input.consume(read);
            if end.is_some() || read == 0 {
                return Ok(());
            }
        }
    }

    fn text(&self) -> Result<&str, LineError> {
        let text = std::str::from_utf8(&self.line).map_err(|error| LineError::NotText {
            line: self.number,
            byte: self.before + error.valid_up_to(),
        })?;
        let text = match text.strip_suffix('\n') {
            Some(line) => line.strip_suffix('\r').unwrap_or(line),
            None => text,
        };
        Ok(match self.number {
            1 => text.trim_start_matches('\u{feff}'),
            _ => text,
        })
    }
}

/// What must be known of a trace before its first event is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub events: usize,
    /// How far back in time the stamps step at most.
    pub lateness: i64,
    /// Whether every line is an event. Else the rest says nothing.
    pub sound: bool,
}

/// Reads a trace and keeps none of it, up to the first line that is no event.
pub fn scan<R: BufRead>(input: R) -> Result<Scan, LineError> {
    let mut lines = Lines::new(input);
    let mut found = Scan::default();
    let mut clock = i64::MIN;
    while let Some((_, line)) = lines.next_line()? {
        let Ok(time) = skim_event(line) else {
            return Ok(found);
        };
        clock = clock.max(time);
        found.lateness = found.lateness.max(clock.saturating_sub(time));
        found.events += 1;
    }
    found.sound = true;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::parse;

    fn read(bytes: &[u8]) -> Result<Vec<(usize, String)>, LineError> {
        let mut lines = Lines::new(bytes);
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next_line()? {
            found.push((number, line.to_owned()));
        }
        Ok(found)
    }

    #[test]
    fn lines_are_numbered_and_bare() {
        let found = read("\u{feff}\n one\r\n\u{a0}\t\n\ntwo\r".as_bytes());
        let expected = [(2, " one".to_owned()), (5, "two\r".to_owned())];
        assert_eq!(found.ok().as_deref(), Some(expected.as_slice()));
        assert_eq!(read(b"").ok(), Some(Vec::new()));
    }

    #[test]
    fn what_is_not_text_is_placed() {
        let error = read(b"one\n\ntw\xffo\n");
        assert!(
            matches!(error, Err(LineError::NotText { line: 3, byte: 7 })),
            "{error:?}"
        );
    }

    #[test]
    fn a_scan_knows_how_far_stamps_step_back() {
        let event = |time: i64| format!("@{time} A::\"x\"::k()\n");
        let text: String = [5, 9, 3, 12, 11].into_iter().map(event).collect();
        let found = scan(text.as_bytes()).ok();
        let events = parse(&text).0;
        assert_eq!(crate::monitor::lateness(&events), 6);
        assert_eq!(
            found,
            Some(Scan {
                events: 5,
                lateness: 6,
                sound: true
            })
        );
        let broken = format!("{text}@1 A\n");
        assert!(scan(broken.as_bytes()).is_ok_and(|found| !found.sound));
        let far = event(i64::MAX) + event(i64::MIN).as_str();
        assert!(scan(far.as_bytes()).is_ok_and(|found| found.lateness == i64::MAX));
    }
}
