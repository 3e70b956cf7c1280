//! Rows of the in-cluster controller and its webhook.

use super::Counted;

/// Returns the faults per scenario.
pub(super) fn faults(quick: bool) -> &'static str {
    if quick { "2" } else { "12" }
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
        claim: "webhook: a real API server rejects invalid resources, also after renewal: certificates",
        package: "mainstay-operator",
        test: "istio_operator_real",
        filter: "webhook_real",
        mark: "istio operator webhook real: ",
        goal: "2, all served",
        least: 2,
    },
    Counted {
        claim: "controller: faults at API calls end as without faults",
        package: "mainstay-operator",
        test: SIMULATED,
        filter: "faults::",
        mark: "controller faults: ",
        goal: "72 (quick: 12), all as without",
        least: 12,
    },
];
