//! Rows of the in-cluster controller and its webhook.

use super::super::operator::matrix;
use super::super::operator::session::{Session, share};
use super::super::row::Row;
use super::Counted;

/// Faults per scenario in the quick share.
pub(super) const QUICK_FAULTS: &str = "2";

/// Scenarios of the fault matrix.
const FAULT_SCENARIOS: [&str; 7] = [
    "install", "change", "upgrade", "prune", "drift", "deletion", "handover",
];

/// Returns the row of the whole fault matrix: every fault at every call of every scenario.
pub(super) fn matrix_row() -> Row {
    let tests = ["test", "--release", "--workspace", "--test", SIMULATED];
    let shown = ["--", "--show-output", "faults::"];
    let session = Session::run(&[&tests[..], &shown].concat(), share(false));
    matrix(
        "controller: faults at every API call end as without faults",
        &FAULT_SCENARIOS,
        &session,
        false,
    )
}

/// The test program on the simulator.
pub(super) const SIMULATED: &str = "istio_operator";

pub(super) const ROWS: &[Counted] = &[
    Counted {
        claim: "controller: install, repair, change and delete on the simulator: objects deleted",
        package: "mainstay-operator",
        test: SIMULATED,
        filter: "life_cycle_of_a_control_plane",
        mark: "istio operator life cycle simulated: ",
        goal: "at least 40, all deleted",
        least: 40,
    },
    Counted {
        claim: "controller: the same on a real API server",
        package: "mainstay-operator",
        test: "istio_operator_real",
        filter: "life_cycle_real",
        mark: "istio operator life cycle real: ",
        goal: "at least 40, all deleted",
        least: 40,
    },
    Counted {
        claim: "controller: the same with the roles and admission policies of the chart",
        package: "mainstay-operator",
        test: "istio_operator_real",
        filter: "life_cycle_with_the_charts_account_real",
        mark: "istio operator with the chart's account: ",
        goal: "at least 40, all deleted",
        least: 40,
    },
    Counted {
        claim: "webhook: the simulator rejects invalid resources",
        package: "mainstay-operator",
        test: SIMULATED,
        filter: "webhook::resources_that_validate_rejects_are_rejected",
        mark: "istio operator webhook simulated: ",
        goal: "5, all rejected",
        least: 5,
    },
    Counted {
        claim: "webhook: a real API server rejects invalid resources, also after renewal: certificates",
        package: "mainstay-operator",
        test: "istio_operator_real",
        filter: "webhook_real",
        mark: "istio operator webhook real: ",
        goal: "2, all served",
        least: 2,
    },
    Counted {
        claim: "webhook: the same through the Service of the chart, with its roles: rejected",
        package: "mainstay-operator",
        test: "istio_operator_real",
        filter: "webhook_with_the_charts_account_real",
        mark: "istio operator webhook with the chart's account: ",
        goal: "2, all as expected",
        least: 2,
    },
];

/// Faults at some API calls, for the quick share.
pub(super) const FAULTS: Counted = Counted {
    claim: "controller: faults at API calls end as without faults",
    package: "mainstay-operator",
    test: SIMULATED,
    filter: "faults::",
    mark: "controller faults: ",
    goal: "14, all as without",
    least: 14,
};
