//! The operator as a separate process: memory and CPU time from the kernel.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Options};
use mainstay_testkit::{Usage, isolation};

use crate::server::{OPERATOR, Server};

/// Argument that makes this program run the operator.
pub(crate) const OPERATE: &str = "--operate";

/// A running operator; it is killed with this value.
pub(crate) struct Operator {
    child: Child,
    /// The pid outside of the namespace.
    outer: u32,
}

/// An operator that can be started.
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// The `mainstay` binary beside this program, or this program if it was not built. The operator detects
    /// the platform unless it is given.
    pub(crate) fn mainstay(server: &Server, is_platform_given: bool) -> Self {
        let own = std::env::current_exe().unwrap();
        let binary = own.parent().unwrap().parent().unwrap().join("mainstay");
        if !binary.is_file() || std::env::var_os("BENCH_LIBRARY").is_some() {
            let kubeconfig = server.cluster.kubeconfig(OPERATOR).display().to_string();
            return Self {
                path: own,
                arguments: vec![OPERATE.to_owned(), kubeconfig],
            };
        }
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
        Self {
            path: binary,
            arguments,
        }
    }

    /// A binary of the Sail Operator with the flags that it shares with ours.
    pub(crate) fn sail_operator(server: &Server, binary: &Path) -> Self {
        let configuration = server.cluster.directory().join("sail-operator.properties");
        std::fs::write(&configuration, "").unwrap();
        Self {
            path: binary.to_owned(),
            arguments: vec![
                "--metrics-bind-address=0".to_owned(),
                "--health-probe-bind-address=0".to_owned(),
                "--leader-elect=false".to_owned(),
                format!("--config-file={}", configuration.display()),
            ],
        }
    }

    /// The same operator without leader election.
    pub(crate) fn without_leader_election(mut self) -> Self {
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

/// Runs the operator of the library.
pub(crate) async fn operate(kubeconfig: &str) {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();
    let settings = Settings {
        operator_namespace: "sail-operator".into(),
        ..Settings::default()
    };
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let operator = mainstay_operator::Operator {
        client,
        catalog,
        settings,
        options: Options::default(),
        clock: Clock::system(),
    };
    operator.run(std::future::pending()).await.unwrap();
}
