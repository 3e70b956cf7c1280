//! The operator as a process of its own: takes a kubeconfig, runs until it is killed.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Operator, Options};

use crate::made::OPERATOR_NAMESPACE;

/// Set where the program shall be the operator: its kubeconfig.
const KUBECONFIG: &str = "MAINSTAY_TRAFFIC_OPERATOR";

/// Becomes the operator if the environment says so.
pub fn become_operator() -> Option<ExitCode> {
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
            let broken = mainstay_check::check(snapshot, plan);
            assert!(broken.is_empty(), "{broken:?}");
        })),
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

/// A running operator; killed with this value.
pub struct Actor(Child);

impl Actor {
    /// What it says goes to `log`.
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

    /// Whether it gave up.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
