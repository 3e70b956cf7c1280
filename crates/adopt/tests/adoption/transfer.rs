//! Tests the transfer of a mesh of istioctl to Helm, with upgrades and an uninstallation by the real Helm.

use std::collections::BTreeMap;

use mainstay_adopt::{Component, HelmTransfer, Installer, ReleasePlan, components};
use mainstay_testkit::CaseCounts;
use serde_json::Value;

use super::support::{self, Helm, NAMESPACE, TestEnvironment};
use super::{check_content, describe_differences, without_secrets, workloads};

/// A mesh of istioctl that is transferred to Helm.
struct Transfer {
    generation: &'static str,
    arguments: &'static [&'static str],
    /// Number of components.
    components: usize,
}

/// Every generation of Helm, with gateways, with node agents, and with a revision.
const TRANSFERS: &[Transfer] = &[
    Transfer {
        generation: "helm3",
        arguments: &["profile=demo", "values.pilot.autoscaleMin=2"],
        components: 3,
    },
    Transfer {
        generation: "helm4",
        arguments: &["profile=ambient"],
        components: 3,
    },
    Transfer {
        generation: "helm4 --server-side=true",
        arguments: &["profile=demo", "values.pilot.autoscaleMin=2"],
        components: 3,
    },
    Transfer {
        generation: "helm4 --server-side=true",
        arguments: &["profile=minimal", "revision=canary"],
        components: 1,
    },
];

pub(crate) async fn istioctl_installations_are_transferred_to_helm() {
    let mut counts = CaseCounts::default();
    for transfer in TRANSFERS {
        check_transfer(&mut counts, transfer).await;
    }
    println!("handed to Helm: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

/// Transfers a mesh to Helm, upgrades it twice and uninstalls it.
async fn check_transfer(counts: &mut CaseCounts, transfer: &Transfer) {
    let name = format!("{} {}", transfer.generation, transfer.arguments.join(" "));
    let environment = TestEnvironment::start().await;
    let sets: Vec<&str> = transfer.arguments.iter().flat_map(|set| ["--set", set]).collect();
    environment.istioctl_install(&sets);
    let before = environment.state().await;
    let session = environment.session().await;
    let plan = session
        .plan_helm()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let differences: Vec<_> = plan
        .releases
        .iter()
        .flat_map(|release| &release.differences)
        .collect();
    counts.count(plan.is_equal() && plan.skipped.is_empty(), || {
        format!("{name}: {differences:#?} {:#?}", plan.skipped)
    });
    let applied = session
        .apply_helm(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(applied.hidden == 2 && applied.objects > 20, "{name}: {applied:?}");
    let helm = environment.helm(transfer.generation);
    assert_eq!(helm.list(), ["istio", "istio-base"], "{name}");
    let transferred = environment.state().await;
    // The transfer must not change any generation.
    check_content(counts, (&before, &transferred), &name);
    let found = session
        .observe()
        .await
        .unwrap_or_else(|error| panic!("{error}"))
        .0;
    let is_helm = |one: &Component| matches!(one.installer, Installer::Helm { .. });
    let found = components(&found, &environment.catalog);
    let is_complete = found.len() == transfer.components && found.iter().all(is_helm);
    counts.count(is_complete, || format!("{name}: {found:#?}"));
    // An upgrade with the same charts and values changes no spec. Helm adds its annotations to
    // Deployments.
    upgrade_releases(&environment, &helm, &plan);
    let upgraded = environment.state().await;
    check_specs(counts, (&transferred, &upgraded), &name);
    upgrade_releases(&environment, &helm, &plan);
    let again = environment.state().await;
    check_content(counts, (&without_secrets(&upgraded), &again), &name);
    check_changed_value(counts, &environment, &helm, &plan).await;
    for release in &plan.releases {
        let done = helm.uninstall(NAMESPACE, &release.release.name);
        counts.count(done.is_ok(), || {
            format!("{name} {}: {done:?}", release.release.name)
        });
    }
    let left = workloads(&environment.state().await);
    counts.count(left.is_empty(), || format!("{name}: {:?}", left.keys()));
}

/// Checks that `helm upgrade` can change a field: no other field manager keeps its value.
async fn check_changed_value(
    counts: &mut CaseCounts,
    environment: &TestEnvironment,
    helm: &Helm,
    plan: &HelmTransfer,
) {
    const CPU: &str = "777m";
    let is_plane = |release: &&ReleasePlan| release.release.name == "istio";
    let release = plan.releases.iter().find(is_plane).unwrap();
    let is_umbrella = release.chart.contains_key("charts/istiod/Chart.yaml");
    let root = if is_umbrella { "istiod." } else { "" };
    let set = format!("{root}pilot.resources.requests.cpu={CPU}");
    let chart = environment.directory.path().join(&release.release.name);
    helm.run(
        "upgrade",
        (NAMESPACE, "istio"),
        &chart,
        &["--reuse-values", "--set", &set],
    );
    let state = environment.state().await;
    let planes: Vec<&Value> =
        state
            .iter()
            .filter(|(id, _)| id.starts_with("Deployment istio-system/istiod"))
            .map(|(_, object)| {
                &object["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            })
            .collect();
    counts.count(planes == [CPU], || {
        format!("the upgrade did not set {set}: {planes:?}")
    });
}

/// Runs `helm upgrade` with the charts and values of every release.
pub(crate) fn upgrade_releases(environment: &TestEnvironment, helm: &Helm, plan: &HelmTransfer) {
    for release in &plan.releases {
        let chart = environment.directory.path().join(&release.release.name);
        support::write_files(&chart, &release.chart);
        let name = (NAMESPACE, release.release.name.as_str());
        helm.run("upgrade", name, &chart, &["--reuse-values"]);
    }
}

/// Checks that everything except metadata is unchanged.
fn check_specs(
    counts: &mut CaseCounts,
    (before, after): (&BTreeMap<String, Value>, &BTreeMap<String, Value>),
    name: &str,
) {
    let bare = |object: &Value| {
        let mut object = object.clone();
        object["metadata"] = Value::Null;
        object
    };
    for (id, object) in before.iter().filter(|(id, _)| !id.starts_with("Secret ")) {
        let (old, new) = (bare(object), after.get(id).map(bare));
        counts.count(new.as_ref() == Some(&old), || {
            describe_differences(name, id, &old, new.as_ref())
        });
    }
}
