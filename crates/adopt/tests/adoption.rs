//! Tests adoptions on a real API server: objects that the real Helm 3, Helm 4 and istioctl installed get
//! new owners, no pod template changes, and every adoption can be undone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

#[path = "adoption/in_cluster_operator.rs"]
mod in_cluster_operator;
#[path = "adoption/pods.rs"]
mod pods;
mod support;
#[path = "adoption/transfer.rs"]
mod transfer;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use mainstay_adopt::{Adoption, HelmSource, Session, helm_to_operator, helm_to_resources};
use mainstay_cluster::apply::{ChangeKind, Engine};
use mainstay_cluster::desired::ObjectId;
use mainstay_cluster::live::Live;
use mainstay_testkit::CaseCounts;
use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::{suite, test_cases};
use serde_json::Value;

use support::{Helm, NAMESPACE, TestEnvironment, content, without_volatile_fields};

fn main() -> ExitCode {
    let cases = test_cases![
        "helm_installations_are_adopted_and_restored" => helm_installations_are_adopted_and_restored(),
        "istioctl_installations_are_adopted_and_restored" => istioctl_installations_are_adopted_and_restored(),
        "in_cluster_operator_installations_are_adopted_and_restored" => in_cluster_operator::installations_are_adopted_and_restored(),
        "istioctl_installations_are_transferred_to_helm" => transfer::istioctl_installations_are_transferred_to_helm(),
        "no_pod_restarts_under_controllers" => pods::no_pod_restarts(),
    ];
    let peers: Vec<&str> = PARTS.into_iter().chain(["helm4", "helm3", "istioctl"]).collect();
    suite::main(&peers, &cases)
}

/// A Helm release: namespace and name, chart, arguments.
type Installation = (
    (&'static str, &'static str),
    &'static str,
    &'static [&'static str],
);

/// Releases with and without a revision, with values at the top level and below the name of the
/// component, and a gateway.
const RELEASES: &[Installation] = &[
    (
        (NAMESPACE, "istio-base"),
        "base",
        &["--set", "defaultRevision=default"],
    ),
    (
        (NAMESPACE, "istiod"),
        "istio-control/istio-discovery",
        &[
            "--set",
            "autoscaleMin=2,pilot.env.PILOT_ENABLE_STATUS=true,meshConfig.accessLogFile=/dev/stdout",
        ],
    ),
    (
        (NAMESPACE, "istiod-canary"),
        "istio-control/istio-discovery",
        &["--set", "revision=canary,revisionTags={prod}"],
    ),
    (
        (NAMESPACE, "istio-cni"),
        "istio-cni",
        &["--set", "logging.level=debug"],
    ),
    (
        (NAMESPACE, "ztunnel"),
        "ztunnel",
        &["--set", "profile=ambient,resources.requests.cpu=150m"],
    ),
    (
        ("istio-ingress", "istio-ingress"),
        "gateway",
        &["--set", "service.type=ClusterIP"],
    ),
];

fn install_all(environment: &TestEnvironment, helm: &Helm) {
    for (release, chart, arguments) in RELEASES {
        helm.run("install", *release, &environment.chart(chart), arguments);
    }
}

async fn plan(session: &Session) -> Adoption {
    session
        .plan(false)
        .await
        .unwrap_or_else(|error| panic!("{error:?}"))
}

/// Checks that no plan changes the content of an object.
fn check_equal(counts: &mut CaseCounts, adoption: &Adoption, name: &str) {
    for plan in adoption.plans.iter().chain(&adoption.rejected) {
        let differences: Vec<_> = plan.effective().collect();
        counts.count(differences.is_empty(), || {
            let lines = differences.iter().map(|one| {
                format!(
                    "  {} {} {:?} {:?}\n",
                    one.object, one.field, one.live, one.desired
                )
            });
            format!(
                "{name} {}:\n{}",
                plan.component.describe(),
                lines.collect::<String>()
            )
        });
        counts.count(!plan.objects.is_empty(), || format!("{name}: no objects"));
    }
}

/// Describes the fields in which two objects differ.
fn describe_differences(name: &str, id: &str, old: &Value, new: Option<&Value>) -> String {
    let mut lines = format!("{name} {id}:\n");
    collect_differences("", old, new.unwrap_or(&Value::Null), &mut lines);
    lines
}

fn collect_differences(at: &str, old: &Value, new: &Value, lines: &mut String) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                collect_differences(&format!("{at}.{key}"), &old[key], &new[key], lines);
            }
        }
        _ if old != new => lines.extend(["  ", at, ": ", &old.to_string(), " -> ", &new.to_string(), "\n"]),
        _ => {}
    }
}

/// Checks that the content and generation of every object are unchanged.
fn check_content(
    counts: &mut CaseCounts,
    (before, after): (&BTreeMap<String, Value>, &BTreeMap<String, Value>),
    name: &str,
) {
    for (id, object) in before {
        let (old, new) = (content(object), after.get(id).map(content));
        counts.count(new.as_ref() == Some(&old), || {
            describe_differences(name, id, &old, new.as_ref())
        });
    }
}

/// Installs every release as the operator does, and checks that it writes only the differences in the
/// plan and no workload.
async fn check_operator(
    counts: &mut CaseCounts,
    environment: &TestEnvironment,
    adoption: &Adoption,
    name: &str,
) {
    let engine = Engine::new(environment.client.clone());
    let session = environment.session().await;
    let mut live = Live::default();
    for object in environment.state().await.into_values() {
        if object["metadata"]["labels"]["managed-by"] == "sail-operator"
            && let Ok(id) = ObjectId::from_object(&object)
        {
            live.record(id, Some(Arc::new(object)));
        }
    }
    for desired in session.operator_releases(adoption).await.unwrap() {
        let known = live.extract(&desired);
        let changes = engine.install(&desired, known).await;
        let changes = changes.unwrap_or_else(|stopped| panic!("{name}: {}", stopped.error));
        for change in changes.iter().filter(|change| change.kind.is_write()) {
            let is_planned = change.kind == ChangeKind::Created
                || adoption.plans.iter().any(|plan| {
                    plan.differences
                        .iter()
                        .any(|one| one.object.ends_with(&change.id.name))
                });
            counts.count(is_planned, || {
                format!("{name}: {:?} {} {:?}", change.kind, change.id, change.reason)
            });
            let is_workload = matches!(change.id.kind.as_str(), "Deployment" | "DaemonSet");
            counts.count(!is_workload, || {
                format!("{name}: {} was written: {:?}", change.id, change.reason)
            });
        }
    }
}

/// Checks that all earlier objects are restored, apart from the order of managed fields.
fn check_restored(
    counts: &mut CaseCounts,
    (before, after): (&BTreeMap<String, Value>, &BTreeMap<String, Value>),
    name: &str,
) {
    for (id, object) in before {
        let (mut old, mut new) = (
            without_volatile_fields(object),
            after.get(id).map(without_volatile_fields),
        );
        // `managedFields` contains the manager that wrote the changed label last.
        if id.starts_with("Secret ") {
            old["metadata"]["managedFields"] = Value::Null;
            if let Some(new) = &mut new {
                new["metadata"]["managedFields"] = Value::Null;
            }
        }
        counts.count(new.as_ref() == Some(&old), || {
            describe_differences(name, id, &old, new.as_ref())
        });
    }
}

async fn helm_installations_are_adopted_and_restored() {
    let mut counts = CaseCounts::default();
    for generation in ["helm3", "helm4", "helm4 --server-side=true"] {
        let environment = TestEnvironment::start().await;
        let helm = environment.helm(generation);
        install_all(&environment, &helm);
        let before = environment.state().await;
        let session = environment.session().await;
        check_migrations(&mut counts, &environment, &session, generation).await;
        let adoption = plan(&session).await;
        assert_eq!(adoption.plans.len(), 4, "{:?}", adoption.found);
        check_equal(&mut counts, &adoption, generation);
        check_content(&mut counts, (&before, &environment.state().await), generation);
        let applied = session
            .apply(&adoption)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(applied.objects > 40 && applied.hidden == 5, "{applied:?}");
        check_content(
            &mut counts,
            (&without_secrets(&before), &environment.state().await),
            generation,
        );
        assert_eq!(helm.list(), ["istio-ingress"], "{generation}");
        let again = plan(&session).await;
        assert!(again.plans.is_empty(), "{generation}: {:?}", again.found);
        session
            .undo(NAMESPACE)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        check_restored(&mut counts, (&before, &environment.state().await), generation);
        for (release, chart, arguments) in RELEASES {
            helm.run("upgrade", *release, &environment.chart(chart), arguments);
        }
        let upgraded = environment.state().await;
        check_content(&mut counts, (&workloads(&before), &upgraded), generation);
        // Adopts the mesh again and runs the operator.
        let adoption = plan(&session).await;
        session
            .apply(&adoption)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        check_operator(&mut counts, &environment, &adoption, generation).await;
        check_content(
            &mut counts,
            (&workloads(&before), &environment.state().await),
            generation,
        );
    }
    println!("adopted from Helm: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

/// Checks that the releases in Helm's Secrets are converted to configurations that render the same
/// objects.
async fn check_migrations(
    counts: &mut CaseCounts,
    environment: &TestEnvironment,
    session: &Session,
    name: &str,
) {
    let (observed, _) = session.observe().await.unwrap_or_else(|error| panic!("{error}"));
    let sources = observed
        .releases
        .iter()
        .filter(|release| release.chart() != "gateway");
    let sources: Vec<HelmSource> = sources
        .map(|release| {
            HelmSource::from_release(release, &environment.catalog)
                .unwrap()
                .unwrap()
        })
        .collect();
    assert_eq!(sources.len(), 5, "{name}");
    for (form, migration) in [
        ("IstioOperator", helm_to_operator(&sources, &environment.catalog)),
        ("resources", helm_to_resources(&sources, &environment.catalog)),
    ] {
        let migration = migration.unwrap_or_else(|error| panic!("{name} {form}: {error}"));
        counts.count(migration.is_equal() && migration.equal_objects > 40, || {
            format!(
                "{name} {form}: {} equal, {:#?}",
                migration.equal_objects, migration.differences
            )
        });
    }
}

fn without_secrets(state: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let kept = state.iter().filter(|(id, _)| !id.starts_with("Secret "));
    kept.map(|(id, object)| (id.clone(), object.clone())).collect()
}

fn workloads(state: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let kept = state
        .iter()
        .filter(|(id, _)| id.starts_with("Deployment ") || id.starts_with("DaemonSet "));
    kept.map(|(id, object)| (id.clone(), object.clone())).collect()
}

async fn istioctl_installations_are_adopted_and_restored() {
    let mut counts = CaseCounts::default();
    for arguments in [
        &["--set", "profile=default"][..],
        &["--set", "profile=minimal", "--set", "revision=canary"][..],
        &[
            "--set",
            "profile=ambient",
            "--set",
            "components.pilot.k8s.env[0].name=A",
        ][..2],
        &[
            "--set",
            "profile=minimal",
            "--set",
            "components.pilot.k8s.resources.requests.cpu=321m",
        ][..],
    ] {
        let name = arguments.join(" ");
        let environment = TestEnvironment::start().await;
        environment.istioctl_install(arguments);
        let before = environment.state().await;
        assert!(!workloads(&before).is_empty(), "{name}");
        let session = environment.session().await;
        let adoption = plan(&session).await;
        check_equal(&mut counts, &adoption, &name);
        let applied = session
            .apply(&adoption)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(applied.objects > 10, "{name}: {applied:?}");
        check_content(&mut counts, (&before, &environment.state().await), &name);
        session
            .undo(NAMESPACE)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        check_restored(&mut counts, (&before, &environment.state().await), &name);
        let adoption = plan(&session).await;
        session
            .apply(&adoption)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        check_operator(&mut counts, &environment, &adoption, &name).await;
        check_content(
            &mut counts,
            (&workloads(&before), &environment.state().await),
            &name,
        );
    }
    println!("adopted from istioctl: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}
