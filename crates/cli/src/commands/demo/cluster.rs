//! The demo's cluster and queries on it. Every wait has a timeout.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use jiff::Timestamp;
use mainstay_api::Istio;
use mainstay_cluster::survey::{Survey, survey, survey_workloads};
use mainstay_harness::{SimulatedCluster, USER};
use mainstay_mesh::{Library, Settings, Snapshot};
use serde_json::{Value, json};

use super::fixtures::{WORKLOADS, Workload};
use super::printer::Printer;
use crate::commands::migration::progress::MigrationProgress;
use crate::commands::status;
use crate::error::{CliError, Kind, chain};
use crate::report::Report;

/// Polling interval in cluster time.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// Maximum wait in cluster time.
const MAX_WAIT: Duration = Duration::from_mins(15);

/// Accept header of `kubectl get`.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// API path of the Istio.
pub(super) const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

/// Revisions of each workload's pods by namespace and name: none without a proxy, several during a rollout.
pub(super) type Revisions = BTreeMap<(&'static str, &'static str), Vec<String>>;

/// The simulated cluster and the printer.
pub(super) struct DemoCluster {
    pub(super) stage: SimulatedCluster,
    pub(super) printer: Printer,
    library: Arc<Library>,
}

impl DemoCluster {
    pub(super) fn new(stage: SimulatedCluster, printer: Printer) -> Self {
        let (library, _) = Library::from_catalog(stage.catalog());
        Self {
            stage,
            printer,
            library: Arc::new(library),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.stage.now()
    }

    /// Surveys the cluster.
    pub(super) async fn survey(&self) -> Result<Survey, CliError> {
        let settings = Arc::new(Settings::default());
        let empty = Snapshot::new(self.now(), settings, self.library.clone());
        let client = self.stage.client(USER);
        let mut found = survey(&client, empty).await?;
        survey_workloads(&client, &mut found).await;
        Ok(found)
    }

    /// Returns the Istio.
    pub(super) fn istio(found: &Survey) -> Result<Istio, CliError> {
        let istio = found.snapshot.istios().get("default").cloned();
        istio.ok_or_else(|| CliError::new(Kind::Cluster, "Istio not found"))
    }

    /// Returns the current progress of the migration.
    pub(super) async fn migration(&self) -> Result<Option<MigrationProgress>, CliError> {
        let found = self.survey().await?;
        Ok(MigrationProgress::from_snapshot(
            &found.snapshot,
            &Self::istio(&found)?,
        ))
    }

    /// Waits until a condition holds.
    pub(super) async fn until(
        &self,
        what: &str,
        mut holds: impl AsyncFnMut(&Self) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let started = self.now();
        while !holds(self).await? {
            let waited = self.now().duration_since(started);
            if waited.unsigned_abs() > MAX_WAIT {
                let message = format!(
                    "timed out after {} minutes waiting for {what}",
                    MAX_WAIT.as_secs() / 60
                );
                return Err(CliError::new(Kind::Cluster, message));
            }
            self.stage.sleep(STEP).await;
        }
        Ok(())
    }

    /// Prints the output of `mainstay status`.
    pub(super) async fn status(&self) -> Result<(), CliError> {
        self.printer.command(self.now(), "mainstay status")?;
        let found = self.survey().await?;
        let report = Report::from_survey(&found);
        let text = status::page::page(&report, &found.snapshot, false);
        let data = serde_json::to_value(&report).unwrap_or_default();
        self.printer.page(self.now(), "status", &text, &data)
    }

    /// Returns the revisions that injected each workload's pods, except terminating pods.
    pub(super) async fn revisions(&self) -> Result<Revisions, CliError> {
        let mut found = Revisions::new();
        for workload in &WORKLOADS {
            let mut all: Vec<String> = self
                .pods(workload)
                .await?
                .iter()
                .filter_map(|pod| pod.pointer("/metadata/annotations/istio.io~1rev")?.as_str())
                .map(str::to_owned)
                .collect();
            all.sort();
            all.dedup();
            found.insert((workload.namespace, workload.name), all);
        }
        Ok(found)
    }

    async fn pods(&self, workload: &Workload) -> Result<Vec<Value>, CliError> {
        let list = self.stage.get(&pods_path(workload)).await?.unwrap_or_default();
        let items = list.get("items").and_then(Value::as_array).cloned();
        let stays = |pod: &Value| pod.pointer("/metadata/deletionTimestamp").is_none();
        Ok(items.unwrap_or_default().into_iter().filter(stays).collect())
    }

    /// Whether a workload has exactly the desired pods and all are ready.
    pub(super) async fn is_settled(&self, workload: &Workload) -> Result<bool, CliError> {
        let object = self.stage.get(&workload.path()).await?.unwrap_or_default();
        let number = |at: &str| object.pointer(at).and_then(Value::as_i64).unwrap_or_default();
        let wanted = number("/spec/replicas");
        let seen = number("/status/observedGeneration") >= number("/metadata/generation");
        let fields = [
            "/status/replicas",
            "/status/readyReplicas",
            "/status/updatedReplicas",
        ];
        Ok(seen && fields.iter().all(|at| number(at) == wanted))
    }

    /// Returns the header and rows that `kubectl get pods` prints for a workload.
    pub(super) async fn pod_rows(&self, workload: &Workload) -> Result<Vec<Vec<String>>, CliError> {
        let path = pods_path(workload);
        let request = Request::get(&path).header(ACCEPT, TABLE).body(Vec::new());
        let request = request.map_err(|error| CliError::new(Kind::Cluster, error.to_string()))?;
        let response: Result<Value, _> = self.stage.client(USER).request(request).await;
        let table = response.map_err(|error| CliError::new(Kind::Cluster, chain(&error)))?;
        let list = |value: &Value, at: &str| {
            value
                .get(at)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let columns = list(&table, "columnDefinitions");
        let shown: Vec<bool> = columns
            .iter()
            .map(|column| column.get("priority").and_then(Value::as_i64) == Some(0))
            .collect();
        let row = |cells: Vec<Value>| {
            let kept = cells.into_iter().zip(&shown).filter(|(_, shown)| **shown);
            let text = |(cell, _): (Value, _)| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
            kept.map(text).collect::<Vec<String>>()
        };
        let name = |column: &Value| {
            let name = column.get("name").and_then(Value::as_str).unwrap_or_default();
            json!(name.to_uppercase())
        };
        let mut rows = vec![row(columns.iter().map(name).collect())];
        rows.extend(list(&table, "rows").iter().map(|line| row(list(line, "cells"))));
        Ok(rows)
    }
}

fn pods_path(workload: &Workload) -> String {
    format!(
        "/api/v1/namespaces/{}/pods?labelSelector=app%3D{}",
        workload.namespace, workload.name
    )
}
