//! Names, labels and annotations: a table of what others look for. Each is upstream's, so that either operator finds the other's.

/// API group of all five kinds.
pub const GROUP: &str = "sailoperator.io";
/// Group and version of all five kinds.
pub const API_VERSION: &str = "sailoperator.io/v1";
/// What makes an object wait until what it installed is gone.
pub const FINALIZER: &str = "sailoperator.io/sail-operator";
/// The Lease in the operator's namespace: both operators want the same one, so they never run together.
pub const LEASE: &str = "sail-operator-lock";

/// The revision, and the tag, that `istio-injection: enabled` means.
pub const DEFAULT_REVISION: &str = "default";
/// The only name an `IstioCNI` or a `ZTunnel` may have.
pub const SINGLETON: &str = "default";
/// Where a control plane lives unless told otherwise; its webhooks carry no namespace in their names.
pub const ISTIO_SYSTEM: &str = "istio-system";

/// Label of namespaces and pods, and annotation of injected pods: a revision or a tag.
pub const REVISION_LABEL: &str = "istio.io/rev";
/// Label of namespaces: injection by the default revision.
pub const INJECTION_LABEL: &str = "istio-injection";
/// The value of [`INJECTION_LABEL`] that asks for it.
pub const INJECTION_ENABLED: &str = "enabled";
/// Label of pods: whether to inject.
pub const INJECT_LABEL: &str = "sidecar.istio.io/inject";
/// Label on everything the operator installs.
pub const MANAGED_BY_LABEL: &str = "managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "sail-operator";
/// Annotation: leave this object alone.
pub const IGNORE_ANNOTATION: &str = "sailoperator.io/ignore";

/// Annotation of an injector's webhook configuration: does the remote control plane answer?
pub const PROBE_STATUS: &str = "sailoperator.io/readinessProbe.status";
/// Annotation beside [`PROBE_STATUS`]: why not.
pub const PROBE_REASON: &str = "sailoperator.io/readinessProbe.reason";
/// Annotation by which a user sets how often to ask.
pub const PROBE_PERIOD: &str = "sailoperator.io/readinessProbe.periodSeconds";
/// Annotation by which a user sets how long to wait.
pub const PROBE_TIMEOUT: &str = "sailoperator.io/readinessProbe.timeoutSeconds";

/// Annotation of a workload: never restart it for a migration.
pub const SKIP_MIGRATION: &str = "sailoperator.io/skip-migration";
/// Annotation of a workload: how long it may take to become ready.
pub const READINESS_TIMEOUT: &str = "sailoperator.io/readiness-timeout";
/// Annotation of a workload: lower numbers migrate first; 0 if unset.
pub const MIGRATION_BATCH: &str = "sailoperator.io/migration-batch";
/// Annotation by which a migration remembers on the workload itself what it did to it.
pub const MIGRATION_RECORD: &str = "sailoperator.io/migration";
/// Annotation of a pod template whose change restarts a workload, as `kubectl rollout restart` does it.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Label by which the pods of a Deployment name their template.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Chart of a control plane.
pub const ISTIOD_CHART: &str = "istiod";
/// Chart of what a cluster has once: the default validator.
pub const BASE_CHART: &str = "base";
/// Chart of a tag's webhooks.
pub const TAGS_CHART: &str = "revisiontags";
/// Chart of the network plug-in.
pub const CNI_CHART: &str = "cni";
/// Chart of the node proxy.
pub const ZTUNNEL_CHART: &str = "ztunnel";

/// Release of the network plug-in.
pub const CNI_RELEASE: &str = "istio-cni";
/// Release of the node proxy.
pub const ZTUNNEL_RELEASE: &str = "ztunnel";
/// `DaemonSet` of the network plug-in.
pub const CNI_DAEMONSET: &str = "istio-cni-node";
/// `DaemonSet` of the node proxy.
pub const ZTUNNEL_DAEMONSET: &str = "ztunnel";

/// The release of `chart` for a revision or a tag: `default-istiod`, `prod-revisiontags`.
#[must_use]
pub fn release(owner: &str, chart: &str) -> String {
    format!("{owner}-{chart}")
}

/// The istiod Deployment of a revision, by `values.revision`.
#[must_use]
pub fn istiod(revision: &str) -> String {
    with_suffix("istiod", revision)
}

/// The injector's webhook configuration of a revision, by `values.revision` and the control plane's namespace.
#[must_use]
pub fn injector(revision: &str, namespace: &str) -> String {
    let name = with_suffix("istio-sidecar-injector", revision);
    with_suffix(&name, if namespace == ISTIO_SYSTEM { "" } else { namespace })
}

/// The revision of an Istio that keeps one per version; `version` is the resolved one (`v1.29.1`).
#[must_use]
pub fn versioned_revision(istio: &str, version: &str) -> String {
    format!("{istio}-{}", version.replace('.', "-"))
}

fn with_suffix(name: &str, suffix: &str) -> String {
    if suffix.is_empty() {
        name.to_owned()
    } else {
        format!("{name}-{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_the_charts_name_them() {
        assert_eq!(istiod(""), "istiod");
        assert_eq!(istiod("default-v1-29-1"), "istiod-default-v1-29-1");
        assert_eq!(injector("", "istio-system"), "istio-sidecar-injector");
        assert_eq!(injector("", "mesh"), "istio-sidecar-injector-mesh");
        assert_eq!(
            injector("canary", "istio-system"),
            "istio-sidecar-injector-canary"
        );
        assert_eq!(injector("canary", "mesh"), "istio-sidecar-injector-canary-mesh");
        assert_eq!(release("default", BASE_CHART), "default-base");
        assert_eq!(versioned_revision("default", "v1.29.1"), "default-v1-29-1");
    }
}
