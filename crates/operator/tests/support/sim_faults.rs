//! Faults of calls and watches on the simulator, and samples of them.

use std::time::Duration;

use mainstay_sim::fault::Fault;
use mainstay_sim::status::Status;
use mainstay_testkit::Random;

/// Response time that is longer than the timeout of any call.
const SLOW_RESPONSE_TIME: Duration = Duration::from_secs(90);

pub fn call_faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("crash before", Fault::CrashBefore),
        ("crash after", Fault::CrashAfter),
        ("request lost", Fault::LoseRequest),
        ("response lost", Fault::LoseResponse),
        ("409", Fault::conflict()),
        ("429", Fault::throttled(2)),
        ("500", Fault::internal()),
        ("503", Fault::unavailable()),
        ("504", Fault::timeout()),
        ("timeout", Fault::Slow(SLOW_RESPONSE_TIME)),
        (
            "executed, then 500",
            Fault::RejectAfter(Status::internal("injected fault")),
        ),
    ]
}

pub fn watch_faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("watch dropped at once", Fault::DropWatch(0)),
        ("watch dropped after 2", Fault::DropWatch(2)),
        ("watch expired after 1", Fault::ExpireWatch(1)),
        ("event 0 missed", Fault::SkipEvent(0)),
        ("event 2 missed", Fault::SkipEvent(2)),
        ("event 1 twice", Fault::RepeatEvent(1)),
    ]
}

/// Reduces the faults to a random sample of those whose description contains `MAINSTAY_FAULT`. The size is
/// the number in `MAINSTAY_MATRIX`, or `default` if it is not set; `whole` keeps all.
pub fn sample<T: std::fmt::Display>(faults: &mut Vec<T>, default: usize, seed: u64) {
    if let Ok(chosen) = std::env::var("MAINSTAY_FAULT") {
        faults.retain(|fault| fault.to_string().contains(&chosen));
    }
    let count = match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
        Some("whole") => return,
        Some(text) => text.parse().unwrap(),
        None => default,
    };
    let mut random = Random::new(seed);
    for at in (1..faults.len()).rev() {
        faults.swap(at, random.below(at + 1));
    }
    faults.truncate(count);
}
