//! The resources that an adoption would create for the control planes that no operator manages, without
//! access to their live objects. Pure.

use mainstay_api::{
    Istio, IstioRevision, IstioRevisionTag, ObjectMeta, OwnerReference, RevisionSpec, TagStatus,
};
use mainstay_catalog::Catalog;
use mainstay_mesh::{Library, Observation, Settings};
use serde_json::Value;

use crate::AdoptError;
use crate::derive::{Derived, derive};
use crate::found::{Component, ComponentKind, Observed, components};
use crate::releases::{Environment, Owners, PlaceholderOwners};

/// A control plane that no operator manages, as if it were adopted.
#[derive(Clone, Debug)]
pub struct AssumedAdoption {
    /// The control plane.
    pub plane: Component,
    derived: Derived,
}

/// Returns the control planes that no operator manages and whose charts are available, as if they were
/// adopted.
#[must_use]
pub fn assume_adoptions(observed: &Observed, catalog: &Catalog) -> Vec<AssumedAdoption> {
    let planes = components(observed, catalog)
        .into_iter()
        .filter(is_unmanaged_plane);
    let assumed = planes.filter_map(|plane| {
        let mut versions = plane.versions.iter();
        let version = versions.find_map(|name| catalog.resolve(name).ok())?;
        let derived = derive(&plane, &version.name())?.derived;
        Some(AssumedAdoption { plane, derived })
    });
    assumed.collect()
}

fn is_unmanaged_plane(component: &Component) -> bool {
    component.kind == ComponentKind::Istiod && !component.is_managed()
}

impl AssumedAdoption {
    /// Returns a description of the control plane and its installer.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}, installed by {}", self.plane.describe(), self.plane.installer)
    }

    /// Returns the resources as JSON documents.
    #[must_use]
    pub fn documents(&self) -> Vec<Value> {
        self.derived.documents()
    }

    /// Returns the observations of the resources after the adoption, with the revision that the operator
    /// would create.
    pub fn observations(
        &self,
        settings: &Settings,
        library: &Library,
    ) -> Result<Vec<Observation>, AdoptError> {
        let Derived::Istio(istio, tags) = &self.derived else {
            return Ok(Vec::new());
        };
        let values = Environment { settings, library }.revision_values(&self.derived)?;
        let mut istio = Istio {
            metadata: metadata("Istio", istio.name(), None),
            ..(**istio).clone()
        };
        istio.status.active_revision_name = istio.metadata.name.clone();
        let revision = IstioRevision {
            metadata: metadata("IstioRevision", istio.name(), Some(istio.owner_reference())),
            spec: RevisionSpec {
                version: istio.spec.version.clone(),
                namespace: istio.spec.namespace.clone(),
                values: Some(values),
            },
            ..IstioRevision::default()
        };
        let tags = tags.iter().map(|tag| Observation::Tag(observed_tag(tag, &istio)));
        let planes = [Observation::Istio(istio.clone()), Observation::Revision(revision)];
        Ok(planes.into_iter().chain(tags).collect())
    }
}

fn observed_tag(tag: &IstioRevisionTag, istio: &Istio) -> IstioRevisionTag {
    IstioRevisionTag {
        metadata: metadata("IstioRevisionTag", tag.name(), None),
        status: TagStatus {
            istio_revision: istio.name().to_owned(),
            istiod_namespace: istio.spec.namespace.clone(),
            ..TagStatus::default()
        },
        ..tag.clone()
    }
}

fn metadata(kind: &'static str, name: &str, owner: Option<OwnerReference>) -> ObjectMeta {
    ObjectMeta {
        name: name.to_owned(),
        uid: PlaceholderOwners.owner(kind, name).uid,
        generation: 1,
        owner_references: owner.into_iter().collect(),
        ..ObjectMeta::default()
    }
}
