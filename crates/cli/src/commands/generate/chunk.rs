//! Splits a long stream at document boundaries. A line that starts with `---` and whitespace always starts a
//! document, so no parser is needed.

use std::io::{self, Read};

use super::content::{MAX_DOCUMENT, too_long};

/// Minimum size of a chunk, large enough for several threads.
const MIN_CHUNK_SIZE: usize = 4 << 20;

/// Splits a stream into chunks.
pub(super) struct Chunks<R> {
    reader: R,
    buffer: Vec<u8>,
    ended: bool,
    position: Origin,
}

/// Position of a chunk in its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// Number of bytes before the chunk.
    pub(super) offset: usize,
    /// Number of lines before the chunk.
    pub(super) lines: usize,
}

impl<R: Read> Chunks<R> {
    /// Creates a splitter.
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            ended: false,
            position: Origin::default(),
        }
    }

    /// Returns the next chunk, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<(Origin, Vec<u8>)>> {
        let mut wanted = MIN_CHUNK_SIZE;
        while !self.ended {
            self.fill(wanted)?;
            if let Some(cut) = last_document(&self.buffer) {
                let rest = self.buffer.split_off(cut);
                return Ok(Some(self.take_chunk(rest)));
            }
            if self.buffer.len() > MAX_DOCUMENT {
                return Err(too_long());
            }
            // A longer document is not split.
            wanted = (self.buffer.len() * 2).min(MAX_DOCUMENT + 1);
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.take_chunk(Vec::new())))
    }

    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        let missing = wanted.saturating_sub(self.buffer.len()) as u64;
        let got = self.reader.by_ref().take(missing).read_to_end(&mut self.buffer)?;
        self.ended = (got as u64) < missing;
        Ok(())
    }

    fn take_chunk(&mut self, rest: Vec<u8>) -> (Origin, Vec<u8>) {
        let piece = std::mem::replace(&mut self.buffer, rest);
        let origin = self.position;
        self.position.offset += piece.len();
        self.position.lines += memchr::memchr_iter(b'\n', &piece).count();
        (origin, piece)
    }
}

/// Returns the offset of the last document of `text`, if it is not the first.
fn last_document(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    loop {
        let line = text.get(..end)?.iter().rposition(|byte| *byte == b'\n')?;
        let behind = text.get(line + 1..)?;
        let marked = behind.starts_with(b"---") && behind.get(3).is_some_and(u8::is_ascii_whitespace);
        if marked && !is_prologue(text.get(..line)?) {
            return Some(line + 1);
        }
        end = line;
    }
}

/// Whether the last line of `before` belongs to the next document: a directive, or a comment after
/// one.
fn is_prologue(before: &[u8]) -> bool {
    let last = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    last.starts_with(b"%") || last.starts_with(b"#")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<usize>) {
        assert_eq!(last_document(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn documents_start_at_their_markers() {
        check("", None);
        check("a: b\n", None);
        check("---\na: b\n", None);
        check("a: b\n---\nc: d\n", Some(5));
        check("a: b\n--- \nc: d\n", Some(5));
        check("a: b\r\n---\r\nc: d\r\n", Some(6));
        check("a: b\n---", None);
        check("a: b\n---c\n", None);
        check("a: |\n  ---\n", None);
        check("a\n...\n%YAML 1.1\n---\nb\n", None);
        check("a\n---\nb\n...\n%YAML 1.1\n---\nc\n", Some(2));
    }

    #[test]
    fn chunks_concatenate_to_the_stream() {
        let document = format!("---\na: {}\n", "x".repeat(300_000));
        let text = document.repeat(80);
        let mut chunks = Chunks::new(text.as_bytes());
        let (mut whole, mut count) = (Vec::new(), 0);
        while let Some((origin, piece)) = chunks.next().unwrap() {
            assert_eq!(origin.offset, whole.len());
            assert_eq!(origin.lines, memchr::memchr_iter(b'\n', &whole).count());
            assert!(piece.starts_with(b"---\n"));
            whole.extend(piece);
            count += 1;
        }
        assert_eq!(whole, text.as_bytes());
        assert!(count > 5, "{count}");
    }

    #[test]
    fn a_long_document_is_not_split() {
        let text = format!("a: {}\n", "x".repeat(5 * MIN_CHUNK_SIZE));
        let (_, piece) = Chunks::new(text.as_bytes()).next().unwrap().unwrap();
        assert_eq!(piece.len(), text.len());
    }
}
