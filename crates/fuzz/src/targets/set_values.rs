//! Parses arbitrary text as a `--set` argument in every mode. The result must be an error, or values within
//! the limits.

use mainstay_chart::{Dialect, Mode, set_values};

use super::utf8_prefix;

pub(super) fn check(input: &[u8]) {
    let text = utf8_prefix(input);
    let mut read = |name: &str| Ok(name.to_owned());
    for mode in [
        Mode::Typed,
        Mode::Text,
        Mode::Json,
        Mode::Literal,
        Mode::File(&mut read),
    ] {
        let mut values = mainstay_yaml::Map::default();
        if let Err(error) = set_values(text, &mut values, mode, Dialect::Helm4) {
            assert!(error.offset <= text.len(), "the position is outside the argument");
            assert!(!error.text.is_empty(), "the error has no message");
        }
    }
}
