//! `--verbose`: prints every request to an API server on stderr.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_cluster::connect::CompletedCall;

use super::style::FRAME;

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Enables the printing of requests for this process.
pub(crate) fn enable() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Whether requests are printed.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Prints a request with its status and time.
pub(crate) fn print_call(call: &CompletedCall) {
    let status = match call.status {
        Some(status) => status.to_string(),
        None => "no response".to_owned(),
    };
    // A closed stderr is ignored.
    let _ = writeln!(
        anstream::stderr(),
        "{FRAME}{}{FRAME:#} {} {status} in {} ms",
        call.method,
        call.path,
        call.duration.as_millis()
    );
}
