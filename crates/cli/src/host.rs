//! What templates may ask of this machine: the time and random bytes. No network, no files, no environment.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use mainstay_template::Host;

/// The clock and the system's randomness.
pub(crate) struct SystemHost;

impl Host for SystemHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            // A key made of zeroes looks like any other; better none at all.
            let _ = writeln!(
                std::io::stderr(),
                "Error: this system gives no random bytes: {error}"
            );
            std::process::exit(1);
        }
    }

    fn now(&mut self) -> i128 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i128)
    }
}
