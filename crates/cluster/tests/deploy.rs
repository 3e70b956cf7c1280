//! Tests the files under `deploy/` on the simulator and on a real API server: the chart's objects are
//! accepted, its roles grant exactly the permissions for what the operator installs, definitions are
//! installed once, and samples are accepted and lead to plans without errors.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "helpers of tests, and files to compare with"
)]

mod deploy {
    pub(crate) mod charts;
    pub(crate) mod documentation;
    pub(crate) mod host;
    pub(crate) mod settings;
}

use std::process::ExitCode;
use std::sync::Arc;

use deploy::charts::{documents, operator_chart, releases};
use deploy::documentation;
use deploy::host::Host;
use deploy::settings::Setting;
use mainstay_api::ObjectKind;
use mainstay_catalog::Catalog;
use mainstay_cluster::definitions::{self, Outcome};
use mainstay_cluster::survey::survey;
use mainstay_mesh::{Action, Library, Settings, Snapshot, Subject, plan};
use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::repository_root;
use mainstay_testkit::suite::{self, TestCase};
use serde_json::{Value, json};

/// Namespace of the operator.
const NAMESPACE: &str = "sail-operator";
pub(crate) const ACCOUNT: &str = "system:serviceaccount:sail-operator:mainstay";
pub(crate) const JOB: &str = "system:serviceaccount:sail-operator:mainstay-crds";

fn main() -> ExitCode {
    if Catalog::embedded().unwrap().installable().is_empty() {
        println!("not tested: this build embeds no charts, run `cargo xtask charts` first");
        return ExitCode::SUCCESS;
    }
    macro_rules! test_cases {
        ($($name:ident),*) => {
            [$(
                TestCase { name: concat!(stringify!($name), "_simulated"), start: || Box::pin(async { $name(Host::simulated()).await }) },
                TestCase { name: concat!(stringify!($name), "_real"), start: || Box::pin(async { $name(Host::real().await).await }) },
            )*]
        };
    }
    let fresh = TestCase {
        name: "generated_files_are_fresh",
        start: || Box::pin(async { generated_files_are_fresh() }),
    };
    let trials: Vec<TestCase> = test_cases![
        the_chart_is_accepted,
        the_roles_grant_exactly_the_required_permissions,
        every_statement_of_the_rbac_page_holds,
        the_rbac_page_holds_with_delivery,
        the_rbac_page_holds_with_istio_operators,
        the_rbac_page_holds_without_definitions,
        definitions_are_installed_once,
        versions_without_charts_are_reported_at_admission,
        samples_lead_to_plans
    ]
    .into_iter()
    .chain([fresh])
    .collect();
    suite::main(&PARTS, &trials)
}

fn generated_files_are_fresh() {
    let chart = repository_root().join("deploy/chart");
    for (path, text) in mainstay_cluster::deploy::files(&Catalog::embedded().unwrap()).unwrap() {
        let stored = std::fs::read_to_string(chart.join(&path)).unwrap_or_default();
        assert!(
            stored == text,
            "deploy/chart/{path} is not what `cargo xtask codegen` writes: run it"
        );
    }
    let directory = repository_root().join("deploy/istio-operator");
    for (path, text) in mainstay_cluster::deploy::istio_operator_files().unwrap() {
        let stored = std::fs::read_to_string(directory.join(&path)).unwrap_or_default();
        assert!(
            stored == text,
            "deploy/istio-operator/{path} is not what `cargo xtask codegen` writes: run it"
        );
    }
}

/// Applies all objects of the chart, including hooks, as a user with all permissions. Returns their
/// number.
async fn install_chart(host: &Host, values: &str) -> usize {
    host.create_namespace(NAMESPACE).await;
    let objects = operator_chart(NAMESPACE, values);
    for object in &objects {
        host.apply(None, object).await.unwrap();
    }
    objects.len()
}

async fn the_chart_is_accepted(host: Host) {
    assert_eq!(install_chart(&host, "").await, 24);
    let more =
        "replicas: 2\npodDisruptionBudget: {enabled: true}\noperator: {images: {v1_29_1: {istiod: a/b:c}}}\n";
    install_chart(&host, more).await;
    // Uses another name, because Helm would delete the Job of the definitions before creating one with
    // other arguments.
    let more = "nameOverride: installer\nistioOperator: {enabled: true, revision: canary}\n";
    assert_eq!(install_chart(&host, more).await, 29);
}

async fn the_roles_grant_exactly_the_required_permissions(host: Host) {
    install_definitions(&host).await;
    install_chart(&host, "").await;
    for namespace in ["istio-system", "istio-cni", "ztunnel"] {
        host.create_namespace(namespace).await;
    }
    let owners = Owners::create(&host).await;
    let mut applied = 0;
    for release in releases() {
        for object in &release.objects {
            let owner = match object["metadata"]["namespace"].as_str() {
                Some("istio-cni") => &owners.cni,
                Some("ztunnel") => &owners.ztunnel,
                _ => &owners.revision,
            };
            let response = host.apply(Some(ACCOUNT), &with_owner(object, owner)).await;
            response.unwrap_or_else(|error| panic!("{}: {error}", release.label));
            applied += 1;
        }
    }
    println!("objects of Istio's charts applied with the operator's roles: {applied}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let error = host.apply(Some(ACCOUNT), &role).await.unwrap_err();
    assert!(
        error.contains("is attempting to grant RBAC permissions not currently held"),
        "{error}"
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let error = host.apply(Some(ACCOUNT), &pod).await.unwrap_err();
    assert!(error.contains("cannot patch resource \"pods\""), "{error}");
    let istio = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x.y"}});
    let error = host.apply(Some(ACCOUNT), &istio).await.unwrap_err();
    assert!(
        error.contains("cannot patch resource \"customresourcedefinitions\""),
        "{error}"
    );
    documentation::check_missing_grants(&host).await;
}

/// Tests the statements of docs/rbac.md: the table, the admission policy and the other roles.
async fn every_statement_of_the_rbac_page_holds(host: Host) {
    let (rows, denied) = check_setting(&host, Setting::None).await;
    let others = documentation::check_other_roles(&host).await;
    documentation::check_reader_role(&host).await;
    documentation::check_extra_rules(NAMESPACE);
    println!(
        "harden confinement: {rows} table rows, {denied} writes and {others} other requests of docs/rbac.md"
    );
}

async fn the_rbac_page_holds_with_delivery(host: Host) {
    check_setting(&host, Setting::Delivery).await;
}

async fn the_rbac_page_holds_with_istio_operators(host: Host) {
    check_setting(&host, Setting::IstioOperator).await;
}

/// Checks the table and the admission policies with a setting, then with other protected namespaces.
/// Returns the number of rows and of denied writes.
async fn check_setting(host: &Host, setting: Setting) -> (usize, usize) {
    install_definitions(host).await;
    install_chart(host, setting.values()).await;
    for namespace in ["istio-system", "istio-cni", "ztunnel", "shop"] {
        host.create_namespace(namespace).await;
    }
    let owners = Owners::create(host).await;
    let rows = documentation::check_table(host, setting).await;
    let denied = documentation::check_admission_policy(host, &owners, setting).await;
    let values = format!("{}rbac: {{protectedNamespaces: [shop]}}\n", setting.values());
    install_chart(host, &values).await;
    documentation::check_protected_namespaces(host, &owners).await;
    (rows, denied)
}

async fn the_rbac_page_holds_without_definitions(host: Host) {
    install_chart(&host, "").await;
    host.create_namespace("shop").await;
    assert_eq!(documentation::check_without_definitions(&host).await, 2);
}

/// Installs our definitions, which the chart's Job installs first.
async fn install_definitions(host: &Host) {
    let definitions = definitions::own_definitions(&Catalog::embedded().unwrap()).unwrap();
    definitions::install(&host.client(None).await, &definitions, |_, _| {})
        .await
        .unwrap();
}

/// Owner references to objects of our kinds, each with its own namespace.
pub(crate) struct Owners {
    /// An `IstioCNI` in `istio-cni`.
    pub(crate) cni: Value,
    /// An `IstioRevision` in `istio-system`.
    pub(crate) revision: Value,
    /// A `ZTunnel` in `ztunnel`.
    pub(crate) ztunnel: Value,
}

impl Owners {
    async fn create(host: &Host) -> Self {
        Self {
            cni: create_owner(host, "IstioCNI", "istio-cni").await,
            revision: create_owner(host, "IstioRevision", "istio-system").await,
            ztunnel: create_owner(host, "ZTunnel", "ztunnel").await,
        }
    }
}

/// Creates an object of one of our kinds, and returns an owner reference to it.
async fn create_owner(host: &Host, kind: &str, namespace: &str) -> Value {
    let mut object = json!({"apiVersion": "sailoperator.io/v1", "kind": kind, "metadata": {"name": "default"},
        "spec": {"version": "v1.29.1", "namespace": namespace}});
    if kind == "IstioRevision" {
        object["spec"]["values"] = json!({"global": {"istioNamespace": namespace}});
    }
    let plural = format!("/apis/sailoperator.io/v1/{}s", kind.to_lowercase());
    let made = host.create(None, &plural, &object).await;
    let uid = made["metadata"]["uid"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"));
    json!({"apiVersion": "sailoperator.io/v1", "kind": kind, "name": "default", "uid": uid})
}

/// Returns the object with this owner only, as the operator installs objects.
pub(crate) fn with_owner(object: &Value, owner: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["ownerReferences"] = json!([owner]);
    object
}

async fn definitions_are_installed_once(host: Host) {
    install_chart(&host, "").await;
    let catalog = Catalog::embedded().unwrap();
    let version = catalog.default_version().unwrap();
    let mut all = definitions::own_definitions(&catalog).unwrap();
    all.extend(definitions::istio_definitions(&catalog, &version).unwrap());
    let client = host.client(Some(JOB)).await;
    let mut first = Vec::new();
    definitions::install(&client, &all, |_, outcome| first.push(outcome))
        .await
        .unwrap();
    assert_eq!(first, vec![Outcome::Created; all.len()]);
    let mut second = Vec::new();
    definitions::install(&client, &all, |_, outcome| second.push(outcome))
        .await
        .unwrap();
    assert_eq!(second, vec![Outcome::Unchanged; all.len()]);
    all[0]["spec"]["names"]["shortNames"] = json!(["mesh"]);
    let mut third = Vec::new();
    definitions::install(&client, &all[..1], |_, outcome| third.push(outcome))
        .await
        .unwrap();
    assert_eq!(third, [Outcome::Updated]);
    println!("definitions installed: {}", all.len());
}

/// Checks that every version in the schema is either installable or leads to a warning with a remedy.
async fn versions_without_charts_are_reported_at_admission(host: Host) {
    let catalog = Catalog::embedded().unwrap();
    let ours = definitions::own_definitions(&catalog).unwrap();
    definitions::install(&host.client(None).await, &ours, |_, _| {})
        .await
        .unwrap();
    install_chart(&host, "").await;
    let versions = schema_versions(&ours);
    wait_for_policy(&host, "v1.30.3", true).await;
    let mut reported = 0;
    for version in &versions {
        let warnings = version_warnings(&host, version).await;
        let installable = catalog.resolve(version).is_ok();
        assert_eq!(warnings.is_empty(), installable, "{version}: {warnings:?}");
        if let Some(warning) = warnings.first() {
            let remedy = format!("no charts of Istio {version}: add the version to charts.pull");
            assert!(warning.contains(&remedy), "{warning}");
            reported += 1;
        }
    }
    assert!(
        reported > 20 && reported < versions.len(),
        "{reported} of {}",
        versions.len()
    );
    println!(
        "versions: {} in the schema, {reported} reported at admission",
        versions.len()
    );
    let pull = format!(
        "charts: {{pull: [{{version: 1.30.3, digest: 'sha256:{}'}}]}}",
        "0".repeat(64)
    );
    install_chart(&host, &pull).await;
    wait_for_policy(&host, "v1.30.3", false).await;
    assert!(version_warnings(&host, "v1.30-latest").await.is_empty());
    assert_eq!(version_warnings(&host, "v1.30.2").await.len(), 1);
}

/// Returns the versions and aliases that the definition of `Istio` accepts.
fn schema_versions(definitions: &[Value]) -> Vec<String> {
    let istio = definitions
        .iter()
        .find(|one| one["spec"]["names"]["kind"] == "Istio");
    let schema = &istio.unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let versions = &schema["properties"]["spec"]["properties"]["version"]["enum"];
    serde_json::from_value(versions.clone()).unwrap()
}

async fn version_warnings(host: &Host, version: &str) -> Vec<String> {
    let istio = json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"},
        "spec": {"version": version, "namespace": "istio-system"}});
    host.warnings("/apis/sailoperator.io/v1/istios", &istio).await
}

/// Waits until the server warns about a version, or no longer does: an admission policy takes effect some
/// time after it is written.
async fn wait_for_policy(host: &Host, version: &str, warns: bool) {
    for _ in 0..300 {
        if version_warnings(host, version).await.is_empty() != warns {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the policy is not applied");
}

async fn samples_lead_to_plans(host: Host) {
    let catalog = Catalog::embedded().unwrap();
    let client = host.client(None).await;
    definitions::install(
        &client,
        &definitions::own_definitions(&catalog).unwrap(),
        |_, _| {},
    )
    .await
    .unwrap();
    let directory = repository_root().join("deploy/samples");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 6);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let objects = documents(&text);
        for object in &objects {
            host.apply(None, object)
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        let (library, problems) = Library::from_catalog(&catalog);
        assert!(problems.is_empty(), "{problems:?}");
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let snapshot = Snapshot::new(now, Arc::new(Settings::default()), Arc::new(library));
        let found = survey(&client, snapshot).await.unwrap();
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
        for object in objects
            .iter()
            .filter(|object| object["apiVersion"] == "sailoperator.io/v1")
        {
            check_plan(&found.snapshot, object);
            let plural = ObjectKind::ALL
                .into_iter()
                .find(|kind| kind.name() == object["kind"])
                .unwrap()
                .plural();
            let name = object["metadata"]["name"].as_str().unwrap();
            host.delete(&format!("/apis/sailoperator.io/v1/{plural}/{name}"))
                .await;
        }
    }
}

/// Checks that an object has a plan without errors. A tag may wait for its mesh, which is in another
/// sample.
fn check_plan(snapshot: &Snapshot, object: &Value) {
    let kind = ObjectKind::ALL
        .into_iter()
        .find(|kind| kind.name() == object["kind"])
        .unwrap();
    let subject = Subject::Object(kind, object["metadata"]["name"].as_str().unwrap().to_owned());
    let plan = plan(snapshot, &subject);
    assert!(!plan.is_empty(), "{subject:?}");
    for action in plan.actions() {
        if let Action::Event(event) = action {
            let waits = event.message.contains("not found");
            assert!(!event.warning || waits, "{subject:?}: {}", event.message);
        }
    }
}
