//! Continue tokens: position and version of a paginated list, encoded as base64 of a small JSON object.

use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{Engine as _, alphabet};
use serde_json::json;

use crate::status::{Result, Status};

/// Position at which a list continues.
pub(super) struct Token {
    /// Version of the list; `None` for the latest.
    pub(super) version: Option<u64>,
    /// Last key of the previous page.
    pub(super) after: String,
}

/// Like Go's decoder, ignores the unused bits of the last character. Padding is removed before decoding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
);

impl Token {
    pub(super) fn encode(&self) -> String {
        let version = self
            .version
            .map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX));
        let text = json!({"v": "meta.k8s.io/v1", "rv": version, "start": format!("{}\u{0}", self.after)})
            .to_string();
        BASE64.encode(text)
    }

    pub(super) fn decode(text: &str) -> Result<Self> {
        let invalid = |reason: &str| {
            Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {reason}"
            ))
        };
        let bytes = BASE64
            .decode(text.trim_end_matches('='))
            .map_err(|_| invalid("illegal base64 data"))?;
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

    #[test]
    fn tokens_use_the_url_alphabet_without_padding() {
        let token = Token {
            version: Some(7),
            after: "ns/ÿþ?".into(),
        };
        let text = "eyJydiI6Nywic3RhcnQiOiJucy_Dv8O-P1x1MDAwMCIsInYiOiJtZXRhLms4cy5pby92MSJ9";
        assert_eq!(token.encode(), text);
        assert_eq!(Token::decode(&format!("{text}==")).unwrap().after, token.after);
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        for (text, reason) in [
            ("a+/=", "illegal base64 data"),
            // No encoding has one character more than a multiple of four.
            ("bogus", "illegal base64 data"),
            ("a=b", "illegal base64 data"),
            ("", "unexpected end of JSON input"),
            (
                "nonsense",
                "invalid character '\\u009e' looking for beginning of value",
            ),
            // The unused bits of the last character are ignored: `eB` and `eA` are the same text.
            ("eB", "invalid character 'x' looking for beginning of value"),
            ("e30", "server does not recognize this encoded version"),
        ] {
            let message = Token::decode(text).err().unwrap().message().to_owned();
            let expected = format!("invalid continue token: continue key is not valid: {reason}");
            assert_eq!(message, expected, "{text:?}");
        }
    }
}
