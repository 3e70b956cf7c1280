//! Splits a configuration at `##` and `#` into parts with offsets.

use std::ops::Range;

use super::{Flaw, FlawCode};

/// A part of the text with its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl<'a> Piece<'a> {
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Splits at `separator` as Go's `strings.Split` does: from the left, with empty parts.
    pub(super) fn split(self, separator: &'static str) -> impl Iterator<Item = Piece<'a>> {
        let mut start = self.start;
        self.text.split(separator).map(move |text| {
            let piece = Piece { text, start };
            start += text.len() + separator.len();
            piece
        })
    }
}

/// Splits a configuration into entries with three parts; an entry with another number of parts is a flaw.
/// Like the proxy, skips empty entries.
pub(super) fn split_entries<'a>(text: &'a str, shape: &str, flaws: &mut Vec<Flaw>) -> Vec<[Piece<'a>; 3]> {
    let pieces = Piece { text, start: 0 }
        .split("##")
        .filter(|piece| !piece.text.is_empty());
    let mut entries = Vec::new();
    for piece in pieces {
        let parts: Vec<Piece<'a>> = piece.split("#").collect();
        match <[Piece<'a>; 3]>::try_from(parts) {
            Ok(parts) => entries.push(parts),
            Err(parts) => flaws.push(invalid_entry(&piece, &parts, shape)),
        }
    }
    entries
}

fn invalid_entry(piece: &Piece<'_>, parts: &[Piece<'_>], shape: &str) -> Flaw {
    let parts = match parts.len() {
        1 => "1 part".to_owned(),
        count => format!("{count} parts"),
    };
    let message = format!("invalid entry {:?}: want {shape}, found {parts}", piece.text);
    Flaw::new(FlawCode::Entry, piece.range(), message)
        .help("separate entries with `##` and their three parts with `#`")
}
