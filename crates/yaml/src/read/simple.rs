//! Recognition of documents in simple form without tokens: block collections with one entry per line and
//! scalars that end on their line, block scalars, and documents in the style of JSON. Several times as fast
//! as the parser, which handles all other documents.
//!
//! *Invariant:* a recognized text has no syntax error, and parses into the collections that the recognizer
//! finds.

mod block;
mod flow;
mod scalar;

use std::collections::HashSet;
use std::ops::Range;

use super::source::Source;
use crate::Budget;

/// Reports whether `text` is a single document of simple form, which has no syntax error. If `false`, only
/// the parser can decide.
#[must_use]
pub fn is_simple(text: &[u8]) -> bool {
    let rules = ElisionRules::default();
    Recognizer::<false>::new(text, &rules).run().is_some()
}

/// Rules that select the values that a reader of a document does not need.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElisionRules<'r> {
    /// Keys whose values are needed. Values inside them may be elided.
    pub kept: &'r [&'r str],
    /// Keys whose values are needed completely.
    pub opaque: &'r [&'r str],
    /// Byte offsets that are needed, sorted.
    pub pins: &'r [usize],
    /// Minimum length in bytes of a value to elide.
    pub min_len: usize,
}

/// A value that is not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elision {
    /// Byte range of the text. In a block: from the colon to the end of the value's last scalar. In braces:
    /// the value itself.
    pub range: Range<usize>,
    /// Whether the value is in braces.
    pub flow: bool,
    /// Whether the value ends with a block scalar, which also includes the following blank lines.
    pub block_scalar: bool,
}

/// Returns the values of map keys in `text` that can be replaced by any other scalar without changing the
/// meaning of the rest. These values contain no anchors, aliases, tags or repeated keys, and no numbers
/// without a JSON form. Returns `None` if the text is not of simple form.
#[must_use]
pub fn elidable_values(text: &[u8], rules: &ElisionRules<'_>) -> Option<Vec<Elision>> {
    Recognizer::<true>::new(text, rules).run()
}

/// Maximum nesting of collections.
const MAX_DEPTH: usize = 100;

/// Maximum length of a key in bytes: half of the scanner's limit.
const MAX_KEY: usize = 512;

/// Maximum number of keys of a map that are compared one by one.
const FEW_KEYS: usize = 16;

/// A line-based recognizer. `ELIDES` selects whether it also finds values to elide.
struct Recognizer<'a, const ELIDES: bool> {
    text: &'a [u8],
    /// Offset of the next line.
    at: usize,
    /// Open block and flow collections.
    frames: Vec<Frame<'a>>,
    /// Upper bound of the number of nodes so far.
    nodes: usize,
    /// End of the last scalar, excluding a comment after it.
    content_end: usize,
    /// End of the last block scalar.
    scalar_end: usize,
    /// Keys of all open maps, outer maps first.
    keys: Vec<&'a [u8]>,
    rules: &'a ElisionRules<'a>,
    /// Number of pins before the current position.
    passed_pins: usize,
    /// Number of parts so far that prevent elision for other reasons.
    obstacles: usize,
    elisions: Vec<Elision>,
}

/// Kind of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Map,
    List,
}

/// An open collection.
#[derive(Debug)]
struct Frame<'a> {
    indent: usize,
    kind: Kind,
    /// Length of `keys` when the collection was opened.
    keys: usize,
    /// All keys of the map, if it has many.
    key_set: Option<HashSet<&'a [u8]>>,
    value: Value,
}

/// A value that may be elided when its end is known.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    /// Start of the range; `None` if the value must not be elided.
    start: Option<usize>,
    /// Number of pins and obstacles before the value.
    marks: usize,
    /// Number of elisions before the value.
    elisions: usize,
    /// Whether nothing inside the value may be elided.
    opaque: bool,
}

impl<'a, const ELIDES: bool> Recognizer<'a, ELIDES> {
    fn new(text: &'a [u8], rules: &'a ElisionRules<'a>) -> Self {
        Self {
            text,
            at: 0,
            frames: Vec::new(),
            nodes: 0,
            content_end: 0,
            scalar_end: 0,
            keys: Vec::new(),
            rules,
            passed_pins: 0,
            obstacles: 0,
            elisions: Vec::new(),
        }
    }

    fn run(mut self) -> Option<Vec<Elision>> {
        if !is_clean(self.text) {
            return None;
        }
        self.recognize_document()?;
        Some(self.elisions)
    }

    /// Returns the byte at offset `at`, or 0 after the end.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn add_nodes(&mut self, count: usize) -> Option<()> {
        self.nodes += count;
        (self.nodes < Budget::default().nodes / 2).then_some(())
    }

    /// Returns the number of pins and obstacles before `at`. Successive calls must not decrease `at`.
    fn marks_before(&mut self, at: usize) -> usize {
        let rest = self.rules.pins.get(self.passed_pins..).unwrap_or_default();
        self.passed_pins += rest.iter().take_while(|pin| **pin < at).count();
        self.passed_pins + self.obstacles
    }

    /// Starts the value of `key` at `start`. `inside` means that it is in an opaque value, where nothing
    /// may be elided.
    fn start_value(&mut self, key: &[u8], start: usize, inside: bool) -> Value {
        if !ELIDES {
            return Value::default();
        }
        let named = |keys: &[&str]| keys.iter().any(|kept| kept.as_bytes() == key);
        let opaque = inside || named(self.rules.opaque);
        let stays = opaque || named(self.rules.kept);
        Value {
            start: (!stays).then_some(start),
            marks: self.marks_before(start),
            elisions: self.elisions.len(),
            opaque,
        }
    }

    /// Elides `value`, which ends at `end`, unless something in it is needed.
    fn end_value(&mut self, value: &Value, end: usize, flow: bool) {
        let Some(start) = value.start.filter(|_| ELIDES) else {
            return;
        };
        if end < start + self.rules.min_len.max(1) || self.marks_before(end) != value.marks {
            return;
        }
        self.elisions.truncate(value.elisions);
        self.elisions.push(Elision {
            range: start..end,
            flow,
            block_scalar: !flow && end == self.scalar_end,
        });
    }

    /// Records a key of the innermost map. A map with a repeated key must not be elided.
    fn record_key(&mut self, key: &'a [u8], map: &mut Frame<'a>) {
        if !ELIDES {
            return;
        }
        let repeated = if let Some(key_set) = &mut map.key_set {
            !key_set.insert(key)
        } else {
            let known = self.keys.get(map.keys..).unwrap_or_default();
            let repeated = known.contains(&key);
            if known.len() >= FEW_KEYS {
                map.key_set = Some(known.iter().copied().chain([key]).collect());
            }
            self.keys.push(key);
            repeated
        };
        // The decoder may resolve such a key to another type and convert it.
        let special = key.eq_ignore_ascii_case(b"null") || key.first() == Some(&b'.') && key.len() < 6;
        self.obstacles += usize::from(repeated || special);
    }
}

/// Whether `text` contains only characters without a special meaning for the reader, and only LF and CRLF
/// as line breaks.
fn is_clean(text: &[u8]) -> bool {
    let Ok(source) = Source::new(text, &Budget::default()) else {
        return false;
    };
    if source.failure.is_some() || source.skipped > 0 || source.text.len() != text.len() {
        return false;
    }
    let lone_cr = memchr::memchr_iter(b'\r', text).any(|at| text.get(at + 1) != Some(&b'\n'));
    !lone_cr && (text.is_ascii() || !has_separators(text))
}

/// Whether `text` contains line breaks beyond ASCII or a byte order mark.
fn has_separators(text: &[u8]) -> bool {
    let separators = ["\u{85}", "\u{2028}", "\u{2029}", "\u{feff}"];
    separators
        .iter()
        .any(|separator| memchr::memmem::find(text, separator.as_bytes()).is_some())
}
