//! The session of kubectl: what it prints on a real cluster and on the simulator over HTTPS is what is stored.

use mainstay_conformance::kubectl::{SESSION, Stage, differences, play};
use mainstay_sim::auth::{MASTERS, User};
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_testkit::built_peer;
use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use mainstay_testkit::trial::Trial;

pub(crate) const TRIALS: &[Trial] = trials![
    "kubectl::the_session_on_a_real_cluster" => on_a_real_cluster(),
    "kubectl::the_session_on_the_simulator" => on_the_simulator(),
];

async fn on_a_real_cluster() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let _kubelet = Kubelet::start(&cluster, KubeletOptions::default()).await.unwrap();
    judge("real", cluster.kubeconfig("admin")).await;
}

async fn on_the_simulator() {
    let cluster = mainstay_sim::Cluster::new(mainstay_sim::Options {
        events: true,
        trace: false,
        ..mainstay_sim::Options::default()
    });
    cluster.run_workloads(3);
    let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let admin = User::named("admin", &[MASTERS]);
    server.write_kubeconfig(admin, &kubeconfig).unwrap();
    judge("simulated", kubeconfig).await;
    server.stop().await;
}

/// Plays the session and compares; `BLESS_KUBECTL` names a folder that gets what was printed.
async fn judge(name: &str, kubeconfig: std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage {
        kubectl: built_peer("kubectl").unwrap(),
        kubeconfig,
        folder: folder.path().to_owned(),
    };
    let found = tokio::task::spawn_blocking(move || play(&stage, SESSION))
        .await
        .unwrap()
        .unwrap();
    if let Some(folder) = std::env::var_os("BLESS_KUBECTL") {
        let path = std::path::Path::new(&folder).join(format!("{name}.txt"));
        std::fs::write(path, &found).unwrap();
    }
    let wrong = differences(SESSION, &found);
    let steps = SESSION
        .lines()
        .filter(|line| {
            ["$ ", "LAST ", "FIELDS ", "UNTIL ", "STOP "]
                .iter()
                .any(|step| line.starts_with(step))
        })
        .count();
    println!(
        "{name}: {} of {steps} commands print the same",
        steps - wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
