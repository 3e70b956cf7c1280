//! The operator as a process that can be killed at a write. The process runs this program. At the write, it
//! prints a line and waits for SIGKILL.

use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::Catalog;
use mainstay_cluster::remote::{AddressPolicy, Kubeconfig as MemberConfig, RemoteError};
use mainstay_harness::OPERATOR_NAMESPACE;
use mainstay_mesh::Settings;
use mainstay_operator::delivery::{Connector, DeliveryOptions};
use mainstay_operator::{Clock, Operator, Options};
use mainstay_testkit::{Usage, isolation};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::calls::CallKind;
use crate::support::faulty_client::{ClientWrapper, Fault, FaultyClient, InjectedFault};

/// Argument that runs this program as the operator.
const OPERATOR_FLAG: &str = "--operate=";
/// Argument with the write at which the operator is killed, and the kind of crash.
const CRASH_FLAG: &str = "--die=";
/// Argument that enables application delivery, including to local clusters.
const DELIVERY_FLAG: &str = "--deliver";

/// Kinds of crashes at a write.
pub(crate) const CRASH_FAULTS: [Fault; 3] = [Fault::CrashBefore, Fault::CrashDuring, Fault::CrashAfter];

/// A running operator, which is killed when this value is dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts the operator. `crash` is the number of the write at which it waits, and an index of
    /// [`CRASH_FAULTS`].
    pub(crate) fn start(kubeconfig: &Path, crash: Option<(usize, usize)>) -> Self {
        Self::spawn(kubeconfig, crash, None)
    }

    /// Starts the operator with application delivery. Writes to all clusters are counted together.
    pub(crate) fn start_with_delivery(kubeconfig: &Path, crash: Option<(usize, usize)>) -> Self {
        Self::spawn(kubeconfig, crash, Some(DELIVERY_FLAG))
    }

    fn spawn(kubeconfig: &Path, crash: Option<(usize, usize)>, flag: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("{OPERATOR_FLAG}{}", kubeconfig.display()));
        command.args(flag);
        if let Some((write, fault)) = crash {
            command.arg(format!("{CRASH_FLAG}{write}:{fault}"));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Kills the process when it waits at a write. Returns whether that happened before `rest` completed.
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

/// Runs the operator if the arguments request it. Returns whether it did.
pub(crate) fn operate() -> bool {
    let argument = |flag: &str| std::env::args().find_map(|text| text.strip_prefix(flag).map(str::to_owned));
    let Some(kubeconfig) = argument(OPERATOR_FLAG) else {
        return false;
    };
    let crash = argument(CRASH_FLAG).map(|text| {
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
    let delivers = std::env::args().any(|text| text == DELIVERY_FLAG);
    runtime.block_on(run_operator(&kubeconfig, crash, delivers));
    true
}

/// Connects to member clusters with the fault of this process.
struct FaultyConnector {
    network: Arc<dyn Connector>,
    wrap: ClientWrapper,
}

impl Connector for FaultyConnector {
    fn connect(&self, kubeconfig: &MemberConfig) -> Result<Client, RemoteError> {
        self.network.connect(kubeconfig).map(|client| (self.wrap)(client))
    }

    fn policy(&self) -> AddressPolicy {
        self.network.policy()
    }
}

fn delivery_options(wrap: ClientWrapper) -> DeliveryOptions {
    let mut options = DeliveryOptions::for_network(true);
    let network = options.connector;
    options.connector = Arc::new(FaultyConnector { network, wrap });
    options
}

async fn run_operator(kubeconfig: &str, crash: Option<InjectedFault>, delivers: bool) {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    let mut wrap: ClientWrapper = Arc::new(|client| client);
    if let Some(injected) = crash {
        let (faulty, fault_state) = FaultyClient::wrapper(injected);
        wrap = faulty;
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
    let client = wrap(mainstay_cluster::connect::connect(config).unwrap());
    let options = Options {
        leader_elect: false,
        delivery: delivers.then(|| delivery_options(wrap)),
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
