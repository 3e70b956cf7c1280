//! The kind `IstioOperator` as data. Fields without rules in the schema are checked by the validating
//! webhook.

use super::kinds::{AGE, Column, Group, Kind, Served};
use crate::istio_operator as names;

/// Facts about the types of the kind.
pub(super) const TEXT: &str = include_str!("istio_operator.txt");

/// Short names of the kind. Equal to upstream's.
pub(super) const SHORT_NAMES: [&str; 2] = ["iop", "io"];

pub(super) const GROUP: Group = Group {
    name: names::GROUP,
    scope: "Namespaced",
    category: "istio-io",
    requires_spec: false,
};

const REVISION: Column = Column("Revision", ".spec.revision", "Revision of the control plane.");
const STATUS: Column = Column("Status", ".status.status", "Summary of the components.");
const MESSAGE: Column = Column(
    "Message",
    ".status.message",
    "Reason why the installation is not healthy.",
);

pub(super) const KIND: Kind = Kind {
    name: names::KIND,
    short: None,
    description: "An installation of Istio.",
    rule: None,
    versions: &[Served {
        name: "v1alpha1",
        is_stored: true,
        spec: "IstioOperatorSpec",
        status: "IstioOperatorStatus",
        has_default: false,
        columns: &[REVISION, STATUS, MESSAGE, AGE],
    }],
};
