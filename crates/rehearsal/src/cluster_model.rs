//! Workloads, pods, Services and disruption budgets of an input, with the readiness time of each workload.

mod readiness;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_api::names;
use mainstay_mesh::migration::parse_readiness_timeout;
use mainstay_mesh::workload::{PodController, Workload as Fact, WorkloadKey, WorkloadKind};
use mainstay_sim::controllers::int_or_percent::resolve_fenceposts;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use crate::input::{Input, at, text};
use crate::request::RehearsalRequest;
pub(crate) use readiness::Readiness;

/// Labels or annotations of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// Parsed state of the input cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterModel {
    pub(crate) workloads: BTreeMap<WorkloadKey, Workload>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) services: Vec<Service>,
    pub(crate) budgets: Vec<Budget>,
    /// Time until an istiod is ready.
    pub(crate) control_plane: Duration,
    pub(crate) default_readiness: Duration,
    /// Longest readiness timeout in an annotation of a workload.
    pub(crate) annotated_timeout: Duration,
}

/// Workloads as the reconciler observes them.
pub(crate) type Facts = Vec<(WorkloadKey, Fact)>;

#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) replicas: u32,
    pub(crate) labels: Labels,
    pub(crate) update: Update,
    /// Value of `minReadySeconds`.
    pub(crate) min_ready: Duration,
    pub(crate) readiness: Readiness,
    pub(crate) host_network: bool,
}

/// Update strategy of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// Old pods are stopped before new ones start.
    Recreate,
    /// Rolling update of a Deployment.
    Rolling {
        /// `maxSurge` in pods.
        surge: u32,
        /// `maxUnavailable` in pods.
        unavailable: u32,
    },
    /// Strategy of a `StatefulSet` or `DaemonSet`.
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) workload: Option<WorkloadKey>,
    pub(crate) finished: bool,
    pub(crate) terminating: bool,
    pub(crate) ready: bool,
}

/// A Service with a selector.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) selector: LabelSelector,
}

/// A `PodDisruptionBudget`.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) selector: LabelSelector,
    pub(crate) min_available: Option<Value>,
    pub(crate) max_unavailable: Option<Value>,
}

impl ClusterModel {
    /// Parses an input and assigns observed or requested readiness times. Reads each object once.
    pub(crate) fn from_input(input: &Input, request: &RehearsalRequest) -> (Self, Facts) {
        let mut facts = Facts::new();
        let mut model = Self {
            default_readiness: request.readiness,
            control_plane: request.readiness,
            ..Self::default()
        };
        let mut observed = readiness::Observed::new(input.taken);
        for object in input.of_kind("Namespace") {
            let name = text(&object, "/metadata/name").to_owned();
            model.namespaces.insert(name, labels(&object, "/metadata/labels"));
        }
        for kind in WorkloadKind::ALL {
            for object in input.of_kind(kind.name()) {
                model.workloads.extend([workload(kind, &object)]);
                facts.extend(Fact::from_object(kind, &object));
                let timeout = annotated_timeout(&object).unwrap_or_default();
                model.annotated_timeout = model.annotated_timeout.max(timeout);
            }
        }
        for object in input.of_kind("Pod") {
            let pod = pod(&object);
            observed.record(&pod, &object);
            model.pods.push(pod);
        }
        let services = input.of_kind("Service");
        model.services = services.filter_map(|object| service(&object)).collect();
        let budgets = input.of_kind("PodDisruptionBudget");
        model.budgets = budgets.map(|object| budget(&object)).collect();
        observed.assign(&mut model, request);
        (model, facts)
    }

    /// Returns the readiness times of the existing pods: zero for workloads with a ready pod or without
    /// pods, `None` (never ready) for others.
    pub(crate) fn current_readiness(&self) -> BTreeMap<WorkloadKey, Option<Duration>> {
        let mut present = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| !pod.finished && !pod.terminating) {
            if let Some(key) = &pod.workload {
                let ready = present.entry(key.clone()).or_insert(None);
                *ready = ready.or(pod.ready.then_some(Duration::ZERO));
            }
        }
        for key in self.workloads.keys() {
            present.entry(key.clone()).or_insert(Some(Duration::ZERO));
        }
        present
    }

    /// Returns the workloads that have replicas but no pod in the input. Their pods are created once the
    /// current control plane can inject them.
    pub(crate) fn workloads_without_pods(&self) -> BTreeSet<&WorkloadKey> {
        let there: BTreeSet<&WorkloadKey> =
            self.pods.iter().filter_map(|pod| pod.workload.as_ref()).collect();
        let wanting = self
            .workloads
            .iter()
            .filter(|(_, workload)| workload.replicas > 0);
        wanting
            .map(|(key, _)| key)
            .filter(|key| !there.contains(key))
            .collect()
    }

    /// Returns the workloads of a namespace.
    pub(crate) fn workloads_in<'a>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a WorkloadKey, &'a Workload)> {
        let first = WorkloadKey::range_start(namespace);
        let namespace = namespace.to_owned();
        self.workloads
            .range(first..)
            .take_while(move |(key, _)| key.namespace() == namespace)
    }

    /// Returns the workloads of a namespace whose pods match a selector.
    pub(crate) fn selected<'a>(
        &'a self,
        namespace: &str,
        selector: &'a LabelSelector,
    ) -> impl Iterator<Item = (&'a WorkloadKey, &'a Workload)> {
        self.workloads_in(namespace)
            .filter(move |(_, workload)| selects(selector, &workload.labels))
    }

    /// Returns the namespaces that contain workloads.
    pub(crate) fn namespaces_with_workloads(&self) -> BTreeSet<&str> {
        self.workloads
            .keys()
            .map(mainstay_mesh::workload::WorkloadKey::namespace)
            .collect()
    }
}

/// Whether a selector matches labels.
pub(crate) fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    selector.matches(&|key| labels.get(key).map(String::as_str))
}

/// Returns a map of strings from an object.
pub(crate) fn labels(object: &Value, path: &str) -> Labels {
    let map = at(object, path).and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn pod(object: &Value) -> Pod {
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    let labels = labels(object, "/metadata/labels");
    let owners = at(object, "/metadata/ownerReferences").and_then(Value::as_array);
    let owner = owners
        .into_iter()
        .flatten()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    let workload = owner.and_then(|owner| {
        let controller = PodController {
            kind: text(owner, "/kind"),
            name: text(owner, "/name"),
        };
        WorkloadKey::for_pod(namespace, controller, &labels)
    });
    // Only the revision annotation is used.
    let annotations = at(object, "/metadata/annotations");
    let revision = annotations.and_then(|all| all.get(names::REVISION_LABEL)?.as_str());
    let annotations = revision.map(|revision| (names::REVISION_LABEL.to_owned(), revision.to_owned()));
    Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        finished: matches!(text(object, "/status/phase"), "Succeeded" | "Failed"),
        terminating: at(object, "/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()),
        ready: readiness::ready_condition(object) != readiness::Ready::No,
        labels,
        annotations: annotations.into_iter().collect(),
        workload,
    }
}

fn service(object: &Value) -> Option<Service> {
    let selector =
        at(object, "/spec/selector").filter(|map| map.as_object().is_some_and(|map| !map.is_empty()));
    selector.map(|selector| Service {
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
        selector: LabelSelector::from_map(Some(selector)),
    })
}

fn budget(object: &Value) -> Budget {
    Budget {
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
        selector: LabelSelector::from_object(at(object, "/spec/selector")),
        min_available: at(object, "/spec/minAvailable").cloned(),
        max_unavailable: at(object, "/spec/maxUnavailable").cloned(),
    }
}

fn workload(kind: WorkloadKind, object: &Value) -> (WorkloadKey, Workload) {
    let number = |path: &str| at(object, path).and_then(Value::as_i64);
    let replicas = match kind {
        WorkloadKind::DaemonSet => number("/status/desiredNumberScheduled").unwrap_or(0),
        _ => number("/spec/replicas").unwrap_or(1),
    };
    let key = WorkloadKey::new(
        text(object, "/metadata/namespace"),
        kind,
        text(object, "/metadata/name"),
    );
    let workload = Workload {
        replicas: u32::try_from(replicas.max(0)).unwrap_or(u32::MAX),
        labels: labels(object, "/spec/template/metadata/labels"),
        update: update(kind, object, replicas),
        min_ready: Duration::from_secs(
            u64::try_from(number("/spec/minReadySeconds").unwrap_or(0)).unwrap_or(0),
        ),
        readiness: Readiness::default(),
        host_network: at(object, "/spec/template/spec/hostNetwork")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    };
    (key, workload)
}

fn annotated_timeout(object: &Value) -> Option<Duration> {
    let text = at(object, "/metadata/annotations")?
        .get(names::READINESS_TIMEOUT)?
        .as_str()?;
    Duration::try_from(parse_readiness_timeout(text)?).ok()
}

fn update(kind: WorkloadKind, object: &Value, replicas: i64) -> Update {
    match (kind, text(object, "/spec/strategy/type")) {
        (WorkloadKind::Deployment, "Recreate") => Update::Recreate,
        (WorkloadKind::Deployment, _) => {
            let rolling = at(object, "/spec/strategy/rollingUpdate");
            let field = |name: &str| rolling?.get(name);
            let quarter = Value::from("25%");
            let bounds = (
                field("maxSurge").unwrap_or(&quarter),
                field("maxUnavailable").unwrap_or(&quarter),
            );
            let (surge, unavailable) = resolve_fenceposts(Some(bounds.0), Some(bounds.1), replicas);
            let whole = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
            Update::Rolling {
                surge: whole(surge),
                unavailable: whole(unavailable.min(replicas)),
            }
        }
        _ => Update::Other,
    }
}
