//! Clock and random source for templates. They have no access to network, files or environment.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use mainstay_template::Host;

/// The system's clock and random source.
pub(crate) struct SystemHost;

impl Host for SystemHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            // A key of zeroes would not be noticed, so fail.
            let _ = writeln!(std::io::stderr(), "Error: cannot read random bytes: {error}");
            std::process::exit(1);
        }
    }

    fn now(&mut self) -> i128 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i128)
    }
}
