//! Real tools against a sandbox: kubectl, Helm 3 and 4, and the operator.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "support/running.rs"]
mod running;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_testkit::{peer, repository_root};
use running::Running;

const MAINSTAY: &str = env!("CARGO_BIN_EXE_mainstay");

/// A sandbox with its kubeconfig.
struct Sandbox {
    directory: tempfile::TempDir,
    _process: Running,
}

impl Sandbox {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The usual limit of open files.
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -n 1024; exec \"$@\"", "sh", MAINSTAY])
            .args(["sandbox", "-o", "json", "--kubeconfig"])
            .arg(directory.path().join("kubeconfig"))
            .args(arguments)
            .stdin(Stdio::null());
        let (process, line) = Running::start(&mut command);
        assert!(line.contains("server"), "{line}");
        Self {
            directory,
            _process: process,
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.directory.path())
            .current_dir(self.directory.path());
        for variable in ["HELM_DATA_HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME"] {
            command.env(variable, self.directory.path().join(variable));
        }
        command
    }

    /// Runs a program; returns whether it succeeded, and both outputs.
    fn run(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> (bool, String) {
        let output = self.command(program).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let (success, text) = self.run(peer("kubectl").unwrap(), arguments);
        assert!(success, "{arguments:?}: {text}");
        text
    }

    fn apply(&self, manifests: &str) {
        let path = self.directory.path().join("manifests.yaml");
        fs::write(&path, manifests).unwrap();
        self.kubectl(&["apply", "-f", path.to_str().unwrap()]);
    }
}

#[test]
fn jobs_complete() {
    let sandbox = Sandbox::start(&["--speed", "10"]);
    sandbox.kubectl(&["create", "job", "migrate", "--image=busybox"]);
    sandbox.kubectl(&["wait", "--for=condition=complete", "job/migrate", "--timeout=60s"]);
    // A pod without a Job and with `restartPolicy: Never` completes, too.
    sandbox.kubectl(&["run", "once", "--image=busybox", "--restart=Never"]);
    let phase = "--for=jsonpath={.status.phase}=Succeeded";
    sandbox.kubectl(&["wait", phase, "pod/once", "--timeout=60s"]);
}

#[test]
fn pods_and_nodes_can_be_debugged() {
    let sandbox = Sandbox::start(&["--speed", "10"]);
    sandbox.kubectl(&["run", "web", "--image=nginx"]);
    sandbox.kubectl(&["wait", "--for=condition=ready", "pod/web", "--timeout=60s"]);
    sandbox.kubectl(&[
        "debug",
        "web",
        "--image=busybox",
        "--container=tools",
        "--profile=general",
    ]);
    let running = "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running}";
    sandbox.kubectl(&["wait", running, "pod/web", "--timeout=60s"]);
    sandbox.kubectl(&[
        "debug",
        "web",
        "--image=busybox",
        "--copy-to=copy",
        "--profile=general",
    ]);
    sandbox.kubectl(&["wait", "--for=condition=ready", "pod/copy", "--timeout=60s"]);
    let text = sandbox.kubectl(&["debug", "node/node-0", "--image=busybox", "--profile=general"]);
    assert!(text.contains("node-debugger-node-0-"), "{text}");
    let nodes = sandbox.kubectl(&["get", "nodes"]);
    assert_eq!(nodes.matches("v1.36.4").count(), 3, "{nodes}");
    // Attaching to a container that does not run is an error.
    let (success, text) = sandbox.run(peer("kubectl").unwrap(), &["logs", "web"]);
    assert!(
        !success && text.contains("the pods of this cluster are simulated"),
        "{text}"
    );
}

#[test]
fn taints_evict_pods() {
    let sandbox = Sandbox::start(&["--speed", "10", "--nodes", "2"]);
    sandbox.kubectl(&["create", "deployment", "web", "--image=nginx", "--replicas=4"]);
    sandbox.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    sandbox.kubectl(&["taint", "nodes", "node-0", "broken=yes:NoExecute"]);
    let node = "-o=jsonpath={.items[*].spec.nodeName}";
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let nodes = sandbox.kubectl(&["get", "pods", "-l", "app=web", node]);
        if nodes.split_whitespace().count() == 4 && !nodes.contains("node-0") {
            break;
        }
        assert!(Instant::now() < end, "{nodes}");
    }
    let events = sandbox.kubectl(&["get", "events", "--field-selector=reason=TaintManagerEviction"]);
    assert!(
        events.contains("Marking for deletion Pod default/web-"),
        "{events}"
    );
}

#[test]
fn helm_installs_the_operators_chart() {
    let sandbox = Sandbox::start(&["--speed", "10"]);
    let chart = repository_root().join("deploy/chart");
    for helm in ["helm3", "helm4"] {
        let wait = if helm == "helm4" {
            "--wait=watcher"
        } else {
            "--wait"
        };
        let namespace = format!("operator-{helm}");
        let arguments = ["-n", namespace.as_str(), "--timeout", "120s", wait];
        let run = |first: &[&str], rest: &[&str]| {
            let (success, text) = sandbox.run(peer(helm).unwrap(), &[first, rest].concat());
            assert!(success, "{helm} {first:?}: {text}");
            text
        };
        let chart = chart.to_str().unwrap();
        run(&["install", "mainstay", chart, "--create-namespace"], &arguments);
        let listed = run(&["list", "-n", &namespace], &[]);
        assert!(listed.contains("deployed"), "{listed}");
        run(&["upgrade", "mainstay", chart, "--set", "replicas=2"], &arguments);
        sandbox.kubectl(&[
            "-n",
            &namespace,
            "rollout",
            "status",
            "deployment/mainstay",
            "--timeout=60s",
        ]);
        run(&["uninstall", "mainstay"], &arguments);
    }
}

/// Holds idle connections to the sandbox open.
fn idle_connections(sandbox: &Sandbox, count: usize) -> Running {
    let text = fs::read_to_string(sandbox.kubeconfig()).unwrap();
    let server = text.lines().find(|line| line.contains("server:")).unwrap();
    let port = server.rsplit(':').next().unwrap().trim_matches(['"', '\'', ' ']);
    let script = format!(
        "ulimit -n 4096; for i in $(seq {count}); do exec {{fd}}<>/dev/tcp/127.0.0.1/{port}; done; echo open; read"
    );
    // The script ends when its input is closed.
    let (process, line) = Running::start(Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()));
    assert_eq!(line, "open\n");
    process
}

#[test]
fn idle_connections_and_large_deployments_do_not_stop_it() {
    let sandbox = Sandbox::start(&[]);
    let _idle = idle_connections(&sandbox, 1_100);
    let started = Instant::now();
    sandbox.kubectl(&["create", "deployment", "web", "--image=nginx"]);
    let with_connections = started.elapsed();
    sandbox.kubectl(&["scale", "deployment/web", "--replicas=2147483647"]);
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let started = Instant::now();
        sandbox.kubectl(&["get", "--raw", "/api/v1/namespaces/default"]);
        slowest = slowest.max(started.elapsed());
    }
    println!(
        "harden requests: kubectl responds after {with_connections:.1?} beside 1,100 idle connections, after {slowest:.1?} beside 2,147,483,647 replicas"
    );
    assert!(with_connections.max(slowest) < Duration::from_secs(20));
}

/// Runs the operator until it is dropped.
fn operator(sandbox: &Sandbox) -> Running {
    let log = fs::File::create(sandbox.directory.path().join("operator.log")).unwrap();
    let child = sandbox
        .command(MAINSTAY)
        .args(["operator", "run", "--leader-elect=false", "--platform=kubernetes"])
        .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .env("POD_NAMESPACE", "sail-operator")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Running(child)
}

/// The demo's objects, without its delays.
fn demo_manifests(directory: &Path) -> String {
    let output = Command::new(MAINSTAY)
        .args(["demo", "--manifests"])
        .current_dir(directory)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("delayBetweenBatches: 10s"), "{text}");
    text.replace("delayBetweenBatches: 10s", "delayBetweenBatches: 1s")
        .replace("batchSize: 3", "batchSize: 6")
}

#[test]
fn a_mesh_is_upgraded_and_workloads_migrate_with_kubectl() {
    let sandbox = Sandbox::start(&["--inject"]);
    let (success, text) = sandbox.run(MAINSTAY, &["crds", "install"]);
    assert!(success, "{text}");
    sandbox.kubectl(&["create", "namespace", "sail-operator"]);
    let _operator = operator(&sandbox);
    let log = || fs::read_to_string(sandbox.directory.path().join("operator.log")).unwrap();
    let manifests = demo_manifests(sandbox.directory.path());
    let workloads = manifests.find("metadata:\n  name: analytics").unwrap();
    let mesh_end = manifests[..workloads].rfind("---\n").unwrap();
    sandbox.apply(&manifests[..mesh_end]);
    let wait = |condition: &str, what: &str| {
        let arguments = ["wait", condition, what, "--timeout=120s"];
        let (success, text) = sandbox.run(peer("kubectl").unwrap(), &arguments);
        assert!(success, "{condition} {what}: {text}\n{}", log());
    };
    wait("--for=condition=Ready", "istio/default");
    wait("--for=condition=Reconciled", "istiorevisiontag/prod");
    sandbox.apply(&manifests[mesh_end..]);
    sandbox.kubectl(&["-n", "shop", "rollout", "status", "deployment", "--timeout=60s"]);
    let revision = "-o=jsonpath={.items[*].metadata.annotations.istio\\.io/rev}";
    let revisions = |namespace: &str| sandbox.kubectl(&["-n", namespace, "get", "pods", revision]);
    assert!(
        revisions("shop").contains("default-v1-28-2"),
        "{}",
        revisions("shop")
    );
    let patch = r#"{"spec": {"version": "v1.29.1"}}"#;
    sandbox.kubectl(&["patch", "istio", "default", "--type=merge", "-p", patch]);
    wait(
        "--for=jsonpath={.status.workloadMigration.state}=Completed",
        "istio/default",
    );
    for namespace in ["analytics", "catalog", "payments", "shop"] {
        let end = Instant::now() + Duration::from_secs(30);
        while revisions(namespace).contains("default-v1-28-2") {
            assert!(Instant::now() < end, "{namespace}: {}", revisions(namespace));
        }
        assert!(revisions(namespace).contains("default-v1-29-1"), "{namespace}");
    }
    let _ = std::io::stdout().flush();
}
