//! `cargo xtask bench-inject`: measures `mainstay generate` and `istioctl kube-inject` alternately, in a
//! network namespace with an API server, which istioctl needs. Run by `prove inject`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, ensure};
use mainstay_testkit::{peer, repository_root};
use serde::{Deserialize, Serialize};

use crate::build::Profile;
use crate::measure::{Cost, measured};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File to write the figures to
    report: PathBuf,
    /// Number of runs of each
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// The mainstay binary
    #[arg(long)]
    mainstay: PathBuf,
    /// The istioctl peer
    #[arg(long)]
    istioctl: PathBuf,
}

/// Medians of all runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Size of the input.
    pub(crate) bytes: usize,
    /// `istioctl kube-inject` on one stream.
    pub(crate) istioctl: Sample,
    /// `mainstay generate` on the same stream.
    pub(crate) stream: Sample,
    /// `mainstay generate` on the same manifests in 1,000 files, in place.
    pub(crate) files: Sample,
    /// `mainstay generate` on a stream ten times as long.
    pub(crate) long: Sample,
    /// `mainstay generate` on the same manifests as items of one `List`.
    pub(crate) list: Sample,
    /// The same in JSON.
    pub(crate) json: Sample,
}

/// Cost of one program.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Wall time in milliseconds.
    pub(crate) wall_ms: f64,
    /// CPU time in milliseconds.
    pub(crate) cpu_ms: f64,
    /// Peak resident memory in MiB.
    pub(crate) peak_mib: f64,
}

/// Number of manifests in the input.
const MANIFESTS: usize = 1_000;

/// Builds the programs, starts a cluster and measures inside it.
pub(crate) fn measure(runs: usize) -> anyhow::Result<Figures> {
    let mainstay = crate::build::mainstay_binary(Profile::Dist)?;
    let istioctl = peer("istioctl")?;
    for part in ["etcd", "kube-apiserver"] {
        peer(part)?;
    }
    let scratch = tempfile::tempdir()?;
    let report = scratch.path().join("figures.json");
    let status = crate::build::cargo()
        .args([
            "run",
            "--quiet",
            "--package",
            "mainstay-testkit",
            "--features",
            "cluster",
            "--example",
            "in_cluster",
            "--",
        ])
        .arg(std::env::current_exe()?)
        .arg("bench-inject")
        .arg(&report)
        .args(["--runs", &runs.to_string(), "--mainstay"])
        .arg(mainstay)
        .arg("--istioctl")
        .arg(istioctl)
        .current_dir(repository_root())
        .stdin(Stdio::null())
        .status()
        .context("starting the cluster")?;
    ensure!(status.success(), "the bench inside the cluster failed");
    Ok(serde_json::from_slice(&fs::read(report)?)?)
}

/// Measures inside the cluster's network namespace.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let bench = Bench {
        arguments,
        directory: scratch.path(),
    };
    let bytes = bench.prepare()?;
    let mut samples: [Vec<Cost>; 6] = Default::default();
    for _ in 0..arguments.runs {
        let costs = [
            bench.istioctl()?,
            bench.stream()?,
            bench.files()?,
            bench.long()?,
            bench.one("list.yaml", "name: contrast-initializer")?,
            bench.one("list.json", "\"name\": \t \"contrast-initializer\"")?,
        ];
        for (samples, cost) in samples.iter_mut().zip(costs) {
            samples.push(cost);
        }
    }
    let [istioctl, stream, files, long, list, json] = samples.map(|costs| median(&costs));
    let figures = Figures {
        bytes,
        istioctl,
        stream,
        files,
        long,
        list,
        json,
    };
    fs::write(&arguments.report, serde_json::to_vec(&figures)?)?;
    Ok(())
}

struct Bench<'a> {
    arguments: &'a Arguments,
    directory: &'a Path,
}

impl Bench<'_> {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// Writes the inputs and returns the size of one stream.
    fn prepare(&self) -> anyhow::Result<usize> {
        let manifests: Vec<String> = (0..MANIFESTS).map(manifest).collect();
        let stream = manifests.concat();
        fs::write(self.path("in.yaml"), &stream)?;
        fs::write(self.path("long.yaml"), stream.repeat(10))?;
        fs::write(self.path("list.yaml"), list(&manifests))?;
        fs::write(self.path("list.json"), json()?)?;
        fs::write(self.path("inject.yaml"), TEMPLATE)?;
        fs::write(self.path("mesh.yaml"), "rootNamespace: istio-system\n")?;
        fs::write(self.path("values.json"), "{}")?;
        Ok(stream.len())
    }

    /// istioctl adds the same container and volume, without mounts in other containers.
    fn istioctl(&self) -> anyhow::Result<Cost> {
        let program = self.arguments.istioctl.display().to_string();
        let [config, mesh, values, input, output] = [
            "inject.yaml",
            "mesh.yaml",
            "values.json",
            "in.yaml",
            "theirs.yaml",
        ]
        .map(|name| self.path(name));
        let command = [
            program.as_str(),
            "kube-inject",
            "--injectConfigFile",
            &config,
            "--meshConfigFile",
            &mesh,
            "--valuesFile",
            &values,
            "-f",
            &input,
            "-o",
            &output,
        ];
        let cost = self.cost(&command)?;
        complete(&output, 1)?;
        Ok(cost)
    }

    fn stream(&self) -> anyhow::Result<Cost> {
        let (input, output) = (self.path("in.yaml"), self.path("ours.yaml"));
        let cost = self.generate(&["--output", &output, &input])?;
        complete(&output, 1)?;
        Ok(cost)
    }

    fn files(&self) -> anyhow::Result<Cost> {
        let directory = self.directory.join("files");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory)?;
        for number in 0..MANIFESTS {
            fs::write(directory.join(format!("{number:04}.yaml")), manifest(number))?;
        }
        let cost = self.generate(&[&directory.display().to_string()])?;
        let text = fs::read_to_string(directory.join("0999.yaml"))?;
        ensure!(text.contains("contrast-initializer"), "a file was not injected");
        Ok(cost)
    }

    fn long(&self) -> anyhow::Result<Cost> {
        let (input, output) = (self.path("long.yaml"), self.path("ours-long.yaml"));
        let cost = self.generate(&["--output", &output, &input])?;
        complete(&output, 10)?;
        Ok(cost)
    }

    /// Measures one document of the size of the stream.
    fn one(&self, name: &str, added: &str) -> anyhow::Result<Cost> {
        let (input, output) = (self.path(name), self.path(&format!("ours-{name}")));
        let cost = self.generate(&["--output", &output, &input])?;
        let found = fs::read_to_string(&output)?.matches(added).count();
        ensure!(found == MANIFESTS, "{name}: {found} of {MANIFESTS} were injected");
        Ok(cost)
    }

    fn generate(&self, arguments: &[&str]) -> anyhow::Result<Cost> {
        let program = self.arguments.mainstay.display().to_string();
        self.cost(&[&[program.as_str(), "generate", "--quiet"], arguments].concat())
    }

    fn cost(&self, command: &[&str]) -> anyhow::Result<Cost> {
        let (output, cost) = measured(command, None, self.directory)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{} failed: {stderr}", command.join(" "));
        cost.context("no measurement")
    }
}

/// Checks that every manifest was injected.
fn complete(output: &str, times: usize) -> anyhow::Result<()> {
    let text = fs::read_to_string(output)?;
    let found = text.matches("name: contrast-initializer").count();
    ensure!(
        found == MANIFESTS * times,
        "{output}: {found} of {} manifests were injected",
        MANIFESTS * times
    );
    Ok(())
}

fn median(costs: &[Cost]) -> Sample {
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Sample {
        wall_ms: middle(costs.iter().map(|cost| cost.wall.as_secs_f64() * 1e3).collect()),
        cpu_ms: middle(costs.iter().map(|cost| cost.cpu.as_secs_f64() * 1e3).collect()),
        peak_mib: middle(costs.iter().map(|cost| cost.peak_kib as f64 / 1024.0).collect()),
    }
}

/// All manifests as items of one `List`.
fn list(manifests: &[String]) -> String {
    let mut text = String::from("apiVersion: v1\nkind: List\nitems:\n");
    for manifest in manifests {
        for (number, line) in manifest.lines().skip(2).enumerate() {
            text.push_str(if number == 0 { "- " } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Manifests of the same shape as `kubectl get --output json` lays them out.
fn json() -> anyhow::Result<String> {
    let items: Vec<_> = (0..MANIFESTS).map(json_manifest).collect();
    let list = serde_json::json!({"apiVersion": "v1", "items": items, "kind": "List"});
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn json_manifest(number: usize) -> serde_json::Value {
    let name = format!("app-{number}");
    let steps = (0..64).map(|step| format!("echo \"step {step} of application {number}\"\n"));
    let script = steps.collect::<Vec<_>>().concat();
    let env: Vec<_> = (0..64)
        .map(|setting| {
            let value = format!("value of setting {setting} in application {number}, long enough to be real");
            serde_json::json!({"name": format!("SETTING_{setting:03}"), "value": value})
        })
        .collect();
    let image = format!("registry.example.com/{name}:1.0.0");
    let container = serde_json::json!({"name": "app", "image": image, "args": [script], "env": env, "ports": [{"containerPort": 8080}]});
    serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "bench", "labels": {"app": name}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"runtimeClassName": "contrast-cc", "containers": [container]},
            },
        },
    })
}

/// A Deployment of about ten thousand bytes.
pub(crate) fn manifest(number: usize) -> String {
    let mut text = format!(
        "---\n# application {number}\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{number}\n  namespace: bench\n  labels:\n    \
         app: app-{number}\nspec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app: app-{number}\n  template:\n    metadata:\n      labels:\n        \
         app: app-{number}\n    spec:\n      runtimeClassName: contrast-cc\n      containers:\n      - name: app\n        \
         image: registry.example.com/app-{number}:1.0.0\n        args:\n        - |\n"
    );
    // Writing to a string cannot fail.
    for step in 0..64 {
        let _ = writeln!(text, "          echo \"step {step} of application {number}\"");
    }
    text.push_str("        env:\n");
    for setting in 0..64 {
        let _ = writeln!(
            text,
            "        - name: SETTING_{setting:03}\n          value: \"value of setting {setting} in application {number}, long enough to be real\""
        );
    }
    text.push_str("        ports:\n        - containerPort: 8080\n");
    text
}

/// Injection template for istioctl.
const TEMPLATE: &str = "\
policy: enabled
alwaysInjectSelector: []
neverInjectSelector: []
injectedAnnotations: {}
defaultTemplates: [sidecar]
templates:
  sidecar: |
    spec:
      initContainers:
      - name: contrast-initializer
        image: ghcr.io/edgelesssys/contrast/initializer:v0.7.0
        env:
        - name: COORDINATOR_HOST
          value: coordinator
        resources:
          requests:
            memory: 50Mi
        volumeMounts:
        - name: contrast-tls-certs
          mountPath: /tls-config
      volumes:
      - name: contrast-tls-certs
        emptyDir: {}
";
