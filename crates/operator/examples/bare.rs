//! The loop and nothing around it, on the cluster of the current kubeconfig: `bare crds` prints our definitions, `bare` runs until
//! it is interrupted.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_catalog::Catalog;
use mainstay_cluster::connect::connect;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Options, run};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::embedded()?;
    if std::env::args().nth(1).as_deref() == Some("crds") {
        println!(
            "{}",
            json!({"apiVersion": "v1", "kind": "List", "items": crds(&catalog)?})
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
    run(
        client,
        Arc::new(catalog),
        settings,
        Options::default(),
        Clock::system(),
        stop,
    )
    .await?;
    Ok(())
}

fn crds(catalog: &Catalog) -> Result<Vec<serde_json::Value>, Box<dyn Error>> {
    let all: Vec<&str> = catalog.names().iter().map(|name| name.name.as_str()).collect();
    let concrete: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| name.matches('.').count() == 2)
        .collect();
    let default = catalog.default_version()?.name();
    Ok(definitions(&VersionNames {
        all: &all,
        concrete: &concrete,
        ambient: &all,
        default: &default,
    }))
}
