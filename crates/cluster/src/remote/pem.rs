//! Reads and writes PEM blocks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// Returns the decoded content of all blocks. Returns `None` if there is no block, a block is incomplete
/// or empty, `accepts` rejects a label, or the text contains anything else.
pub(super) fn parse_blocks(text: &[u8], accepts: impl Fn(&str) -> bool) -> Option<Vec<Vec<u8>>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let begin = line
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(DASHES));
        let end = line.strip_prefix(END).and_then(|rest| rest.strip_suffix(DASHES));
        match (&mut open, begin, end) {
            (None, Some(label), None) if accepts(label) => open = Some((label, String::new())),
            (Some((label, body)), None, Some(end)) if *label == end => {
                blocks.push(STANDARD.decode(body.as_bytes()).ok()?);
                open = None;
            }
            (Some((_, body)), None, None) => body.push_str(line),
            _ => return None,
        }
    }
    (open.is_none() && !blocks.is_empty() && blocks.iter().all(|block| !block.is_empty())).then_some(blocks)
}

/// Encodes a certificate as PEM.
pub(super) fn encode_certificate(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("{BEGIN}CERTIFICATE{DASHES}\n");
    for (index, character) in body.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text + "\n" + END + "CERTIFICATE" + DASHES + "\n"
}
