//! A minimal executor: applies plans to a [`World`] as an API server would, and rejects writes with an
//! outdated precondition.

use std::sync::Arc;

use mainstay_api::{Kind, ObjectKind, ObjectMeta, Resource, Time, names};
use mainstay_mesh::plan::{Event, NewObject, NewStatus, Precondition, Release, ReleaseKey};
use mainstay_mesh::snapshot::{Objects, ReleaseFact, Webhook, WebhookClient};
use mainstay_mesh::{Action, Observation, Plan, Subject};
use serde_json::Value;

use super::{SentEvent, StoredKind, World};

impl World {
    /// Executes a plan.
    pub fn execute(&mut self, plan: &Plan) {
        for step in &plan.steps {
            self.executed
                .push(format!("{}: {} ({})", plan.subject, step.action, step.reason));
            self.execute_action(&step.action);
        }
        if !plan.is_empty() {
            self.queue.insert(plan.subject.clone());
        }
    }

    fn execute_action(&mut self, action: &Action) {
        if let Some(precondition) = action.precondition() {
            self.check_precondition(precondition);
        }
        match action {
            Action::CreateRevision(new) => self.create(new),
            Action::CreateTag(new) => self.create(new),
            Action::UpdateRevision(change) => {
                let change = change.clone();
                self.edit::<mainstay_api::RevisionSpec>(change.object.name(), |object| {
                    object.metadata.generation += i64::from(object.spec != change.spec);
                    object.spec = change.spec.clone();
                    object
                        .metadata
                        .owner_references
                        .clone_from(&change.owner_references);
                });
            }
            Action::UpdateTag(change) => {
                let change = change.clone();
                self.edit::<mainstay_api::TagSpec>(change.object.name(), |object| {
                    object.metadata.generation += i64::from(object.spec != change.spec);
                    object.spec = change.spec.clone();
                    object
                        .metadata
                        .owner_references
                        .clone_from(&change.owner_references);
                });
            }
            Action::DeleteRevision(object) => self.delete::<mainstay_api::RevisionSpec>(object.name()),
            Action::DeleteTag(object) => self.delete::<mainstay_api::TagSpec>(object.name()),
            Action::AddFinalizer { object, finalizers } | Action::RemoveFinalizer { object, finalizers } => {
                self.set_finalizers(&object.subject, finalizers);
            }
            Action::Install(release) => self.install(release),
            Action::Uninstall(key) => self.uninstall(key),
            Action::WriteStatus { object, status } => self.write_status(object.name(), status),
            Action::Event(event) => self.record_event(event),
            Action::Probe(_) => {}
            Action::RelabelNamespace(relabel) => self.relabel(relabel),
            Action::MoveWorkload(step) => self.move_workload(step),
            Action::AnnotateWebhook {
                object,
                ready,
                reason,
            } => {
                let mut webhook = self.snapshot.webhook(object.name()).cloned().unwrap();
                webhook
                    .metadata
                    .annotations
                    .insert(names::PROBE_STATUS.into(), ready.to_string());
                webhook
                    .metadata
                    .annotations
                    .insert(names::PROBE_REASON.into(), reason.clone());
                webhook.metadata.resource_version = self.next_serial().to_string();
                self.observe(Observation::Webhook(webhook));
            }
        }
    }

    fn record_event(&mut self, event: &Event) {
        let istio = self.snapshot.istios().get("default");
        let migration = istio.and_then(|istio| istio.status.workload_migration.clone());
        let batched = migration
            .and_then(|migration| migration.batched)
            .unwrap_or_default();
        self.events.push(SentEvent {
            reason: event.reason.clone(),
            message: event.message.clone(),
            current_batch: batched.current_batch,
            total_batches: batched.total_batches,
        });
    }

    /// Asserts that a precondition matches the current version of its object.
    fn check_precondition(&self, precondition: &Precondition) {
        let (uid, version) = match &precondition.subject {
            Subject::Namespace(name) => {
                let namespace = self.snapshot.namespace(name).expect("a namespace");
                (namespace.uid.clone(), namespace.resource_version.clone())
            }
            Subject::Workload(key) => {
                let workload = self.snapshot.workload(key).expect("a workload");
                (workload.uid.clone(), workload.resource_version.clone())
            }
            subject => {
                let metadata = self
                    .metadata(subject)
                    .unwrap_or_else(|| panic!("{subject} does not exist"));
                (metadata.uid, metadata.resource_version)
            }
        };
        assert_eq!(
            (&uid, &version),
            (&precondition.uid, &precondition.resource_version),
            "{}",
            precondition.subject
        );
    }

    fn metadata(&self, subject: &Subject) -> Option<ObjectMeta> {
        fn metadata_in<S: Kind>(objects: &Objects<S>, name: &str) -> Option<ObjectMeta> {
            objects.get(name).map(|object| object.metadata.clone())
        }
        match subject {
            Subject::Object(ObjectKind::Istio, name) => metadata_in(self.snapshot.istios(), name),
            Subject::Object(ObjectKind::IstioRevision, name) => metadata_in(self.snapshot.revisions(), name),
            Subject::Object(ObjectKind::IstioRevisionTag, name) => metadata_in(self.snapshot.tags(), name),
            Subject::Object(ObjectKind::IstioCni, name) => metadata_in(self.snapshot.cnis(), name),
            Subject::Object(ObjectKind::ZTunnel, name) => metadata_in(self.snapshot.ztunnels(), name),
            Subject::Webhook(name) => self
                .snapshot
                .webhook(name)
                .map(|webhook| webhook.metadata.clone()),
            Subject::Namespace(_) | Subject::Workload(_) => None,
        }
    }

    fn create<S: Kind + StoredKind>(&mut self, new: &NewObject<S>) {
        assert!(
            S::all(&self.snapshot).get(&new.name).is_none(),
            "{} exists",
            new.name
        );
        let uid = format!("uid-{:04}", self.next_serial());
        self.store(Resource {
            metadata: ObjectMeta {
                name: new.name.clone(),
                uid,
                generation: 1,
                creation_timestamp: Some(Time::from_timestamp(self.snapshot.now)),
                owner_references: vec![new.owner.clone()],
                finalizers: new.finalizers.clone(),
                annotations: new.annotations.clone(),
                ..ObjectMeta::default()
            },
            spec: new.spec.clone(),
            status: S::Status::default(),
        });
    }

    fn set_finalizers(&mut self, subject: &Subject, finalizers: &[String]) {
        fn set<S: Kind + StoredKind>(world: &mut World, name: &str, finalizers: &[String]) {
            world.edit::<S>(name, |object| object.metadata.finalizers = finalizers.to_vec());
            let object = S::all(&world.snapshot).get(name).cloned().unwrap();
            if finalizers.is_empty() && object.metadata.is_deleting() {
                world.observe(Observation::Gone(Subject::Object(S::KIND, name.into())));
                world.collect_garbage(&object.metadata.uid);
            }
        }
        let name = subject.name();
        match subject {
            Subject::Object(ObjectKind::Istio, _) => set::<mainstay_api::IstioSpec>(self, name, finalizers),
            Subject::Object(ObjectKind::IstioRevision, _) => {
                set::<mainstay_api::RevisionSpec>(self, name, finalizers);
            }
            Subject::Object(ObjectKind::IstioRevisionTag, _) => {
                set::<mainstay_api::TagSpec>(self, name, finalizers);
            }
            Subject::Object(ObjectKind::IstioCni, _) => set::<mainstay_api::CniSpec>(self, name, finalizers),
            Subject::Object(ObjectKind::ZTunnel, _) => {
                set::<mainstay_api::ZTunnelSpec>(self, name, finalizers);
            }
            other => panic!("no finalizers on {other}"),
        }
    }

    /// Records a release as applied, and creates those of its objects that readiness depends on.
    fn install(&mut self, release: &Arc<Release>) {
        self.observe(Observation::Release(
            release.key.clone(),
            ReleaseFact::Applied(release.clone()),
        ));
        let namespace = release.key.namespace.clone();
        let revision = release
            .values
            .get("revision")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let remote = release.values.get("profile").and_then(Value::as_str) == Some("remote");
        match release.chart {
            names::ISTIOD_CHART if remote => {
                self.install_webhook(release, names::injector(&revision, &namespace));
            }
            names::ISTIOD_CHART => {
                let known = self
                    .snapshot
                    .deployment(&namespace, &names::istiod(&revision))
                    .is_some();
                if !known {
                    self.deployment(&namespace, &names::istiod(&revision), 1, i32::from(self.ready));
                }
            }
            names::CNI_CHART => self.daemonset(&namespace, names::CNI_DAEMONSET, 1, i32::from(self.ready)),
            names::ZTUNNEL_CHART => {
                self.daemonset(&namespace, names::ZTUNNEL_DAEMONSET, 1, i32::from(self.ready));
            }
            _ => {}
        }
    }

    fn install_webhook(&mut self, release: &Release, name: String) {
        if self.snapshot.webhook(&name).is_some() {
            return;
        }
        let version = self.next_serial();
        self.observe(Observation::Webhook(Webhook {
            metadata: ObjectMeta {
                name,
                uid: format!("uid-{version:04}"),
                resource_version: version.to_string(),
                owner_references: vec![release.owner.clone()],
                ..ObjectMeta::default()
            },
            client: Some(WebhookClient::default()),
        }));
    }

    fn uninstall(&mut self, key: &ReleaseKey) {
        self.observe(Observation::Release(key.clone(), ReleaseFact::Absent));
        let suffix = format!("-{}", names::ISTIOD_CHART);
        match key.name.strip_suffix(&suffix) {
            Some(names::DEFAULT_REVISION) => self.delete_deployment(&key.namespace, "istiod"),
            Some(revision) => self.delete_deployment(&key.namespace, &names::istiod(revision)),
            None => {}
        }
    }

    fn write_status(&mut self, name: &str, status: &NewStatus) {
        match status {
            NewStatus::Istio(status) => {
                self.edit::<mainstay_api::IstioSpec>(name, |object| object.status = status.clone());
            }
            NewStatus::Revision(status) => {
                self.edit::<mainstay_api::RevisionSpec>(name, |object| object.status = status.clone());
            }
            NewStatus::Tag(status) => {
                self.edit::<mainstay_api::TagSpec>(name, |object| object.status = status.clone());
            }
            NewStatus::Cni(status) => {
                self.edit::<mainstay_api::CniSpec>(name, |object| object.status = status.clone());
            }
            NewStatus::ZTunnel(status) => {
                self.edit::<mainstay_api::ZTunnelSpec>(name, |object| object.status = status.clone());
            }
        }
    }
}
