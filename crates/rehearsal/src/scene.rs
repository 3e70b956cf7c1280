//! The workloads of an input and what is around them: takes objects, gives who plays which part and how long pods take. No decisions.

mod readiness;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_api::names;
use mainstay_mesh::workload::{PodController, WorkloadKey, WorkloadKind};
use mainstay_sim::controllers::int_or_percent::resolve_fenceposts;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use crate::input::{Input, at, text};
use crate::wish::Wish;
pub(crate) use readiness::Pace;

/// Labels as Kubernetes keeps them.
pub(crate) type Labels = BTreeMap<String, String>;

/// Everybody on the stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    pub(crate) workloads: BTreeMap<WorkloadKey, Workload>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) services: Vec<Service>,
    pub(crate) budgets: Vec<Budget>,
    /// How long an istiod takes.
    pub(crate) control_plane: Duration,
    pub(crate) default_readiness: Duration,
}

/// A workload.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) replicas: u32,
    pub(crate) labels: Labels,
    pub(crate) update: Update,
    /// How long a pod must have been ready to count.
    pub(crate) min_ready: Duration,
    pub(crate) pace: Pace,
    pub(crate) on_host: bool,
}

/// How pods are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// All go, then all come.
    Recreate,
    /// Step by step.
    Rolling {
        /// So many more at most.
        surge: u32,
        /// So many fewer at most.
        unavailable: u32,
    },
    /// One after the other, or when somebody deletes them: not a Deployment's way.
    Other,
}

/// A pod.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) workload: Option<WorkloadKey>,
    pub(crate) finished: bool,
    pub(crate) leaving: bool,
    pub(crate) ready: bool,
}

/// A Service that selects pods.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) selector: LabelSelector,
}

/// A disruption budget.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) selector: LabelSelector,
    pub(crate) min_available: Option<Value>,
    pub(crate) max_unavailable: Option<Value>,
}

impl Scene {
    /// Everybody in an input, with the readiness that was observed or wished for.
    pub(crate) fn of(input: &Input, wish: &Wish) -> Self {
        let mut scene = Self {
            default_readiness: wish.readiness,
            control_plane: wish.readiness,
            ..Self::default()
        };
        let mut observed = readiness::Observed::new(input.taken);
        for object in input.of_kind("Namespace") {
            let name = text(object, "/metadata/name").to_owned();
            scene.namespaces.insert(name, labels(object, "/metadata/labels"));
        }
        for kind in WorkloadKind::ALL {
            let workloads = input.of_kind(kind.name());
            scene
                .workloads
                .extend(workloads.map(|object| workload(kind, object)));
        }
        for object in input.of_kind("Pod") {
            let pod = pod(object);
            observed.see(&pod, object);
            scene.pods.push(pod);
        }
        scene.services = input.of_kind("Service").filter_map(service).collect();
        scene.budgets = input.of_kind("PodDisruptionBudget").map(budget).collect();
        observed.settle(&mut scene, wish);
        scene
    }

    /// How long the pods that are there now take to be what they are: those of a workload with a ready pod, or with none at all, are ready
    /// at once, the others never.
    pub(crate) fn present(&self) -> BTreeMap<WorkloadKey, Option<Duration>> {
        let mut present = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| !pod.finished && !pod.leaving) {
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

    /// Workloads that want pods and have none in the input: theirs are made when the present control plane is there to inject them.
    pub(crate) fn absent(&self) -> BTreeSet<&WorkloadKey> {
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

    /// The workloads of a namespace.
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

    /// The workloads of a namespace whose pods a selector means.
    pub(crate) fn selected<'a>(
        &'a self,
        namespace: &str,
        selector: &'a LabelSelector,
    ) -> impl Iterator<Item = (&'a WorkloadKey, &'a Workload)> {
        self.workloads_in(namespace)
            .filter(move |(_, workload)| means(selector, &workload.labels))
    }

    /// Namespaces with pods or workloads.
    pub(crate) fn inhabited(&self) -> BTreeSet<&str> {
        self.workloads
            .keys()
            .map(mainstay_mesh::workload::WorkloadKey::namespace)
            .collect()
    }
}

/// Whether a selector means these labels.
pub(crate) fn means(selector: &LabelSelector, labels: &Labels) -> bool {
    selector.matches(&|key| labels.get(key).map(String::as_str))
}

/// A map of texts in an object.
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
    // Of its annotations one matters.
    let annotations = at(object, "/metadata/annotations");
    let revision = annotations.and_then(|all| all.get(names::REVISION_LABEL)?.as_str());
    let annotations = revision.map(|revision| (names::REVISION_LABEL.to_owned(), revision.to_owned()));
    Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        finished: matches!(text(object, "/status/phase"), "Succeeded" | "Failed"),
        leaving: at(object, "/metadata/deletionTimestamp").is_some_and(|moment| !moment.is_null()),
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
        pace: Pace::default(),
        on_host: at(object, "/spec/template/spec/hostNetwork")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    };
    (key, workload)
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
