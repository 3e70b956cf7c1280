//! What templates may ask of this machine: the time and random bytes. No network, no files, no environment.

use std::time::{SystemTime, UNIX_EPOCH};

use mainstay_template::Host;

/// The clock and the system's randomness.
pub(crate) struct SystemHost;

impl Host for SystemHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        // A system without randomness leaves the zeroes the engine's own default would give.
        if getrandom::fill(buffer).is_err() {
            buffer.fill(0);
        }
    }

    fn now(&mut self) -> i128 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i128)
    }
}
