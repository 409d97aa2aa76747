//! Server-sent events, read as they come and written anew.

use crate::frame::MAX_LINE;
use std::fmt::Write;

/// One event, or what only keeps the connection up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `event`: absent means `message`.
    pub kind: Option<String>,
    pub id: Option<String>,
    pub retry: Option<String>,
    /// The lines of `data`, joined.
    pub data: Option<String>,
}

/// An event longer than a frame may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The bytes of a stream up to now.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it is part of the same end of line.
    returned: bool,
    started: bool,
    event: Event,
    bytes: usize,
}

impl Events {
    /// The events that end in this piece. What stands open at the end of the stream was never an event.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in piece {
            let after_return = std::mem::replace(&mut self.returned, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_of_line()),
                _ => {
                    self.bytes += 1;
                    if self.bytes > MAX_LINE {
                        return Err(TooLong);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let mut line = &*line;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            self.bytes = 0;
            let event = std::mem::take(&mut self.event);
            return (event != Event::default()).then_some(event);
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.kind = Some(value.to_owned()),
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            // A NUL would make a client forget which event was the last.
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|b| b.is_ascii_digit()) && !value.is_empty() => {
                self.event.retry = Some(value.to_owned());
            }
            // A comment: it keeps connections from being given up.
            "" if self.event == Event::default() => {
                self.bytes = 0;
                return Some(Event::default());
            }
            _ => {}
        }
        None
    }
}

impl Event {
    /// An event that carries nothing but this.
    pub fn of(data: &str) -> Event {
        Event {
            data: Some(data.to_owned()),
            ..Event::default()
        }
    }

    /// As a stream has it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let fields = [
            ("event", &self.kind),
            ("id", &self.id),
            ("retry", &self.retry),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{name}: {value}");
            }
        }
        for line in self.data.iter().flat_map(|data| data.split('\n')) {
            let _ = writeln!(text, "data: {line}");
        }
        if text.is_empty() {
            text.push_str(":\n");
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Events, TooLong};
    use crate::frame::MAX_LINE;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::default();
        let read = pieces.iter().map(|piece| events.push(piece).unwrap());
        read.flatten().collect()
    }

    #[test]
    fn events_are_written_anew_with_what_means_something() {
        let stream = "\u{feff}: hello\r\n\r\nevent: message\rid: 4\rdata: {\"a\":1,\rdata:\"b\":2}\r\r\
            retry: 10\nretry: x\nfoo: bar\n\nid: 5\ndata\n\n\n\ndata:  two spaces\n\ndata: never ended\n";
        let texts: Vec<String> = read(&[stream.as_bytes()]).iter().map(Event::text).collect();
        insta::assert_snapshot!(texts.join("--\n"));
    }

    #[test]
    fn an_event_is_no_longer_than_a_frame() {
        let mut events = Events::default();
        let long = vec![b'x'; MAX_LINE];
        assert_eq!(events.push(&long), Ok(Vec::new()));
        assert_eq!(events.push(b"x"), Err(TooLong));
        let mut events = Events::default();
        for _ in 0..3 {
            assert!(events.push(b"data: 1\n\n").is_ok());
            assert!(events.push(b": keep\n").is_ok());
        }
        assert_eq!(events.bytes, 0);
    }

    proptest! {
        #[test]
        fn where_the_pieces_end_does_not_matter(text in "[ad:it\r\n é]{0,60}|(data: [a-z\r\n]{0,6}\n\n){0,4}", at in 0_usize..80) {
            let bytes = text.as_bytes();
            let (one, two) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(read(&[one, two]), read(&[bytes]));
        }

        #[test]
        fn what_is_written_is_what_was_read(text in "(event|data|id|retry|x)?:? ?[a-z0-9\r\n]{0,40}\n\n") {
            let events = read(&[text.as_bytes()]);
            let written: String = events.iter().map(Event::text).collect();
            prop_assert_eq!(read(&[written.as_bytes()]), events);
        }
    }
}
