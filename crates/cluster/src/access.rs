//! RBAC rules of the operator, derived from its action list and from what charts grant. Pure.
//!
//! Kubernetes allows an account to grant only the rights it holds, unless it may `escalate` and `bind`, which
//! amounts to full access. So the operator holds exactly what the charts' roles grant, and neither of these
//! verbs. Those rights are a separate role, used only when a chart contains a new or changed role.
//!
//! *Invariant:* no wildcard that is not in a chart.

mod rule;

use mainstay_api::{ObjectKind, names};

use crate::admission;
use crate::kinds::installed_kinds;
use rule::Rights;
pub use rule::{Rule, to_yaml};

/// Written by `cargo xtask codegen`: a line is `group resource[=name] verb,verb`.
const GRANTED: &str = include_str!("access/granted.txt");

/// Verbs needed to install, compare and remove an object.
const INSTALLS: &str = "create delete get list patch watch";

/// Actions besides installing: group, resources, the resource name they are limited to, verbs.
const ACTIONS: &[(&str, &str, &str, &str)] = &[
    // References to revisions; only metadata is read.
    ("", "namespaces pods", "", "list watch"),
    // Workload migration: one patch per workload, and one per namespace that names the old revision.
    (
        "apps",
        "daemonsets deployments statefulsets",
        "",
        "list patch watch",
    ),
    ("", "namespaces", "", "patch"),
    // Events. Those about cluster-scoped objects are in `default`.
    ("events.k8s.io", "events", "", "create get patch"),
    // Workload migration: labels of namespaces and pod templates. Deployments and DaemonSets are installed
    // anyway.
    ("", "namespaces", "", "patch"),
    ("apps", "statefulsets", "", "list patch watch"),
    // Authorization of metrics requests.
    ("authentication.k8s.io", "tokenreviews", "", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "", "create"),
    // OpenShift's TLS profile.
    ("config.openshift.io", "apiservers", "", "get list watch"),
];

/// Leader election. A resource name cannot limit `create`.
const LEASE_ACTIONS: &[(&str, &str, &str, &str)] = &[
    ("coordination.k8s.io", "leases", "", "create"),
    ("coordination.k8s.io", "leases", names::LEASE, "get update"),
];

/// Application delivery in the host cluster: our kinds, the Secrets that Clusters name, and events. A rule
/// cannot limit the names of Secrets, because Clusters choose them; they are read one by one, never listed.
const DELIVERY_ACTIONS: &[(&str, &str, &str, &str)] = &[
    (
        "delivery.mainstay.dev",
        "analysistemplates applications clusters deploymentactions",
        "",
        "get list watch",
    ),
    (
        "delivery.mainstay.dev",
        "applicationdeployments",
        "",
        "create get list patch watch",
    ),
    (
        "delivery.mainstay.dev",
        "applicationrevisions resourceinventories",
        "",
        INSTALLS,
    ),
    (
        "delivery.mainstay.dev",
        "applicationdeployments/status applications/status clusters/status deploymentactions/status",
        "",
        "patch",
    ),
    (
        "delivery.mainstay.dev",
        "applicationdeployments/finalizers applications/finalizers",
        "",
        "update",
    ),
    ("", "secrets", "", "get"),
    ("events.k8s.io", "events", "", "create"),
];

/// The controller for `IstioOperator`s, besides installing objects.
const ISTIO_OPERATOR_ACTIONS: &[(&str, &str, &str, &str)] = &[
    ("install.istio.io", "istiooperators", "", "get list patch watch"),
    ("install.istio.io", "istiooperators/status", "", "patch"),
    ("install.istio.io", "istiooperators/finalizers", "", "update"),
    // The namespace of the control plane.
    ("", "namespaces", "", "create get list patch"),
    // Proxies that are connected to a revision.
    ("", "pods", "", "list"),
    ("events.k8s.io", "events", "", "create"),
    // Members of the shared set. A rule cannot limit lists by names.
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        "create list watch",
    ),
];

/// The webhook for `IstioOperator`s in the operator's namespace: one Secret, which the chart creates.
const WEBHOOK_ACTIONS: &[(&str, &str, &str, &str)] = &[("", "secrets", admission::SECRET, "get patch")];

/// Objects of applications in any cluster. Applications with other kinds need further rules.
const WORKLOAD_ACTIONS: &[(&str, &str, &str, &str)] = &[
    ("", "configmaps services", "", INSTALLS),
    ("apps", "deployments statefulsets", "", INSTALLS),
    ("gateway.networking.k8s.io", "httproutes", "", INSTALLS),
    (
        "networking.istio.io",
        "destinationrules virtualservices",
        "",
        INSTALLS,
    ),
    ("networking.k8s.io", "ingresses", "", INSTALLS),
];

/// Namespaces of applications in other clusters.
const MEMBER_ACTIONS: &[(&str, &str, &str, &str)] = &[("", "namespaces", "", "create get")];

/// Cluster-wide rules for application delivery, where it is enabled.
#[must_use]
pub fn delivery_rules() -> Vec<Rule> {
    let mut rights = Rights::default();
    rights.add_all(DELIVERY_ACTIONS);
    rights.add_all(WORKLOAD_ACTIONS);
    rights.rules()
}

/// Cluster-wide rules for the controller of `IstioOperator`s, where it is enabled: its actions, and the
/// definitions with these names.
pub fn istio_operator_rules<'a>(definitions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Rule> {
    const GROUP: &str = "apiextensions.k8s.io";
    let mut rights = Rights::default();
    rights.add_all(ISTIO_OPERATOR_ACTIONS);
    for (plural, group) in definitions {
        let name = format!("{plural}.{group}");
        rights.add(
            GROUP,
            "customresourcedefinitions",
            &name,
            ["delete", "get", "patch"],
        );
        // A definition with objects is not deleted.
        rights.add(group, plural, "", ["list"]);
    }
    rights.rules()
}

/// Rules for the webhook of `IstioOperator`s in the operator's namespace.
#[must_use]
pub fn webhook_rules() -> Vec<Rule> {
    let mut rights = Rights::default();
    rights.add_all(WEBHOOK_ACTIONS);
    rights.rules()
}

/// Rules for the account of application delivery in another cluster.
#[must_use]
pub fn member_rules() -> Vec<Rule> {
    let mut rights = Rights::default();
    rights.add_all(WORKLOAD_ACTIONS);
    rights.add_all(MEMBER_ACTIONS);
    rights.rules()
}

/// Cluster-wide rules for the operator's own actions.
#[must_use]
pub fn operator_rules() -> Vec<Rule> {
    operator_rights().rules()
}

/// Rules that the operator holds only to grant them in the charts' roles.
#[must_use]
pub fn granted_rules() -> Vec<Rule> {
    let mut rights = Rights::default();
    for line in GRANTED.lines().filter(|line| !line.starts_with('#')) {
        if let Some((group, resource, name, verbs)) = read_granted(line) {
            rights.add(group, resource, name, verbs.split(','));
        }
    }
    rights.without(&operator_rights()).rules()
}

/// Rules for the operator's own namespace.
#[must_use]
pub fn namespace_rules() -> Vec<Rule> {
    let mut rights = Rights::default();
    rights.add_all(LEASE_ACTIONS);
    rights.rules()
}

/// Rules needed to install custom resource definitions with these names.
pub fn definition_rules<'a>(definitions: impl IntoIterator<Item = &'a str>) -> Vec<Rule> {
    const GROUP: &str = "apiextensions.k8s.io";
    const PLURAL: &str = "customresourcedefinitions";
    let mut rights = Rights::default();
    rights.add(GROUP, PLURAL, "", ["create"]);
    for name in definitions {
        rights.add(GROUP, PLURAL, name, ["get", "patch"]);
    }
    rights.rules()
}

fn operator_rights() -> Rights {
    let mut rights = Rights::default();
    rights.add_all(ACTIONS);
    for kind in installed_kinds() {
        rights.add(kind.group, kind.plural, "", INSTALLS.split(' '));
    }
    for kind in ObjectKind::ALL {
        rights.add(names::GROUP, kind.plural(), "", own_verbs(kind).split(' '));
        let status = format!("{}/status", kind.plural());
        rights.add(names::GROUP, &status, "", ["patch"]);
        // Clusters with OwnerReferencesPermissionEnforcement require this to set `blockOwnerDeletion`.
        let finalizers = format!("{}/finalizers", kind.plural());
        rights.add(names::GROUP, &finalizers, "", ["update"]);
    }
    rights
}

/// An Istio is only read; revisions and tags are created and deleted; `IstioCNI` and `ZTunnel` get a
/// finalizer.
fn own_verbs(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Istio => "get list watch",
        ObjectKind::IstioRevision | ObjectKind::IstioRevisionTag => INSTALLS,
        ObjectKind::IstioCni | ObjectKind::ZTunnel => "get list patch watch",
    }
}

fn read_granted(line: &str) -> Option<(&str, &str, &str, &str)> {
    let mut words = line.split(' ');
    let (group, target, verbs) = (words.next()?, words.next()?, words.next()?);
    let (resource, name) = target.split_once('=').unwrap_or((target, ""));
    Some((if group == "core" { "" } else { group }, resource, name, verbs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &[Rule], expected: &str) {
        assert!(to_yaml(rules).contains(expected), "{}", to_yaml(rules));
    }

    #[test]
    fn nothing_of_ours_is_a_wildcard_and_nothing_escalates() {
        let installer = istio_operator_rules([("gateways", "networking.istio.io")]);
        let delivery = [delivery_rules(), member_rules(), installer, webhook_rules()].concat();
        for rule in operator_rules().iter().chain(&namespace_rules()).chain(&delivery) {
            let words = rule.groups.iter().chain(&rule.resources).chain(&rule.verbs);
            assert!(words.clone().all(|word| word != "*"), "{rule:?}");
        }
        for rule in operator_rules().iter().chain(&granted_rules()).chain(&delivery) {
            let verbs = rule.verbs.iter();
            assert!(
                verbs
                    .clone()
                    .all(|verb| !matches!(verb.as_str(), "escalate" | "bind" | "impersonate")),
                "{rule:?}"
            );
        }
    }

    #[test]
    fn access_to_secrets_is_only_granted_to_charts() {
        let names_secrets = |rules: Vec<Rule>| {
            rules
                .iter()
                .any(|rule| rule.resources.iter().any(|name| name == "secrets"))
        };
        assert!(!names_secrets(operator_rules()));
        assert!(names_secrets(granted_rules()));
    }

    #[test]
    fn delivery_reads_secrets_one_by_one() {
        check(
            &delivery_rules(),
            "resources: [\"secrets\"]\n  verbs: [\"get\"]\n",
        );
        assert!(!to_yaml(&member_rules()).contains("secrets"));
    }

    #[test]
    fn the_webhook_reads_and_writes_one_secret() {
        check(
            &webhook_rules(),
            "resources: [\"secrets\"]\n  resourceNames: [\"mainstay-webhook-certificate\"]\n  verbs: [\"get\", \"patch\"]\n",
        );
        let rules = istio_operator_rules([("gateways", "networking.istio.io")]);
        assert!(!to_yaml(&rules).contains("secrets"));
        check(
            &rules,
            "resourceNames: [\"gateways.networking.istio.io\"]\n  verbs: [\"delete\", \"get\", \"patch\"]\n",
        );
    }

    #[test]
    fn every_granted_line_is_read() {
        let lines = GRANTED.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            assert!(read_granted(line).is_some(), "{line}");
        }
        assert_eq!(
            read_granted("core nodes get,list"),
            Some(("", "nodes", "", "get,list"))
        );
        assert_eq!(
            read_granted("a signers=x/y attest"),
            Some(("a", "signers", "x/y", "attest"))
        );
        assert_eq!(read_granted("core nodes"), None);
    }

    #[test]
    fn the_lease_is_limited_by_name() {
        check(
            &namespace_rules(),
            "- apiGroups: [\"coordination.k8s.io\"]\n  resources: [\"leases\"]\n  resourceNames: [\"sail-operator-lock\"]\n  verbs: [\"get\", \"update\"]\n",
        );
    }

    #[test]
    fn definitions_are_limited_by_name() {
        check(
            &definition_rules(["a.example.com", "b.example.com"]),
            "resourceNames: [\"a.example.com\", \"b.example.com\"]\n  verbs: [\"get\", \"patch\"]\n",
        );
    }
}
