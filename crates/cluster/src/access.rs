//! Who may do what: takes the list of our own actions and what charts grant, gives the rules of the operator's roles. Asks nobody.
//!
//! Kubernetes lets nobody grant what he does not hold, unless he may `escalate` and `bind`, which is as good as everything. So the
//! operator holds what the charts' roles grant, word for word, and neither of the two. That part is a role of its own: it is used when
//! a chart brings a role that is new or changed, and at no other time.
//!
//! *Invariant:* no wildcard that no chart has.

mod rule;

use mainstay_api::{ObjectKind, names};

use crate::kinds::installed_kinds;
use rule::Rights;
pub use rule::{Rule, to_yaml};

/// Written by `cargo xtask codegen`: a line is `group resource[=name] verb,verb`.
const GRANTED: &str = include_str!("access/granted.txt");

/// What is applied, compared, kept in order and removed again.
const INSTALLS: &str = "create delete get list patch watch";

/// What the code does beside installing: group, resources, the one name it is limited to, verbs.
const ACTIONS: &[(&str, &str, &str, &str)] = &[
    // Who refers to a revision; only metadata is read.
    ("", "namespaces pods", "", "list watch"),
    // Workloads that move to another revision: one change each, and one to a namespace that names the old one.
    (
        "apps",
        "daemonsets deployments statefulsets",
        "",
        "list patch watch",
    ),
    ("", "namespaces", "", "patch"),
    // What people should know. The events of objects that live in no namespace are in `default`.
    ("events.k8s.io", "events", "", "create get patch"),
    // Moving workloads to a new revision: labels of namespaces, and pod templates. Deployments and DaemonSets are installed anyway.
    ("", "namespaces", "", "patch"),
    ("apps", "statefulsets", "", "list patch watch"),
    // Who may read metrics.
    ("authentication.k8s.io", "tokenreviews", "", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "", "create"),
    // OpenShift's TLS profile.
    ("config.openshift.io", "apiservers", "", "get list watch"),
];

/// One process writes at a time. A name cannot limit a creation.
const LEASE_ACTIONS: &[(&str, &str, &str, &str)] = &[
    ("coordination.k8s.io", "leases", "", "create"),
    ("coordination.k8s.io", "leases", names::LEASE, "get update"),
];

/// What the operator does itself, in the whole cluster.
#[must_use]
pub fn operator_rules() -> Vec<Rule> {
    operator_rights().rules()
}

/// What the operator holds only to hand it on in the charts' roles.
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

/// What the operator does in its own namespace.
#[must_use]
pub fn namespace_rules() -> Vec<Rule> {
    let mut rights = Rights::default();
    rights.add_all(LEASE_ACTIONS);
    rights.rules()
}

/// What installing definitions of these names takes.
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
        // Some clusters ask for this of whoever makes an object that blocks the deletion of its owner.
        let finalizers = format!("{}/finalizers", kind.plural());
        rights.add(names::GROUP, &finalizers, "", ["update"]);
    }
    rights
}

/// An Istio is only read; revisions and tags are made and removed; plug-in and node proxy get a finalizer.
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
        for rule in operator_rules().iter().chain(&namespace_rules()) {
            let words = rule.groups.iter().chain(&rule.resources).chain(&rule.verbs);
            assert!(words.clone().all(|word| word != "*"), "{rule:?}");
        }
        for rule in operator_rules().iter().chain(&granted_rules()) {
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
    fn secrets_are_only_for_handing_on() {
        let names_secrets = |rules: Vec<Rule>| {
            rules
                .iter()
                .any(|rule| rule.resources.iter().any(|name| name == "secrets"))
        };
        assert!(!names_secrets(operator_rules()));
        assert!(names_secrets(granted_rules()));
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
