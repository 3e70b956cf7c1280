//! Tests the values that the profiles of the embedded charts produce for an `Istio`, an `IstioCNI` and a
//! `ZTunnel` without values.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use mainstay_catalog::{Catalog, Flavour};
use mainstay_mesh::values::{ControlPlane, Pipeline};
use mainstay_mesh::{Library, Platform, Resolution, Settings};
use serde_json::{Value, json};

fn library() -> (Catalog, Library) {
    let catalog = Catalog::embedded().unwrap();
    let (library, problems) = Library::from_catalog(&catalog);
    assert!(problems.is_empty(), "{problems:?}");
    (catalog, library)
}

#[test]
fn every_profile_of_every_version_produces_revision_values() {
    let (catalog, library) = library();
    for platform in [Platform::Kubernetes, Platform::OpenShift] {
        let settings = Settings {
            platform,
            ..Settings::default()
        };
        for installable in catalog.installable() {
            for profile in catalog.profiles(&installable.version, Flavour::Operator).unwrap() {
                let plane = ControlPlane {
                    revision: "r",
                    namespace: "istio-system",
                    profile: &profile,
                    values: None,
                };
                let values = Pipeline::new(&settings, &library)
                    .revision_values(plane, &installable.version)
                    .unwrap();
                let mut expected = json!({"global": {"configValidation": true, "istioNamespace": "istio-system"}, "revision": "r"});
                match profile.as_str() {
                    "ambient" | "demo" | "preview" | "remote" | "stable" => {
                        expected["profile"] = profile.as_str().into();
                    }
                    "openshift-ambient" => expected["profile"] = "ambient".into(),
                    _ => {}
                }
                if platform == Platform::OpenShift || profile.starts_with("openshift") {
                    expected["global"]["platform"] = "openshift".into();
                }
                assert_eq!(
                    Value::Object(values),
                    expected,
                    "{} {profile} {platform:?}",
                    installable.version
                );
            }
        }
    }
}

#[test]
fn every_version_produces_cni_and_ztunnel_values() {
    let (catalog, library) = library();
    let settings = Settings::default();
    let pipeline = Pipeline::new(&settings, &library);
    for installable in catalog.installable() {
        let cni = pipeline.cni_values(None, "", &installable.version).unwrap();
        assert_eq!(
            cni["global"]["istioNamespace"], "istio-system",
            "{}",
            installable.version
        );
        let ztunnel = pipeline.ztunnel_values(None, None, &installable.version).unwrap();
        assert_eq!(ztunnel["profile"], "ambient", "{}", installable.version);
    }
}

#[test]
fn version_names_resolve_as_in_the_catalog() {
    let (catalog, library) = library();
    for installable in catalog.installable() {
        for name in installable
            .aliases
            .iter()
            .cloned()
            .chain([installable.version.name()])
        {
            assert_eq!(
                library.resolve(&name),
                Some(&Resolution::Installable(installable.version.clone())),
                "{name}"
            );
        }
    }
    if !catalog.installable().is_empty() {
        assert_eq!(library.resolve("v1.22.5"), Some(&Resolution::EndOfLife));
        assert!(matches!(
            library.resolve("v1.30.3"),
            Some(Resolution::ChartsUnavailable(_))
        ));
    }
}
