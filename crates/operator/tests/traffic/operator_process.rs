//! The operator as a process that runs until it is killed.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::delivery::DeliveryOptions;
use mainstay_operator::{Clock, Operator, Options};

use crate::fixtures::OPERATOR_NAMESPACE;

/// Environment variable with the kubeconfig. If it is set, the program runs as the operator.
const KUBECONFIG: &str = "MAINSTAY_TRAFFIC_OPERATOR";

/// Runs as the operator if the environment variable is set.
pub fn run_as_operator() -> Option<ExitCode> {
    let kubeconfig = std::env::var_os(KUBECONFIG)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(operate(Path::new(&kubeconfig)));
    Some(ExitCode::FAILURE)
}

async fn operate(kubeconfig: &Path) {
    tracing_subscriber::fmt().with_ansi(false).init();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();
    let settings = Settings {
        operator_namespace: OPERATOR_NAMESPACE.into(),
        ..Settings::default()
    };
    let options = Options {
        leader_elect: false,
        inspect: Some(Arc::new(|snapshot, plan| {
            let violations = mainstay_check::check(snapshot, plan);
            assert!(violations.is_empty(), "{violations:?}");
        })),
        delivery: Some(DeliveryOptions::default()),
        ..Options::default()
    };
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let operator = Operator {
        client,
        catalog,
        settings,
        options,
        clock: Clock::system(),
    };
    let ended = operator.run(std::future::pending()).await;
    eprintln!("the operator ended: {ended:?}");
}

/// A running operator, which is killed when this value is dropped.
pub struct OperatorProcess(Child);

impl OperatorProcess {
    /// Starts the process, and writes its output to `log`.
    pub fn start(program: &Path, kubeconfig: &Path, log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new(program)
            .env(KUBECONFIG, kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        Self(child.unwrap())
    }

    /// Whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for OperatorProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
