//! Splitting of a text into YAML documents as in the reader of Kubernetes, with the position of each
//! document.

use std::borrow::Cow;

use crate::error::ValuesError;

/// A document of a values file.
pub(super) struct Document<'a> {
    /// Text of the document. Every line ends in a line feed.
    pub(super) text: Cow<'a, [u8]>,
    /// Number of lines before the document.
    pub(super) line: usize,
    /// Number of bytes before the document.
    pub(super) offset: usize,
}

/// Returns an iterator over the documents of `text`. Only the last item can be an error.
pub(super) fn documents(text: &[u8]) -> Documents<'_> {
    Documents {
        text,
        offset: 0,
        line: 0,
        done: false,
    }
}

pub(super) struct Documents<'a> {
    text: &'a [u8],
    offset: usize,
    line: usize,
    done: bool,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Document<'a>, ValuesError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, first_line) = (self.offset, self.line);
        while !self.done {
            let rest = self.text.get(self.offset..).unwrap_or_default();
            let Some(line) = rest.split_inclusive(|byte| *byte == b'\n').next() else {
                break;
            };
            let here = self.offset;
            self.offset += line.len();
            self.line += 1;
            if let Some(after) = line.strip_prefix(b"---") {
                if let Some(error) = separator_error(after, self.line) {
                    self.done = true;
                    return Some(Err(error));
                }
                // A separator at the start of a document is part of it.
                if here > start {
                    return Some(Ok(self.document(start, here, first_line)));
                }
            }
        }
        self.done = true;
        (self.offset > start).then(|| Ok(self.document(start, self.offset, first_line)))
    }
}

impl<'a> Documents<'a> {
    fn document(&self, start: usize, end: usize, line: usize) -> Document<'a> {
        let text = self.text.get(start..end).unwrap_or_default();
        Document {
            text: normalize_line_breaks(text),
            line,
            offset: start,
        }
    }
}

fn separator_error(after: &[u8], line: usize) -> Option<ValuesError> {
    let text = String::from_utf8_lossy(after);
    let text = text.trim();
    (!text.is_empty() && !text.starts_with('#')).then(|| ValuesError::Separator {
        text: text.into(),
        line,
    })
}

/// Normalizes line breaks as the reader does: removes carriage returns and adds a line feed after the last
/// line.
fn normalize_line_breaks(text: &[u8]) -> Cow<'_, [u8]> {
    let windows = text.windows(2).any(|pair| pair == b"\r\n");
    if !windows && text.ends_with(b"\n") {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 1);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line
            .strip_suffix(b"\n")
            .map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
        out.extend_from_slice(bare);
        out.push(b'\n');
    }
    Cow::Owned(out)
}
