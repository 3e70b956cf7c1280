//! Installs resources as the operator does: observes them, executes the plans, and renders the planned
//! releases.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_adopt::{Migration, parse_objects};
use mainstay_api::{Istio, IstioCni, IstioRevision, IstioRevisionTag, ObjectMeta, Reason, ZTunnel, names};
use mainstay_catalog::Catalog;
use mainstay_mesh::plan::{NewObject, NewStatus, ReleaseKey};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::{Action, AffectedSubjects, Library, Observation, Settings, Snapshot, plan};
use mainstay_operator::Renderer;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Kubernetes version of the migration.
const KUBE_VERSION: &str = "v1.32.0";

/// An operator without a cluster.
pub(super) struct Operator {
    renderer: Renderer,
    snapshot: Snapshot,
    releases: BTreeMap<ReleaseKey, Vec<Value>>,
}

impl Operator {
    pub(super) fn new(catalog: &Arc<Catalog>) -> Self {
        let (library, _) = Library::from_catalog(catalog);
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut snapshot = Snapshot::new(now, Arc::new(Settings::default()), Arc::new(library));
        for source in Source::ALL {
            snapshot.observe(Observation::Source(source, SourceState::Ready));
        }
        Self {
            renderer: Renderer::for_version(catalog.clone(), KUBE_VERSION),
            snapshot,
            releases: BTreeMap::new(),
        }
    }

    /// Installs the printed resources of a migration, and returns their objects.
    pub(super) fn install(mut self, migration: &Migration) -> Vec<Value> {
        for resource in &migration.resources {
            let text = mainstay_cluster::deploy::document(resource).unwrap();
            for document in parse_objects(&text).unwrap() {
                self.apply(document);
            }
        }
        self.releases.into_values().flatten().collect()
    }

    /// Creates a resource and executes plans until nothing is left to do.
    fn apply(&mut self, mut document: Value) {
        let kind = document["kind"].as_str().unwrap().to_owned();
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        document["metadata"] = json!(metadata(&kind, &name));
        if let Some(namespace) = document["spec"]["namespace"].as_str() {
            self.create_namespace(namespace);
        }
        let observation = match kind.as_str() {
            "Istio" => Observation::Istio(read::<Istio>(document)),
            "IstioRevisionTag" => Observation::Tag(read::<IstioRevisionTag>(document)),
            "IstioCNI" => Observation::Cni(read::<IstioCni>(document)),
            "ZTunnel" => Observation::ZTunnel(read::<ZTunnel>(document)),
            other => panic!("unexpected resource {other}"),
        };
        let mut queue = self.snapshot.observe(observation);
        while let Some(subject) = queue.pop_first() {
            let plan = plan(&self.snapshot, &subject);
            for action in plan.actions() {
                queue.extend(self.execute(action));
            }
        }
    }

    fn create_namespace(&mut self, name: &str) {
        self.snapshot.observe(Observation::Namespace {
            name: name.to_owned(),
            uid: format!("Namespace-{name}"),
            resource_version: "1".to_owned(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            terminating: false,
        });
    }

    /// Executes an action, and returns the subjects that it affects.
    fn execute(&mut self, action: &Action) -> AffectedSubjects {
        match action {
            Action::CreateRevision(new) => {
                let revision = new_revision(new);
                return self.snapshot.observe(Observation::Revision(revision));
            }
            Action::Install(release) => {
                let objects = self.renderer.render(release).unwrap();
                self.releases.insert(release.key.clone(), objects);
            }
            Action::WriteStatus {
                object,
                status: NewStatus::Istio(status),
            } => {
                let mut istio = self.snapshot.istios().get(object.name()).unwrap().clone();
                istio.status = status.clone();
                return self.snapshot.observe(Observation::Istio(istio));
            }
            Action::WriteStatus { .. } => {}
            // There is no cluster in which a workload becomes ready.
            Action::Event(event) => assert_ne!(event.reason, Reason::ReconcileError, "{}", event.message),
            other => panic!("unexpected action: {other}"),
        }
        AffectedSubjects::new()
    }
}

fn new_revision(new: &NewObject<mainstay_api::RevisionSpec>) -> IstioRevision {
    let mut revision = IstioRevision {
        metadata: metadata("IstioRevision", &new.name),
        spec: new.spec.clone(),
        ..IstioRevision::default()
    };
    revision.metadata.owner_references = vec![new.owner.clone()];
    revision
}

fn metadata(kind: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: name.to_owned(),
        uid: format!("{kind}-{name}"),
        resource_version: "1".to_owned(),
        generation: 1,
        finalizers: vec![names::FINALIZER.to_owned()],
        ..ObjectMeta::default()
    }
}

fn read<T: DeserializeOwned>(document: Value) -> T {
    serde_json::from_value(document).unwrap()
}
