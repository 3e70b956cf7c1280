//! The upgrade itself, under load, with everything that must hold of it; and the same with one workload that does not come up.

use std::time::{Duration, Instant};

use mainstay_testkit::mesh::{Load, Results};
use serde_json::{Value, json};

use crate::made::{self, GATEWAY, NEW, NEW_VERSION, OLD, SHOPS};
use crate::picture;
use crate::town::Town;

/// Requests per second, somewhat above what is asked for.
pub const RATE: u32 = 160;
/// Before the change and after the end, so that the picture shows both.
const CALM: Duration = Duration::from_secs(3);

/// From the change of one string to the end of the old control plane, not one request fails; as many times as asked for.
pub async fn every_request_is_answered() {
    for run in 1..=runs() {
        println!("run {run}");
        once().await;
    }
}

/// `MAINSTAY_TRAFFIC_RUNS`, or one.
fn runs() -> u32 {
    let asked = std::env::var("MAINSTAY_TRAFFIC_RUNS").ok();
    asked.map_or(1, |runs| runs.parse().expect("a number of runs"))
}

async fn once() {
    let mut town = Town::open().await;
    println!("mesh up: {:.1} s", town.came_up_in.as_secs_f64());
    until_all_on(&mut town, OLD).await;
    town.witness.tries_plaintext = true;
    let (results, took) = under_load(&mut town, async |town| {
        town.change_version(NEW_VERSION).await;
        let begin = Instant::now();
        until_moved(town).await;
        begin.elapsed()
    })
    .await;
    picture::write(&town.witness, &results);
    all_on_the_new_one(&town).await;
    let gateway = injected_by(&town, &GATEWAY).await;
    let refused = refused_plaintext(&town);
    println!(
        "basic: {} of {} proxies on {NEW}, {refused} plaintext requests refused, {}",
        made::proxies(),
        made::proxies(),
        tell(&results)
    );
    println!("zero downtime: {}, {:.1} s", tell(&results), took.as_secs_f64());
    println!("ingress: gateway on {gateway}, {}", tell(&results));
    assert_eq!(gateway, NEW);
    none_failed(&town, &results);
}

/// Who injected the pods of a workload that stay.
async fn injected_by(town: &Town, shop: &made::Shop) -> String {
    let path = format!("/api/v1/namespaces/{}/pods", shop.namespace);
    let pods = town.list(&path).await;
    let staying = pods
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let revisions: std::collections::BTreeSet<&str> = staying
        .map(|pod| {
            pod["metadata"]["annotations"]["istio.io/rev"]
                .as_str()
                .unwrap_or("nobody")
        })
        .collect();
    revisions.into_iter().collect::<Vec<_>>().join(", ")
}

/// How many were refused; all of them must have been.
fn refused_plaintext(town: &Town) -> usize {
    let witness = &town.witness;
    assert!(witness.refused > 10, "{} are too few to say", witness.refused);
    assert!(witness.answered.is_empty(), "{}", witness.answered.join("\n"));
    witness.refused
}

/// One workload does not come up: the others move, what is told of it is right, and once it can, it moves as well.
pub async fn one_workload_is_held() {
    let mut town = Town::open().await;
    until_all_on(&mut town, OLD).await;
    let held = &SHOPS[1];
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{}",
        held.namespace, held.name
    );
    town.merge(
        &path,
        &json!({"metadata": {"annotations": {"sailoperator.io/readiness-timeout": "8s"}}}),
    )
    .await;
    std::fs::write(town.hold(held.name), "").unwrap();
    let (results, ()) = under_load(&mut town, async |town| {
        town.change_version(NEW_VERSION).await;
        let failed = town
            .until("the migration says that one failed", 180, async |town| {
                let migration = town.migration().await?;
                (migration["state"] == "Failed").then_some(migration)
            })
            .await;
        town.note("one failed, the others moved");
        assert_eq!(counts(&failed), (4, 1, 5), "{failed:#}");
        assert_eq!(failed["failures"][0]["name"], held.name, "{failed:#}");
        assert_eq!(failed["failures"][0]["namespace"], held.namespace, "{failed:#}");
        println!("failure reason: {}", failed["failures"][0]["reason"]);
        let events = reasons(town).await;
        for reason in [
            "MigrationStarted",
            "BatchStarted",
            "WorkloadFailed",
            "MigrationEnded",
        ] {
            assert!(
                events.iter().any(|told| told == reason),
                "no {reason} among {events:?}"
            );
        }
        assert!(
            town.get(&revision(OLD)).await.is_some(),
            "somebody still needs it"
        );
        std::fs::remove_file(town.hold(held.name)).unwrap();
        town.note("the block is lifted");
        until_moved(town).await;
    })
    .await;
    all_on_the_new_one(&town).await;
    println!("failure recovery: {}", tell(&results));
    none_failed(&town, &results);
}

/// At no moment does a namespace resolve to a revision nobody answers for.
pub async fn a_pod_is_injected_at_any_moment() {
    let mut town = Town::open().await;
    until_all_on(&mut town, OLD).await;
    town.witness.tries_pods = true;
    let (results, ()) = under_load(&mut town, async |town| {
        town.change_version(NEW_VERSION).await;
        until_moved(town).await;
    })
    .await;
    let witness = &town.witness;
    println!(
        "pruning hazard: {} of {} pods missed, {}",
        witness.misses.len(),
        witness.tries,
        tell(&results)
    );
    assert!(witness.tries > 50, "{} are too few to say", witness.tries);
    assert!(witness.misses.is_empty(), "{}", witness.misses.join("\n"));
    none_failed(&town, &results);
}

/// Runs something while requests flow, with some calm before and after.
pub async fn under_load<T>(town: &mut Town, mut work: impl AsyncFnMut(&mut Town) -> T) -> (Results, T) {
    let gateway = town
        .mesh
        .address(GATEWAY.namespace, GATEWAY.name, 80)
        .await
        .unwrap();
    town.witness.restart();
    let load = Load::start(gateway, RATE);
    town.pass(CALM).await;
    let done = work(town).await;
    town.pass(CALM).await;
    (load.finish(), done)
}

/// Every workload moved, and the old control plane is gone.
pub async fn until_moved(town: &mut Town) {
    let status = town
        .until("every workload has moved", 240, async |town| {
            let migration = town.migration().await?;
            let done = migration["state"] == "Completed" && migration["targetRevision"] == NEW;
            done.then_some(migration)
        })
        .await;
    assert_eq!(counts(&status), (5, 0, 5), "{status:#}");
    town.note("all workloads moved");
    town.until("the old revision is gone", 120, async |town| {
        let old = format!("/apis/apps/v1/namespaces/istio-system/deployments/istiod-{OLD}");
        let gone = town.get(&revision(OLD)).await.is_none() && town.get(&old).await.is_none();
        (gone && town.get(&revision(NEW)).await.is_some()).then_some(())
    })
    .await;
    town.note("the old control plane is gone");
    until_all_on(town, NEW).await;
}

/// Migrated, failed, all.
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

async fn reasons(town: &Town) -> Vec<String> {
    let events = town.list("/apis/events.k8s.io/v1/events").await;
    let reasons = events
        .iter()
        .filter_map(|event| event["reason"].as_str().map(str::to_owned));
    reasons.collect()
}

/// Every proxy hangs on this istiod, as it says itself, and on no other.
pub async fn until_all_on(town: &mut Town, revision: &str) {
    let wanted = made::proxies();
    town.until(&format!("all proxies on {revision}"), 60, async |town| {
        let proxies = town.mesh.proxies("istio-system").await.ok()?;
        let others = proxies.iter().filter(|(name, _)| *name != revision);
        let elsewhere: usize = others.map(|(_, all)| all.len()).sum();
        let here = proxies.get(revision).map_or(0, Vec::len);
        (here == wanted && elsewhere == 0).then_some(())
    })
    .await;
}

async fn all_on_the_new_one(town: &Town) {
    let proxies = town.mesh.proxies("istio-system").await.unwrap();
    let versions: Vec<&str> = proxies
        .values()
        .flatten()
        .map(|proxy| proxy.version.as_str())
        .collect();
    assert_eq!(versions, vec!["1.29.1"; made::proxies()], "{proxies:?}");
    assert_eq!(proxies.keys().collect::<Vec<_>>(), [NEW]);
}

/// How a load went, in one line.
pub fn tell(results: &Results) -> String {
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

pub fn none_failed(town: &Town, results: &Results) {
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
        println!("logs are kept in {}", town.keep_logs());
        println!("{}", failures.join("\n"));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(
        results.rate() >= 150.0,
        "only {:.0} requests per second",
        results.rate()
    );
}
