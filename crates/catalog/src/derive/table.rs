//! Tables of the derivations: source directories of charts, edits of each flavour with their reasons, and
//! texts that must not remain.

use crate::derive::edit::{Applies, Edit, Op, Text};

/// A directory of the source module and its location in the catalog.
#[derive(Debug)]
pub(crate) struct Place {
    /// Directory in the source module, under `manifests/`.
    pub(crate) from: &'static str,
    /// Directory in a flavour.
    pub(crate) to: &'static str,
}

/// Directories to copy from the source module. Each must exist.
pub(crate) const PLACES: &[Place] = &[
    Place {
        from: "charts/base",
        to: "charts/base",
    },
    Place {
        from: "charts/istio-control/istio-discovery",
        to: "charts/istiod",
    },
    Place {
        from: "charts/istio-cni",
        to: "charts/cni",
    },
    Place {
        from: "charts/ztunnel",
        to: "charts/ztunnel",
    },
    Place {
        from: "charts/gateway",
        to: "charts/gateway",
    },
    Place {
        from: "charts/gateways/istio-ingress",
        to: "charts/istio-ingress",
    },
    Place {
        from: "charts/gateways/istio-egress",
        to: "charts/istio-egress",
    },
    Place {
        from: "charts/default",
        to: "charts/default",
    },
    Place {
        from: "profiles",
        to: "profiles",
    },
];

/// Add-ons of a release, below `samples/`. Optional in the source.
pub(crate) const ADDONS: &[&str] = &[
    "addons/extras/prometheus-operator.yaml",
    "addons/extras/zipkin.yaml",
    "addons/grafana.yaml",
    "addons/jaeger.yaml",
    "addons/kiali.yaml",
    "addons/prometheus.yaml",
];

/// Directories of a release that the operator flavour contains.
pub(crate) const OPERATOR_DIRECTORIES: &[&str] = &[
    "charts/base",
    "charts/istiod",
    "charts/cni",
    "charts/ztunnel",
    "charts/gateway",
    "profiles",
];

const ALL_CHARTS: &[&str] = &[
    "charts/base",
    "charts/istiod",
    "charts/cni",
    "charts/ztunnel",
    "charts/gateway",
    "charts/istio-ingress",
    "charts/istio-egress",
    "charts/default",
];

const RELEASE_HUB: &str = "registry.istio.io/release";
const BUILD_HUBS: &[&str] = &["gcr.io/istio-testing", "registry.istio.io/testing"];
const ANY_RELEASE_HUB: &[&str] = &["docker.io/istio", "gcr.io/istio-release", RELEASE_HUB];
const GLOBAL_HUB: &[&str] = &["_internal_defaults_do_not_set", "global", "hub"];
const GLOBAL_TAG: &[&str] = &["_internal_defaults_do_not_set", "global", "tag"];
const ZTUNNEL_HUB: &[&str] = &["_internal_defaults_do_not_set", "hub"];
const ZTUNNEL_TAG: &[&str] = &["_internal_defaults_do_not_set", "tag"];
const WITH_GLOBAL_IMAGE: &[&str] = &[
    "charts/istiod",
    "charts/cni",
    "charts/istio-ingress",
    "charts/istio-egress",
];

const UNSTAMPED: &str =
    "charts in the source tree have a placeholder version; released charts have the version of the release";
const BUILD_IMAGES: &str = "charts in the source tree refer to development images; only snapshots keep them, because they have no released images";

/// Edits from the source module to a release.
pub(crate) const INSTALLER: &[Edit] = &[
    Edit {
        id: "chart-version",
        reason: UNSTAMPED,
        within: ALL_CHARTS,
        file: "Chart.yaml",
        applies: Applies::ALWAYS,
        op: Op::SetScalar {
            path: &["version"],
            from: &["1.0.0"],
            to: Text::Version,
        },
    },
    Edit {
        id: "chart-app-version",
        reason: UNSTAMPED,
        within: ALL_CHARTS,
        file: "Chart.yaml",
        applies: Applies::ALWAYS,
        op: Op::SetScalar {
            path: &["appVersion"],
            from: &["1.0.0"],
            to: Text::Version,
        },
    },
    Edit {
        id: "release-hub",
        reason: BUILD_IMAGES,
        within: WITH_GLOBAL_IMAGE,
        file: "values.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: GLOBAL_HUB,
            from: BUILD_HUBS,
            to: Text::Fixed(RELEASE_HUB),
        },
    },
    Edit {
        id: "release-tag",
        reason: BUILD_IMAGES,
        within: WITH_GLOBAL_IMAGE,
        file: "values.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: GLOBAL_TAG,
            from: &["latest"],
            to: Text::Version,
        },
    },
    Edit {
        id: "release-hub-ztunnel",
        reason: BUILD_IMAGES,
        within: &["charts/ztunnel"],
        file: "values.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: ZTUNNEL_HUB,
            from: BUILD_HUBS,
            to: Text::Fixed(RELEASE_HUB),
        },
    },
    Edit {
        id: "release-tag-ztunnel",
        reason: BUILD_IMAGES,
        within: &["charts/ztunnel"],
        file: "values.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: ZTUNNEL_TAG,
            from: &["latest"],
            to: Text::Version,
        },
    },
    Edit {
        id: "release-hub-profile",
        reason: BUILD_IMAGES,
        within: &["profiles"],
        file: "default.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: &["spec", "hub"],
            from: BUILD_HUBS,
            to: Text::Fixed(RELEASE_HUB),
        },
    },
    Edit {
        id: "release-tag-profile",
        reason: BUILD_IMAGES,
        within: &["profiles"],
        file: "default.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: &["spec", "tag"],
            from: &["latest"],
            to: Text::Version,
        },
    },
];

const NO_PUBLISHED_PROFILES: &str =
    "published charts contain no profiles, so the profiles of the nearest version are used";

/// Edits of profiles that are reused for a version whose published charts contain none.
pub(crate) const REUSED_PROFILES: &[Edit] = &[
    Edit {
        id: "reused-profile-hub",
        reason: NO_PUBLISHED_PROFILES,
        within: &["profiles"],
        file: "default.yaml",
        applies: Applies::ALWAYS,
        op: Op::SetScalar {
            path: &["spec", "hub"],
            from: &[],
            to: Text::Fixed(RELEASE_HUB),
        },
    },
    Edit {
        id: "reused-profile-tag",
        reason: NO_PUBLISHED_PROFILES,
        within: &["profiles"],
        file: "default.yaml",
        applies: Applies::ALWAYS,
        op: Op::SetScalar {
            path: &["spec", "tag"],
            from: &[],
            to: Text::Version,
        },
    },
];

const OWNER: &str = "install.operator.istio.io/owning-resource";
const OTHER_OWNER: &str =
    "the label refers to an IstioOperator as the owner, but the owner is an IstioRevision";
const NO_CRDS: &str = "CRDs are installed together with the operator, which never changes them";
const OTHER_API: &str = "the operator reads profiles of kind Istio and uses only their values";

const SCC_RULE: &str = "- apiGroups: [\"security.openshift.io\"]
  resources: [\"securitycontextconstraints\"]
  resourceNames: [\"privileged\"]
  verbs: [\"use\"]
";

/// Edits from a release to the charts of the Sail Operator.
pub(crate) const OPERATOR: &[Edit] = &[
    Edit {
        id: "owner-label",
        reason: OTHER_OWNER,
        within: &["charts/istiod", "charts/cni", "charts/ztunnel"],
        file: "templates/*",
        applies: Applies::ALWAYS,
        op: Op::RemoveLines(OWNER),
    },
    Edit {
        id: "owner-label-gateway",
        reason: OTHER_OWNER,
        within: &["charts/gateway"],
        file: "templates/*",
        applies: Applies::since(1, 28),
        op: Op::RemoveLines(OWNER),
    },
    Edit {
        id: "crd-template",
        reason: NO_CRDS,
        within: &["charts/base"],
        file: "templates/crds.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveFile,
    },
    Edit {
        id: "crd-file",
        reason: NO_CRDS,
        within: &["charts/base"],
        file: "files/crd-all.gen.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveFile,
    },
    Edit {
        id: "scc-rule",
        reason: "the CNI agent requires the privileged SCC on OpenShift, regardless of the platform in the values",
        within: &["charts/cni"],
        file: "templates/clusterrole.yaml",
        applies: Applies::ALWAYS,
        op: Op::InsertAfter {
            anchor: "rules:",
            text: SCC_RULE,
        },
    },
    Edit {
        id: "operator-hub",
        reason: "older releases use other registries; the operator installs all versions from one registry",
        within: &["charts/istiod", "charts/cni"],
        file: "values.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: GLOBAL_HUB,
            from: ANY_RELEASE_HUB,
            to: Text::Fixed(RELEASE_HUB),
        },
    },
    Edit {
        id: "operator-hub-ztunnel",
        reason: "older releases use other registries; the operator installs all versions from one registry",
        within: &["charts/ztunnel"],
        file: "values.yaml",
        applies: Applies::RELEASES,
        op: Op::SetScalar {
            path: ZTUNNEL_HUB,
            from: ANY_RELEASE_HUB,
            to: Text::Fixed(RELEASE_HUB),
        },
    },
    Edit {
        id: "profile-minimal",
        reason: "the profile is empty without components",
        within: &["profiles"],
        file: "minimal.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveFile,
    },
    Edit {
        id: "profile-api-version",
        reason: OTHER_API,
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::SetScalar {
            path: &["apiVersion"],
            from: &["install.istio.io/v1alpha1"],
            to: Text::Fixed("sailoperator.io/v1"),
        },
    },
    Edit {
        id: "profile-kind",
        reason: OTHER_API,
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::SetScalar {
            path: &["kind"],
            from: &["IstioOperator"],
            to: Text::Fixed("Istio"),
        },
    },
    Edit {
        id: "profile-metadata",
        reason: OTHER_API,
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveKey(&["metadata"]),
    },
    Edit {
        id: "profile-hub",
        reason: OTHER_API,
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveKey(&["spec", "hub"]),
    },
    Edit {
        id: "profile-tag",
        reason: OTHER_API,
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveKey(&["spec", "tag"]),
    },
    Edit {
        id: "profile-components",
        reason: "the operator has a resource for each component",
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveKey(&["spec", "components"]),
    },
    Edit {
        id: "profile-gateways",
        reason: "the operator installs no gateways",
        within: &["profiles"],
        file: "*.yaml",
        applies: Applies::ALWAYS,
        op: Op::RemoveKey(&["spec", "values", "gateways"]),
    },
];

/// Files of a synthesized chart that are copied from another chart.
#[derive(Debug)]
pub(crate) struct Part {
    /// Path in the source chart: a name, or a pattern with one `*`.
    pub(crate) file: &'static str,
    /// Versions that have the file.
    pub(crate) applies: Applies,
}

/// Directory that the `revisiontags` chart is copied from, after the edits.
pub(crate) const TAGS_SOURCE: &str = "charts/istiod";
/// Directory of the chart that the operator renders for an `IstioRevisionTag`.
pub(crate) const TAGS_CHART: &str = "charts/revisiontags";

/// Files of istiod that the `revisiontags` chart consists of.
pub(crate) const TAGS_PARTS: &[Part] = &[
    Part {
        file: "templates/revision-tags.yaml",
        applies: Applies::until(1, 27),
    },
    Part {
        file: "templates/revision-tags-mwc.yaml",
        applies: Applies::since(1, 28),
    },
    Part {
        file: "templates/revision-tags-svc.yaml",
        applies: Applies::since(1, 28),
    },
    Part {
        file: "templates/zzz_profile.yaml",
        applies: Applies::ALWAYS,
    },
    Part {
        file: "files/profile-*.yaml",
        applies: Applies::ALWAYS,
    },
    Part {
        file: "values.yaml",
        applies: Applies::ALWAYS,
    },
];

/// `Chart.yaml` of `revisiontags`, up to the value of `appVersion`.
pub(crate) const TAGS_CHART_YAML: &str = "apiVersion: v2
name: revisiontags
description: Helm chart for istio revision tags
version: 0.1.0
appVersion: ";

/// A text that must not remain after all edits. If present, a chart was derived only partially.
#[derive(Debug)]
pub(crate) struct Leftover {
    /// File name, or a pattern with one `*`.
    pub(crate) file: &'static str,
    /// Text that must not remain.
    pub(crate) needle: &'static str,
    /// Versions that must not contain the text.
    pub(crate) applies: Applies,
    /// Reason why the text must be removed.
    pub(crate) reason: &'static str,
}

/// Leftovers that the installer flavour must not contain.
pub(crate) const INSTALLER_LEFTOVERS: &[Leftover] = &[
    Leftover {
        file: "Chart.yaml",
        needle: "ersion: 1.0.0",
        applies: Applies::ALWAYS,
        reason: UNSTAMPED,
    },
    Leftover {
        file: "*.yaml",
        needle: "hub: gcr.io/istio-testing",
        applies: Applies::RELEASES,
        reason: BUILD_IMAGES,
    },
    Leftover {
        file: "*.yaml",
        needle: "hub: registry.istio.io/testing",
        applies: Applies::RELEASES,
        reason: BUILD_IMAGES,
    },
    Leftover {
        file: "*.yaml",
        needle: "tag: latest",
        applies: Applies::RELEASES,
        reason: BUILD_IMAGES,
    },
];

/// Leftovers that the operator flavour must not contain.
pub(crate) const OPERATOR_LEFTOVERS: &[Leftover] = &[
    Leftover {
        file: "*",
        needle: OWNER,
        applies: Applies::ALWAYS,
        reason: OTHER_OWNER,
    },
    Leftover {
        file: "*",
        needle: "kind: CustomResourceDefinition",
        applies: Applies::ALWAYS,
        reason: NO_CRDS,
    },
    Leftover {
        file: "*",
        needle: "kind: IstioOperator",
        applies: Applies::ALWAYS,
        reason: OTHER_API,
    },
];
