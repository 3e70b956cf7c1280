//! PEM encoding of keys and certificates.

use crate::encoding::{decode_base64, encode_base64};

/// Content between the BEGIN and END lines.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// Encodes a block.
pub(super) fn encode(label: &str, bytes: &[u8]) -> String {
    let body = encode_base64(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + &format!("-----END {label}-----\n")
}

/// Returns the first valid block of `text`.
pub(super) fn decode(text: &[u8]) -> Option<Block> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(label) = boundary(line, "-----BEGIN ") else {
            continue;
        };
        if let Some(bytes) = body(lines.clone(), label) {
            return Some(Block {
                label: label.to_owned(),
                bytes,
            });
        }
    }
    None
}

fn boundary<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.trim_end().strip_prefix(start)?.strip_suffix("-----")
}

/// Decodes the lines up to the END line with the same label. Leading lines with a colon are headers and are
/// ignored.
fn body<'a>(lines: impl Iterator<Item = &'a str>, label: &str) -> Option<Vec<u8>> {
    let mut digits = String::new();
    for line in lines {
        if let Some(end) = boundary(line, "-----END ") {
            return (end == label)
                .then(|| decode_base64(digits.as_bytes()).ok())
                .flatten();
        }
        let header = digits.is_empty() && line.contains(':');
        if !header {
            digits.extend(line.chars().filter(|c| !c.is_ascii_whitespace()));
        }
    }
    None
}
