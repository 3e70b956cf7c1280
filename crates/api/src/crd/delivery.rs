//! Table of the kinds in `delivery.mainstay.dev`.

use super::kinds::{AGE, Column, Group, Kind, Served};

/// Facts about the types of the delivery kinds.
pub(super) const TEXT: &str = include_str!("delivery.txt");

pub(super) const GROUP: Group = Group {
    name: crate::delivery::GROUP,
    scope: "Namespaced",
    category: "mainstay",
    requires_spec: true,
};

const fn version(spec: &'static str, status: &'static str, columns: &'static [Column]) -> Served {
    Served {
        name: "v1alpha1",
        is_stored: true,
        spec,
        status,
        has_default: false,
        columns,
    }
}

const PHASE: Column = Column("Phase", ".status.phase", "Summary.");
const WAVE: Column = Column("Wave", ".status.rollout.wave", "Current wave.");
const STEP: Column = Column("Step", ".status.rollout.step", "Current step.");
const READY: Column = Column(
    "Ready",
    ".status.conditions[?(@.type==\"Ready\")].status",
    "Whether the object is ready.",
);
const VERSION: Column = Column("Version", ".status.version", "Version of Kubernetes.");
const DEPLOYMENT: Column = Column("Deployment", ".spec.deploymentName", "Name of the deployment.");
const CLUSTER: Column = Column("Cluster", ".spec.clusterName", "Name of the Cluster.");
const VERB: Column = Column("Verb", ".spec.verb", "Requested operation.");
const RESULT: Column = Column("Result", ".status.result", "Whether the action took effect.");
const LATEST: Column = Column("Revision", ".status.latestRevision", "Latest revision.");
const APPLICATION: Column = Column("Application", ".spec.applicationName", "Name of the Application.");
const HASH: Column = Column("Hash", ".spec.hash", "Hash of the rendered components.");

const NO_STATUS: &str = "NoStatus";

/// Kinds, sorted by plural.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "AnalysisTemplate",
        short: None,
        description: "Metrics that decide whether a rollout continues.",
        rule: None,
        versions: &[version("AnalysisTemplateSpec", NO_STATUS, &[AGE])],
    },
    Kind {
        name: "ApplicationDeployment",
        short: Some("appdep"),
        description: "Revisions of an application in clusters, with one traffic plan.",
        rule: None,
        versions: &[version(
            "ApplicationDeploymentSpec",
            "DeploymentStatus",
            &[PHASE, WAVE, STEP, READY, AGE],
        )],
    },
    Kind {
        name: "ApplicationRevision",
        short: Some("apprev"),
        description: "An immutable revision of an application with its rendered components.",
        rule: None,
        versions: &[version(
            "ApplicationRevisionSpec",
            NO_STATUS,
            &[APPLICATION, HASH, AGE],
        )],
    },
    Kind {
        name: "Application",
        short: None,
        description: "An application and its components.",
        rule: None,
        versions: &[version("ApplicationSpec", "ApplicationStatus", &[LATEST, AGE])],
    },
    Kind {
        name: "Cluster",
        short: None,
        description: "A cluster that workloads can be placed in.",
        rule: None,
        versions: &[version("ClusterSpec", "ClusterStatus", &[READY, VERSION, AGE])],
    },
    Kind {
        name: "DeploymentAction",
        short: Some("depaction"),
        description: "A request to a rollout, such as a promotion.",
        rule: None,
        versions: &[version(
            "ActionSpec",
            "ActionStatus",
            &[DEPLOYMENT, VERB, RESULT, AGE],
        )],
    },
    Kind {
        name: "ResourceInventory",
        short: None,
        description: "The objects of a deployment in one cluster.",
        rule: None,
        versions: &[version("InventorySpec", NO_STATUS, &[DEPLOYMENT, CLUSTER, AGE])],
    },
];
