//! Computes chart values from the user's values in a sequence of steps, one per module.
//!
//! First, empty values are removed and quantities are written in canonical form. The next steps for a
//! control plane are digests, vendor defaults, profiles and platform, known keys, TLS, FIPS and overrides;
//! for `IstioCNI` digests, vendor defaults, profiles and platform; for `ZTunnel` digests, FIPS, profiles
//! and platform, and a copy of the values below `ztunnel` to the top level.

mod digests;
mod empty;
mod fips;
mod known;
mod merge;
mod overrides;
mod profiles;
mod quantities;
mod tls;
mod vendor;

use mainstay_api::{ObjectKind, RevisionSpec, Values};
use mainstay_catalog::Version;

use crate::{Library, Settings, Snapshot, TlsProfile, ValuesError};
use merge::merge;

/// Inputs of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'a> {
    /// Settings of the cluster.
    pub settings: &'a Settings,
    /// Versions and profiles.
    pub library: &'a Library,
    /// TLS profile to apply.
    pub tls: Option<&'a TlsProfile>,
}

/// A control plane.
#[derive(Clone, Copy, Debug)]
pub struct ControlPlane<'a> {
    /// Name of the revision.
    pub revision: &'a str,
    /// Namespace of the revision.
    pub namespace: &'a str,
    /// The user's profile; empty if unset.
    pub profile: &'a str,
    /// The user's values.
    pub values: Option<&'a Values>,
}

const ZTUNNEL_PROFILE: &str = "ambient";

impl<'a> Pipeline<'a> {
    /// Creates a pipeline with the settings of a snapshot.
    #[must_use]
    pub fn for_snapshot(snapshot: &'a Snapshot) -> Self {
        Self::new(&snapshot.settings, &snapshot.library)
    }

    /// Creates a pipeline.
    #[must_use]
    pub fn new(settings: &'a Settings, library: &'a Library) -> Self {
        Self {
            settings,
            library,
            tls: settings.tls.as_ref(),
        }
    }

    /// Returns the values of a revision.
    pub fn revision_values(&self, plane: ControlPlane<'_>, version: &Version) -> Result<Values, ValuesError> {
        let name = version.name();
        let mut user = user_values(plane.values);
        digests::apply_istio(&mut user, self.settings.images.get(&name));
        let user = vendor::apply(self.settings, &name, ObjectKind::Istio, user)?;
        let mut values = self.with_profiles(&name, plane.profile, &user)?;
        known::remove_unknown(&mut values);
        empty::remove_empty(&mut values);
        tls::apply(self.tls, version, &mut values);
        fips::apply_istio(self.settings.fips, &mut values);
        overrides::apply(plane.revision, plane.namespace, &mut values);
        Ok(values)
    }

    /// Returns the values of `IstioCNI`.
    pub fn cni_values(
        &self,
        user: Option<&Values>,
        profile: &str,
        version: &Version,
    ) -> Result<Values, ValuesError> {
        let name = version.name();
        let mut user = user_values(user);
        digests::apply_cni(&mut user, self.settings.images.get(&name));
        let user = vendor::apply(self.settings, &name, ObjectKind::IstioCni, user)?;
        self.with_profiles(&name, profile, &user)
    }

    /// Returns the values of `ZTunnel`. The user's values override those of its control plane, if it has
    /// one.
    pub fn ztunnel_values(
        &self,
        user: Option<&Values>,
        plane: Option<&RevisionSpec>,
        version: &Version,
    ) -> Result<Values, ValuesError> {
        let name = version.name();
        let mut user = user_values(user);
        digests::apply_ztunnel(&mut user, self.settings.images.get(&name));
        fips::apply_ztunnel(self.settings.fips, version, &mut user);
        let base = plane
            .and_then(|plane| plane.values.as_ref())
            .map(inherited_values)
            .unwrap_or_default();
        let mut values = self.with_profiles(&name, ZTUNNEL_PROFILE, &base)?;
        merge(&mut values, &user);
        // The chart reads its settings at the top level. The chart of `IstioCNI` copies them to the top
        // level itself.
        if let Some(own) = user.get("ztunnel").and_then(|own| own.as_object()) {
            merge(&mut values, own);
        }
        Ok(values)
    }

    fn with_profiles(&self, version: &str, profile: &str, user: &Values) -> Result<Values, ValuesError> {
        profiles::apply(self.library, version, self.settings.platform, profile, user)
    }
}

/// Returns the user's values without empty ones.
fn user_values(values: Option<&Values>) -> Values {
    let mut user_values = values.cloned().unwrap_or_default();
    empty::remove_empty(&mut user_values);
    quantities::canonicalize(&mut user_values);
    user_values
}

/// Returns the values that `ZTunnel` inherits from its control plane.
fn inherited_values(values: &Values) -> Values {
    let kept = ["meshConfig", "revision", "global"].into_iter();
    let kept = kept.filter_map(|key| {
        Some((
            key.to_owned(),
            values.get(key).filter(|value| !value.is_null())?.clone(),
        ))
    });
    kept.collect()
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
