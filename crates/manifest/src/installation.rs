//! Decisions about installations that do not require a cluster: the plan of components, the order in which
//! they are started, eligibility of upgrades, overlapping webhooks, network plugins, revision tags and
//! differences between objects.

mod difference;
mod eligibility;
mod network;
mod overlap;
mod plan;
mod prepare;
mod schedule;
mod tag;

pub use difference::{
    ChangedObject, DiffOptions, DiffOptionsError, FieldDifference, ObjectDifference, ObjectSelector,
    compare_object_sets, compare_values,
};
pub use eligibility::{
    ControlPlane, EligibilityFinding, Month, UpgradeRequest, check_upgrade, is_end_of_life,
};
pub use network::{NetworkSettings, check_network};
pub use overlap::{Overlap, find_overlaps};
pub use plan::{DefaultTag, InstallationPlan, LiveTag, PlannedComponent, decide_default_tag};
pub use prepare::{Package, add_default_tag, check_webhooks, platform_file};
pub use schedule::{Schedule, SkippedComponent};
pub use tag::{CanonicalWebhook, TagError, TagRequest, deactivate, tag_objects};
