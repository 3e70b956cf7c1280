//! From the user's values to the chart's: a chain of small steps, each in a file of its own.
//!
//! First, everywhere, what says nothing is dropped. Control plane: digests, vendor defaults, profiles and platform, known keys, TLS,
//! FIPS, overrides. Network plug-in: digests, vendor defaults, profiles and platform. Node proxy: digests, FIPS, profiles and
//! platform, its own values again at the top.

mod digests;
mod fips;
mod known;
mod merge;
mod overrides;
mod profiles;
mod silent;
mod tls;
mod vendor;

use mainstay_api::{ObjectKind, RevisionSpec, Values};
use mainstay_catalog::Version;

use crate::{Library, Settings, Snapshot, TlsProfile, ValuesError};
use merge::merge;

/// The value pipeline: what its steps work with.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'a> {
    /// What holds for the whole cluster.
    pub settings: &'a Settings,
    /// Profiles.
    pub library: &'a Library,
    /// The TLS profile to honour.
    pub tls: Option<&'a TlsProfile>,
}

/// A control plane to be.
#[derive(Clone, Copy, Debug)]
pub struct ControlPlane<'a> {
    /// Its name.
    pub revision: &'a str,
    /// Where it lives.
    pub namespace: &'a str,
    /// The profile the user names, or nothing.
    pub profile: &'a str,
    /// The user's values.
    pub values: Option<&'a Values>,
}

/// The node proxy always starts from this profile.
const ZTUNNEL_PROFILE: &str = "ambient";

impl<'a> Pipeline<'a> {
    /// With what a snapshot holds.
    #[must_use]
    pub fn for_snapshot(snapshot: &'a Snapshot) -> Self {
        Self::new(&snapshot.settings, &snapshot.library)
    }

    /// With these settings and profiles.
    #[must_use]
    pub fn new(settings: &'a Settings, library: &'a Library) -> Self {
        Self {
            settings,
            library,
            tls: settings.tls.as_ref(),
        }
    }

    /// The values of a revision.
    pub fn revision_values(&self, plane: ControlPlane<'_>, version: &Version) -> Result<Values, ValuesError> {
        let name = version.name();
        let mut user = said(plane.values);
        digests::apply_istio(&mut user, self.settings.images.get(&name));
        let user = vendor::apply(self.settings, &name, ObjectKind::Istio, user)?;
        let mut values = self.with_profiles(&name, plane.profile, &user)?;
        known::keep(&mut values);
        silent::drop_silent(&mut values);
        tls::apply(self.tls, version, &mut values);
        fips::apply_istio(self.settings.fips, &mut values);
        overrides::apply(plane.revision, plane.namespace, &mut values);
        Ok(values)
    }

    /// The values of the network plug-in.
    pub fn cni_values(
        &self,
        user: Option<&Values>,
        profile: &str,
        version: &Version,
    ) -> Result<Values, ValuesError> {
        let name = version.name();
        let mut user = said(user);
        digests::apply_cni(&mut user, self.settings.images.get(&name));
        let user = vendor::apply(self.settings, &name, ObjectKind::IstioCni, user)?;
        self.with_profiles(&name, profile, &user)
    }

    /// The values of the node proxy; those of its control plane, if it has one, lie under the user's.
    pub fn ztunnel_values(
        &self,
        user: Option<&Values>,
        plane: Option<&RevisionSpec>,
        version: &Version,
    ) -> Result<Values, ValuesError> {
        let name = version.name();
        let mut user = said(user);
        digests::apply_ztunnel(&mut user, self.settings.images.get(&name));
        fips::apply_ztunnel(self.settings.fips, version, &mut user);
        let base = plane
            .and_then(|plane| plane.values.as_ref())
            .map(inherited)
            .unwrap_or_default();
        let mut values = self.with_profiles(&name, ZTUNNEL_PROFILE, &base)?;
        merge(&mut values, &user);
        // The chart reads its settings at the top; the plug-in's chart moves them there itself.
        if let Some(own) = user.get("ztunnel").and_then(|own| own.as_object()) {
            merge(&mut values, own);
        }
        Ok(values)
    }

    fn with_profiles(&self, version: &str, profile: &str, user: &Values) -> Result<Values, ValuesError> {
        profiles::apply(self.library, version, self.settings.platform, profile, user)
    }
}

/// What the user said.
fn said(values: Option<&Values>) -> Values {
    let mut said = values.cloned().unwrap_or_default();
    silent::drop_silent(&mut said);
    said
}

/// What a node proxy takes over from its control plane.
fn inherited(values: &Values) -> Values {
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
