//! libFuzzer program for the target `set_values`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mainstay_fuzz::set_values(input));
