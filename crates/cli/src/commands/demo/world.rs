//! The cluster as the demo sees it: takes what a user does, gives what the pages of `mainstay` say about it. Every wait has an end.

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

use super::cast::{ACTORS, Actor};
use super::teller::Teller;
use crate::commands::migration::progress::Look;
use crate::commands::status;
use crate::error::{CliError, Kind, chain};
use crate::report::Report;

/// How often it looks, by the cluster's clock.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// Nothing takes longer, by the cluster's clock.
const MOST: Duration = Duration::from_mins(15);

/// As `kubectl` asks for lists.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Where the Istio is.
pub(super) const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

/// An actor's revision, by namespace and name: nothing for pods without a proxy, several in the middle of a move.
pub(super) type Revisions = BTreeMap<(&'static str, &'static str), Vec<String>>;

/// The stage, and who tells what happens on it.
pub(super) struct World {
    pub(super) stage: SimulatedCluster,
    pub(super) teller: Teller,
    library: Arc<Library>,
}

impl World {
    pub(super) fn new(stage: SimulatedCluster, teller: Teller) -> Self {
        let (library, _) = Library::from_catalog(stage.catalog());
        Self {
            stage,
            teller,
            library: Arc::new(library),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.stage.now()
    }

    /// Everything there is.
    pub(super) async fn survey(&self) -> Result<Survey, CliError> {
        let settings = Arc::new(Settings::default());
        let empty = Snapshot::new(self.now(), settings, self.library.clone());
        let client = self.stage.client(USER);
        let mut found = survey(&client, empty).await?;
        survey_workloads(&client, &mut found).await;
        Ok(found)
    }

    /// The Istio among it.
    pub(super) fn istio(found: &Survey) -> Result<Istio, CliError> {
        let istio = found.snapshot.istios().get("default").cloned();
        istio.ok_or_else(|| CliError::new(Kind::Cluster, "the Istio is gone"))
    }

    /// Its migration at this moment.
    pub(super) async fn look(&self) -> Result<Option<Look>, CliError> {
        let found = self.survey().await?;
        Ok(Look::at(&found.snapshot, &Self::istio(&found)?))
    }

    /// Waits until something is so.
    pub(super) async fn until(
        &self,
        what: &str,
        mut holds: impl AsyncFnMut(&Self) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let begun = self.now();
        while !holds(self).await? {
            let waited = self.now().duration_since(begun);
            if waited.unsigned_abs() > MOST {
                let said = format!("the demo waited {} minutes in vain: {what}", MOST.as_secs() / 60);
                return Err(CliError::new(Kind::Cluster, said));
            }
            self.stage.sleep(STEP).await;
        }
        Ok(())
    }

    /// The page of `mainstay status`.
    pub(super) async fn status(&self) -> Result<(), CliError> {
        self.teller.typed(self.now(), "mainstay status")?;
        let found = self.survey().await?;
        let report = Report::of(&found);
        let text = status::page::page(&report, &found.snapshot, false);
        let data = serde_json::to_value(&report).unwrap_or_default();
        self.teller.page(self.now(), "status", &text, &data)
    }

    /// Who injected whose pods: only pods that stay count.
    pub(super) async fn revisions(&self) -> Result<Revisions, CliError> {
        let mut found = Revisions::new();
        for actor in &ACTORS {
            let mut all: Vec<String> = self
                .pods(actor)
                .await?
                .iter()
                .filter_map(|pod| pod.pointer("/metadata/annotations/istio.io~1rev")?.as_str())
                .map(str::to_owned)
                .collect();
            all.sort();
            all.dedup();
            found.insert((actor.space, actor.name), all);
        }
        Ok(found)
    }

    async fn pods(&self, actor: &Actor) -> Result<Vec<Value>, CliError> {
        let list = self.stage.get(&pods_path(actor)).await?.unwrap_or_default();
        let items = list.get("items").and_then(Value::as_array).cloned();
        let stays = |pod: &Value| pod.pointer("/metadata/deletionTimestamp").is_none();
        Ok(items.unwrap_or_default().into_iter().filter(stays).collect())
    }

    /// Whether all of an actor's pods are there and ready, and no other ones.
    pub(super) async fn is_settled(&self, actor: &Actor) -> Result<bool, CliError> {
        let object = self.stage.get(&actor.path()).await?.unwrap_or_default();
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

    /// What `kubectl get pods` prints of an actor's pods: header and rows, as the server gives them.
    pub(super) async fn pod_rows(&self, actor: &Actor) -> Result<Vec<Vec<String>>, CliError> {
        let path = pods_path(actor);
        let request = Request::get(&path).header(ACCEPT, TABLE).body(Vec::new());
        let request = request.map_err(|error| CliError::new(Kind::Cluster, error.to_string()))?;
        let answer: Result<Value, _> = self.stage.client(USER).request(request).await;
        let table = answer.map_err(|error| CliError::new(Kind::Cluster, chain(&error)))?;
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

fn pods_path(actor: &Actor) -> String {
    format!(
        "/api/v1/namespaces/{}/pods?labelSelector=app%3D{}",
        actor.space, actor.name
    )
}
