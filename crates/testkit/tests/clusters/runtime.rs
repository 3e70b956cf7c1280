//! Runs kube's own client and runtime, unmodified, on a real server and on the simulator.

#[path = "../../../sim/tests/support/runtime.rs"]
mod suite;

use std::pin::Pin;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use mainstay_testkit::cluster::{BASIC_CONTROLLERS, Cluster, Options};
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;
use serde_json::json;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases![
    "runtime::real" => on_a_real_cluster(),
    "runtime::sim" => on_the_simulator(),
];

type Check = fn(Client, &'static str) -> Pin<Box<dyn Future<Output = ()>>>;

fn checks() -> Vec<(&'static str, Check)> {
    let mut checks: Vec<(&'static str, Check)> = Vec::new();
    macro_rules! add {
        ($name:ident) => {
            checks.push((stringify!($name), |client, home| {
                Box::pin(suite::$name(client, home))
            }));
        };
    }
    suite::suite!(add);
    checks
}

async fn on_the_simulator() {
    for (name, check) in checks() {
        let cluster = mainstay_sim::Cluster::default();
        check(Client::new(cluster.connect("test"), "default"), "default").await;
        println!("passed on the simulator: {name}");
    }
    println!("runtime on the simulator: {} checks passed", checks().len());
}

async fn on_a_real_cluster() {
    let options = Options {
        controllers: BASIC_CONTROLLERS.to_vec(),
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    for (name, check) in checks() {
        let client = cluster.client("admin").unwrap();
        let home = name.replace('_', "-").leak();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": home}})).unwrap();
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
        check(client, home).await;
        println!("passed on the real server: {name}");
    }
    println!("runtime on the real server: {} checks passed", checks().len());
}
