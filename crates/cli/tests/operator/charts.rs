//! Charts that are not embedded: a directory in the layout of the Sail Operator's image.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_testkit::repository_root;
use serde_json::json;

use crate::process::{EXIT_TIMEOUT, Operator};
use crate::stage::Stage;

#[tokio::test]
async fn the_sail_operators_directory_provides_versions() {
    let stage = Stage::new().await;
    for (name, version) in [("default", "v1.29-latest"), ("other", "v1.29.5")] {
        let istio = json!({
            "metadata": {"name": name},
            "spec": {"version": version, "namespace": "istio-system"},
        });
        stage.create("sailoperator.io/v1", "Istio", None, istio).await;
    }
    let charts = tempfile::tempdir().unwrap();
    // The pinned charts under another version: only the layout matters here.
    let pinned = repository_root().join("resources/1.29.1/operator");
    copy(&pinned, &charts.path().join("v1.29.6"));
    let directory = charts.path().display().to_string();
    let operator = Operator::start(&stage, &["--resource-directory", &directory]);
    let begun = Instant::now();
    while stage.state("Istio", "default").await != "Healthy" || stage.state("Istio", "other").await.is_empty()
    {
        assert!(begun.elapsed() < EXIT_TIMEOUT, "not healthy\n{}", operator.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let revisions = stage.api("sailoperator.io/v1", "IstioRevision", None);
    let revision = revisions.get("default").await.unwrap();
    assert_eq!(revision.data["spec"]["version"], "v1.29.6");
    let other = stage
        .api("sailoperator.io/v1", "Istio", None)
        .get("other")
        .await
        .unwrap();
    let message = other.data["status"]["conditions"][0]["message"].as_str().unwrap();
    let command = "`mainstay charts pull 1.29.5`";
    assert!(
        message.contains(command) && message.contains("`charts.pull`"),
        "{message}"
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
