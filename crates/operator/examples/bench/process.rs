//! The operator as a separate process: memory and CPU time from the kernel.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Options};
use mainstay_testkit::{Usage, isolation};

use crate::server::{OPERATOR, Server};

/// Asks this program to be the operator.
pub(crate) const OPERATE: &str = "--operate";

/// A running operator; it is killed with this value.
pub(crate) struct Operator {
    child: Child,
    /// The kernel's number for it, which is not the one inside the namespace.
    outer: u32,
}

/// The whole program if it was built, else this one.
fn program() -> (PathBuf, Vec<String>) {
    let own = std::env::current_exe().unwrap();
    let whole = own.parent().unwrap().parent().unwrap().join("mainstay");
    let run = [
        "operator",
        "run",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]
    .map(str::to_owned);
    if whole.is_file() && std::env::var_os("BENCH_LIBRARY").is_none() {
        return (whole, run.to_vec());
    }
    (own, Vec::new())
}

impl Operator {
    /// Starts the operator; it detects the platform unless it is given.
    pub(crate) fn start(server: &Server, is_platform_given: bool) -> Self {
        let kubeconfig = server.cluster.kubeconfig(OPERATOR);
        let (program, mut arguments) = program();
        if is_platform_given && !arguments.is_empty() {
            arguments.push("--platform=kubernetes".to_owned());
        }
        if arguments.is_empty() {
            arguments = vec![OPERATE.to_owned(), kubeconfig.display().to_string()];
        }
        println!("{} {}", program.display(), arguments.join(" "));
        let log = std::fs::File::create(server.cluster.directory().join("operator.log")).unwrap();
        let child = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAMESPACE", "sail-operator")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let outer = isolation::pid_outside(child.id());
        Self { child, outer }
    }

    /// What it needs.
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

/// The operator itself, from the library.
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
