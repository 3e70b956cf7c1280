//! Validates documents without a cluster: an embedded API server with our definitions checks every object,
//! so that the rules and messages are those of the cluster.

use kube::Client;
use mainstay_api::crd::delivery_definitions;
use mainstay_cluster::definitions::install;
use mainstay_sim::Cluster;
use serde_json::{Value, json};

use super::api::call;
use super::documents::Located;
use crate::error::{CliError, Kind, chain};

/// Namespace of the embedded API server.
const NAMESPACE: &str = "default";

/// Returns the first error in the documents, with its location.
pub(crate) async fn validate(objects: &[Located]) -> Result<(), CliError> {
    let cluster = Cluster::default();
    let client = Client::new(cluster.connect("validate"), NAMESPACE);
    install(&client, &delivery_definitions(), |_, _| {}).await?;
    for object in objects {
        check(&client, object).await?;
    }
    Ok(())
}

async fn check(client: &Client, located: &Located) -> Result<(), CliError> {
    let mut object = located.object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), json!(NAMESPACE));
        metadata.remove("resourceVersion");
    }
    let path = format!(
        "{}?dryRun=All&fieldValidation=Strict",
        located.collection(NAMESPACE)
    );
    match call(client, "POST", &path, Some(&object)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(located.invalid(&status)),
        Err(error) => Err(CliError::new(Kind::Io, chain(&error))),
    }
}
