//! Plans one subject from a snapshot. One planner per kind.
//!
//! A planner never fails: the plan of an object that cannot be reconciled writes a condition with the cause.

mod builder;
mod cni;
mod condition;
mod daemonset;
mod dependency;
mod finalize;
mod in_use;
mod istio;
mod prune;
mod readiness;
mod release;
mod revision;
mod tag;
mod tags;
mod target;
mod webhook;
mod ztunnel;

use mainstay_api::ObjectKind;

use crate::plan::Plan;
use crate::{Snapshot, Subject, migration};

pub(crate) use builder::PlanBuilder;
pub(crate) use readiness::is_serving;
pub(crate) use target::resolve_version;

pub use istio::{active_revision_name, grace_period};
pub use prune::{PruneDecision, prune_decisions};

/// Returns the plan of `subject`. The plan is empty until every source was listed, because objects must not
/// be deleted on the basis of an incomplete snapshot.
#[must_use]
pub fn plan(snapshot: &Snapshot, subject: &Subject) -> Plan {
    let planned = if snapshot.is_complete() {
        plan_subject(snapshot, subject)
    } else {
        None
    };
    planned.unwrap_or_else(|| Plan::empty(subject.clone()))
}

fn plan_subject(snapshot: &Snapshot, subject: &Subject) -> Option<Plan> {
    Some(match subject {
        Subject::Object(ObjectKind::Istio, name) => istio::plan(snapshot, snapshot.istios().get(name)?),
        Subject::Object(ObjectKind::IstioRevision, name) => {
            revision::plan(snapshot, snapshot.revisions().get(name)?)
        }
        Subject::Object(ObjectKind::IstioRevisionTag, name) => {
            tag::plan(snapshot, snapshot.tags().get(name)?)
        }
        Subject::Object(ObjectKind::IstioCni, name) => cni::plan(snapshot, snapshot.cnis().get(name)?),
        Subject::Object(ObjectKind::ZTunnel, name) => ztunnel::plan(snapshot, snapshot.ztunnels().get(name)?),
        Subject::Webhook(name) => webhook::plan(snapshot, snapshot.webhook(name)?),
        Subject::Namespace(name) => migration::plan_namespace(snapshot, name)?,
        Subject::Workload(key) => migration::plan_workload(snapshot, key)?,
    })
}
