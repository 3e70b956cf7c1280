//! Names and configuration of the validating webhook for `IstioOperator`s. Pure.

use mainstay_api::istio_operator::{GROUP, ISTIO_VERSION, PLURAL};
use serde_json::{Value, json};

/// Name of the `ValidatingWebhookConfiguration`.
pub const CONFIGURATION: &str = "mainstay-istio-operator";
/// Name of the Secret with the webhook's certificate, in the operator's namespace.
pub const SECRET: &str = "mainstay-webhook-certificate";
/// Default name of the webhook's Service, in the operator's namespace.
pub const SERVICE: &str = "mainstay-webhook";
/// URL path of the webhook.
pub const PATH: &str = "/validate-istiooperator";
/// Port of the Service.
const PORT: u16 = 443;

/// Address to which the API server sends admission reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAddress {
    /// A Service.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
    },
    /// A URL without a path, for an operator outside of the cluster.
    Url(String),
}

impl WebhookAddress {
    /// Returns the host names that the certificate must contain.
    #[must_use]
    pub fn host_names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => vec![format!("{name}.{namespace}.svc")],
            Self::Url(url) => {
                let host = url.strip_prefix("https://").unwrap_or(url);
                let host = host.split('/').next().unwrap_or_default();
                let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
                vec![host.trim_matches(['[', ']']).to_owned()]
            }
        }
    }

    fn client_config(&self) -> Value {
        match self {
            Self::Service { namespace, name } => {
                json!({"service": {"namespace": namespace, "name": name, "path": PATH, "port": PORT}})
            }
            Self::Url(url) => json!({"url": format!("{}{PATH}", url.trim_end_matches('/'))}),
        }
    }
}

/// Returns the configuration. `ca_bundle` is base64; if it is `None`, the operator must add it later.
///
/// Changes of the status and of other metadata are not reviewed, so that finalizers can be removed at any
/// time.
#[must_use]
pub fn configuration(address: &WebhookAddress, ca_bundle: Option<&str>) -> Value {
    let mut client = address.client_config();
    if let (Some(ca_bundle), Value::Object(client)) = (ca_bundle, &mut client) {
        client.insert("caBundle".into(), ca_bundle.into());
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [{
            "name": "validation.install.mainstay.dev",
            "clientConfig": client,
            "rules": [{
                "apiGroups": [GROUP],
                "apiVersions": ["v1alpha1"],
                "resources": [PLURAL],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced",
            }],
            "matchConditions": [{
                "name": "changed",
                "expression": change_expression(),
            }],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Returns the CEL expression that is true if the spec changed or the annotation that selects the version
/// changed.
fn change_expression() -> String {
    let version = |object: &str| {
        let annotations = format!("{object}.metadata.annotations");
        format!(
            "(has({annotations}) && '{ISTIO_VERSION}' in {annotations} ? {annotations}['{ISTIO_VERSION}'] : '')"
        )
    };
    format!(
        "request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec || {} != {}",
        version("object"),
        version("oldObject")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_name_is_that_of_the_address() {
        let check = |address: WebhookAddress, expected: &str| {
            assert_eq!(address.host_names(), [expected]);
        };
        let service = WebhookAddress::Service {
            namespace: "a".into(),
            name: "b".into(),
        };
        check(service, "b.a.svc");
        check(WebhookAddress::Url("https://127.0.0.1:9443".into()), "127.0.0.1");
        check(WebhookAddress::Url("https://[::1]:9443/".into()), "::1");
        check(WebhookAddress::Url("https://host".into()), "host");
    }
}
