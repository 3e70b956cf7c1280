//! Compiled expressions, with the match order and the rules for empty matches of Go's regexp.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use mainstay_template::{LimitExceeded, Meter};
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;

use super::error::{Reason, RegexError};
use super::parse::parse;

/// Maximum size of a compiled expression in bytes.
const MAX_COMPILED: usize = 16 << 20;
/// Maximum length of an expression in bytes. Its tree takes about 200 times as much memory.
const MAX_TEXT: usize = 512 << 10;
/// Maximum number of cached expressions: charts use few expressions often.
const MAX_CACHED: usize = 64;
const MAX_CACHED_BYTES: usize = 32 << 20;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    regex: Regex,
    /// Names of the groups; unnamed groups have an empty name. The first group is the whole match.
    pub(super) names: Vec<String>,
    /// Whether the expression is empty, which Go's `Split` handles separately.
    pub(super) is_empty: bool,
}

#[derive(Default)]
struct Cache {
    programs: HashMap<Box<[u8]>, Rc<Program>>,
    bytes: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

impl Program {
    /// Returns the cached program of `text`, or compiles it and adds it to the cache.
    pub(crate) fn cached(text: &[u8]) -> Result<Rc<Self>, RegexError> {
        CACHE.with_borrow_mut(|cache| match cache.programs.get(text) {
            Some(program) => Ok(Rc::clone(program)),
            None => cache.add(text),
        })
    }

    /// Whether [`Program::cached`] returns a program for `text` without compiling it.
    pub(crate) fn is_cached(text: &[u8]) -> bool {
        CACHE.with_borrow(|cache| cache.programs.contains_key(text))
    }

    /// Returns the size of the program in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.regex.memory_usage()
    }

    /// Returns the number of bytes that a compilation created. For an expression that is too large, this is
    /// the size limit.
    pub(crate) fn compiled_bytes(result: &Result<Rc<Self>, RegexError>) -> usize {
        match result {
            Ok(program) => program.memory(),
            Err(error) if error.is_too_large() => MAX_COMPILED,
            Err(_) => 0,
        }
    }

    fn compile(text: &[u8]) -> Result<Self, RegexError> {
        if text.len() > MAX_TEXT {
            return Err(Reason::Large.at(b"..."));
        }
        let parsed = parse(text)?;
        let config = Regex::config()
            .nfa_size_limit(Some(MAX_COMPILED))
            .onepass_size_limit(Some(1 << 20));
        // The tree is well-formed, so only its size can cause an error.
        let regex = Regex::builder().configure(config).build_from_hir(&parsed.hir);
        let regex = regex.map_err(|_| Reason::Large.at(text))?;
        Ok(Self {
            regex,
            names: parsed.names,
            is_empty: text.is_empty(),
        })
    }

    /// Consumes fuel for a search in `bytes` bytes: the slowest engine processes each byte once per
    /// instruction.
    pub(crate) fn charge(&self, bytes: usize, meter: &mut Meter) -> Result<(), LimitExceeded> {
        let width = 1 + self.regex.memory_usage() as u64 / 4_096;
        meter.consume_fuel(width.saturating_mul(bytes as u64) / 64)
    }
}

impl Cache {
    fn add(&mut self, text: &[u8]) -> Result<Rc<Program>, RegexError> {
        let program = Rc::new(Program::compile(text)?);
        let bytes = program.regex.memory_usage();
        if self.programs.len() >= MAX_CACHED || self.bytes + bytes > MAX_CACHED_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.programs.insert(text.into(), Rc::clone(&program));
        Ok(program)
    }
}

/// A text to search. Each invalid byte is replaced with U+FFFD, as in Go.
pub(crate) struct Haystack<'t> {
    original: &'t [u8],
    text: Cow<'t, [u8]>,
    /// Offset in `original` for each byte of `text` and for its end. Empty if both texts are equal.
    offsets: Vec<usize>,
}

impl<'t> Haystack<'t> {
    pub(crate) fn new(original: &'t [u8]) -> Self {
        match std::str::from_utf8(original) {
            Ok(_) => Self {
                original,
                text: Cow::Borrowed(original),
                offsets: Vec::new(),
            },
            Err(_) => Self::with_replacements(original),
        }
    }

    fn with_replacements(original: &'t [u8]) -> Self {
        let (mut text, mut offsets, mut at) = (Vec::new(), Vec::new(), 0);
        for chunk in original.utf8_chunks() {
            text.extend_from_slice(chunk.valid().as_bytes());
            offsets.extend(at..at + chunk.valid().len());
            at += chunk.valid().len();
            for _ in chunk.invalid() {
                text.extend_from_slice("\u{fffd}".as_bytes());
                offsets.extend([at; 3]);
                at += 1;
            }
        }
        offsets.push(at);
        Self {
            original,
            text: Cow::Owned(text),
            offsets,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the original bytes for a range of the text.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'t [u8] {
        let offset = |at: usize| self.offsets.get(at).copied().unwrap_or(at);
        self.original
            .get(offset(range.start)..offset(range.end))
            .unwrap_or_default()
    }

    /// Returns the length of the character at `at` in bytes, or zero at the end.
    pub(super) fn width(&self, at: usize) -> usize {
        match self.text.get(at) {
            None => 0,
            Some(0..=0x7f) => 1,
            Some(0x80..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(_) => 4,
        }
    }
}

impl Program {
    pub(crate) fn is_match(&self, haystack: &Haystack<'_>) -> bool {
        self.regex.is_match(Input::new(&*haystack.text))
    }

    /// Returns the leftmost match that starts at or after `from`.
    pub(crate) fn find(&self, haystack: &Haystack<'_>, from: usize) -> Option<Range<usize>> {
        Some(
            self.regex
                .find(Input::new(&*haystack.text).range(from..))?
                .range(),
        )
    }

    /// Finds the leftmost match at or after `from` and stores its groups.
    pub(super) fn captures(&self, haystack: &Haystack<'_>, from: usize, groups: &mut Captures) {
        self.regex
            .captures(Input::new(&*haystack.text).range(from..), groups);
    }

    /// Creates the buffer for the groups of a match.
    pub(super) fn groups(&self) -> Captures {
        self.regex.create_captures()
    }

    /// Returns up to `limit` non-overlapping matches. An empty match directly after another match is
    /// skipped.
    pub(crate) fn find_all(&self, haystack: &Haystack<'_>, limit: usize) -> Vec<Range<usize>> {
        let (mut found, mut at, mut last_end) = (Vec::new(), 0, None);
        while found.len() < limit && at <= haystack.len() {
            let Some(next) = self.find(haystack, at) else {
                break;
            };
            let (start, end) = (next.start, next.end);
            let touches = end == at && last_end == Some(start);
            if !touches {
                found.push(next);
            }
            last_end = Some(end);
            at = if end > at {
                end
            } else {
                at + haystack.width(at).max(1)
            };
        }
        found
    }
}
