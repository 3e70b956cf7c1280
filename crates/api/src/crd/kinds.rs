//! Table of the kinds: names, served versions, columns of `kubectl get`, and rules on objects.

use serde_json::{Value, json};

/// Properties shared by the kinds of an API group.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) scope: &'static str,
    pub(super) category: &'static str,
    /// Whether objects must have a spec.
    pub(super) requires_spec: bool,
}

/// Group of the mesh kinds.
pub(super) const MESH: Group = Group {
    name: "sailoperator.io",
    scope: "Cluster",
    category: "istio-io",
    requires_spec: false,
};

/// A kind.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) short: Option<&'static str>,
    pub(super) description: &'static str,
    /// Message and expression of a CEL rule on the object.
    pub(super) rule: Option<(&'static str, &'static str)>,
    pub(super) versions: &'static [Served],
}

impl Kind {
    pub(super) fn singular(&self) -> String {
        self.name.to_lowercase()
    }

    pub(super) fn plural(&self) -> String {
        let singular = self.singular();
        match singular.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{singular}s"),
        }
    }
}

/// A served version of a kind, with the names of its types.
pub(super) struct Served {
    pub(super) name: &'static str,
    pub(super) is_stored: bool,
    pub(super) spec: &'static str,
    pub(super) status: &'static str,
    /// Whether a missing spec is replaced by the defaults of its fields.
    pub(super) has_default: bool,
    pub(super) columns: &'static [Column],
}

/// A column: heading, path, description.
pub(super) struct Column(
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) &'static str,
);

impl Column {
    pub(super) fn to_json(&self) -> Value {
        let Self(name, path, description) = self;
        let kind = if *name == "Age" { "date" } else { "string" };
        json!({"name": name, "jsonPath": path, "type": kind, "description": description})
    }
}

const NAMESPACE: Column = Column("Namespace", ".spec.namespace", "Namespace in which it runs.");
const PROFILE: Column = Column(
    "Profile",
    ".spec.profile",
    "Profile that its values are based on.",
);
const VALUES_PROFILE: Column = Column(
    "Profile",
    ".spec.values.profile",
    "Profile that its values are based on.",
);
const READY: Column = Column(
    "Ready",
    ".status.conditions[?(@.type==\"Ready\")].status",
    "Whether it is ready.",
);
const IN_USE: Column = Column(
    "In use",
    ".status.conditions[?(@.type==\"InUse\")].status",
    "Whether anything refers to it.",
);
const STATUS: Column = Column(
    "Status",
    ".status.state",
    "Reason of the first condition that is not true, or Healthy.",
);
const VERSION: Column = Column("Version", ".spec.version", "Version of Istio.");
const REVISION: Column = Column("Revision", ".status.istioRevision", "Revision that it refers to.");
pub(super) const AGE: Column = Column("Age", ".metadata.creationTimestamp", "Time since its creation.");

const SINGLETON: Option<(&str, &str)> = Some((
    "metadata.name must be 'default'",
    "self.metadata.name == 'default'",
));

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "IstioCNI",
        short: None,
        description: "Istio CNI: the node agent that configures the network of pods.",
        rule: SINGLETON,
        versions: &[Served {
            name: "v1",
            is_stored: true,
            spec: "IstioCNISpec",
            status: "RevisionStatus",
            has_default: true,
            columns: &[NAMESPACE, PROFILE, READY, STATUS, VERSION, AGE],
        }],
    },
    Kind {
        name: "IstioRevision",
        short: Some("istiorev"),
        description: "One control plane.",
        rule: Some((
            "spec.values.revision must match metadata.name or be empty when the name is 'default'",
            "self.metadata.name == 'default' ? (!has(self.spec.values.revision) || size(self.spec.values.revision) == 0) : self.spec.values.revision == self.metadata.name",
        )),
        versions: &[Served {
            name: "v1",
            is_stored: true,
            spec: "IstioRevisionSpec",
            status: "RevisionStatus",
            has_default: false,
            columns: &[NAMESPACE, VALUES_PROFILE, READY, STATUS, IN_USE, VERSION, AGE],
        }],
    },
    Kind {
        name: "IstioRevisionTag",
        short: Some("istiorevtag"),
        description: "Alias for a revision.",
        rule: None,
        versions: &[Served {
            name: "v1",
            is_stored: true,
            spec: "IstioRevisionTagSpec",
            status: "IstioRevisionTagStatus",
            has_default: false,
            columns: &[STATUS, IN_USE, REVISION, AGE],
        }],
    },
    Kind {
        name: "Istio",
        short: None,
        description: "A service mesh: a version of Istio and how it is updated.",
        rule: None,
        versions: &[Served {
            name: "v1",
            is_stored: true,
            spec: "IstioSpec",
            status: "IstioStatus",
            has_default: true,
            columns: &[
                NAMESPACE,
                PROFILE,
                Column("Revisions", ".status.revisions.total", "Number of revisions."),
                Column("Ready", ".status.revisions.ready", "Number of ready revisions."),
                Column("In use", ".status.revisions.inUse", "Number of revisions in use."),
                Column(
                    "Active Revision",
                    ".status.activeRevisionName",
                    "Revision that matches the spec.",
                ),
                STATUS,
                VERSION,
                AGE,
            ],
        }],
    },
    Kind {
        name: "ZTunnel",
        short: None,
        description: "The node proxy of ambient mode.",
        rule: SINGLETON,
        versions: &[
            Served {
                name: "v1",
                is_stored: true,
                spec: "ZTunnelSpec",
                status: "ZTunnelStatus",
                has_default: true,
                columns: &[NAMESPACE, READY, STATUS, VERSION, REVISION, AGE],
            },
            Served {
                name: "v1alpha1",
                is_stored: false,
                spec: "ZTunnelSpecAlpha",
                status: "RevisionStatus",
                has_default: true,
                columns: &[NAMESPACE, VALUES_PROFILE, READY, STATUS, VERSION, AGE],
            },
        ],
    },
];
