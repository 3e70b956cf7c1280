//! libFuzzer program for the target `template_render`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| mainstay_fuzz::template_render(input));
