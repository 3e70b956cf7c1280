//! Every watch there is: takes kinds as they are needed, follows each once, tells when it was listed.

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

use super::relist::{Desk, Orders, orders};
use super::sinks::{Managed, Namespaces, Outlet, Own, Pods};
use super::workloads::{self, Workloads};
use super::{Sink, Target, follow};
use crate::run::Shared;

/// Only what carries our mark.
const MARKED: &str = "labelSelector=managed-by%3Dsail-operator&";
/// Pods that still run, or will.
const RUNNING: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&";

/// Lists of few objects are repeated with every watch, so that an event nobody sent is made good; those of many now and then.
const FEW: Duration = Duration::from_mins(3);
const MANY: Duration = Duration::from_hours(1);

/// Nobody waits longer than this for a kind to be listed.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A kind that carries our mark: group, version, kind.
pub(crate) type Gvk = (String, String, String);

/// All watches; they end when this is dropped.
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
    /// Where new lists of namespaces and pods are ordered.
    referrers: Vec<Desk>,
    has_workloads: bool,
}

impl Watches {
    /// Follows our own kinds, namespaces, pods, and every kind that charts are known to install.
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
        for kind in installed_kinds() {
            let gvk = (kind.group.into(), kind.version.into(), kind.kind.into());
            watches.follow_marked(gvk, kind.plural);
        }
        watches
    }

    /// Follows these marked kinds from now on, each once.
    pub(crate) fn follow_kinds(&self, wanted: impl IntoIterator<Item = Gvk>, kinds: &Kinds) {
        for (group, version, kind) in wanted {
            let is_known = self.with(|state| state.kinds.contains_key(&(group.clone(), kind.clone())));
            if let (false, Some(how)) = (is_known, kinds.get(&group, &kind)) {
                self.follow_marked((group, version, kind), &how.plural);
            }
        }
    }

    /// Follows all workloads from now on: some Istio moves them.
    pub(crate) fn follow_workloads(&self) {
        if self.with(|state| std::mem::replace(&mut state.has_workloads, true)) {
            return;
        }
        let states = workloads::states();
        for kind in WorkloadKind::ALL {
            let target = Target {
                path: format!("/apis/apps/v1/{}s", kind.name().to_lowercase()),
                selector: "",
                is_metadata: false,
                is_optional: false,
                fresh: MANY,
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

    /// Waits until everything that is followed was listed, or cannot be.
    pub(crate) async fn listed(&self) {
        let all = self.with(|state| {
            state
                .fixed
                .iter()
                .chain(state.kinds.values())
                .cloned()
                .collect::<Vec<_>>()
        });
        for receiver in all {
            wait(receiver).await;
        }
    }

    /// Waits until these kinds were listed, but not for ever.
    pub(crate) async fn listed_kinds(&self, ids: impl IntoIterator<Item = &ObjectId>) {
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
            let _ = tokio::time::timeout(LONGEST_WAIT, wait(receiver)).await;
        }
    }

    /// Lists all that can refer to a revision anew, and says whether that came about.
    pub(crate) async fn relist_referrers(&self) -> bool {
        let lists: Vec<_> = self.with(|state| state.referrers.iter().map(Desk::order).collect());
        let all = futures::future::try_join_all(lists);
        matches!(tokio::time::timeout(LONGEST_WAIT, all).await, Ok(Ok(_)))
    }

    fn follow_own(&self, kind: ObjectKind) {
        let (outlet, synced) = self.outlet(Some(Source::Objects(kind)));
        let target = Target {
            path: format!("/apis/{}/{}", names::API_VERSION, kind.plural()),
            selector: "",
            is_metadata: false,
            is_optional: false,
            fresh: FEW,
        };
        let sink = Own {
            outlet,
            kind,
            listed: BTreeSet::new(),
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn(target, sink);
    }

    fn follow_namespaces(&self) {
        let (outlet, synced) = self.outlet(Some(Source::Namespaces));
        let sink = Namespaces {
            outlet,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn_referrers(metadata("/api/v1/namespaces", "", FEW), sink);
    }

    fn follow_pods(&self) {
        let (outlet, synced) = self.outlet(Some(Source::Pods));
        let sink = Pods {
            outlet,
            listed: BTreeSet::new(),
            is_listing: true,
        };
        self.with(|state| state.fixed.push(synced));
        self.spawn_referrers(metadata("/api/v1/pods", RUNNING, MANY), sink);
    }

    fn follow_marked(&self, (group, version, kind): Gvk, plural: &str) {
        let (outlet, synced) = self.outlet(source(&group, &kind));
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        let target = Target {
            path: format!("{root}/{plural}"),
            selector: MARKED,
            is_metadata: false,
            is_optional: true,
            fresh: FEW,
        };
        self.with(|state| state.kinds.insert((group.clone(), kind.clone()), synced));
        let sink = Managed {
            outlet,
            group,
            version,
            kind,
            listed: BTreeSet::new(),
        };
        self.spawn(target, sink);
    }

    fn outlet(&self, source: Option<Source>) -> (Outlet, Receiver<bool>) {
        let (synced, receiver) = channel(false);
        let outlet = Outlet {
            shared: self.shared.clone(),
            source,
            synced,
        };
        (outlet, receiver)
    }

    fn spawn(&self, target: Target, sink: impl Sink + Sync) {
        self.spawn_ordered(target, sink, orders().1);
    }

    fn spawn_referrers(&self, target: Target, sink: impl Sink + Sync) {
        let (desk, orders) = orders();
        self.with(|state| state.referrers.push(desk));
        self.spawn_ordered(target, sink, orders);
    }

    fn spawn_ordered(&self, target: Target, sink: impl Sink + Sync, orders: Orders) {
        let client = self.client.clone();
        self.with(|state| state.tasks.spawn(follow(client, target, sink, orders)));
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn source(group: &str, kind: &str) -> Option<Source> {
    match (group, kind) {
        ("apps", "Deployment") => Some(Source::Deployments),
        ("apps", "DaemonSet") => Some(Source::DaemonSets),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => Some(Source::Webhooks),
        _ => None,
    }
}

fn metadata(path: &str, selector: &'static str, fresh: Duration) -> Target {
    Target {
        path: path.to_owned(),
        selector,
        is_metadata: true,
        is_optional: false,
        fresh,
    }
}

async fn wait(mut receiver: Receiver<bool>) {
    // A watch that is gone will not be listed any more.
    let _ = receiver.wait_for(|synced| *synced).await;
}
