//! Settings of the chart that extend the permissions of the operator.

use serde_json::{Value, json};

use super::documentation::{check_denied, without_service_name, workload};
use super::host::Host;
use crate::{ACCOUNT, NAMESPACE, with_owner};

/// A setting with its own section in docs/rbac.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The default values.
    None,
    Delivery,
    IstioOperator,
}

impl Setting {
    /// Returns the values of the chart.
    pub(crate) fn values(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Delivery => "delivery: {enabled: true}\n",
            Self::IstioOperator => "istioOperator: {enabled: true}\n",
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::None => "### By default",
            Self::Delivery => "### With `delivery.enabled`",
            Self::IstioOperator => "### With `istioOperator.enabled`",
        }
    }

    pub(super) fn least_rows(self) -> usize {
        if self == Self::None { 20 } else { 9 }
    }

    pub(super) fn secrets_message(self) -> &'static str {
        match self {
            Self::IstioOperator => {
                "the operator writes no pods, and of Secrets only the webhook's certificate"
            }
            Self::None | Self::Delivery => "the operator does not write Secrets or pods",
        }
    }
}

fn named(name: &str, namespace: &str) -> Value {
    let mut object = without_service_name(workload("Deployment", namespace));
    object["metadata"]["name"] = json!(name);
    object
}

fn installed(namespace: &str) -> Value {
    let mut object = named("installed", namespace);
    object["metadata"]["labels"] = json!({"install.operator.istio.io/owning-resource": "mesh",
        "install.operator.istio.io/owning-resource-namespace": namespace});
    object
}

fn delivered(namespace: &str, kind: &str) -> Value {
    let owner =
        json!({"apiVersion": "delivery.mainstay.dev/v1alpha1", "kind": kind, "name": "app", "uid": "u"});
    with_owner(&named("delivered", namespace), &owner)
}

fn with_image(mut object: Value, image: &str) -> Value {
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    object
}

/// Checks what each setting allows, and that it is denied with the others. Returns the number of denied
/// writes.
pub(super) async fn check_setting(host: &Host, setting: Setting) -> usize {
    check_delivered(host, setting == Setting::Delivery).await
        + check_installed(host, setting == Setting::IstioOperator).await
}

async fn check_delivered(host: &Host, is_enabled: bool) -> usize {
    let expected = "the operator creates workloads only for";
    check_denied(host, &delivered("shop", "Application"), expected).await;
    if !is_enabled {
        check_denied(host, &delivered("shop", "ApplicationDeployment"), expected).await;
        return 2;
    }
    let protected = delivered("kube-system", "ApplicationDeployment");
    check_denied(host, &protected, "protected namespaces").await;
    let object = delivered("shop", "ApplicationDeployment");
    host.apply(Some(ACCOUNT), &object).await.unwrap();
    host.apply(Some(ACCOUNT), &with_image(object, "new"))
        .await
        .unwrap();
    2
}

async fn check_installed(host: &Host, is_enabled: bool) -> usize {
    let expected = "the operator creates workloads only for";
    check_denied(host, &installed("shop"), expected).await;
    if !is_enabled {
        check_denied(host, &installed("istio-system"), expected).await;
        return 2;
    }
    let object = installed("istio-system");
    host.apply(Some(ACCOUNT), &object).await.unwrap();
    host.apply(Some(ACCOUNT), &with_image(object, "new"))
        .await
        .unwrap();
    // The label does not make a workload in another namespace the operator's.
    host.apply(None, &installed("shop")).await.unwrap();
    let changed = with_image(installed("shop"), "evil");
    check_denied(host, &changed, "does not change the pods of other workloads").await;
    check_webhook_secret(host).await;
    2
}

/// Checks that the account may change the Secret of the webhook.
async fn check_webhook_secret(host: &Host) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "mainstay-webhook-certificate", "namespace": NAMESPACE}});
    host.apply(None, &secret).await.unwrap();
    let mut changed = secret;
    changed["metadata"]["labels"] = json!({"a": "b"});
    host.apply(Some(ACCOUNT), &changed).await.unwrap();
}
