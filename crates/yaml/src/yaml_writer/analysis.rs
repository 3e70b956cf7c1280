//! Analysis of the styles in which a scalar can be written.

use std::ops::Range;

use crate::chars;
use crate::resolve::{self, GoYamlVersion, Resolved};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Restrictions that the text of a scalar imposes on its style.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // Four independent properties.
pub(super) struct Analysis {
    pub(super) multiline: bool,
    no_plain: bool,
    no_single: bool,
    no_block: bool,
}

impl Analysis {
    /// Returns `wanted`, or the next style that can represent the text.
    pub(super) fn choose_style(self, wanted: Style, simple_key: bool) -> Style {
        let wanted = if simple_key && self.multiline {
            Style::Double
        } else {
            wanted
        };
        match wanted {
            Style::Plain if self.no_plain && self.no_single => Style::Double,
            Style::Plain if self.no_plain => Style::Single,
            Style::Single if self.no_single => Style::Double,
            Style::Literal if self.no_block || simple_key => Style::Double,
            other => other,
        }
    }

    /// Examines every character of `text` once.
    pub(super) fn new(text: &str, version: GoYamlVersion) -> Self {
        if text.is_empty() {
            return Self {
                no_block: true,
                ..Self::default()
            };
        }
        if is_plain_safe(text.as_bytes()) {
            return Self::default();
        }
        let mut scan = Scan::new(text, version);
        scan.run();
        scan.analysis()
    }
}

/// Whether `text` can be written in every style: words of ordinary characters with spaces between them.
fn is_plain_safe(text: &[u8]) -> bool {
    let starts_easily = text
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'$' | b'_'));
    starts_easily
        && text.last() != Some(&b' ')
        && text
            .iter()
            .all(|byte| chars::is_plain_safe(*byte) || *byte == b' ')
}

/// Returns the style that go-yaml requests: literal for several lines, quotes if plain text would resolve
/// to another type.
pub(super) fn requested_style(text: &str, version: GoYamlVersion) -> Style {
    if text.contains('\n') {
        return Style::Literal;
    }
    let read_back = resolve::resolve(text, version, true);
    let old = version == GoYamlVersion::V3 && resolve::is_old_bool(text);
    if read_back != Resolved::Text || resolve::is_base60(text) || old {
        Style::Double
    } else {
        Style::Plain
    }
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // Independent properties of the text.
struct Seen {
    indicator: bool,
    breaks: bool,
    special: bool,
    tab: bool,
    leading: bool,
    trailing_space: bool,
    trailing_break: bool,
    break_space: bool,
    space_break: bool,
}

/// Class of the previous character.
#[derive(Clone, Copy, PartialEq)]
enum PreviousClass {
    Space,
    Break,
    Other,
}

struct Scan<'a> {
    text: &'a [u8],
    version: GoYamlVersion,
    seen: Seen,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, version: GoYamlVersion) -> Self {
        let document_mark = text.starts_with("---") || text.starts_with("...");
        let seen = Seen {
            indicator: document_mark,
            ..Seen::default()
        };
        Self {
            text: text.as_bytes(),
            version,
            seen,
        }
    }

    fn run(&mut self) {
        let (mut at, mut before, mut after_blank) = (0, PreviousClass::Other, true);
        while let Some(&byte) = self.text.get(at) {
            let width = chars::width(byte);
            let end = at + width;
            if at == 0 {
                self.check_first(byte, self.is_blank_at(end));
            } else {
                self.check_later(byte, after_blank, end);
            }
            let is_break = chars::is_break(self.text, at);
            self.check_special(byte, at);
            before = self.check_blanks(byte, is_break, before, at..end);
            after_blank = matches!(byte, b' ' | b'\t' | 0) || is_break;
            at = end;
        }
    }

    fn is_blank_at(&self, at: usize) -> bool {
        self.text.get(at).is_none_or(|byte| matches!(byte, b' ' | b'\t'))
    }

    fn check_first(&mut self, byte: u8, followed: bool) {
        self.seen.indicator |= match byte {
            b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => true,
            b'?' | b':' | b'-' => followed,
            _ => false,
        };
    }

    fn check_later(&mut self, byte: u8, after_blank: bool, end: usize) {
        self.seen.indicator |= match byte {
            b':' => self.is_blank_at(end),
            b'#' => after_blank,
            _ => false,
        };
    }

    fn check_special(&mut self, byte: u8, at: usize) {
        if byte == b'\t' && self.version == GoYamlVersion::V3 {
            self.seen.tab = true;
        } else if !chars::is_printable(self.text, at) {
            self.seen.special = true;
        }
    }

    fn check_blanks(
        &mut self,
        byte: u8,
        is_break: bool,
        before: PreviousClass,
        range: Range<usize>,
    ) -> PreviousClass {
        let seen = &mut self.seen;
        let (first, last) = (range.start == 0, range.end == self.text.len());
        if byte == b' ' {
            seen.leading |= first;
            seen.trailing_space |= last;
            seen.break_space |= before == PreviousClass::Break;
            PreviousClass::Space
        } else if is_break {
            seen.breaks = true;
            seen.leading |= first;
            seen.trailing_break |= last;
            seen.space_break |= before == PreviousClass::Space;
            PreviousClass::Break
        } else {
            PreviousClass::Other
        }
    }

    fn analysis(&self) -> Analysis {
        let seen = &self.seen;
        let odd = seen.space_break || seen.special;
        let unquotable = odd || seen.break_space || seen.tab;
        let edges = seen.leading || seen.trailing_space || seen.trailing_break;
        Analysis {
            multiline: seen.breaks,
            no_plain: edges || unquotable || seen.breaks || seen.indicator,
            no_single: unquotable,
            no_block: seen.trailing_space || odd,
        }
    }
}
