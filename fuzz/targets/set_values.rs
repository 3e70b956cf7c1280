//! Any text as a `--set` argument, in every mode: an error or values within the caps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mainstay_chart::{Dialect, Mode, set_values};

fuzz_target!(|text: &str| {
    let mut read = |name: &str| Ok(name.to_owned());
    for mode in [Mode::Typed, Mode::Text, Mode::Json, Mode::Literal, Mode::File(&mut read)] {
        let mut values = mainstay_yaml::Map::default();
        if let Err(error) = set_values(text, &mut values, mode, Dialect::Helm4) {
            assert!(error.offset <= text.len(), "the place lies outside of the argument");
            assert!(!error.text.is_empty(), "an error without words");
        }
    }
});
