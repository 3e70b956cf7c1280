//! The operator as a process that can be killed at a write. The process is this program: at the write it
//! prints a line and waits for SIGKILL.

use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay_catalog::Catalog;
use mainstay_harness::OPERATOR_NAMESPACE;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Operator, Options};
use mainstay_testkit::{Usage, isolation};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::calls::CallKind;
use crate::support::faulty_client::{Fault, FaultyClient, InjectedFault};

/// Runs this program as the operator.
const OPERATE: &str = "--operate=";
/// The write at which it is killed, and the kind of crash.
const DIE: &str = "--die=";

/// The kinds of crash at a write.
pub(crate) const CRASH_FAULTS: [Fault; 3] = [Fault::CrashBefore, Fault::CrashDuring, Fault::CrashAfter];

/// A running operator; it is killed with this value.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts the operator; with `crash`, it waits at that write (number and index of [`CRASH_FAULTS`]).
    pub(crate) fn start(kubeconfig: &Path, crash: Option<(usize, usize)>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("{OPERATE}{}", kubeconfig.display()));
        if let Some((write, fault)) = crash {
            command.arg(format!("{DIE}{write}:{fault}"));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Kills the process at its last write. Returns whether that happened before `rest` completed.
    pub(crate) async fn kill_at_last_write(mut self, rest: impl Future<Output = ()>) -> bool {
        let mut lines = BufReader::new(self.child.stdout.take().unwrap()).lines();
        let came = tokio::select! {
            line = lines.next_line() => line.unwrap().is_some(),
            () = rest => false,
        };
        self.child.kill().await.unwrap();
        came
    }

    /// Returns current and peak resident memory in MiB.
    pub(crate) fn memory(&self) -> (f64, f64) {
        let number = isolation::pid_outside(self.child.id().unwrap());
        let usage = Usage::for_process(number);
        (usage.resident(), usage.peak())
    }
}

/// Runs the operator if this process was started for it.
pub(crate) fn operate() -> bool {
    let argument = |flag: &str| std::env::args().find_map(|text| text.strip_prefix(flag).map(str::to_owned));
    let Some(kubeconfig) = argument(OPERATE) else {
        return false;
    };
    let crash = argument(DIE).map(|text| {
        let (write, fault) = text.split_once(':').unwrap();
        InjectedFault {
            kind: CallKind::Write,
            number: write.parse().unwrap(),
            fault: CRASH_FAULTS[fault.parse::<usize>().unwrap()],
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run_operator(&kubeconfig, crash));
    true
}

async fn run_operator(kubeconfig: &str, crash: Option<InjectedFault>) {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    let mut client = mainstay_cluster::connect::connect(config).unwrap();
    if let Some(injected) = crash {
        let (faulty, fault_state) = FaultyClient::client(client, injected);
        client = faulty;
        tokio::spawn(async move {
            fault_state.crashed.notified().await;
            println!("now");
            let _ = std::io::stdout().flush();
        });
    }
    let settings = Settings {
        operator_namespace: OPERATOR_NAMESPACE.into(),
        ..Settings::default()
    };
    let options = Options {
        leader_elect: false,
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
    operator.run(std::future::pending()).await.unwrap();
}
