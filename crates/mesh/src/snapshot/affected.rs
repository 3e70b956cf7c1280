//! Dependencies between subjects: determines the plans that depend on an object.

use mainstay_api::{Istio, Kind, ObjectKind, ObjectMeta, names};

use super::{AffectedSubjects, Objects, Snapshot, kind_key, possible_tags};
use crate::Subject;

impl Snapshot {
    /// Returns the revision and the tag of each name, if they exist, with their controlling owners. An
    /// Istio may wait until a tag is unused.
    pub(super) fn subjects_with_names(&self, names: Vec<String>) -> AffectedSubjects {
        let mut affected = AffectedSubjects::new();
        for name in names {
            if let Some(revision) = self.revisions.get(&name) {
                affected.insert(Subject::revision(&name));
                affected.extend(controller(&revision.metadata));
            }
            if let Some(tag) = self.tags.get(&name) {
                affected.insert(Subject::tag(&name));
                affected.extend(controller(&tag.metadata));
            }
        }
        affected
    }

    /// Returns the dependents of an Istio: objects that refer to it, other Istios that request one of its
    /// tags, and Istios that request a tag with a possible name of its active revision. Called before and
    /// after a change, because the requested tags may change.
    pub(super) fn dependents_of_istio(&self, name: &str) -> AffectedSubjects {
        let mut affected: AffectedSubjects = self
            .targeted_by
            .get(&kind_key(ObjectKind::Istio, name))
            .cloned()
            .collect();
        let wants = |other: &&Istio| possible_tags(other).iter().any(|tag| may_be_active(tag, name));
        affected.extend(
            self.istios
                .iter()
                .filter(wants)
                .map(|other| Subject::istio(other.name())),
        );
        let Some(istio) = self.istios.get(name) else {
            return affected;
        };
        for tag in possible_tags(istio) {
            affected.extend(self.istios_by_tag.get(tag.as_str()).map(Subject::istio));
        }
        affected
    }

    /// Returns the dependents of a revision: Istios that own it or whose active revision may have its name,
    /// objects that refer to the revision or to these Istios, tags that point to it, the tag of the same
    /// name, and Istios that request a tag of this name.
    pub(super) fn dependents_of_revision(&self, name: &str) -> AffectedSubjects {
        let mut affected: AffectedSubjects = self
            .targeted_by
            .get(&kind_key(ObjectKind::IstioRevision, name))
            .cloned()
            .collect();
        affected.extend(self.tags.get(name).map(|_| Subject::tag(name)));
        affected.extend(self.references.tags_targeting(name).map(Subject::tag));
        affected.extend(self.istios_by_tag.get(name).map(Subject::istio));
        let named = self
            .istios
            .iter()
            .filter(|istio| may_be_active(name, istio.name()));
        for istio in named {
            affected.extend(self.istio_and_referrers(istio.name()));
        }
        let Some(revision) = self.revisions.get(name) else {
            return affected;
        };
        for owner in &revision.metadata.owner_references {
            if owner.kind == ObjectKind::Istio.name() {
                affected.extend(self.istio_and_referrers(&owner.name));
            }
        }
        // Whether an Istio has the implicit tag depends on its revisions.
        affected.extend(
            self.istios_by_tag
                .get(names::DEFAULT_REVISION)
                .map(Subject::istio),
        );
        let injector = names::injector(revision.spec.revision(), &revision.spec.namespace);
        if revision.spec.is_remote() && self.webhooks.contains_key(&injector) {
            affected.insert(Subject::Webhook(injector));
        }
        affected
    }

    /// Returns an Istio and the objects that refer to it.
    pub(super) fn istio_and_referrers(&self, istio: &str) -> AffectedSubjects {
        let key = kind_key(ObjectKind::Istio, istio);
        let targeted_by = self.targeted_by.get(&key).cloned();
        targeted_by.chain([Subject::istio(istio)]).collect()
    }

    /// Returns the dependents of a tag: its owner, Istios that request it, and the revision of the same name.
    pub(super) fn dependents_of_tag(&self, name: &str) -> AffectedSubjects {
        let mut affected: AffectedSubjects = self.istios_by_tag.get(name).map(Subject::istio).collect();
        affected.extend(self.revisions.get(name).map(|_| Subject::revision(name)));
        affected.extend(self.tags.get(name).and_then(|tag| controller(&tag.metadata)));
        affected
    }

    /// Returns the owner of a release by its UID. The search is linear, because there are few owners and
    /// releases change rarely.
    pub(super) fn release_owner(&self, uid: &str) -> Option<Subject> {
        fn find<S: Kind>(objects: &Objects<S>, uid: &str) -> Option<Subject> {
            let found = objects.iter().find(|object| object.metadata.uid == uid)?;
            Some(Subject::Object(S::KIND, found.name().to_owned()))
        }
        find(&self.revisions, uid)
            .or_else(|| find(&self.tags, uid))
            .or_else(|| find(&self.cnis, uid))
            .or_else(|| find(&self.ztunnels, uid))
    }

    pub(super) fn all_revisions(&self) -> AffectedSubjects {
        self.revisions
            .iter()
            .map(|revision| Subject::revision(revision.name()))
            .collect()
    }
}

/// Whether an Istio's active revision may have this name: the name of the Istio, with or without a version.
pub(crate) fn may_be_active(revision: &str, istio: &str) -> bool {
    let rest = revision.strip_prefix(istio);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns the controlling owner of an object, if it is one of our kinds.
pub(super) fn controller(metadata: &ObjectMeta) -> Option<Subject> {
    let owner = metadata.controller()?;
    let ours = owner.api_version == names::API_VERSION;
    let kind = ObjectKind::ALL
        .into_iter()
        .find(|kind| ours && kind.name() == owner.kind)?;
    Some(Subject::Object(kind, owner.name.clone()))
}
