//! Tests the serialization and formatting of reports.

use super::{Elapsed, Report};

#[test]
fn a_report_round_trips_through_json() {
    let report = Report::sample();
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
}

#[test]
fn json_keys_are_stable() {
    let value = serde_json::to_value(Report::sample()).unwrap();
    for (at, wanted) in [
        ("/upgrade/toRevision", "\"default-v1-29-1\""),
        ("/method", "\"embedded\""),
        ("/findings/0/kind", "\"workloadFails\""),
        ("/phases/0/kind", "\"controlPlane\""),
        ("/workloads/1/fewestReady", "0"),
        ("/totals/servicesInterrupted", "1"),
    ] {
        assert_eq!(
            value.pointer(at).map(ToString::to_string).as_deref(),
            Some(wanted),
            "{at}"
        );
    }
}

#[test]
fn elapsed_times_are_formatted() {
    for (millis, text) in [
        (0, "0s"),
        (49, "0s"),
        (400, "0.4s"),
        (4_000, "4s"),
        (9_960, "10s"),
        (59_499, "59s"),
        (59_500, "1m00s"),
        (185_000, "3m05s"),
        (3_599_999, "1h00m"),
        (7_620_000, "2h07m"),
    ] {
        assert_eq!(Elapsed(millis).to_string(), text);
    }
}
