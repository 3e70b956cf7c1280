//! Decoding of base64 as in Go's standard encoding: padded, without line breaks and trailing bits.

/// Returns the decoded bytes, or `None` if `text` is not base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    let mut groups = digits.chunks_exact(4).peekable();
    while let Some(group) = groups.next() {
        let last = groups.peek().is_none();
        push_group(&mut out, group, last)?;
    }
    Some(out)
}

fn push_group(out: &mut Vec<u8>, group: &[u8], last: bool) -> Option<()> {
    let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 || (padding > 0 && !last) {
        return None;
    }
    let mut bits = 0;
    for byte in group.iter().take(4 - padding) {
        bits = bits << 6 | u32::from(digit(*byte)?);
    }
    bits <<= 6 * padding;
    let [_, a, b, c] = bits.to_be_bytes();
    out.extend([a, b, c].iter().take(3 - padding));
    Some(())
}

fn digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
