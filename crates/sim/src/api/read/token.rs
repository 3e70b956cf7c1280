//! Continue tokens: position and version of a paginated list, encoded as base64 of a small JSON object.

use serde_json::json;

use crate::status::{Result, Status};

/// Position at which a list continues.
pub(super) struct Token {
    /// Version of the list; `None` for the latest.
    pub(super) version: Option<u64>,
    /// Last key of the previous page.
    pub(super) after: String,
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Token {
    pub(super) fn encode(&self) -> String {
        let version = self
            .version
            .map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX));
        let text = json!({"v": "meta.k8s.io/v1", "rv": version, "start": format!("{}\u{0}", self.after)})
            .to_string();
        encode_base64(text.as_bytes())
    }

    pub(super) fn decode(text: &str) -> Result<Self> {
        let invalid = |reason: &str| {
            Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {reason}"
            ))
        };
        let bytes = decode_base64(text).ok_or_else(|| invalid("illegal base64 data"))?;
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|_| invalid(&go_error(&bytes)))?;
        let version = value.get("rv").and_then(serde_json::Value::as_i64).unwrap_or(0);
        if value.get("v").and_then(serde_json::Value::as_str) != Some("meta.k8s.io/v1") {
            return Err(invalid("server does not recognize this encoded version"));
        }
        if version == 0 {
            return Err(invalid(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ));
        }
        let start = value
            .get("start")
            .and_then(serde_json::Value::as_str)
            .unwrap_or("");
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        Ok(Self {
            version: u64::try_from(version).ok(),
            after: start.trim_end_matches('\u{0}').to_owned(),
        })
    }
}

/// Returns Go's error text for a token whose first byte does not start a JSON value.
fn go_error(bytes: &[u8]) -> String {
    let shown = match bytes.first() {
        Some(byte) if byte.is_ascii_graphic() => char::from(*byte).to_string(),
        Some(byte) => format!("\\u{byte:04x}"),
        None => return "unexpected end of JSON input".into(),
    };
    format!("invalid character '{shown}' looking for beginning of value")
}

fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for position in 0..=chunk.len() {
            let letter = bits >> (18 - 6 * position) & 63;
            out.push(char::from(ALPHABET.get(letter as usize).copied().unwrap_or(b'A')));
        }
    }
    out
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0u32;
        for byte in chunk {
            let value = ALPHABET.iter().position(|letter| letter == byte)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        bits <<= 6 * (4 - chunk.len());
        let bytes = bits.to_be_bytes();
        out.extend(bytes.iter().skip(1).take(chunk.len().checked_sub(1)?));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        for after in ["a", "ns/name", "ns/äöü", "x/yz"] {
            let token = Token {
                version: Some(7),
                after: after.into(),
            };
            let decoded = Token::decode(&token.encode()).unwrap();
            assert_eq!((decoded.version, decoded.after.as_str()), (Some(7), after));
        }
        assert!(Token::decode("!!").is_err());
        assert!(Token::decode("e30").is_err());
    }
}
