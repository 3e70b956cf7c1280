//! What woke somebody, in words: takes an observation, gives the kind and name of what was observed.

use mainstay_mesh::Observation;
use mainstay_mesh::references::Referrer;

/// The cause an observation is.
pub(super) fn of(seen: &Observation) -> String {
    match seen {
        Observation::Istio(object) => format!("Istio/{}", object.name()),
        Observation::Revision(object) => format!("IstioRevision/{}", object.name()),
        Observation::Tag(object) => format!("IstioRevisionTag/{}", object.name()),
        Observation::Cni(object) => format!("IstioCNI/{}", object.name()),
        Observation::ZTunnel(object) => format!("ZTunnel/{}", object.name()),
        Observation::Webhook(object) => format!("MutatingWebhookConfiguration/{}", object.metadata.name),
        Observation::Gone(subject) => format!("the end of {subject}"),
        Observation::Namespace { name, .. } => format!("Namespace/{name}"),
        Observation::Pod { namespace, name, .. } => format!("Pod/{namespace}/{name}"),
        Observation::ReferrerGone(key) => format!("the end of {key}"),
        Observation::Deployment(namespace, name, _) => format!("Deployment/{namespace}/{name}"),
        Observation::DaemonSet(namespace, name, _) => format!("DaemonSet/{namespace}/{name}"),
        Observation::Workload(key, _) => key.to_string(),
        Observation::Release(key, _) => format!("release {key}"),
        Observation::Probed(webhook, _) => format!("the answer behind {webhook}"),
        Observation::Failed(subject, _) => format!("the failure of {subject}"),
        Observation::Succeeded(subject) => format!("the success of {subject}"),
        Observation::Source(source, _) => format!("the list of {}", source.name()),
    }
}

/// The cause somebody is who refers to something.
pub(super) fn of_referrer(referrer: Referrer<'_>) -> String {
    match referrer {
        Referrer::Namespace { name, .. } => format!("Namespace/{name}"),
        Referrer::Pod { namespace, name, .. } => format!("Pod/{namespace}/{name}"),
        Referrer::Tag { name, .. } => format!("IstioRevisionTag/{name}"),
    }
}
