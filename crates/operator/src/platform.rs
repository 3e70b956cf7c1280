//! Detects the platform of a cluster with API discovery.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use mainstay_mesh::Platform;

/// API group of a kind that only `OpenShift` serves.
const GROUP_VERSION: &str = "operator.openshift.io/v1";
const KIND: &str = "OpenShiftAPIServer";

/// Returns the platform of the cluster. Fails if API discovery fails.
pub async fn detect(client: &Client) -> Result<Platform, kube::Error> {
    let response = client.list_api_group_resources(GROUP_VERSION).await;
    match response {
        Ok(list) if is_openshift(&list) => Ok(Platform::OpenShift),
        Ok(_) => Ok(Platform::Kubernetes),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Platform::Kubernetes),
        Err(error) => Err(error),
    }
}

fn is_openshift(list: &APIResourceList) -> bool {
    list.resources.iter().any(|resource| resource.kind == KIND)
}
