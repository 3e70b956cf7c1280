//! Runs only the control loop on the cluster of the current kubeconfig. `bare crds` prints our definitions,
//! and `bare` runs until it is interrupted.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;

use mainstay_catalog::Catalog;
use mainstay_cluster::connect::connect;
use mainstay_cluster::definitions;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Operator, Options};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::embedded()?;
    if std::env::args().nth(1).as_deref() == Some("crds") {
        println!(
            "{}",
            json!({"apiVersion": "v1", "kind": "List", "items": definitions::own_definitions(&catalog)?})
        );
        return Ok(());
    }
    tracing_subscriber::fmt().with_ansi(false).init();
    let client = connect(kube::Config::infer().await?)?;
    let settings = Settings {
        operator_namespace: "sail-operator".into(),
        ..Settings::default()
    };
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    let operator = Operator {
        client,
        catalog: Arc::new(catalog),
        settings,
        options: Options::default(),
        clock: Clock::system(),
    };
    operator.run(stop).await?;
    Ok(())
}
