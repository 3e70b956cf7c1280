//! Claims about rollouts on real API servers and through real proxies, with the figures that the test
//! programs print.

use crate::programs::ProgramName;
use crate::prove::operator::Ran;
use crate::prove::operator::session::Session;
use crate::prove::row::{Row, RowKind};

/// Test programs with real parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    /// Three API servers side by side.
    Servers,
    /// The mesh under load; requires root.
    Traffic,
    /// A Prometheus server.
    Prometheus,
}

struct Claim {
    text: &'static str,
    goal: &'static str,
    program: Program,
    test: &'static str,
    /// Prefix of the output line with the figure.
    line: &'static str,
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "three real API servers: the proposal's example, and a steady state",
        goal: "objects as on the simulator, 0 writes, nothing left",
        program: Program::Servers,
        test: "servers::the_proposal_end_to_end",
        line: "servers proposal: ",
    },
    Claim {
        text: "three real API servers: one killed in the middle of a rollout and brought back",
        goal: "the others complete; ends as without the outage",
        program: Program::Servers,
        test: "servers::an_api_server_killed_halfway",
        line: "servers outage: ",
    },
    Claim {
        text: "three real API servers: a token revoked and the kubeconfig rotated",
        goal: "reported, then used",
        program: Program::Servers,
        test: "servers::a_rotated_kubeconfig",
        line: "servers rotation: ",
    },
    Claim {
        text: "three real API servers: a Cluster deleted and created again",
        goal: "nothing deleted without contact, nothing left after it",
        program: Program::Servers,
        test: "servers::a_deleted_cluster",
        line: "servers deletion: ",
    },
    Claim {
        text: "a real API server with the Gateway API CRDs, and a real istiod: HTTPRoutes",
        goal: "accepted; without an istiod the old pods stay",
        program: Program::Servers,
        test: "gateway::istiod_accepts_http_routes",
        line: "servers gateway: ",
    },
    Claim {
        text: "a real API server: Ingress and Services",
        goal: "objects as on the simulator",
        program: Program::Servers,
        test: "servers::ingresses_as_on_the_simulator",
        line: "servers ingress: ",
    },
    Claim {
        text: "the operator's process killed at writes to three real API servers",
        goal: "each as without kills; 30 in the whole proof",
        program: Program::Servers,
        test: "kills::every_kill_converges",
        line: "servers kills: ",
    },
    Claim {
        text: "real traffic: a canary 0, 10, 50, 100 % through real Envoys",
        goal: "shares within 2 %, 0 failed requests",
        program: Program::Traffic,
        test: "rollout",
        line: "rollout canary: ",
    },
    Claim {
        text: "real traffic: an abort at 50 %",
        goal: "all on v1, 0 failed requests",
        program: Program::Traffic,
        test: "rollout",
        line: "rollout abort: ",
    },
    Claim {
        text: "real traffic: the canary with an HTTPRoute and a Gateway of Gateway API",
        goal: "shares within 2 %, 0 failed requests",
        program: Program::Traffic,
        test: "rollout_gateway_api",
        line: "rollout gateway api: ",
    },
    Claim {
        text: "real traffic, control: readiness ignored",
        goal: "must fail",
        program: Program::Traffic,
        test: "rollout",
        line: "rollout control, readiness ignored: ",
    },
    Claim {
        text: "analysis against a real Prometheus server",
        goal: "value, no data and an error as from the recorded API",
        program: Program::Prometheus,
        test: "a_real_server_is_queried",
        line: "prometheus: ",
    },
];

/// The program with three API servers.
pub(super) const SERVERS: ProgramName = ProgramName {
    package: "mainstay-operator",
    target: "rollout_servers",
};

/// Runs all cases on the three API servers.
pub(super) fn run_servers() -> Ran {
    Session::run(
        &["test", "--workspace", "--test", SERVERS.target],
        &[("MAINSTAY_MATRIX", "whole")],
    )
}

/// Returns the rows. The quick share leaves out traffic, whose shares need a minute of requests each, and
/// Prometheus, whose build takes minutes.
pub(super) fn rows(servers: Ran, quick: bool) -> Vec<Row> {
    let prometheus = [
        "test",
        "--workspace",
        "--test",
        "prometheus",
        "--",
        "--show-output",
    ];
    let traffic = ["test", "--workspace", "--test", "traffic", "--", "rollout"];
    let mut programs = vec![(Program::Servers, servers)];
    if !quick {
        programs.push((Program::Prometheus, Session::run(&prometheus, &[])));
        programs.push((Program::Traffic, Session::run(&traffic, &[])));
    }
    let row = |claim: &Claim| {
        let ran = programs.iter().find(|(program, _)| *program == claim.program);
        ran.map(|(_, ran)| claim.row(ran))
    };
    CLAIMS.iter().filter_map(row).collect()
}

/// Returns the names of all tests that the rows refer to.
#[cfg(test)]
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    CLAIMS.iter().map(|claim| claim.test)
}

impl Claim {
    fn row(&self, ran: &Ran) -> Row {
        match ran {
            Err(error) => Row::not_measured(self.text, self.goal, RowKind::Correctness, error),
            Ok(ran) => {
                let figure = ran.after(self.line).unwrap_or("did not run").to_owned();
                Row::correct(self.text, figure, self.goal, ran.passed(self.test))
            }
        }
    }
}
