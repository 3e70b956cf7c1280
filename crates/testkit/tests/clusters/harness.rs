//! Tests the harness: clusters start in seconds, are isolated from each other, authenticate users, count
//! requests, and leave no processes or files.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::try_join;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use mainstay_testkit::cluster::{Cluster, Count, Options};
use mainstay_testkit::isolation;
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;
use serde_json::json;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases![
    "harness::no_connection_leaves_the_namespace" => async { no_connection_leaves_the_namespace() },
    "harness::two_clusters_at_once" => two_clusters_at_once(),
    "harness::an_api_server_keeps_its_data_across_a_restart" => an_api_server_keeps_its_data_across_a_restart(),
    "harness::a_killed_run_leaves_no_processes_or_files" => a_killed_run_leaves_no_processes_or_files(),
    "harness::a_cluster_starts_only_in_isolation" => a_cluster_starts_only_in_isolation(),
];

/// Argument that makes this program start a cluster and wait to be killed.
pub(crate) const KILLED_CHILD_FLAG: &str = "--killed-child";

/// Starts a cluster, prints its directory, and waits to be killed.
pub(crate) const KILLED_CHILD: TestCase = TestCase {
    name: "child",
    start: || Box::pin(run_until_killed()),
};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn maps(cluster: &Cluster, user: &str) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(user).unwrap(), "default")
}

fn no_connection_leaves_the_namespace() {
    isolation::check().unwrap();
    for address in ["192.0.2.1:443", "1.1.1.1:443", "8.8.8.8:53"] {
        let error =
            TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{address}");
    }
    // Addresses of Services and pods are local: connecting fails, and no other machine is contacted.
    for address in ["10.96.0.1:443", "10.244.0.7:15017"] {
        let error =
            TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{address}");
    }
}

async fn two_clusters_at_once() {
    let options = Options {
        audit: true,
        ..Options::default()
    };
    let begin = Instant::now();
    let first = Cluster::start(options).await.unwrap();
    println!("figure harness-ready {:.2} s", begin.elapsed().as_secs_f64());
    let (second, third) = try_join(
        Cluster::start(Options::default()),
        Cluster::start(Options::default()),
    )
    .await
    .unwrap();
    maps(&first, "admin")
        .create(&PostParams::default(), &config_map("one"))
        .await
        .unwrap();
    for other in [&second, &third] {
        assert!(maps(other, "admin").get_opt("one").await.unwrap().is_none());
    }
    users_are_distinguished(&first).await;
    requests_are_counted(&first).await;
}

async fn users_are_distinguished(cluster: &Cluster) {
    let rejected = maps(cluster, "alice").get("one").await.unwrap_err().to_string();
    assert!(
        rejected.contains(
            r#"User "alice" cannot get resource "configmaps" in API group "" in the namespace "default""#
        ),
        "{rejected}"
    );
}

async fn requests_are_counted(cluster: &Cluster) {
    let mut audit = cluster.audit();
    audit.reset().unwrap();
    let admin = maps(cluster, "admin");
    for name in ["a", "b", "c"] {
        admin
            .create(&PostParams::default(), &config_map(name))
            .await
            .unwrap();
    }
    admin.list(&ListParams::default()).await.unwrap();
    maps(cluster, "bob").get("a").await.unwrap_err();
    let counts = audit.counts().unwrap();
    assert_eq!(counts["admin"], Count { reads: 1, writes: 3 });
    assert_eq!(counts["bob"], Count { reads: 1, writes: 0 });
    assert_eq!(counts.get("alice"), None);
}

async fn an_api_server_keeps_its_data_across_a_restart() {
    let mut cluster = Cluster::start(Options::default()).await.unwrap();
    let maps = maps(&cluster, "admin");
    maps.create(&PostParams::default(), &config_map("kept"))
        .await
        .unwrap();
    cluster.stop_api_server();
    maps.get("kept").await.unwrap_err();
    cluster.start_api_server().await.unwrap();
    maps.get("kept").await.unwrap();
}

async fn run_until_killed() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    println!("directory {}", cluster.directory().display());
    std::future::pending::<()>().await;
}

/// A killed program cannot clean up. Its processes are killed with the pid namespace, and its files are on
/// a tmpfs of the mount namespace.
async fn a_killed_run_leaves_no_processes_or_files() {
    for signal in ["KILL", "INT"] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(KILLED_CHILD_FLAG)
            .env_remove(isolation::ISOLATED)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let directory = lines
            .find_map(|line| line.unwrap().strip_prefix("directory ").map(str::to_owned))
            .unwrap();
        assert_eq!(processes(&directory).len(), 3);
        // A terminal sends the signal to the whole process group; only the first process of the namespace
        // can handle it.
        let target = if signal == "KILL" {
            child.id().to_string()
        } else {
            format!("-{}", child.id())
        };
        let kill = Command::new("sh")
            .args(["-c", &format!("kill -s {signal} -- {target}")])
            .status();
        assert!(kill.unwrap().success());
        child.wait().unwrap();
        let begin = Instant::now();
        while !processes(&directory).is_empty() {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "{signal}: {:?}",
                processes(&directory)
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!std::path::Path::new(&directory).exists());
    }
}

/// Returns the command lines of processes that contain `directory`.
fn processes(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| std::fs::read(entry.unwrap().path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(directory))
        .collect()
}

/// A cluster does not start if an interface other than loopback is up.
async fn a_cluster_starts_only_in_isolation() {
    let ip = |arguments: &str| {
        let status = Command::new("ip").args(arguments.split(' ')).status();
        assert!(status.unwrap().success(), "ip {arguments}");
    };
    ip("link add stranger type veth peer name other");
    ip("link set stranger up");
    let rejected = Cluster::start(Options::default()).await.unwrap_err();
    let rejected = mainstay_gostd::error::chain(&rejected);
    ip("link delete stranger");
    assert_eq!(
        rejected,
        "the program is not isolated: the interface stranger is up; run the program through `isolation::enter`, in a namespace with \
         loopback only"
    );
}
