//! A JSON writer that stops at a length: takes a tree, gives its text or the limit. Maps that share parts can be written out
//! far longer than they are.

use mainstay_template::{Exhausted, Failure};
use mainstay_yaml::{JsonWriter, KeyOrder, Sink};

/// Forwards to a writer while there is room.
pub(super) struct Bounded {
    writer: JsonWriter,
    room: usize,
    depth: usize,
    full: bool,
}

impl Bounded {
    pub(super) fn new(writer: JsonWriter, room: usize) -> Self {
        Self {
            writer,
            room,
            depth: 0,
            full: false,
        }
    }

    pub(super) fn finish(self) -> Result<String, Failure> {
        if self.full {
            return Err(Exhausted::String.into());
        }
        self.writer
            .finish()
            .map_err(|error| Failure::message(error.to_string()))
    }

    /// Forwards one push that writes at least `bytes` and its indentation.
    fn push(&mut self, bytes: usize, write: impl FnOnce(&mut JsonWriter)) {
        match self.room.checked_sub(bytes.saturating_add(self.depth)) {
            Some(room) if !self.full => {
                self.room = room;
                write(&mut self.writer);
            }
            _ => self.full = true,
        }
    }
}

impl Sink for Bounded {
    fn key_order(&self) -> KeyOrder {
        self.writer.key_order()
    }

    fn null(&mut self) {
        self.push(4, Sink::null);
    }

    fn bool(&mut self, value: bool) {
        self.push(4, |writer| writer.bool(value));
    }

    fn int(&mut self, value: i64) {
        self.push(1, |writer| writer.int(value));
    }

    fn uint(&mut self, value: u64) {
        self.push(1, |writer| writer.uint(value));
    }

    fn float(&mut self, value: f64) {
        self.push(1, |writer| writer.float(value));
    }

    fn string(&mut self, value: &[u8]) {
        self.push(value.len() + 2, |writer| writer.string(value));
    }

    fn begin_list(&mut self, len: usize) {
        self.push(2, |writer| writer.begin_list(len));
        self.depth += 1;
    }

    fn end_list(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.push(0, Sink::end_list);
    }

    fn begin_map(&mut self, len: usize) {
        self.push(2, |writer| writer.begin_map(len));
        self.depth += 1;
    }

    fn key(&mut self, key: &[u8]) {
        self.push(key.len() + 3, |writer| writer.key(key));
    }

    fn end_map(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.push(0, Sink::end_map);
    }
}
