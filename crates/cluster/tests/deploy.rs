//! What is shipped under `deploy/`, against the simulator and a real API server: the chart's objects are
//! accepted, its roles are enough for everything the operator installs and for no more, definitions are
//! installed once, samples are accepted and lead to plans without errors.

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
    pub(crate) mod host;
}

use std::process::ExitCode;
use std::sync::Arc;

use deploy::charts::{documents, operator_chart, releases};
use deploy::host::Host;
use mainstay_api::ObjectKind;
use mainstay_catalog::Catalog;
use mainstay_cluster::definitions::{self, Outcome};
use mainstay_cluster::survey::survey;
use mainstay_mesh::{Action, Library, Settings, Snapshot, Subject, plan};
use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::repository_root;
use mainstay_testkit::suite::{self, TestCase};
use serde_json::{Value, json};

/// Where the operator is installed.
const NAMESPACE: &str = "sail-operator";
const ACCOUNT: &str = "system:serviceaccount:sail-operator:mainstay";
const JOB: &str = "system:serviceaccount:sail-operator:mainstay-crds";

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
        its_roles_are_enough_and_no_more,
        definitions_are_installed_once,
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
}

/// Installs everything in the chart, hooks included, as a user with all rights.
async fn install_chart(host: &Host, values: &str) -> usize {
    host.make_namespace(NAMESPACE).await;
    let objects = operator_chart(NAMESPACE, values);
    for object in &objects {
        host.apply(None, object).await.unwrap();
    }
    objects.len()
}

async fn the_chart_is_accepted(host: Host) {
    assert_eq!(install_chart(&host, "").await, 16);
    let more =
        "replicas: 2\npodDisruptionBudget: {enabled: true}\noperator: {images: {v1_29_1: {istiod: a/b:c}}}\n";
    install_chart(&host, more).await;
}

async fn its_roles_are_enough_and_no_more(host: Host) {
    install_chart(&host, "").await;
    for namespace in ["istio-system", "istio-cni", "ztunnel"] {
        host.make_namespace(namespace).await;
    }
    let owner = make_owner(&host).await;
    let mut applied = 0;
    for release in releases() {
        for object in &release.objects {
            let response = host.apply(Some(ACCOUNT), &with_owner(object, &owner)).await;
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
    every_sentence_of_the_documentation_holds(&host, &owner).await;
    without_grants_no_new_role(&host).await;
}

/// Creates an object of ours and returns a reference to it.
async fn make_owner(host: &Host) -> Value {
    let definitions = definitions::own_definitions(&Catalog::embedded().unwrap()).unwrap();
    definitions::install(&host.client(None).await, &definitions, |_, _| {})
        .await
        .unwrap();
    let cni = json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioCNI", "metadata": {"name": "default"},
        "spec": {"version": "v1.29.1", "namespace": "istio-cni"}});
    let made = host
        .create(None, "/apis/sailoperator.io/v1/istiocnis", &cni)
        .await;
    let uid = made["metadata"]["uid"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"));
    json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioCNI", "name": "default", "uid": uid})
}

/// As the operator installs it.
fn with_owner(object: &Value, owner: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["ownerReferences"] = json!([owner]);
    object
}

/// The table in docs/rbac.md: each line is asked with a `SelfSubjectAccessReview`, as the operator's account.
async fn every_sentence_of_the_documentation_holds(host: &Host, owner: &Value) {
    let text = std::fs::read_to_string(repository_root().join("docs/rbac.md")).unwrap();
    let (mut asked, mut wrong) = (0, Vec::new());
    for line in text.lines().filter_map(|line| line.strip_prefix("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [request, expected, ..] = cells.as_slice() else {
            continue;
        };
        let allowed = match *expected {
            "yes" => true,
            "no" => false,
            _ => continue,
        };
        let words: Vec<&str> = request.trim_end_matches('`').split(' ').collect();
        let (verb, resource) = (words[0], words[1]);
        let namespace = words
            .get(2)
            .and_then(|word| word.strip_prefix("-n="))
            .unwrap_or_default();
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": verb, "resource": resource, "subresource": subresource,
                "group": group, "namespace": namespace}},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let response = host.create(Some(ACCOUNT), path, &review).await;
        if response["status"]["allowed"] != json!(allowed) {
            wrong.push(format!("{request} {}", response["status"]));
        }
        asked += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("lines of docs/rbac.md asked: {asked}");
    assert!(asked >= 20, "{asked}");
    confinement_holds(host, owner).await;
}

async fn confinement_holds(host: &Host, owner: &Value) {
    let workload = |kind: &str, namespace: &str| {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    };
    for kind in ["Deployment", "DaemonSet"] {
        let error = host
            .apply(Some(ACCOUNT), &workload(kind, "istio-system"))
            .await
            .unwrap_err();
        assert!(
            error.contains("only for objects of sailoperator.io"),
            "{kind}: {error}"
        );
        let protected = with_owner(&workload(kind, "kube-system"), owner);
        let error = host.apply(Some(ACCOUNT), &protected).await.unwrap_err();
        assert!(error.contains("protected namespaces"), "{kind}: {error}");
        host.apply(None, &workload(kind, "istio-system")).await.unwrap();
    }
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "istio-system"}});
    let path = "/api/v1/namespaces/istio-system/secrets";
    let response = host.create(Some(ACCOUNT), path, &secret).await;
    let message = response["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("the operator does not write Secrets or pods"),
        "{response}"
    );
    assert_eq!(host.create(None, path, &secret).await["kind"], "Secret");
}

/// The roles that are there already are no obstacle; a new one is.
async fn without_grants_no_new_role(host: &Host) {
    host.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/sail-operator-mainstay-grants")
        .await;
    let all: Vec<Value> = releases()
        .into_iter()
        .flat_map(|release| release.objects)
        .collect();
    let role = all.iter().rev().find(|object| {
        object["kind"] == "ClusterRole" && object["rules"].as_array().is_some_and(|rules| rules.len() > 10)
    });
    let mut role = role.unwrap().clone();
    let mut settled = host.apply(Some(ACCOUNT), &role).await;
    settled.as_mut().unwrap();
    role["metadata"]["name"] = json!("another");
    let error = host.apply(Some(ACCOUNT), &role).await.unwrap_err();
    assert!(
        error.contains("is attempting to grant RBAC permissions not currently held"),
        "{error}"
    );
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
            planned_without_error(&found.snapshot, object);
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

/// A tag waits for the mesh it points to, which another sample makes; nothing else may be wrong.
fn planned_without_error(snapshot: &Snapshot, object: &Value) {
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
