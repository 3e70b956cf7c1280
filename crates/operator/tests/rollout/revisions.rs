//! Revisions of an Application with all types of components, one of them a Helm chart.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_sim::snapshot;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::objects::{self, API, NAMESPACE};
use crate::virtual_time::run;

const APPLICATION: &str = "shop";
const REVISION_LABEL: &str = "delivery.mainstay.dev/revision";

/// Returns a chart with one Deployment, packaged as `helm package` does.
fn packaged_chart() -> Vec<u8> {
    let files = [
        (
            "cache/Chart.yaml",
            "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
        ),
        ("cache/values.yaml", "image: redis:7\nreplicas: 1\n"),
        (
            "cache/templates/deployment.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {chart: {{ .Chart.Name }}}\nspec:\n  replicas: {{ .Values.replicas }}\n  selector: {matchLabels: {app: cache}}\n  template:\n    metadata: {labels: {app: cache}}\n    spec:\n      containers: [{name: cache, image: {{ .Values.image | quote }}}]\n",
        ),
    ];
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// Returns an Application with a web service, objects and a chart.
fn application(image: &str, chart: &str) -> Value {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": image}});
    json!({
        "apiVersion": API, "kind": "Application",
        "metadata": {"name": APPLICATION, "namespace": NAMESPACE},
        "spec": {
            "revisionHistoryLimit": 1,
            "components": [
                {"name": "web", "type": "webservice", "properties": {"image": image, "port": 8080}},
                {"name": "settings", "type": "k8s-objects", "properties": {"objects": [settings]}},
                {"name": "cache", "type": "helm", "properties": {"chart": chart, "values": {"image": "redis:8"}}},
            ],
        },
    })
}

/// Returns the images of the revisions that run in the host cluster, as `REVISION IMAGE`.
fn images(fleet: &Fleet) -> Vec<String> {
    let objects = fleet.host().sim().with(|state| snapshot::dump(state));
    let deployments = objects
        .iter()
        .filter(|object| object["kind"] == "Deployment" && object["spec"]["replicas"] != 0);
    let mut images: Vec<String> = deployments
        .map(|object| {
            let revision = object["metadata"]["labels"][REVISION_LABEL].as_str().unwrap();
            let container = &object["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(
                object["status"]["availableReplicas"], object["spec"]["replicas"],
                "{revision}"
            );
            format!("{revision} {}", container["image"].as_str().unwrap())
        })
        .collect();
    images.sort();
    images
}

/// Returns the names of the revisions.
fn revisions(fleet: &Fleet) -> Vec<String> {
    let objects = fleet.host().sim().with(|state| snapshot::dump(state));
    let own = objects
        .iter()
        .filter(|object| object["kind"] == "ApplicationRevision");
    own.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until exactly this revision runs.
async fn until_running(fleet: &mut Fleet, revision: &str, image: &str) {
    let expected = [format!("{revision} {image}"), format!("{revision} redis:8")];
    fleet
        .until(revision, |fleet| {
            let deployment = fleet.stored("applicationdeployments.delivery.mainstay.dev", APPLICATION);
            deployment["status"]["phase"] == "Healthy"
                && deployment["spec"]["appRevisions"][0]["revisionName"] == revision
                && deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
        })
        .await;
    fleet.until_idle().await;
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(images(fleet), expected);
}

fn ready_condition(fleet: &Fleet) -> (String, String) {
    let application = fleet.stored("applications.delivery.mainstay.dev", APPLICATION);
    let conditions = application["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    let ready = ready.cloned().unwrap_or_default();
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

/// Without the annotation, each change records a revision and replaces the running one.
#[test]
fn every_change_of_an_application_replaces_the_running_revision() {
    run(async {
        let chart = STANDARD.encode(packaged_chart());
        let mut fleet = Fleet::start(&[]).await;
        fleet.create(&application("web:1", &chart)).await;
        until_running(&mut fleet, "shop-v1", "web:1").await;
        fleet
            .set_spec("applications", &application("web:2", &chart))
            .await;
        until_running(&mut fleet, "shop-v2", "web:2").await;
        let revision = fleet.stored("applicationrevisions.delivery.mainstay.dev", "shop-v2");
        let components: Vec<&str> = revision["spec"]["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        assert_eq!(components, ["web", "settings", "cache"]);
        let objects = fleet.host().sim().with(|state| snapshot::dump(state));
        let maps = objects.iter().filter(|object| object["kind"] == "ConfigMap");
        let modes: Vec<&Value> = maps.map(|object| &object["data"]["mode"]).collect();
        assert_eq!(modes, ["web:2"], "the ConfigMap of the old revision is deleted");
    });
}

/// The annotation records revisions and leaves the running one. Revisions beyond the limit are deleted, but
/// not the running one and the one that another deployment names.
#[test]
fn recorded_revisions_replace_nothing_and_referenced_ones_are_kept() {
    run(async {
        let chart = STANDARD.encode(packaged_chart());
        let mut fleet = Fleet::start(&[]).await;
        fleet.create(&application("web:1", &chart)).await;
        until_running(&mut fleet, "shop-v1", "web:1").await;
        let path = objects::path("applications", APPLICATION);
        let annotation = json!({"metadata": {"annotations": {"app.oam.dev/rollout-template": "true"}}});
        fleet.host().merge_patch(&path, &annotation).await.unwrap();
        for number in 2..7 {
            let image = format!("web:{number}");
            fleet.set_spec("applications", &application(&image, &chart)).await;
            let name = format!("shop-v{number}");
            fleet
                .until(&name, |fleet| {
                    !fleet
                        .stored("applicationrevisions.delivery.mainstay.dev", &name)
                        .is_null()
                })
                .await;
            if number == 2 {
                let other = json!({
                    "apiVersion": API, "kind": "ApplicationDeployment",
                    "metadata": {"name": "other", "namespace": NAMESPACE},
                    "spec": {
                        "strategy": {"paused": true},
                        "appRevisions": [{"revisionName": name, "placement": [{"distribution": {"replicas": 0}}]}],
                    },
                });
                fleet.create(&other).await;
            }
        }
        fleet.until_idle().await;
        let running: Vec<String> = images(&fleet)
            .into_iter()
            .filter(|line| line.contains("web:"))
            .collect();
        assert_eq!(running, ["shop-v1 web:1"], "recorded revisions do not run");
        // Running, referenced, one of the limit, and the latest.
        assert_eq!(revisions(&fleet), ["shop-v1", "shop-v2", "shop-v5", "shop-v6"]);
    });
}

#[test]
fn an_invalid_chart_is_reported_and_replaces_nothing() {
    run(async {
        let chart = STANDARD.encode(packaged_chart());
        let mut fleet = Fleet::start(&[]).await;
        fleet.create(&application("web:1", &chart)).await;
        until_running(&mut fleet, "shop-v1", "web:1").await;
        for (chart, message) in [
            ("no base64!".to_owned(), "properties.chart is not base64"),
            (STANDARD.encode("no archive"), "component \"cache\": "),
        ] {
            fleet
                .set_spec("applications", &application("web:2", &chart))
                .await;
            fleet
                .until(message, |fleet| {
                    let (reason, text) = ready_condition(fleet);
                    reason == "InvalidSpec" && text.contains(message)
                })
                .await;
            assert_eq!(revisions(&fleet), ["shop-v1"]);
        }
        fleet
            .set_spec("applications", &application("web:3", &chart))
            .await;
        until_running(&mut fleet, "shop-v2", "web:3").await;
    });
}
