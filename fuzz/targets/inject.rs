//! libFuzzer program for the target `inject`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mainstay_fuzz::inject(input));
