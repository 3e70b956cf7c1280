//! Deployments in states that the planner reaches on a cluster model.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    ActionVerb, ApplicationDeployment, ApplicationRevision, DeploymentAction, Provider, RenderedComponent,
    RevisionSpec,
};
use mainstay_rollout::model::{FixedBehavior, Model, ModelCluster, TimelineOptions, timeline};
use serde_json::{Value, json};

const OPTIONS: TimelineOptions = TimelineOptions {
    limit: SignedDuration::from_hours(2),
    promotes: false,
};

pub(crate) fn spec(revision: &str) -> Value {
    json!({
        "traffic": {"hosts": ["shop.example.com"], "http": [{"name": "web", "weightedTargets": [
            {"revisionName": revision, "componentName": "web", "port": 80, "weight": 100},
        ]}]},
        "appRevisions": [{"revisionName": revision, "placement": [
            {"clusterSelector": {"name": "prod-1"}, "distribution": {"replicas": 4}},
            {"distribution": {"replicas": 2}},
        ]}],
        "strategy": {"type": "Canary", "onFailure": "Rollback", "steps": [
            {"setWeight": 10}, {"pause": {}}, {"setWeight": 50}, {"pause": {"durationSeconds": 60}},
        ]},
    })
}

pub(crate) fn revision(name: &str) -> ApplicationRevision {
    let component = RenderedComponent {
        name: "web".into(),
        manifests: vec![json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "web", "image": name}]}}},
        })],
    };
    let spec = RevisionSpec {
        application_name: "shop".into(),
        revision: 1,
        hash: name.into(),
        components: vec![component],
    };
    ApplicationRevision::new("default", name, spec)
}

/// A deployment `shop` on a model of two clusters.
pub(crate) struct Shop {
    model: Model,
    behavior: FixedBehavior,
}

impl Shop {
    /// Deploys v1 completely.
    pub(crate) fn deployed() -> Self {
        let deployment = ApplicationDeployment::new(
            "default",
            "shop",
            serde_json::from_value(spec("shop-v1")).unwrap(),
        );
        let mut model = Model::new(Timestamp::from_second(1_800_000_000).unwrap(), deployment);
        model.deployment.metadata.generation = 1;
        for name in ["shop-v1", "shop-v2"] {
            model.revisions.insert(name.into(), Arc::new(revision(name)));
        }
        for name in ["", "prod-1"] {
            model
                .clusters
                .insert(name.into(), ModelCluster::new(Provider::Istio));
        }
        let behavior = FixedBehavior {
            pod_delay: SignedDuration::from_secs(10),
            route_delay: SignedDuration::from_secs(1),
            ..FixedBehavior::default()
        };
        let mut shop = Self { model, behavior };
        shop.run();
        shop
    }

    /// Deploys v1, then starts v2 and runs to its first pause.
    pub(crate) fn paused() -> Self {
        let mut shop = Self::deployed();
        shop.model
            .set_spec(serde_json::from_value(spec("shop-v2")).unwrap());
        shop.run();
        shop
    }

    pub(crate) fn run(&mut self) {
        timeline(&mut self.model, &mut self.behavior, OPTIONS);
    }

    pub(crate) fn request(&mut self, verb: ActionVerb) {
        self.model.request(verb);
        self.run();
    }

    /// Handles an action that was stored in a cluster; returns it with its result.
    pub(crate) fn handle(&mut self, action: &Value) -> DeploymentAction {
        self.model
            .actions
            .push(serde_json::from_value(action.clone()).unwrap());
        self.run();
        self.model.actions.last().unwrap().clone()
    }

    /// Returns the deployment as stored in a cluster with this generation.
    pub(crate) fn object(&self, generation: i64) -> Value {
        let mut deployment = self.model.deployment.clone();
        deployment.status.observed_generation = generation;
        serde_json::to_value(&deployment).unwrap()
    }

    pub(crate) fn phase(&self) -> mainstay_api::delivery::DeploymentPhase {
        self.model.deployment.status.phase
    }
}
