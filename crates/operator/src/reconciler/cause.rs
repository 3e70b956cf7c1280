//! Describes the cause for which a subject is enqueued: kind and name of the observed object.

use mainstay_mesh::Observation;
use mainstay_mesh::references::Referrer;

pub(super) fn from_observation(observation: &Observation) -> String {
    match observation {
        Observation::Istio(object) => format!("Istio/{}", object.name()),
        Observation::Revision(object) => format!("IstioRevision/{}", object.name()),
        Observation::Tag(object) => format!("IstioRevisionTag/{}", object.name()),
        Observation::Cni(object) => format!("IstioCNI/{}", object.name()),
        Observation::ZTunnel(object) => format!("ZTunnel/{}", object.name()),
        Observation::Webhook(object) => format!("MutatingWebhookConfiguration/{}", object.metadata.name),
        Observation::Gone(subject) => format!("deletion of {subject}"),
        Observation::Namespace { name, .. } => format!("Namespace/{name}"),
        Observation::Pod { namespace, name, .. } => format!("Pod/{namespace}/{name}"),
        Observation::ReferrerGone(key) => format!("deletion of {key}"),
        Observation::Deployment(namespace, name, _) => format!("Deployment/{namespace}/{name}"),
        Observation::DaemonSet(namespace, name, _) => format!("DaemonSet/{namespace}/{name}"),
        Observation::Workload(key, _) => key.to_string(),
        Observation::Release(key, _) => format!("release {key}"),
        Observation::ForeignInjector(name, _) => format!("injector {name}"),
        Observation::Probed(webhook, _) => format!("probe of {webhook}"),
        Observation::Failed(subject, _) => format!("failure of {subject}"),
        Observation::Succeeded(subject) => format!("success of {subject}"),
        Observation::Source(source, _) => format!("list of {}", source.name()),
    }
}

pub(super) fn from_referrer(referrer: Referrer<'_>) -> String {
    match referrer {
        Referrer::Namespace { name, .. } => format!("Namespace/{name}"),
        Referrer::Pod { namespace, name, .. } => format!("Pod/{namespace}/{name}"),
        Referrer::Tag { name, .. } => format!("IstioRevisionTag/{name}"),
    }
}
