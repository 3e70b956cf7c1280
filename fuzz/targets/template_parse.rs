//! libFuzzer program for the target `template_parse`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mainstay_fuzz::template_parse(input));
