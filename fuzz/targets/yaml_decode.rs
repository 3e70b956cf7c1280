//! libFuzzer program for the target `yaml_decode`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mainstay_fuzz::yaml_decode(input));
