//! Faults of calls and watches on the simulator, and the sample of them that a run uses.

use std::time::Duration;

use mainstay_sim::fault::Fault;
use mainstay_sim::status::Status;
use mainstay_testkit::Random;

/// Longer than the timeout of any call.
const TOO_SLOW: Duration = Duration::from_secs(90);

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
        ("timeout", Fault::Slow(TOO_SLOW)),
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

/// Keeps a random sample of the faults whose description contains `MAINSTAY_FAULT` (all, if it is not set).
/// The size is `default` or the number in `MAINSTAY_MATRIX`; `whole` keeps all.
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
