//! Who looks at what: takes a name, gives the subjects whose plan takes something from the object behind it.

use mainstay_api::{Istio, Kind, ObjectKind, ObjectMeta, names};

use super::{AffectedSubjects, Objects, Snapshot, kind_key, requested_tags};
use crate::Subject;

impl Snapshot {
    /// The revision and the tag of each name, where they exist. An Istio that holds on to a tag waits for the tag to be unused.
    pub(super) fn named_subjects(&self, names: Vec<String>) -> AffectedSubjects {
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

    /// Who looks at an Istio: what points to it, the other Istios that want one of its tags, and those that want a tag of a name
    /// it could give to its active revision. It is asked before and after a change, because the tags may change with it.
    pub(super) fn dependents_of_istio(&self, name: &str) -> AffectedSubjects {
        let mut affected: AffectedSubjects = self
            .targeted_by
            .of(&kind_key(ObjectKind::Istio, name))
            .cloned()
            .collect();
        let wants = |other: &&Istio| requested_tags(other).iter().any(|tag| may_be_active(tag, name));
        affected.extend(
            self.istios
                .iter()
                .filter(wants)
                .map(|other| Subject::istio(other.name())),
        );
        let Some(istio) = self.istios.get(name) else {
            return affected;
        };
        for tag in requested_tags(istio) {
            affected.extend(self.claims.of(tag.as_str()).map(Subject::istio));
        }
        affected
    }

    /// Who looks at a revision: the Istios that own it or may take it for their active one, what points to it or to them or stays on
    /// it, the tag that shares its name, and the Istios that want such a tag.
    pub(super) fn dependents_of_revision(&self, name: &str) -> AffectedSubjects {
        let mut affected: AffectedSubjects = self
            .targeted_by
            .of(&kind_key(ObjectKind::IstioRevision, name))
            .cloned()
            .collect();
        affected.extend(self.tags.get(name).map(|_| Subject::tag(name)));
        affected.extend(self.references.tags_targeting(name).map(Subject::tag));
        affected.extend(self.claims.of(name).map(Subject::istio));
        let named = self
            .istios
            .iter()
            .filter(|istio| may_be_active(name, istio.name()));
        for istio in named {
            affected.extend(self.with_pointers(istio.name()));
        }
        let Some(revision) = self.revisions.get(name) else {
            return affected;
        };
        for owner in &revision.metadata.owner_references {
            if owner.kind == ObjectKind::Istio.name() {
                affected.extend(self.with_pointers(&owner.name));
            }
        }
        let injector = names::injector(revision.spec.revision(), &revision.spec.namespace);
        if revision.spec.is_remote() && self.webhooks.contains_key(&injector) {
            affected.insert(Subject::Webhook(injector));
        }
        affected
    }

    /// An Istio, and what points to it.
    pub(super) fn with_pointers(&self, istio: &str) -> AffectedSubjects {
        let key = kind_key(ObjectKind::Istio, istio);
        let targeted_by = self.targeted_by.of(&key).cloned();
        targeted_by.chain([Subject::istio(istio)]).collect()
    }

    /// Who looks at a tag: its owner, the Istios that want it, the revision that shares its name.
    pub(super) fn dependents_of_tag(&self, name: &str) -> AffectedSubjects {
        let mut affected: AffectedSubjects = self.claims.of(name).map(Subject::istio).collect();
        affected.extend(self.revisions.get(name).map(|_| Subject::revision(name)));
        affected.extend(self.tags.get(name).and_then(|tag| controller(&tag.metadata)));
        affected
    }

    /// Releases belong to few objects, and their facts change when we change them: a search is cheap enough.
    pub(super) fn owner_of(&self, uid: &str) -> Option<Subject> {
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

/// Whether a revision has a name an Istio could give to its active one: its own, or its own and a version.
pub(crate) fn may_be_active(revision: &str, istio: &str) -> bool {
    let rest = revision.strip_prefix(istio);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The one of ours that controls an object.
pub(super) fn controller(metadata: &ObjectMeta) -> Option<Subject> {
    let owner = metadata.controller()?;
    let ours = owner.api_version == names::API_VERSION;
    let kind = ObjectKind::ALL
        .into_iter()
        .find(|kind| ours && kind.name() == owner.kind)?;
    Some(Subject::Object(kind, owner.name.clone()))
}
