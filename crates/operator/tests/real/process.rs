//! The operator as a process of its own, which can be killed: takes the user's kubeconfig and the write at which it dies, gives its memory.
//!
//! The process is this program again. At its last write it says so and waits; whoever started it kills it then, with a signal that nobody can catch.

use std::fmt;
use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use kube::Client;
use kube::Config;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Options, run};
use mainstay_testkit::{Usage, isolation};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tower_service::Service;

use crate::support::world::OPERATOR_NAMESPACE;

/// Asks this program to be the operator.
const OPERATE: &str = "--operate=";
/// Tells it when to die: at which write, and when about it.
const DIE: &str = "--die=";

/// When about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It is not sent.
    Before,
    /// It is sent, and nobody knows whether it arrives.
    During,
    /// It is answered, and nobody hears the answer.
    After,
}

pub(crate) const MOMENTS: [Moment; 3] = [Moment::Before, Moment::During, Moment::After];

/// A running operator; it is killed with this value.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts it; with `death`, it waits for its end at that write.
    pub(crate) fn start(kubeconfig: &Path, death: Option<(usize, Moment)>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("{OPERATE}{}", kubeconfig.display()));
        if let Some((write, moment)) = death {
            let moment = MOMENTS.iter().position(|one| *one == moment).unwrap();
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
        let number = isolation::number_outside(self.child.id().unwrap());
        let usage = Usage::of(number);
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
        (write.parse().unwrap(), MOMENTS[moment.parse::<usize>().unwrap()])
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(live(&kubeconfig, death));
    true
}

async fn live(kubeconfig: &str, death: Option<(usize, Moment)>) {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    let mut client = mainstay_cluster::connect::connect(config).unwrap();
    if let Some((write, moment)) = death {
        let mortal = Mortal {
            client,
            left: Arc::new(AtomicUsize::new(write)),
            moment,
        };
        client = Client::new(mortal, "default");
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
    let operator = run(
        client,
        catalog,
        settings,
        options,
        Clock::system(),
        std::future::pending(),
    );
    operator.await.unwrap();
}

/// A client that dies at a write.
#[derive(Clone)]
struct Mortal {
    client: Client,
    left: Arc<AtomicUsize>,
    moment: Moment,
}

impl fmt::Debug for Mortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mortal")
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

impl Service<Request<Body>> for Mortal {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let this = self.clone();
        Box::pin(async move {
            if !is_counted(&request) || this.left.fetch_sub(1, Ordering::Relaxed) != 1 {
                return this.client.send(request).await.map_err(Into::into);
            }
            match this.moment {
                Moment::Before => {}
                Moment::During => {
                    tokio::spawn(async move { this.client.send(request).await });
                    tokio::task::yield_now().await;
                }
                Moment::After => drop(this.client.send(request).await),
            }
            println!("now");
            let _ = std::io::stdout().flush();
            std::future::pending().await
        })
    }
}

/// What a migration consists of: namespaces, workloads, statuses. News for people do not count.
fn is_counted(request: &Request<Body>) -> bool {
    *request.method() == Method::PATCH && !request.uri().path().contains("/events")
}
