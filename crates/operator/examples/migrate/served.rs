//! Measures memory and CPU time of the operator's process during a migration. The simulator is served over
//! HTTPS.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, OPERATOR_NAMESPACE, Speed};
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Operator, Options};
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_testkit::Usage;
use serde_json::json;

use crate::support::World;
use crate::support::calls::OPERATOR;
use crate::support::fixtures::{NEW, OLD};
use crate::support::path;
use crate::support::scale::{Size, istio, migration, objects, scripts, until};
use crate::support::world::{Backing, injecting_options};

/// A running operator, which is killed when this value is dropped.
struct Process(Child);

impl Process {
    fn start(kubeconfig: &std::path::Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("--operate")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn usage(&self) -> Usage {
        Usage::for_process(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) async fn measure(size: &Size) {
    let begin = Instant::now();
    // The harness does not see the operator's calls, so virtual time is limited to the speed of the wall
    // clock.
    let options = ClusterOptions {
        speed: Speed::Factor(1.0),
        ..injecting_options()
    };
    let world = World::without_operator(&options).await;
    let Backing::Sim(sim) = &world.backing else {
        panic!("no simulator")
    };
    // The world already advances the clock.
    let options = ServeOptions {
        speed: 0.0,
        ..ServeOptions::default()
    };
    let server = Server::start(sim.sim(), &options).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let user = User::named(OPERATOR, &["operators"]);
    server.write_kubeconfig(user, &kubeconfig).unwrap();
    let operator = Process::start(&kubeconfig);
    world.create(istio(OLD, size)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    sim.sim().with(|state| {
        for (who, script) in scripts(size) {
            state.scripts.add(who, script);
        }
    });
    for object in objects(size) {
        world.create(object).await;
        // Allows the server to run.
        tokio::task::yield_now().await;
    }
    world.sleep(size.readiness * 5).await;
    eprintln!("objects created after {:.1} s", begin.elapsed().as_secs_f64());
    let (before, busy) = (operator.usage().resident(), operator.usage().cpu_time());
    let version = sim.sim().with(|state| state.store.version());
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    // When the first workload has migrated, the operator has observed the second control plane and all
    // workloads.
    while migration(sim)["migratedWorkloads"].as_u64().unwrap_or(0) == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let moving = operator.usage().resident();
    until(sim, "Completed").await;
    let busy = operator.usage().cpu_time().saturating_sub(busy);
    let changes = sim.sim().with(|state| state.store.version()) - version;
    assert_eq!(
        migration(sim)["migratedWorkloads"],
        size.workloads,
        "{:#}",
        migration(sim)
    );
    let share = |of: f64| busy.as_secs_f64() * 1e3 / of;
    println!("figure workloads {}", size.workloads);
    println!("figure memory_before {before:.1}");
    println!("figure memory_begun {moving:.1}");
    println!("figure memory_after {:.1}", operator.usage().resident());
    println!("figure memory_peak {:.1}", operator.usage().peak());
    println!("figure cpu {:.3}", busy.as_secs_f64());
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    {
        println!("figure cpu_per_workload {:.3}", share(size.workloads as f64));
        println!("figure cpu_per_change {:.4}", share(changes as f64));
    }
    println!("figure wall {:.1}", begin.elapsed().as_secs_f64());
}

/// Runs the operator.
pub(crate) async fn operate(kubeconfig: &str) {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    let settings = Settings {
        operator_namespace: OPERATOR_NAMESPACE.into(),
        ..Settings::default()
    };
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    let operator = Operator {
        client: Client::try_from(config).unwrap(),
        catalog: Arc::new(Catalog::embedded().unwrap()),
        settings,
        options,
        clock: Clock::system(),
    };
    operator.run(std::future::pending()).await.unwrap();
}
