//! Tests with controllers and a kubelet that no pod is replaced.

use std::collections::BTreeMap;

use mainstay_testkit::CaseCounts;

use super::support::{NAMESPACE, TestEnvironment};
use super::transfer::upgrade_releases;
use super::{RELEASES, check_operator, plan};

/// Checks that no pod is replaced by an adoption, an undo or a transfer to Helm, with controllers and a
/// kubelet.
pub(crate) async fn no_pod_restarts() {
    let mut counts = CaseCounts::default();
    let environment = TestEnvironment::with_pods().await;
    environment.istioctl_install(&["--set", "profile=default"]);
    check_pods_of_istioctl(&mut counts, environment, "default").await;
    let environment = TestEnvironment::with_pods().await;
    environment.istioctl_install(&["--set", "profile=ambient"]);
    check_pods_of_istioctl(&mut counts, environment, "ambient").await;
    check_pods_of_helm(&mut counts).await;
    println!("observed without a restart: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

/// The pods of an environment before a change.
struct ObservedPods<'a> {
    environment: &'a TestEnvironment,
    workloads: usize,
    before: BTreeMap<String, String>,
}

impl<'a> ObservedPods<'a> {
    async fn new(environment: &'a TestEnvironment, workloads: usize) -> Self {
        Self {
            environment,
            workloads,
            before: environment.pods(workloads).await,
        }
    }

    async fn check(&self, counts: &mut CaseCounts, what: &str) {
        let after = self.environment.pods(self.workloads).await;
        let before = &self.before;
        counts.count(after == *before, || {
            format!("{what}: {before:#?} became {after:#?}")
        });
    }
}

/// Adopts a mesh, runs the operator and undoes the adoption.
async fn check_pods_of_adoption(counts: &mut CaseCounts, pods: &ObservedPods<'_>, name: &str) {
    let environment = pods.environment;
    let session = environment.session().await;
    let adoption = plan(&session).await;
    let applied = session
        .apply(&adoption)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(applied.objects > 10, "{name}: {applied:?}");
    pods.check(counts, &format!("{name} adopt")).await;
    check_operator(counts, environment, &adoption, name).await;
    pods.check(counts, &format!("{name} operator")).await;
    session
        .undo(NAMESPACE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    pods.check(counts, &format!("{name} undo")).await;
}

async fn check_pods_of_istioctl(counts: &mut CaseCounts, environment: TestEnvironment, name: &str) {
    let workloads = if name == "ambient" { 3 } else { 2 };
    let pods = ObservedPods::new(&environment, workloads).await;
    check_pods_of_adoption(counts, &pods, name).await;
    let session = environment.session().await;
    let transfer = session
        .plan_helm()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    counts.count(transfer.is_equal() && transfer.skipped.is_empty(), || {
        format!("{name}: {transfer:#?}")
    });
    session
        .apply_helm(&transfer)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    pods.check(counts, &format!("{name} to helm")).await;
    for generation in ["helm3", "helm4 --server-side=true"] {
        upgrade_releases(&environment, &environment.helm(generation), &transfer);
        pods.check(counts, &format!("{name} {generation}")).await;
    }
}

/// Adopts a mesh that Helm 4 installed, undoes the adoption, and upgrades the mesh with Helm. No gateway is
/// installed, because its pods need an istiod that injects.
async fn check_pods_of_helm(counts: &mut CaseCounts) {
    let environment = TestEnvironment::with_pods().await;
    let helm = environment.helm("helm4 --server-side=true");
    let releases = RELEASES.iter().filter(|(_, chart, _)| *chart != "gateway");
    for (release, chart, arguments) in releases.clone() {
        helm.run("install", *release, &environment.chart(chart), arguments);
    }
    let pods = ObservedPods::new(&environment, 4).await;
    check_pods_of_adoption(counts, &pods, "helm4").await;
    for (release, chart, arguments) in releases {
        helm.run("upgrade", *release, &environment.chart(chart), arguments);
    }
    pods.check(counts, "helm4 upgrade").await;
}
