//! Names, labels and annotations. They equal upstream's, so that each operator recognizes the objects of
//! the other.

/// API group of the five mesh kinds.
pub const GROUP: &str = "sailoperator.io";
/// Group and version of the five mesh kinds.
pub const API_VERSION: &str = "sailoperator.io/v1";
/// Finalizer that keeps an object until its releases are uninstalled.
pub const FINALIZER: &str = "sailoperator.io/sail-operator";
/// Lease in the operator's namespace. Upstream uses the same one, so that the two operators never run at
/// the same time.
pub const LEASE: &str = "sail-operator-lock";

/// Revision or tag that `istio-injection: enabled` refers to.
pub const DEFAULT_REVISION: &str = "default";
/// Name that an `IstioCNI` or a `ZTunnel` must have.
pub const SINGLETON: &str = "default";
/// Default namespace of a control plane. Names of its webhook configurations do not contain the namespace.
pub const ISTIO_SYSTEM: &str = "istio-system";

/// Label of namespaces and pods, and annotation of injected pods: name of a revision or tag.
pub const REVISION_LABEL: &str = "istio.io/rev";
/// Label of namespaces: whether the default revision injects.
pub const INJECTION_LABEL: &str = "istio-injection";
/// The value of [`INJECTION_LABEL`] that enables injection.
pub const INJECTION_ENABLED: &str = "enabled";
/// Label of pods: whether the pod is injected.
pub const INJECT_LABEL: &str = "sidecar.istio.io/inject";
/// Label of all objects that the operator installs.
pub const MANAGED_BY_LABEL: &str = "managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "sail-operator";
/// Annotation: the operator does not change the object.
pub const IGNORE_ANNOTATION: &str = "sailoperator.io/ignore";

/// Annotation of a revision: its Istio has the implicit tag `default`, because the operator created the
/// first revision of the Istio.
pub const IMPLICIT_TAG: &str = "sailoperator.io/implicit-default-tag";

/// Annotation of an injector's webhook configuration: whether the remote control plane is ready.
pub const PROBE_STATUS: &str = "sailoperator.io/readinessProbe.status";
/// Annotation of an injector's webhook configuration: reason why [`PROBE_STATUS`] is false.
pub const PROBE_REASON: &str = "sailoperator.io/readinessProbe.reason";
/// Annotation that sets the period of the probe.
pub const PROBE_PERIOD: &str = "sailoperator.io/readinessProbe.periodSeconds";
/// Annotation that sets the timeout of the probe.
pub const PROBE_TIMEOUT: &str = "sailoperator.io/readinessProbe.timeoutSeconds";

/// Annotation of a workload or namespace: its workloads are not migrated.
pub const SKIP_MIGRATION: &str = "sailoperator.io/skip-migration";
/// Annotation of a workload: readiness timeout of the workload.
pub const READINESS_TIMEOUT: &str = "sailoperator.io/readiness-timeout";
/// Annotation of a workload: workloads with lower numbers are migrated first. 0 if unset.
pub const MIGRATION_BATCH: &str = "sailoperator.io/migration-batch";
/// Annotation of a workload: record of its last migration.
pub const MIGRATION_RECORD: &str = "sailoperator.io/migration";
/// Value of [`MIGRATION_RECORD`] that requests a retry.
pub const RETRY_MIGRATION: &str = "retry";
/// Annotation of a pod template that `kubectl rollout restart` sets to restart a workload.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Label of the pods of a Deployment: hash of the pod template.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Chart of a control plane.
pub const ISTIOD_CHART: &str = "istiod";
/// Chart of the default validator, which is installed once per cluster.
pub const BASE_CHART: &str = "base";
/// Chart of a tag's webhooks.
pub const TAGS_CHART: &str = "revisiontags";
/// Chart of Istio CNI.
pub const CNI_CHART: &str = "cni";
/// Chart of ztunnel.
pub const ZTUNNEL_CHART: &str = "ztunnel";

/// Release of Istio CNI.
pub const CNI_RELEASE: &str = "istio-cni";
/// Release of ztunnel.
pub const ZTUNNEL_RELEASE: &str = "ztunnel";
/// `DaemonSet` of Istio CNI.
pub const CNI_DAEMONSET: &str = "istio-cni-node";
/// `DaemonSet` of ztunnel.
pub const ZTUNNEL_DAEMONSET: &str = "ztunnel";

/// Maximum length of a tag in `revisionTags`. The name of the tag's Service (`istiod-revision-tag-prod`)
/// must not exceed 63 characters.
pub const MAX_TAG_LENGTH: usize = 43;

/// Whether a name is valid in `revisionTags`: a DNS label of at most [`MAX_TAG_LENGTH`] characters, as
/// required by the schema.
#[must_use]
pub fn is_valid_tag(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= MAX_TAG_LENGTH
        && bytes.first().copied().is_some_and(is_word)
        && bytes.last().copied().is_some_and(is_word)
        && bytes.iter().all(|byte| is_word(*byte) || *byte == b'-')
}

/// Returns the name of the release of `chart` for a revision or a tag: `default-istiod`,
/// `prod-revisiontags`.
#[must_use]
pub fn release(owner: &str, chart: &str) -> String {
    format!("{owner}-{chart}")
}

/// Returns the name of a revision's istiod Deployment. `revision` is `values.revision`.
#[must_use]
pub fn istiod(revision: &str) -> String {
    with_suffix("istiod", revision)
}

/// Returns the name of an injector's webhook configuration. `revision` is `values.revision`.
#[must_use]
pub fn injector(revision: &str, namespace: &str) -> String {
    let name = with_suffix("istio-sidecar-injector", revision);
    with_suffix(&name, if namespace == ISTIO_SYSTEM { "" } else { namespace })
}

/// Returns the name of the revision of a `RevisionBased` Istio for a resolved version (`v1.29.1`).
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
    fn names_equal_those_in_the_charts() {
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
