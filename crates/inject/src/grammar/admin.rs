//! Parses the admin port annotation.

use super::Read;
use super::entry::Piece;
use super::number::{port, reserved};

/// Envoy's admin interface: where it listens, if it is wanted at all.
pub type Admin = Option<u16>;

/// Reads an admin port annotation.
#[must_use]
pub fn parse_admin(text: &str) -> Read<Admin> {
    if text.is_empty() {
        return Read {
            value: None,
            flaws: Vec::new(),
        };
    }
    let piece = Piece { text, start: 0 };
    match port(&piece) {
        Ok(number) => Read {
            value: Some(number),
            flaws: reserved(number, piece.range()).into_iter().collect(),
        },
        Err(flaw) => Read {
            value: None,
            flaws: vec![flaw],
        },
    }
}
