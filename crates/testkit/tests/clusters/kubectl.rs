//! Runs the kubectl session on a real cluster and on the simulator over HTTPS, and compares the output with
//! the stored output.

use mainstay_conformance::kubectl::{SESSION, SessionConfig, differences, run_session};
use mainstay_sim::auth::{MASTERS, User};
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_testkit::built_peer;
use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases![
    "kubectl::the_session_on_a_real_cluster" => on_a_real_cluster(),
    "kubectl::the_session_on_the_simulator" => on_the_simulator(),
    "kubectl::certificates_on_the_simulator" => certificates(),
];

async fn on_a_real_cluster() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let _kubelet = Kubelet::start(&cluster, KubeletOptions::default()).await.unwrap();
    check_session("real", cluster.kubeconfig("admin")).await;
}

async fn on_the_simulator() {
    let cluster = mainstay_sim::Cluster::new(mainstay_sim::Options {
        events: true,
        trace: false,
        ..mainstay_sim::Options::default()
    });
    cluster.run_workloads(3);
    let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let admin = User::named("admin", &[MASTERS]);
    server.write_kubeconfig(admin, &kubeconfig).unwrap();
    check_session("simulated", kubeconfig).await;
    server.stop().await;
}

/// Command that requires no discovery.
const RAW: &[&str] = &["get", "--raw", "/api/v1/namespaces/default/pods"];

/// kubectl authenticates with client certificates. The output equals that of a real server with
/// `--client-ca-file`.
async fn certificates() {
    let serve = async || {
        let cluster = mainstay_sim::Cluster::default();
        let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
        (cluster, server)
    };
    let ((cluster, server), (_, other)) = (serve().await, serve().await);
    let hour = std::time::Duration::from_hours(1);
    let carol = User::named("carol", &["team-a", "team-x"]);
    let good = server.kubeconfig_with_certificate(&carol, hour).unwrap();
    let foreign = other.kubeconfig_with_certificate(&User::named("mallory", &[MASTERS]), hour);
    let foreign = with_user_of(&good, &foreign.unwrap());
    let forbidden = "Error from server (Forbidden): pods is forbidden: User \"carol\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"\n";
    let unauthorized = "error: You must be logged in to the server (Unauthorized)\n";
    assert_eq!(kubectl(&good, &["get", "pods"]).await, forbidden);
    let who = kubectl(&good, &["auth", "whoami"]).await;
    assert!(
        who.contains("carol") && who.contains("[team-a team-x system:authenticated]"),
        "{who}"
    );
    assert_eq!(kubectl(&foreign, RAW).await, unauthorized);
    cluster.advance(hour * 2);
    assert_eq!(kubectl(&good, RAW).await, unauthorized);
}

/// Returns `kubeconfig` with the client certificate of `other`.
fn with_user_of(kubeconfig: &str, other: &str) -> String {
    let secret = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(key));
        line.unwrap().to_owned()
    };
    ["client-certificate-data:", "client-key-data:"]
        .iter()
        .fold(kubeconfig.to_owned(), |text, key| {
            text.replace(&secret(kubeconfig, key), &secret(other, key))
        })
}

/// Returns stdout and stderr of a kubectl command.
async fn kubectl(kubeconfig: &str, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    let mut command = tokio::process::Command::new(built_peer("kubectl").unwrap());
    command.arg("--kubeconfig").arg(&path).args(arguments);
    let output = command.env("HOME", directory.path()).output().await.unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Runs the session and compares its output. `BLESS_KUBECTL` names a directory to which the actual output
/// is written.
async fn check_session(name: &str, kubeconfig: std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let config = SessionConfig {
        kubectl: built_peer("kubectl").unwrap(),
        kubeconfig,
        directory: directory.path().to_owned(),
    };
    let found = tokio::task::spawn_blocking(move || run_session(&config, SESSION))
        .await
        .unwrap()
        .unwrap();
    if let Some(directory) = std::env::var_os("BLESS_KUBECTL") {
        let path = std::path::Path::new(&directory).join(format!("{name}.txt"));
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
