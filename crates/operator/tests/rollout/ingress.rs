//! A rollout with an Ingress: a path per revision, then requests distributed by replicas, then one
//! revision. The golden files are shared with the test on a real API server (`rollout_servers`).

use crate::fleet::Fleet;
use crate::golden::{check_golden, golden_text_in_any_namespace};
use crate::objects::{self, APEX_SERVICE, DEPLOYMENT, INGRESS_STEPS, NAMESPACE};
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
/// Objects that are compared.
const COMPARED: [(&str, &str); 4] = [
    ("ingresses.networking.k8s.io", DEPLOYMENT),
    ("services", APEX_SERVICE),
    ("services", "example-app-v1"),
    ("services", "example-app-v2"),
];

#[test]
fn an_ingress_equals_the_one_on_a_real_server() {
    run(async {
        let mut fleet = Fleet::start(&[]).await;
        fleet.record_two_revisions().await;
        for (step, (golden, replicas, has_match)) in INGRESS_STEPS.iter().enumerate() {
            let deployment = objects::ingress_deployment(NAMESPACE, replicas, *has_match);
            if step == 0 {
                fleet.create(&deployment).await;
            } else {
                fleet.set_spec(DEPLOYMENTS, &deployment).await;
            }
            fleet.until_phase("Healthy").await;
            fleet.until_idle().await;
            let found = COMPARED
                .iter()
                .filter_map(|(table, name)| fleet.object("", table, name));
            let text: String = found
                .map(|object| golden_text_in_any_namespace("host", object))
                .collect();
            check_golden(golden, &text);
        }
        let path = objects::path(DEPLOYMENTS, DEPLOYMENT);
        fleet.host().delete(&path).await.unwrap();
        fleet
            .until("the deployment is deleted", |fleet| fleet.deployment().is_null())
            .await;
        for (table, name) in COMPARED {
            assert_eq!(fleet.object("", table, name), None, "{table} {name}");
        }
    });
}
