//! Istio's charts, and the real Helm on the cluster of a host.

use std::path::PathBuf;
use std::process::Command;

use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_testkit::built_peer;

use super::host::{Host, outcome};

/// A Helm binary with the charts of one Istio version.
pub(crate) struct Helm<'a> {
    host: &'a Host,
    generation: &'static str,
    charts: PathBuf,
}

impl<'a> Helm<'a> {
    /// Writes the charts of a version. `generation` is `helm3` or `helm4`.
    pub(crate) fn new(host: &'a Host, generation: &'static str, version: &str) -> Self {
        let charts = host.file(&format!("charts-{version}"));
        let catalog = Catalog::embedded().unwrap();
        let version: Version = version.parse().unwrap();
        for chart in ["base", "istiod", "cni", "gateway"] {
            for (name, data) in catalog.chart(&version, Flavour::Installer, chart).unwrap() {
                let file = charts.join(chart).join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, data).unwrap();
            }
        }
        Self {
            host,
            generation,
            charts,
        }
    }

    /// Installs a chart as a release in `istio-system`.
    pub(crate) async fn install(&self, release: &str, chart: &str, arguments: &[&str]) {
        let chart = self.charts.join(chart).display().to_string();
        self.run(&[&["install", release, &chart], arguments].concat())
            .await;
    }

    /// Runs Helm in `istio-system`; returns its output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(built_peer(self.generation).unwrap());
        command
            .args(["--namespace", "istio-system"])
            .args(arguments)
            .env("KUBECONFIG", self.host.kubeconfig());
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, self.host.file(name));
        }
        let outcome = outcome(command).await;
        assert_eq!(outcome.code, 0, "{arguments:?}: {outcome:#?}");
        outcome.stdout
    }
}
