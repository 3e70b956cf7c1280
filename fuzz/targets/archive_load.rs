//! libFuzzer program for the target `archive_load`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mainstay_fuzz::archive_load(input));
