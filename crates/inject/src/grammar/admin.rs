//! Parses the admin port annotation.

use super::Read;
use super::entry::Piece;
use super::number::{check_reserved, parse_port};

/// Port of Envoy's admin interface; `None` if it is not enabled.
pub type Admin = Option<u16>;

/// Parses an admin port annotation.
#[must_use]
pub fn parse_admin(text: &str) -> Read<Admin> {
    if text.is_empty() {
        return Read {
            value: None,
            flaws: Vec::new(),
        };
    }
    let piece = Piece { text, start: 0 };
    match parse_port(&piece) {
        Ok(number) => Read {
            value: Some(number),
            flaws: check_reserved(number, piece.range()).into_iter().collect(),
        },
        Err(flaw) => Read {
            value: None,
            flaws: vec![flaw],
        },
    }
}
