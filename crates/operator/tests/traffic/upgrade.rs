//! Tests the upgrade under load, with and without a workload that does not become ready.

use std::time::{Duration, Instant};

use mainstay_testkit::mesh::{Load, Results};
use serde_json::{Value, json};

use crate::chart;
use crate::fixtures::{self, APPS, GATEWAY, NEW, NEW_VERSION, OLD};
use crate::test_mesh::TestMesh;

/// Requests per second, slightly more than required.
pub const RATE: u32 = 160;
/// Duration of the load before the version change and after the migration.
const MARGIN: Duration = Duration::from_secs(3);

/// Checks that no request fails between the change of the version and the deletion of the old control
/// plane. Runs `MAINSTAY_TRAFFIC_RUNS` times.
pub async fn no_request_fails() {
    for run in 1..=runs() {
        println!("run {run}");
        run_upgrade().await;
    }
}

/// Returns `MAINSTAY_TRAFFIC_RUNS`, default 1.
fn runs() -> u32 {
    let runs = std::env::var("MAINSTAY_TRAFFIC_RUNS").ok();
    runs.map_or(1, |runs| runs.parse().expect("a number of runs"))
}

async fn run_upgrade() {
    let mut mesh = TestMesh::with_apps().await;
    println!("mesh up: {:.1} s", mesh.startup_time.as_secs_f64());
    until_all_on(&mut mesh, OLD).await;
    mesh.observer.checks_plaintext = true;
    let (results, took) = under_load(&mut mesh, async |mesh| {
        mesh.change_version(NEW_VERSION).await;
        let begin = Instant::now();
        until_migrated(mesh).await;
        begin.elapsed()
    })
    .await;
    chart::write(&mesh.observer, &results);
    assert_all_proxies_on_new_revision(&mesh).await;
    let gateway = injected_by(&mesh, &GATEWAY).await;
    let rejected = rejected_plaintext(&mesh);
    println!(
        "basic: {} of {} proxies on {NEW}, {rejected} plaintext requests rejected, {}",
        fixtures::proxies(),
        fixtures::proxies(),
        summary(&results)
    );
    println!(
        "zero downtime: {}, {:.1} s",
        summary(&results),
        took.as_secs_f64()
    );
    println!("ingress: gateway on {gateway}, {}", summary(&results));
    assert_eq!(gateway, NEW);
    check_no_failures(&mesh, &results);
}

/// Returns the revisions that injected the pods of a workload.
async fn injected_by(mesh: &TestMesh, app: &fixtures::App) -> String {
    let path = format!("/api/v1/namespaces/{}/pods", app.namespace);
    let pods = mesh.list(&path).await;
    let staying = pods
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let revisions: std::collections::BTreeSet<&str> = staying
        .map(|pod| {
            pod["metadata"]["annotations"]["istio.io/rev"]
                .as_str()
                .unwrap_or("none")
        })
        .collect();
    revisions.into_iter().collect::<Vec<_>>().join(", ")
}

/// Returns the number of rejected plaintext requests. Panics if one was accepted.
fn rejected_plaintext(mesh: &TestMesh) -> usize {
    let observer = &mesh.observer;
    assert!(
        observer.rejected > 10,
        "only {} plaintext requests were rejected",
        observer.rejected
    );
    assert!(observer.accepted.is_empty(), "{}", observer.accepted.join("\n"));
    observer.rejected
}

/// Checks an upgrade in which one workload does not become ready. The others must migrate, the failure must
/// be reported, and the workload must migrate once it becomes ready.
pub async fn one_workload_is_held() {
    let mut mesh = TestMesh::with_apps().await;
    until_all_on(&mut mesh, OLD).await;
    let held = &APPS[1];
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{}",
        held.namespace, held.name
    );
    mesh.merge_patch(
        &path,
        &json!({"metadata": {"annotations": {"sailoperator.io/readiness-timeout": "8s"}}}),
    )
    .await;
    std::fs::write(mesh.hold_file(held.name), "").unwrap();
    let (results, ()) = under_load(&mut mesh, async |mesh| {
        mesh.change_version(NEW_VERSION).await;
        let failed = mesh
            .until("the migration has failed", 180, async |mesh| {
                let migration = mesh.migration().await?;
                (migration["state"] == "Failed").then_some(migration)
            })
            .await;
        mesh.note("one failed, the others migrated");
        assert_eq!(counts(&failed), (4, 1, 5), "{failed:#}");
        assert_eq!(failed["failures"][0]["name"], held.name, "{failed:#}");
        assert_eq!(failed["failures"][0]["namespace"], held.namespace, "{failed:#}");
        println!("failure reason: {}", failed["failures"][0]["reason"]);
        let events = reasons(mesh).await;
        for reason in [
            "MigrationStarted",
            "BatchStarted",
            "WorkloadFailed",
            "MigrationEnded",
        ] {
            assert!(
                events.iter().any(|event| event == reason),
                "no {reason} among {events:?}"
            );
        }
        assert!(
            mesh.get(&revision(OLD)).await.is_some(),
            "the old revision is still in use"
        );
        std::fs::remove_file(mesh.hold_file(held.name)).unwrap();
        mesh.note("the workload may become ready");
        until_migrated(mesh).await;
    })
    .await;
    assert_all_proxies_on_new_revision(&mesh).await;
    println!("failure recovery: {}", summary(&results));
    check_no_failures(&mesh, &results);
}

/// Checks that at any time no namespace refers to a revision without an istiod.
pub async fn pods_are_injected_at_any_time() {
    let mut mesh = TestMesh::with_apps().await;
    until_all_on(&mut mesh, OLD).await;
    mesh.observer.checks_injection = true;
    let (results, ()) = under_load(&mut mesh, async |mesh| {
        mesh.change_version(NEW_VERSION).await;
        until_migrated(mesh).await;
    })
    .await;
    let observer = &mesh.observer;
    println!(
        "pruning: {} of {} pods not injected, {}",
        observer.injection_failures.len(),
        observer.injection_checks,
        summary(&results)
    );
    assert!(
        observer.injection_checks > 50,
        "only {} pods were tried",
        observer.injection_checks
    );
    assert!(
        observer.injection_failures.is_empty(),
        "{}",
        observer.injection_failures.join("\n")
    );
    check_no_failures(&mesh, &results);
}

/// Runs `work` under load.
pub async fn under_load<T>(
    mesh: &mut TestMesh,
    mut work: impl AsyncFnMut(&mut TestMesh) -> T,
) -> (Results, T) {
    let gateway = mesh
        .mesh
        .address(GATEWAY.namespace, GATEWAY.name, 80)
        .await
        .unwrap();
    mesh.observer.restart();
    let load = Load::start(gateway, RATE);
    mesh.sleep(MARGIN).await;
    let done = work(mesh).await;
    mesh.sleep(MARGIN).await;
    (load.finish(), done)
}

/// Waits until every workload has migrated and the old control plane is deleted.
pub async fn until_migrated(mesh: &mut TestMesh) {
    let status = mesh
        .until("every workload has migrated", 240, async |mesh| {
            let migration = mesh.migration().await?;
            let done = migration["state"] == "Completed" && migration["targetRevision"] == NEW;
            done.then_some(migration)
        })
        .await;
    assert_eq!(counts(&status), (5, 0, 5), "{status:#}");
    mesh.note("all workloads migrated");
    mesh.until("the old revision is deleted", 120, async |mesh| {
        let old = format!("/apis/apps/v1/namespaces/istio-system/deployments/istiod-{OLD}");
        let gone = mesh.get(&revision(OLD)).await.is_none() && mesh.get(&old).await.is_none();
        (gone && mesh.get(&revision(NEW)).await.is_some()).then_some(())
    })
    .await;
    mesh.note("the old control plane is deleted");
    until_all_on(mesh, NEW).await;
}

/// Returns the numbers of migrated, failed and all workloads.
fn counts(status: &Value) -> (i64, i64, i64) {
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    (
        count("migratedWorkloads"),
        count("failedWorkloads"),
        count("totalWorkloads"),
    )
}

fn revision(name: &str) -> String {
    format!("/apis/sailoperator.io/v1/istiorevisions/{name}")
}

async fn reasons(mesh: &TestMesh) -> Vec<String> {
    let events = mesh.list("/apis/events.k8s.io/v1/events").await;
    let reasons = events
        .iter()
        .filter_map(|event| event["reason"].as_str().map(str::to_owned));
    reasons.collect()
}

/// Waits until every proxy is connected to the istiod of this revision.
pub async fn until_all_on(mesh: &mut TestMesh, revision: &str) {
    let wanted = fixtures::proxies();
    mesh.until(&format!("all proxies on {revision}"), 60, async |mesh| {
        let proxies = mesh.mesh.proxies("istio-system").await.ok()?;
        let others = proxies.iter().filter(|(name, _)| *name != revision);
        let elsewhere: usize = others.map(|(_, all)| all.len()).sum();
        let here = proxies.get(revision).map_or(0, Vec::len);
        (here == wanted && elsewhere == 0).then_some(())
    })
    .await;
}

async fn assert_all_proxies_on_new_revision(mesh: &TestMesh) {
    let proxies = mesh.mesh.proxies("istio-system").await.unwrap();
    let versions: Vec<&str> = proxies
        .values()
        .flatten()
        .map(|proxy| proxy.version.as_str())
        .collect();
    assert_eq!(versions, vec!["1.29.1"; fixtures::proxies()], "{proxies:?}");
    assert_eq!(proxies.keys().collect::<Vec<_>>(), [NEW]);
}

/// Summarizes the results of a load in one line.
pub fn summary(results: &Results) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "{} failed of {} sent, {:.0}/s, p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms",
        results.failures().count(),
        results.sent(),
        results.rate(),
        ms(results.percentile(50)),
        ms(results.percentile(99)),
        ms(results.longest()),
    )
}

pub fn check_no_failures(mesh: &TestMesh, results: &Results) {
    let failures: Vec<String> = results
        .failures()
        .take(20)
        .map(|sample| {
            format!(
                "[{:.2} s] {}",
                sample.due.as_secs_f64(),
                sample.failure.as_deref().unwrap_or_default()
            )
        })
        .collect();
    if !failures.is_empty() {
        println!("logs are kept in {}", mesh.keep_logs());
        println!("{}", failures.join("\n"));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(
        results.rate() >= 150.0,
        "only {:.0} requests per second",
        results.rate()
    );
}
