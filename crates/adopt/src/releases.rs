//! Computes the releases that the operator would install for derived resources.

use mainstay_api::{OwnerReference, Values, names};
use mainstay_catalog::Version;
use mainstay_mesh::plan::{Release, ReleaseKey};
use mainstay_mesh::values::{ControlPlane, Pipeline};
use mainstay_mesh::{Library, Resolution, Settings};

use crate::AdoptError;
use crate::derive::Derived;

/// Source of owner references.
pub(crate) trait Owners {
    /// Returns the owner reference of a resource.
    fn owner(&self, kind: &'static str, name: &str) -> OwnerReference;
}

/// Owner references with placeholder UIDs, used before the resources exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceholderOwners;

impl Owners for PlaceholderOwners {
    fn owner(&self, kind: &'static str, name: &str) -> OwnerReference {
        OwnerReference {
            api_version: names::API_VERSION.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: format!("{kind}-{name}"),
            controller: true,
            block_owner_deletion: true,
        }
    }
}

/// Inputs for computing releases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment<'a> {
    /// Settings of the operator.
    pub(crate) settings: &'a Settings,
    /// Versions and profiles.
    pub(crate) library: &'a Library,
}

impl Environment<'_> {
    /// Returns the values of a control plane's revision.
    pub(crate) fn revision_values(&self, derived: &Derived) -> Result<Values, AdoptError> {
        let Derived::Istio(istio, _) = derived else {
            return Ok(Values::new());
        };
        let plane = ControlPlane {
            revision: istio.name(),
            namespace: &istio.spec.namespace,
            profile: &istio.spec.profile,
            values: istio.spec.values.as_ref(),
        };
        let version = self.version(&istio.spec.version)?;
        let values = Pipeline::new(self.settings, self.library).revision_values(plane, version);
        values.map_err(|source| AdoptError::Values {
            component: format!("Istio {}", istio.name()),
            source: Box::new(source),
        })
    }

    /// Returns the releases of derived resources.
    pub(crate) fn releases(
        &self,
        derived: &Derived,
        owners: &dyn Owners,
    ) -> Result<Vec<Release>, AdoptError> {
        let pipeline = Pipeline::new(self.settings, self.library);
        let failed = |component: &str| {
            let component = component.to_owned();
            move |source| AdoptError::Values {
                component,
                source: Box::new(source),
            }
        };
        match derived {
            Derived::Istio(..) => self.plane_releases(derived, owners),
            Derived::Cni(cni) => {
                let (spec, owner) = (&cni.spec, owners.owner("IstioCNI", cni.name()));
                let version = self.version(&spec.version)?;
                let values = pipeline.cni_values(spec.values.as_ref(), &spec.profile, version);
                let values = values.map_err(failed("IstioCNI"))?;
                let key = release_key(&owner, &spec.namespace, names::CNI_RELEASE.to_owned());
                Ok(vec![Release {
                    key,
                    chart: names::CNI_CHART,
                    version: spec.version.clone(),
                    values,
                    owner,
                }])
            }
            Derived::ZTunnel(ztunnel) => {
                let (spec, owner) = (&ztunnel.spec, owners.owner("ZTunnel", ztunnel.name()));
                let version = self.version(&spec.version)?;
                let values = pipeline.ztunnel_values(spec.values.as_ref(), None, version);
                let values = values.map_err(failed("ZTunnel"))?;
                let key = release_key(&owner, &spec.namespace, names::ZTUNNEL_RELEASE.to_owned());
                Ok(vec![Release {
                    key,
                    chart: names::ZTUNNEL_CHART,
                    version: spec.version.clone(),
                    values,
                    owner,
                }])
            }
        }
    }

    fn plane_releases(&self, derived: &Derived, owners: &dyn Owners) -> Result<Vec<Release>, AdoptError> {
        let Derived::Istio(istio, tags) = derived else {
            return Ok(Vec::new());
        };
        let (name, spec) = (istio.name(), &istio.spec);
        let values = self.revision_values(derived)?;
        let make = |owner: &OwnerReference, chart, namespace: &str, values| Release {
            key: release_key(owner, namespace, names::release(&owner.name, chart)),
            chart,
            version: spec.version.clone(),
            values,
            owner: owner.clone(),
        };
        let operator = self.settings.operator_namespace.as_str();
        let owner = owners.owner("IstioRevision", name);
        let mut releases = vec![make(&owner, names::ISTIOD_CHART, &spec.namespace, values.clone())];
        if name == names::DEFAULT_REVISION {
            releases.push(make(&owner, names::BASE_CHART, operator, values.clone()));
        }
        for tag in tags {
            let owner = owners.owner("IstioRevisionTag", tag.name());
            let mut values = values.clone();
            values.insert("revisionTags".into(), vec![tag.name()].into());
            releases.push(make(&owner, names::TAGS_CHART, &spec.namespace, values.clone()));
            if tag.name() == names::DEFAULT_REVISION {
                values.insert("defaultRevision".into(), name.into());
                releases.push(make(&owner, names::BASE_CHART, operator, values));
            }
        }
        Ok(releases)
    }

    fn version(&self, name: &str) -> Result<&Version, AdoptError> {
        match self.library.resolve(name) {
            Some(Resolution::Installable(version)) => Ok(version),
            _ => Err(AdoptError::NoVersion(name.to_owned())),
        }
    }
}

fn release_key(owner: &OwnerReference, namespace: &str, name: String) -> ReleaseKey {
    ReleaseKey {
        owner: owner.uid.clone(),
        namespace: namespace.to_owned(),
        name,
    }
}
