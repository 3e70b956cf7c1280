//! The operator as a process of its own, which can be killed: takes the user's kubeconfig and the write at which it dies, gives its memory.
//!
//! The process is this program again. At its last write it says so and waits; whoever started it kills it then, with a signal that nobody can catch.

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

use crate::support::calls::Sort;
use crate::support::hazard::{Fault, Hazard, Strike};

/// Asks this program to be the operator.
const OPERATE: &str = "--operate=";
/// Tells it when to die: at which write, and when about it.
const DIE: &str = "--die=";

/// When about a write.
pub(crate) const MOMENTS: [Fault; 3] = [Fault::CrashBefore, Fault::CrashDuring, Fault::CrashAfter];

/// A running operator; it is killed with this value.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts it; with `death`, it waits for its end at that write, and at which of the [`MOMENTS`] about it.
    pub(crate) fn start(kubeconfig: &Path, death: Option<(usize, usize)>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("{OPERATE}{}", kubeconfig.display()));
        if let Some((write, moment)) = death {
            command.arg(format!("{DIE}{write}:{moment}"));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Kills it once it is at its last write; says whether it came to that before `rest` was over.
    pub(crate) async fn kill_at_last_write(mut self, rest: impl Future<Output = ()>) -> bool {
        let mut lines = BufReader::new(self.child.stdout.take().unwrap()).lines();
        let came = tokio::select! {
            line = lines.next_line() => line.unwrap().is_some(),
            () = rest => false,
        };
        self.child.kill().await.unwrap();
        came
    }

    /// Its resident memory in MiB, now and at its peak.
    pub(crate) fn memory(&self) -> (f64, f64) {
        let number = isolation::pid_outside(self.child.id().unwrap());
        let usage = Usage::for_process(number);
        (usage.resident(), usage.peak())
    }
}

/// Runs the operator if this program was asked to.
pub(crate) fn operate() -> bool {
    let argument = |flag: &str| std::env::args().find_map(|text| text.strip_prefix(flag).map(str::to_owned));
    let Some(kubeconfig) = argument(OPERATE) else {
        return false;
    };
    let death = argument(DIE).map(|text| {
        let (write, moment) = text.split_once(':').unwrap();
        Strike {
            sort: Sort::Write,
            number: write.parse().unwrap(),
            fault: MOMENTS[moment.parse::<usize>().unwrap()],
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(live(&kubeconfig, death));
    true
}

async fn live(kubeconfig: &str, death: Option<Strike>) {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    let mut client = mainstay_cluster::connect::connect(config).unwrap();
    if let Some(strike) = death {
        let (mortal, struck) = Hazard::client(client, strike);
        client = mortal;
        tokio::spawn(async move {
            struck.died.notified().await;
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
