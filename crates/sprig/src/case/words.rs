//! Word conversions of Go's xstrings package, including its unusual edge cases: for a string that consists
//! of connectors, the last one is repeated.

use mainstay_gostd::unicode::{self, is_letter, is_number, is_punct, is_upper};
use mainstay_gostd::utf8::{self, RUNE_ERROR};

/// Converts to Pascal case (`xstrings.ToPascalCase`).
pub(super) fn to_pascal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut runes = utf8::runes(text).map(|(rune, _)| rune).peekable();
    let Some((mut last, mut in_upper)) = skip_connectors(&mut runes, &mut out) else {
        return out;
    };
    for rune in runes {
        let before = std::mem::replace(&mut last, rune);
        match (is_connector(rune), is_connector(before)) {
            (true, true) => utf8::push(&mut out, before),
            (_, true) => {
                in_upper = is_upper(rune);
                last = unicode::to_upper(rune);
            }
            _ => {
                in_upper = in_upper && is_upper(rune);
                if in_upper {
                    last = unicode::to_lower(rune);
                }
                utf8::push(&mut out, before);
            }
        }
    }
    utf8::push(&mut out, last);
    out
}

/// Writes leading connectors. Returns the next character in upper case, and whether it was in upper case.
/// Without another character, returns the last connector.
fn skip_connectors(runes: &mut impl Iterator<Item = char>, out: &mut Vec<u8>) -> Option<(char, bool)> {
    let mut last = None;
    for rune in runes {
        if !is_connector(rune) {
            return Some((unicode::to_upper(rune), is_upper(rune)));
        }
        utf8::push(out, rune);
        last = Some((rune, false));
    }
    last
}

/// Converts to words in lower case with `connector` between them (`xstrings.ToSnakeCase` and
/// `xstrings.ToKebabCase`).
pub(super) fn to_lower_words(text: &[u8], connector: char) -> Vec<u8> {
    let mut writer = Writer {
        out: Vec::with_capacity(text.len() + 8),
        connector,
    };
    let (mut word, mut left) = next_word(text);
    while !left.is_empty() {
        if word.kind != Kind::Connector {
            writer.write_word(&word);
        }
        let before = word;
        (word, left) = next_word(left);
        match before.kind {
            Kind::Number => (word, left) = writer.write_rest_of_number(word, left),
            Kind::Connector => writer.write_word(&before),
            Kind::Punct => {}
            _ if word.kind != Kind::Number => writer.write_connector(word.kind),
            _ if left.is_empty() => {}
            _ => (word, left) = writer.write_number_after_word(&word, left),
        }
    }
    writer.write_word(&word);
    writer.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punct,
    Other,
}

struct Word<'a> {
    kind: Kind,
    text: &'a [u8],
}

struct Writer {
    out: Vec<u8>,
    connector: char,
}

impl Writer {
    /// Writes a word. Upper case is converted to lower case, and connectors are replaced.
    fn write_word(&mut self, word: &Word<'_>) {
        if !matches!(word.kind, Kind::Upper | Kind::Connector) {
            self.out.extend_from_slice(word.text);
            return;
        }
        for (rune, _) in utf8::runes(word.text) {
            let rune = match rune {
                rune if is_connector(rune) => self.connector,
                rune if is_upper(rune) => unicode::to_lower(rune),
                rune => rune,
            };
            utf8::push(&mut self.out, rune);
        }
    }

    /// Writes a connector unless a connector or punctuation follows.
    fn write_connector(&mut self, next: Kind) {
        if !matches!(next, Kind::Connector | Kind::Punct) {
            utf8::push(&mut self.out, self.connector);
        }
    }

    /// Writes the rest of a word that starts with a number: the letters and digits after it.
    fn write_rest_of_number<'a>(&mut self, mut word: Word<'a>, mut left: &'a [u8]) -> (Word<'a>, &'a [u8]) {
        while matches!(word.kind, Kind::Alphabet | Kind::Number) {
            self.write_word(&word);
            (word, left) = next_word(left);
        }
        if word.kind != Kind::Invalid {
            self.write_connector(word.kind);
        }
        (word, left)
    }

    /// Writes a number after a word. It is part of that word unless lower-case letters follow the number.
    fn write_number_after_word<'a>(&mut self, number: &Word<'a>, left: &'a [u8]) -> (Word<'a>, &'a [u8]) {
        let (word, left) = next_word(left);
        if word.kind != Kind::Alphabet {
            self.write_word(number);
            self.write_connector(word.kind);
            return (word, left);
        }
        utf8::push(&mut self.out, self.connector);
        self.write_word(number);
        self.write_rest_of_number(word, left)
    }
}

fn next_word(text: &[u8]) -> (Word<'_>, &[u8]) {
    let (kind, len) = measure_word(text);
    let (word, left) = text.split_at_checked(len).unwrap_or((text, &[]));
    (Word { kind, text: word }, left)
}

fn measure_word(text: &[u8]) -> (Kind, usize) {
    let (rune, len) = next_valid(text, RUNE_ERROR);
    match rune {
        RUNE_ERROR => (Kind::Invalid, len),
        rune if is_connector(rune) => (Kind::Connector, run_end(text, len, rune, is_connector)),
        rune if is_punct(rune) => (Kind::Punct, run_end(text, len, rune, is_punct)),
        rune if is_upper(rune) => (Kind::Upper, upper_word_end(text, len, rune)),
        rune if is_alphabet(rune) => (Kind::Alphabet, run_end(text, len, rune, is_lower_part)),
        rune if is_number(rune) => (Kind::Number, run_end(text, len, rune, is_number)),
        rune => (Kind::Other, run_end(text, len, rune, is_other)),
    }
}

/// Returns the end of the run of characters, starting at offset `end`, for which `inside` returns true.
fn run_end(text: &[u8], mut end: usize, mut rune: char, inside: fn(char) -> bool) -> usize {
    while end < text.len() {
        let size;
        (rune, size) = next_valid(text.get(end..).unwrap_or_default(), rune);
        if !inside(rune) {
            break;
        }
        end += size;
    }
    end
}

/// Returns the end of a word that starts with an upper-case letter: `HTTPStatus` is `HTTP` and `Status`,
/// `Status` is one word.
fn upper_word_end(text: &[u8], mut end: usize, first: char) -> usize {
    if end >= text.len() {
        return end;
    }
    let (mut rune, mut size) = next_valid(text.get(end..).unwrap_or_default(), first);
    if !is_upper(rune) {
        return if is_alphabet(rune) {
            run_end(text, end + size, rune, is_lower_part)
        } else {
            end
        };
    }
    let mut last = 0;
    while is_upper(rune) {
        end += size;
        last = size;
        if end >= text.len() {
            return end;
        }
        (rune, size) = next_valid(text.get(end..).unwrap_or_default(), rune);
    }
    if is_alphabet(rune) { end - last } else { end }
}

/// Returns the next valid rune and the number of bytes up to its end, including skipped invalid bytes.
/// Returns `before` as the rune if there is none.
fn next_valid(text: &[u8], before: char) -> (char, usize) {
    let mut size = 0;
    for (rune, own) in utf8::runes(text) {
        size += own.len();
        if rune != RUNE_ERROR {
            return (rune, size);
        }
    }
    (before, size)
}

fn is_connector(rune: char) -> bool {
    rune == '-' || rune == '_' || unicode::is_space(rune)
}

fn is_lower_part(rune: char) -> bool {
    is_alphabet(rune) && !is_upper(rune)
}

fn is_other(rune: char) -> bool {
    !(is_connector(rune) || is_alphabet(rune) || is_number(rune) || is_punct(rune))
}

/// Whether `rune` is a letter. Ideographs are excluded, because each of them is a separate word.
fn is_alphabet(rune: char) -> bool {
    is_letter(rune)
        && !matches!(rune, '\u{4E00}'..='\u{9FCC}' | '\u{3400}'..='\u{4D85}' | '\u{20000}'..='\u{2B81D}')
}
