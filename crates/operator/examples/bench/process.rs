//! The operator as a separate process: memory and CPU time from the kernel.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mainstay_testkit::{Usage, isolation};

use crate::server::{OPERATOR, Server};

/// A running operator; it is killed with this value.
pub(crate) struct Operator {
    child: Child,
    /// The pid outside of the namespace.
    outer: u32,
}

/// Binaries of operators.
pub(crate) struct Programs {
    pub(crate) mainstay: PathBuf,
    /// The Sail Operator, if it is measured, too.
    pub(crate) sail_operator: Option<PathBuf>,
    /// Directory of the charts that the Sail Operator does not contain.
    pub(crate) sail_charts: Option<PathBuf>,
}

/// An operator that can be started.
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<String>,
}

impl Programs {
    /// Returns `mainstay operator run`. It detects the platform unless it is given.
    pub(crate) fn mainstay(&self, is_platform_given: bool) -> Program {
        let mut arguments = [
            "operator",
            "run",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
        ]
        .map(str::to_owned)
        .to_vec();
        if is_platform_given {
            arguments.push("--platform=kubernetes".to_owned());
        }
        Program {
            path: self.mainstay.clone(),
            arguments,
        }
    }

    /// Returns all operators without leader election, ours first.
    pub(crate) fn all(&self, server: &Server) -> Vec<Program> {
        let ours = self.mainstay(false).without_leader_election();
        let peer = self.sail_operator.as_deref();
        let peer = peer.map(|binary| self.sail_operator(server, binary));
        std::iter::once(ours).chain(peer).collect()
    }

    /// Returns the Sail Operator with the flags that it shares with ours, and the files that it needs.
    fn sail_operator(&self, server: &Server, binary: &Path) -> Program {
        let configuration = server.cluster.directory().join("sail-operator.properties");
        std::fs::write(&configuration, "").unwrap();
        let charts = self.sail_charts.iter();
        let charts = charts.map(|directory| format!("--resource-directory={}", directory.display()));
        let flags = [
            "--metrics-bind-address=0".to_owned(),
            "--health-probe-bind-address=0".to_owned(),
            format!("--config-file={}", configuration.display()),
        ];
        Program {
            path: binary.to_owned(),
            arguments: flags.into_iter().chain(charts).collect(),
        }
        .without_leader_election()
    }
}

impl Program {
    /// The same operator without leader election.
    fn without_leader_election(mut self) -> Self {
        self.arguments.push("--leader-elect=false".to_owned());
        self
    }
}

impl Operator {
    /// Starts the operator.
    pub(crate) fn start(server: &Server, program: &Program) -> Self {
        println!("{} {}", program.path.display(), program.arguments.join(" "));
        let log = std::fs::File::create(server.cluster.directory().join("operator.log")).unwrap();
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .env("KUBECONFIG", server.cluster.kubeconfig(OPERATOR))
            .env("POD_NAMESPACE", "sail-operator")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let outer = isolation::pid_outside(child.id());
        Self { child, outer }
    }

    /// Memory and CPU time of the process.
    pub(crate) fn usage(&self) -> Usage {
        Usage::for_process(self.outer)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
