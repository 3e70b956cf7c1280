//! `cargo xtask bench-inject`: runs `mainstay generate` and `istioctl kube-inject` alternately, in a network
//! namespace with an API server, which istioctl requires.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::super::Bench;
use super::super::figure::Goal;
use super::super::process::{self, Goals, PeerRuns};
use super::{Programs, manifests};
use crate::measure::{Cost, cost_of};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File to write the costs to
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

/// Costs of all runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Runs {
    /// `istioctl kube-inject` on one stream.
    istioctl: Vec<Cost>,
    /// `istioctl kube-inject` on a stream in which half of the manifests are targets.
    istioctl_mixed: Vec<Cost>,
    /// `mainstay generate` on the same stream.
    stream: Vec<Cost>,
    /// `mainstay generate` on the stream in which half of the manifests are targets.
    mixed: Vec<Cost>,
    /// `mainstay generate` on the same manifests in 1,000 files, in place.
    files: Vec<Cost>,
    /// `mainstay generate` on the same manifests as items of one `List`.
    list: Vec<Cost>,
    /// The same in JSON.
    json: Vec<Cost>,
    /// `mainstay generate` on a stream ten times as long.
    long: Vec<Cost>,
}

/// An input, its runs and its goals.
struct Input {
    subject: &'static str,
    runs: fn(&Runs) -> &[Cost],
    goals: Goals,
    /// Runs of istioctl on the same manifests.
    peer: Option<fn(&Runs) -> &[Cost]>,
}

/// Goals of runs on manifests that istioctl also processes.
const COMPARED: Goals = Goals {
    wall: Goal::Ratio(20.0),
    cpu: Goal::None,
    memory: Goal::AtMost(64.0),
};

const INPUTS: &[Input] = &[
    Input {
        subject: "generate: 1,000 manifests in one stream",
        runs: |runs| &runs.stream,
        goals: COMPARED,
        peer: Some(|runs| &runs.istioctl),
    },
    Input {
        subject: "generate: 1,000 manifests in one stream, half of them targets",
        runs: |runs| &runs.mixed,
        goals: COMPARED,
        peer: Some(|runs| &runs.istioctl_mixed),
    },
    Input {
        subject: "generate: 1,000 files in place",
        runs: |runs| &runs.files,
        goals: COMPARED,
        peer: Some(|runs| &runs.istioctl),
    },
    Input {
        subject: "generate: 1,000 manifests in one List",
        runs: |runs| &runs.list,
        goals: COMPARED,
        peer: Some(|runs| &runs.istioctl),
    },
    Input {
        subject: "generate: 1,000 manifests in one List of JSON",
        runs: |runs| &runs.json,
        goals: COMPARED,
        peer: Some(|runs| &runs.istioctl),
    },
    Input {
        subject: "generate: 10,000 manifests in one stream",
        runs: |runs| &runs.long,
        goals: Goals {
            wall: Goal::None,
            ..COMPARED
        },
        peer: None,
    },
];

/// Number of manifests in the input.
const MANIFESTS: usize = 1_000;

/// Measures all inputs if at least one of them is selected.
pub(super) fn measure(programs: &Programs, bench: &mut Bench) -> anyhow::Result<()> {
    let wanted: Vec<&Input> = INPUTS
        .iter()
        .filter(|input| bench.selects(input.subject))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let runs = run_in_cluster(programs, bench.runs())?;
    for input in wanted {
        let peer = input.peer.map(|costs| PeerRuns {
            name: "istioctl",
            costs: costs(&runs),
        });
        let figures = process::figures(input.subject, input.goals, (input.runs)(&runs), peer);
        bench.add(figures);
    }
    Ok(())
}

/// Starts a cluster and measures inside it.
fn run_in_cluster(programs: &Programs, runs: usize) -> anyhow::Result<Runs> {
    let scratch = tempfile::tempdir()?;
    let report = scratch.path().join("runs.json");
    let status = Command::new(&programs.in_cluster)
        .arg(std::env::current_exe()?)
        .arg("bench-inject")
        .arg(&report)
        .args(["--runs", &runs.to_string(), "--mainstay"])
        .arg(&programs.mainstay)
        .arg("--istioctl")
        .arg(&programs.istioctl)
        .stdin(Stdio::null())
        .status()
        .context("starting the cluster")?;
    ensure!(status.success(), "the bench inside the cluster failed");
    Ok(serde_json::from_slice(&fs::read(report)?)?)
}

/// Measures inside the cluster's network namespace.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let inputs = Inputs {
        arguments,
        directory: scratch.path(),
    };
    inputs.prepare()?;
    let mut runs = Runs::default();
    for _ in 0..arguments.runs {
        runs.istioctl.push(inputs.istioctl("in.yaml", MANIFESTS)?);
        runs.stream.push(inputs.stream("in.yaml", MANIFESTS)?);
        runs.istioctl_mixed
            .push(inputs.istioctl("mixed.yaml", MANIFESTS / 2)?);
        runs.mixed.push(inputs.stream("mixed.yaml", MANIFESTS / 2)?);
        runs.files.push(inputs.files()?);
        runs.list
            .push(inputs.one("list.yaml", "name: contrast-initializer")?);
        runs.json
            .push(inputs.one("list.json", "\"name\": \"contrast-initializer\"")?);
        runs.long.push(inputs.stream("long.yaml", MANIFESTS * 10)?);
    }
    fs::write(&arguments.report, serde_json::to_vec(&runs)?)?;
    Ok(())
}

/// Generated inputs of the programs.
struct Inputs<'a> {
    arguments: &'a Arguments,
    directory: &'a Path,
}

impl Inputs<'_> {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// Writes the inputs.
    fn prepare(&self) -> anyhow::Result<()> {
        let manifests: Vec<String> = (0..MANIFESTS).map(manifests::target).collect();
        let stream = manifests.concat();
        fs::write(self.path("in.yaml"), &stream)?;
        fs::write(self.path("long.yaml"), stream.repeat(10))?;
        let mixed: String = (0..MANIFESTS).map(manifests::every_second_target).collect();
        fs::write(self.path("mixed.yaml"), mixed)?;
        fs::write(self.path("list.yaml"), manifests::list(&manifests))?;
        fs::write(self.path("list.json"), manifests::json_list(MANIFESTS)?)?;
        fs::write(self.path("inject.yaml"), TEMPLATE)?;
        fs::write(self.path("mesh.yaml"), "rootNamespace: istio-system\n")?;
        fs::write(self.path("values.json"), "{}")?;
        Ok(())
    }

    /// istioctl adds the same container and volume to `targets` manifests, without mounts in other
    /// containers.
    fn istioctl(&self, input: &str, targets: usize) -> anyhow::Result<Cost> {
        let program = self.arguments.istioctl.display().to_string();
        let [config, mesh, values, input, output] =
            ["inject.yaml", "mesh.yaml", "values.json", input, "theirs.yaml"].map(|name| self.path(name));
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
        let cost = cost_of(&command, self.directory)?;
        check_complete(&output, targets)?;
        Ok(cost)
    }

    fn stream(&self, input: &str, targets: usize) -> anyhow::Result<Cost> {
        let (input, output) = (self.path(input), self.path("ours.yaml"));
        let cost = self.generate(&["--output", &output, &input])?;
        check_complete(&output, targets)?;
        Ok(cost)
    }

    fn files(&self) -> anyhow::Result<Cost> {
        let directory = self.directory.join("files");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory)?;
        for number in 0..MANIFESTS {
            fs::write(
                directory.join(format!("{number:04}.yaml")),
                manifests::target(number),
            )?;
        }
        let cost = self.generate(&[&directory.display().to_string()])?;
        let text = fs::read_to_string(directory.join("0999.yaml"))?;
        ensure!(text.contains("contrast-initializer"), "a file was not injected");
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
        super::generate(&self.arguments.mainstay, arguments, self.directory)
    }
}

/// Checks that every target was injected.
fn check_complete(output: &str, targets: usize) -> anyhow::Result<()> {
    let text = fs::read_to_string(output)?;
    let found = text.matches("name: contrast-initializer").count();
    ensure!(
        found == targets,
        "{output}: {found} of {targets} targets were injected"
    );
    Ok(())
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
