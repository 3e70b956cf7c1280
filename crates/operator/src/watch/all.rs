//! Set of watches: follows each required kind once, and waits for the first lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use mainstay_api::{ObjectKind, names};
use mainstay_cluster::desired::{Kinds, ObjectId};
use mainstay_cluster::kinds::installed_kinds;
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::workload::WorkloadKind;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;

use super::relist::{RelistRequester, RelistRequests, relist_channel};
use super::sinks::{ForeignInjectors, Managed, Namespaces, OwnObjects, Pods, SinkContext};
use super::workloads::{self, Workloads};
use super::{SMALL_RELIST_INTERVAL, Sink, Target, follow};
use crate::run::Shared;

/// Query parameter that selects objects with our label.
const MANAGED_SELECTOR: &str = "labelSelector=managed-by%3Dsail-operator&";
/// Query parameter that selects injectors that neither Mainstay nor the Sail Operator installed.
const FOREIGN_INJECTORS_SELECTOR: &str =
    "labelSelector=app%3Dsidecar-injector%2Cmanaged-by%21%3Dsail-operator&";
/// Query parameter that selects pods that have not terminated.
const ACTIVE_PODS_SELECTOR: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&";

/// Maximum age of the list of a large collection.
const LARGE_RELIST_INTERVAL: Duration = Duration::from_hours(1);

const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Group, version and kind of an object.
#[derive(Clone, Debug)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// All watches of the mesh controllers. They end when this value is dropped.
pub(crate) struct Watches {
    client: Client,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tasks: JoinSet<()>,
    kinds: BTreeMap<(String, String), Receiver<bool>>,
    fixed: Vec<Receiver<bool>>,
    /// Requesters of new lists of namespaces and pods.
    referrers: Vec<RelistRequester>,
    has_workloads: bool,
}

impl Watches {
    /// Starts to follow Mainstay's kinds, namespaces, pods, injectors of others, and every kind that charts
    /// are known to install.
    pub(crate) fn start(client: Client, shared: Arc<Shared>) -> Self {
        let watches = Self {
            client,
            shared,
            state: Mutex::default(),
        };
        for kind in ObjectKind::ALL {
            watches.follow_own(kind);
        }
        watches.follow_namespaces();
        watches.follow_pods();
        watches.follow_foreign_injectors();
        for kind in installed_kinds() {
            let gvk = Gvk {
                group: kind.group.into(),
                version: kind.version.into(),
                kind: kind.kind.into(),
            };
            watches.follow_managed(gvk, kind.plural);
        }
        watches
    }

    /// Follows the managed objects of these kinds. Skips kinds that are already followed or not in `kinds`.
    pub(crate) fn follow_kinds(&self, gvks: impl IntoIterator<Item = Gvk>, kinds: &Kinds) {
        for gvk in gvks {
            let key = (gvk.group.clone(), gvk.kind.clone());
            let is_followed = self.with(|state| state.kinds.contains_key(&key));
            if let (false, Some(resource)) = (is_followed, kinds.get(&gvk.group, &gvk.kind)) {
                self.follow_managed(gvk, &resource.plural);
            }
        }
    }

    /// Follows all workloads, unless they are already followed. Called when an Istio migrates workloads.
    pub(crate) fn follow_workloads(&self) {
        if self.with(|state| std::mem::replace(&mut state.has_workloads, true)) {
            return;
        }
        let states = workloads::pending_states();
        for kind in WorkloadKind::ALL {
            let target = Target {
                path: format!("/apis/apps/v1/{}s", kind.name().to_lowercase()),
                selector: "",
                is_metadata: false,
                is_optional: false,
                max_list_age: LARGE_RELIST_INTERVAL,
            };
            let sink = Workloads {
                shared: self.shared.clone(),
                kind,
                states: states.clone(),
                listed: BTreeSet::new(),
                is_listing: true,
            };
            self.spawn(target, sink);
        }
    }

    /// Waits until every collection, except workloads, was listed or is failing.
    pub(crate) async fn wait_until_listed(&self) {
        let all = self.with(|state| {
            state
                .fixed
                .iter()
                .chain(state.kinds.values())
                .cloned()
                .collect::<Vec<_>>()
        });
        for receiver in all {
            wait_until_synced(receiver).await;
        }
    }

    /// Waits until the kinds of these objects were listed, at most [`LIST_TIMEOUT`] for each kind.
    pub(crate) async fn wait_until_kinds_listed(&self, ids: impl IntoIterator<Item = &ObjectId>) {
        let kinds: BTreeSet<(String, String)> = ids
            .into_iter()
            .map(|id| (id.group.clone(), id.kind.clone()))
            .collect();
        let all: Vec<_> = self.with(|state| {
            kinds
                .iter()
                .filter_map(|kind| state.kinds.get(kind))
                .cloned()
                .collect()
        });
        for receiver in all {
            let _ = tokio::time::timeout(LIST_TIMEOUT, wait_until_synced(receiver)).await;
        }
    }

    /// Lists namespaces and pods again, which can refer to a revision. Returns whether all lists succeeded
    /// in time.
    pub(crate) async fn relist_referrers(&self) -> bool {
        let lists: Vec<_> = self.with(|state| state.referrers.iter().map(RelistRequester::request).collect());
        let all = futures::future::try_join_all(lists);
        matches!(tokio::time::timeout(LIST_TIMEOUT, all).await, Ok(Ok(_)))
    }

    fn follow_own(&self, kind: ObjectKind) {
        let (context, synced) = self.new_context(Some(Source::Objects(kind)));
        let target = Target {
            path: format!("/apis/{}/{}", names::API_VERSION, kind.plural()),
            selector: "",
            is_metadata: false,
            is_optional: false,
            max_list_age: SMALL_RELIST_INTERVAL,
        };
        let sink = OwnObjects {
            context,
            kind,
            listed: BTreeSet::new(),
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn(target, sink);
    }

    fn follow_namespaces(&self) {
        let (context, synced) = self.new_context(Some(Source::Namespaces));
        let sink = Namespaces {
            context,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn_referrers(
            metadata_target("/api/v1/namespaces", "", SMALL_RELIST_INTERVAL),
            sink,
        );
    }

    fn follow_pods(&self) {
        let (context, synced) = self.new_context(Some(Source::Pods));
        let sink = Pods {
            context,
            listed: BTreeSet::new(),
            is_listing: true,
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn_referrers(
            metadata_target("/api/v1/pods", ACTIVE_PODS_SELECTOR, LARGE_RELIST_INTERVAL),
            sink,
        );
    }

    fn follow_foreign_injectors(&self) {
        let (context, synced) = self.new_context(None);
        let target = Target {
            path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations".to_owned(),
            selector: FOREIGN_INJECTORS_SELECTOR,
            is_metadata: false,
            is_optional: true,
            max_list_age: SMALL_RELIST_INTERVAL,
        };
        let sink = ForeignInjectors {
            context,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn(target, sink);
    }

    fn follow_managed(&self, gvk: Gvk, plural: &str) {
        let Gvk { group, version, kind } = gvk;
        let (context, synced) = self.new_context(kind_source(&group, &kind));
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        let target = Target {
            path: format!("{root}/{plural}"),
            selector: MANAGED_SELECTOR,
            is_metadata: false,
            is_optional: true,
            max_list_age: SMALL_RELIST_INTERVAL,
        };
        self.with(|state| state.kinds.insert((group.clone(), kind.clone()), synced));
        let sink = Managed {
            context,
            group,
            version,
            kind,
            listed: BTreeSet::new(),
        };
        self.spawn(target, sink);
    }

    fn new_context(&self, source: Option<Source>) -> (SinkContext, Receiver<bool>) {
        let (synced, receiver) = channel(false);
        let context = SinkContext {
            shared: self.shared.clone(),
            source,
            synced,
        };
        (context, receiver)
    }

    fn spawn(&self, target: Target, sink: impl Sink + Sync) {
        self.spawn_with(target, sink, relist_channel().1);
    }

    fn spawn_referrers(&self, target: Target, sink: impl Sink + Sync) {
        let (requester, relists) = relist_channel();
        self.with(|state| state.referrers.push(requester));
        self.spawn_with(target, sink, relists);
    }

    fn spawn_with(&self, target: Target, sink: impl Sink + Sync, relists: RelistRequests) {
        let client = self.client.clone();
        self.with(|state| state.tasks.spawn(follow(client, target, sink, relists)));
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn kind_source(group: &str, kind: &str) -> Option<Source> {
    match (group, kind) {
        ("apps", "Deployment") => Some(Source::Deployments),
        ("apps", "DaemonSet") => Some(Source::DaemonSets),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => Some(Source::Webhooks),
        _ => None,
    }
}

fn metadata_target(path: &str, selector: &'static str, max_list_age: Duration) -> Target {
    Target {
        path: path.to_owned(),
        selector,
        is_metadata: true,
        is_optional: false,
        max_list_age,
    }
}

async fn wait_until_synced(mut receiver: Receiver<bool>) {
    // The wait fails if the watch has ended and dropped the sender, so that there will be no list.
    let _ = receiver.wait_for(|synced| *synced).await;
}
