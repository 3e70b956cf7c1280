//! The `ClusterServiceVersion`: the installed objects, their permissions, and the presentation in a catalog.

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use super::descriptors::owned;
use super::document::documents;
use super::{PACKAGE, VERSION, name};
use crate::dist::image_reference;

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Samples that a console offers.
const SAMPLES: [&str; 4] = ["istio", "tag", "cni", "ztunnel"];

const SUMMARY: &str =
    "Operates Istio: installs and upgrades control planes and migrates workloads to new revisions";

/// Inputs of the `ClusterServiceVersion`.
pub(super) struct Sources<'a> {
    /// Objects of the operator's chart.
    pub(super) objects: &'a [Value],
    /// Our definitions.
    pub(super) own: &'a [Value],
    /// Istio's definitions.
    pub(super) istio: &'a [Value],
    /// Versions and aliases that can be installed.
    pub(super) installable: &'a [String],
}

/// Returns the `ClusterServiceVersion`.
pub(super) fn service_version(sources: &Sources) -> anyhow::Result<Value> {
    let definitions = sources.own.iter().chain(sources.istio);
    let owned: Vec<Value> = definitions
        .flat_map(|definition| owned(definition, sources.installable))
        .collect();
    let internal: Vec<&str> = sources.istio.iter().map(name).collect();
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{PACKAGE}.v{VERSION}"),
            "namespace": super::NAMESPACE,
            "annotations": {
                "alm-examples": serde_json::to_string_pretty(&samples()?)?,
                "capabilities": "Seamless Upgrades",
                "categories": "Integration & Delivery, Networking, Security",
                "containerImage": image_reference(),
                "createdAt": "2026-01-01T00:00:00Z",
                "description": SUMMARY,
                "operators.operatorframework.io/internal-objects": serde_json::to_string(&internal)?,
                "repository": REPOSITORY,
                "support": "Community based",
            },
            "labels": {"operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported"},
        },
        "spec": {
            "displayName": "Mainstay",
            "description": description(sources.installable),
            "version": VERSION,
            "minKubeVersion": "1.29.0",
            "maturity": "alpha",
            "provider": {"name": "The Mainstay authors", "url": REPOSITORY},
            "maintainers": [{"name": "The Mainstay authors", "email": "mainstay-mesh@users.noreply.github.com"}],
            "keywords": ["istio", "service mesh", "operator"],
            "links": [{"name": "Source", "url": REPOSITORY}],
            "icon": [{"base64data": STANDARD.encode(ICON), "mediatype": "image/svg+xml"}],
            "installModes": install_modes(),
            "customresourcedefinitions": {"owned": owned},
            "install": {"strategy": "deployment", "spec": install(sources.objects)?},
        },
    }))
}

/// The logo: a mast with two stays.
const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path d="M32 6v52M32 8 10 56h44z" fill="none" stroke="#1d5a8a" stroke-width="5" stroke-linejoin="round"/></svg>"##;

fn description(installable: &[String]) -> String {
    let line = |name: &String| format!("- {name}\n");
    let versions: String = installable.iter().map(line).collect();
    format!(
        "{SUMMARY}. Accepts the Sail Operator's resources unchanged.\n\nThis version of the operator contains the charts of these Istio \
         versions and aliases:\n\n{versions}\nSee {REPOSITORY} for documentation."
    )
}

/// Returns the install modes: the operator watches all namespaces.
fn install_modes() -> Value {
    let mode = |kind: &str| json!({"type": kind, "supported": kind == "AllNamespaces"});
    [
        "OwnNamespace",
        "SingleNamespace",
        "MultiNamespace",
        "AllNamespaces",
    ]
    .map(mode)
    .into()
}

fn samples() -> anyhow::Result<Vec<Value>> {
    let mut samples = Vec::new();
    for sample in SAMPLES {
        let path = repository_root().join(format!("deploy/samples/{sample}.yaml"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        samples.extend(documents(&text)?.pop());
    }
    Ok(samples)
}

/// Returns deployments and permissions of the chart.
fn install(objects: &[Value]) -> anyhow::Result<Value> {
    let of_kind = |kind: &str| {
        let objects = objects.iter().filter(|object| object["kind"] == kind);
        objects
            .filter(|object| !super::is_separate(object))
            .collect::<Vec<_>>()
    };
    let deployment = of_kind("Deployment");
    let deployment = deployment.first().context("the chart has no Deployment")?;
    let account = deployment["spec"]["template"]["spec"]["serviceAccountName"].clone();
    let rules = |kind: &str| {
        let lists = of_kind(kind)
            .into_iter()
            .filter_map(|role| role["rules"].as_array());
        lists.flatten().cloned().collect::<Vec<Value>>()
    };
    let (cluster, namespaced) = (rules("ClusterRole"), rules("Role"));
    ensure!(
        !cluster.is_empty() && !namespaced.is_empty(),
        "the chart has no roles"
    );
    Ok(json!({
        "deployments": [{
            "name": name(deployment),
            "label": deployment["metadata"]["labels"],
            "spec": deployment["spec"],
        }],
        "clusterPermissions": [{"serviceAccountName": account, "rules": cluster}],
        "permissions": [{"serviceAccountName": account, "rules": namespaced}],
    }))
}
