//! SIGKILL after the n-th write of an installation: the next run converges.

use std::collections::BTreeSet;

use mainstay_sim::fault::{Fault, Rule, Trigger};
use mainstay_testkit::case_count;
use mainstay_testkit::cluster::Audit;

use super::host::{CLIENTS, Host};

const INSTALL: [&str; 4] = ["install", "--profile=demo", "-y", "--readiness-timeout=2m"];

/// Kills a run after each of several writes, spread evenly; `MAINSTAY_CASES` sets their number.
pub(crate) async fn kill_after_each_write() {
    let reference = Host::simulated().await;
    let client = installing_client(&reference).await;
    let expected = reference.inventory().await;
    let writes = reference
        .simulator()
        .with(|state| state.faults.counts(&client).writes);
    let points = case_count(4).min(20);
    let mut converged = 0;
    for point in 0..points {
        let after = writes * point as u64 / points as u64;
        converged += usize::from(kill_after(after, &client, &expected).await);
    }
    println!("killed installations: {points} run, {converged} converged");
    assert_eq!(converged, points);
    killed_uninstallations(&client, points).await;
}

/// Kills uninstall runs after several of their writes; the next run deletes the rest.
async fn killed_uninstallations(client: &str, points: usize) {
    const UNINSTALL: [&str; 3] = ["uninstall", "--purge", "-y"];
    let host = Host::simulated().await;
    let before = host.inventory().await;
    let writes = || host.simulator().with(|state| state.faults.counts(client).writes);
    for point in 0..points {
        host.ok(&INSTALL).await;
        kill_at(&host, client, writes() + 2 * point as u64, &UNINSTALL).await;
        host.ok(&UNINSTALL).await;
        host.until_inventory(&before).await;
    }
    println!("killed uninstallations: {points} run, {points} converged");
}

/// Starts the binary, blocks the given write in the simulator, kills the binary, and clears the fault.
async fn kill_at(host: &Host, client: &str, write: u64, arguments: &[&str]) {
    let never = std::time::Duration::from_hours(10);
    let rule = Rule::once(client, Trigger::Write(write), Fault::Slow(never));
    host.simulator().add_fault(rule);
    let mut child = host.spawn(arguments);
    host.until("the write", async || {
        host.simulator().with(|state| state.faults.counts(client).writes) > write
    })
    .await;
    child.kill().unwrap();
    child.wait().unwrap();
    host.simulator().with(|state| state.faults.clear());
}

/// Installs without interruption and returns the client name that the simulator recorded for it.
async fn installing_client(host: &Host) -> String {
    host.ok(&INSTALL).await;
    let writes = |name: &str| host.simulator().with(|state| state.faults.counts(name).writes);
    let found = CLIENTS.into_iter().find(|name| writes(name) > 0);
    found.expect("the installation wrote nothing").to_owned()
}

async fn kill_after(write: u64, client: &str, expected: &BTreeSet<String>) -> bool {
    let host = Host::simulated().await;
    let before = host.inventory().await;
    kill_at(&host, client, write, &INSTALL).await;
    host.ok(&INSTALL).await;
    let found = host.inventory().await;
    if found != *expected {
        println!(
            "after write {write}: {:#?}",
            found.symmetric_difference(expected).collect::<Vec<_>>()
        );
        return false;
    }
    host.ok(&["verify"]).await;
    host.ok(&["uninstall", "--purge", "-y"]).await;
    host.until_inventory(&before).await;
    true
}

/// Kills runs on a real API server after several writes, spread evenly, as its audit log counts them.
pub(crate) async fn kill_after_each_write_real() {
    const INSTALL: [&str; 4] = ["install", "--profile=minimal", "-y", "--readiness-timeout=3m"];
    let host = Host::audited().await;
    let before = host.inventory().await;
    let mut audit = host.audit();
    audit.reset().unwrap();
    host.ok(&INSTALL).await;
    let (expected, writes) = (host.inventory().await, writes(&audit));
    host.ok(&["uninstall", "--purge", "-y"]).await;
    host.until_inventory(&before).await;
    let points = case_count(2).min(20);
    let mut converged = 0;
    for point in 0..points {
        let after = writes * point / points;
        audit.reset().unwrap();
        let mut child = host.spawn(&INSTALL);
        host.until("the write", async || self::writes(&audit) > after)
            .await;
        child.kill().unwrap();
        let ended = child.wait().unwrap();
        assert!(
            !ended.success(),
            "the installation ended before write {after} of {writes}"
        );
        host.ok(&INSTALL).await;
        let found = host.inventory().await;
        converged += usize::from(found == expected);
        if found != expected {
            let differing: Vec<_> = found.symmetric_difference(&expected).collect();
            println!("after write {after}: {differing:#?}");
        }
        host.ok(&["verify"]).await;
        host.ok(&["uninstall", "--purge", "-y"]).await;
        host.until_inventory(&before).await;
    }
    println!("killed installations on a real server: {points} run, {converged} converged");
    assert_eq!(converged, points);
}

/// Returns the number of writes of the installing user.
fn writes(audit: &Audit) -> usize {
    audit
        .counts()
        .unwrap()
        .get("admin")
        .map_or(0, |count| count.writes)
}
