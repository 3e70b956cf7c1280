//! Objects of the service account that application delivery uses in another cluster.

use serde_json::{Value, json};

use crate::access::member_rules;

/// Name of the service account, its role and its role binding.
pub const MEMBER_ACCOUNT: &str = "mainstay-member";

/// Name of the Secret that holds the token of the account.
pub const MEMBER_TOKEN: &str = "mainstay-member-token";

/// Returns the objects in the order in which they must be created: namespace, service account, role, role
/// binding, and a Secret into which the cluster writes a token.
#[must_use]
pub fn account_objects(namespace: &str) -> Vec<Value> {
    let rules: Vec<Value> = member_rules()
        .iter()
        .map(|rule| json!({"apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs}))
        .collect();
    let in_namespace = |name: &str| json!({"name": name, "namespace": namespace});
    let mut token = in_namespace(MEMBER_TOKEN);
    if let Some(metadata) = token.as_object_mut() {
        metadata.insert(
            "annotations".to_owned(),
            json!({"kubernetes.io/service-account.name": MEMBER_ACCOUNT}),
        );
    }
    let group = "rbac.authorization.k8s.io";
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": in_namespace(MEMBER_ACCOUNT)}),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
            "metadata": {"name": MEMBER_ACCOUNT}, "rules": rules,
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": MEMBER_ACCOUNT},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": MEMBER_ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": MEMBER_ACCOUNT, "namespace": namespace}],
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": token,
            "type": "kubernetes.io/service-account-token",
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the role with `deploy/delivery/member-role.yaml`.
    #[test]
    fn role_equals_the_published_file() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../deploy/delivery/member-role.yaml"
        );
        #[allow(clippy::disallowed_methods, reason = "a file to compare with")]
        let published = std::fs::read_to_string(path).unwrap();
        let objects = account_objects("x");
        let role = objects
            .iter()
            .find(|object| object["kind"] == "ClusterRole")
            .unwrap();
        let options = mainstay_yaml::Budget::default();
        let published = mainstay_yaml::parse(&published, &options).unwrap();
        let own = mainstay_yaml::parse(role.to_string(), &options).unwrap();
        assert_eq!(published, own);
    }
}
