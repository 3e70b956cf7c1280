//! The plan of an installation: its components with labeled objects, and the default tag.

use mainstay_yaml::{Map, Value};

use crate::component::ComponentName;
use crate::generate::{ComponentObjects, Rendered};
use crate::merge::{put, text_at, value_at};
use crate::object::{Object, compare_objects};

use super::tag::deactivate;

/// Name of the default revision.
const DEFAULT: &str = "default";

/// Labels that istioctl sets on every object that it installs.
const MANAGED: &str = "operator.istio.io/managed";
const COMPONENT: &str = "operator.istio.io/component";
const VERSION: &str = "operator.istio.io/version";
const REVISION: &str = "istio.io/rev";
const OWNER_NAME: &str = "install.operator.istio.io/owning-resource";
const OWNER_NAMESPACE: &str = "install.operator.istio.io/owning-resource-namespace";

/// All objects that an installation writes.
#[derive(Clone, Debug)]
pub struct InstallationPlan {
    /// Namespace of the control plane.
    pub namespace: String,
    /// Revision; `default` if the configuration sets none.
    pub revision: String,
    /// Istio version.
    pub version: String,
    /// Network of the namespace; empty if the configuration sets none.
    pub network: String,
    /// Merged files and settings of the user, as an `IstioOperator`.
    pub configuration: Value,
    /// Whether the installation manages the default tag.
    pub manages_webhooks: bool,
    /// Whether the default tag injects into all namespaces that do not opt out.
    pub injects_by_default: bool,
    /// `IstioOperator` in the cluster that owns the installation, as `NAMESPACE/NAME`.
    pub owner: Option<String>,
    /// Whether the installation writes and prunes the objects shared by all revisions.
    pub writes_shared: bool,
    /// Components; each one follows its parent.
    pub components: Vec<PlannedComponent>,
}

/// Objects of one component.
#[derive(Clone, Debug)]
pub struct PlannedComponent {
    /// Component that contains the objects.
    pub component: ComponentName,
    /// Component that must be ready first.
    pub parent: Option<ComponentName>,
    /// Labeled objects in order of installation.
    pub objects: Vec<Object>,
}

impl InstallationPlan {
    /// Plans the installation of rendered objects.
    #[must_use]
    pub fn new(rendered: Rendered, version: &str) -> Self {
        let empty = Map::new();
        let operator = rendered.configuration.as_map().unwrap_or(&empty);
        let text = |keys: &[&str]| text_at(operator, keys);
        let flag = |keys: &[&str]| value_at(operator, keys).and_then(Value::as_bool) == Some(true);
        let mut plan = Self {
            namespace: text_or(text(&["metadata", "namespace"]), "istio-system"),
            revision: text_or(text(&["spec", "values", "revision"]), DEFAULT),
            version: version.to_owned(),
            network: text(&["spec", "values", "global", "network"]),
            manages_webhooks: !flag(&["spec", "values", "global", "operatorManageWebhooks"]),
            injects_by_default: flag(&[
                "spec",
                "values",
                "sidecarInjectorWebhook",
                "enableNamespacesByDefault",
            ]),
            configuration: rendered.user_configuration,
            owner: None,
            writes_shared: true,
            components: Vec::new(),
        };
        let owner = text(&["metadata", "name"]);
        let enabled: Vec<ComponentName> = rendered.components.iter().map(|one| one.component).collect();
        plan.components = rendered
            .components
            .into_iter()
            .map(|one| plan.plan_component(one, &enabled, &owner))
            .collect();
        plan
    }

    fn plan_component(
        &self,
        rendered: ComponentObjects,
        enabled: &[ComponentName],
        owner: &str,
    ) -> PlannedComponent {
        let ComponentObjects {
            component,
            mut objects,
        } = rendered;
        objects.sort_by(compare_objects);
        for object in &mut objects {
            self.add_labels(object, component, owner);
        }
        PlannedComponent {
            component,
            parent: find_parent(component, enabled),
            objects,
        }
    }

    /// Adds the owner labels to an object. The component `Base` is shared by all revisions, so it has no
    /// revision label.
    fn add_labels(&self, object: &mut Object, component: ComponentName, owner: &str) {
        let Some(map) = object.0.as_map_mut() else { return };
        let mut set = |label: &str, value: &str| put(map, &["metadata", "labels", label], value.into());
        set(MANAGED, "Reconcile");
        set(COMPONENT, component.name());
        set(VERSION, &self.version);
        if component != ComponentName::Base {
            set(REVISION, &self.revision);
        }
        if !owner.is_empty() {
            set(OWNER_NAME, owner);
            set(OWNER_NAMESPACE, &self.namespace);
        }
    }

    /// Sets the `IstioOperator` in the cluster that owns the installation.
    pub fn set_owner(&mut self, namespace: &str, name: &str) {
        self.owner = Some(format!("{namespace}/{name}"));
        let objects = self.components.iter_mut().flat_map(|one| &mut one.objects);
        for map in objects.filter_map(|object| object.0.as_map_mut()) {
            put(map, &["metadata", "labels", OWNER_NAME], name.into());
            put(map, &["metadata", "labels", OWNER_NAMESPACE], namespace.into());
        }
    }

    /// Removes the objects shared by all revisions, because another installation writes them.
    pub fn leave_shared(&mut self) {
        self.writes_shared = false;
        self.components.retain(|one| one.component != ComponentName::Base);
        let enabled: Vec<ComponentName> = self.components.iter().map(|one| one.component).collect();
        for one in &mut self.components {
            one.parent = find_parent(one.component, &enabled);
        }
    }

    /// Returns a component with its objects.
    #[must_use]
    pub fn component_named(&self, component: ComponentName) -> Option<&PlannedComponent> {
        self.components.iter().find(|one| one.component == component)
    }

    /// Returns the webhook configuration that injects for this revision.
    #[must_use]
    pub fn injector(&self) -> Option<&Object> {
        let pilot = self.component_named(ComponentName::Pilot)?;
        pilot.objects.iter().find(|object| is_injector(object))
    }

    /// Adds the objects of the default tag to the plan. Deactivates the injector of the default revision if
    /// the tag is managed.
    pub fn set_default_tag(&mut self, decision: &DefaultTag, objects: Vec<Object>) {
        let Some(pilot) = self
            .components
            .iter_mut()
            .find(|one| one.component == ComponentName::Pilot)
        else {
            return;
        };
        if *decision != DefaultTag::Unmanaged && self.revision == DEFAULT {
            for object in pilot.objects.iter_mut().filter(|object| is_injector(object)) {
                deactivate(&mut object.0);
            }
        }
        pilot.objects.extend(objects);
        pilot.objects.sort_by(compare_objects);
    }

    /// Creates a plan without objects, for tests.
    #[cfg(test)]
    pub(crate) fn for_components(components: &[ComponentName]) -> Self {
        let planned = components.iter().map(|component| PlannedComponent {
            component: *component,
            parent: find_parent(*component, components),
            objects: Vec::new(),
        });
        Self {
            namespace: "istio-system".into(),
            revision: DEFAULT.into(),
            version: "1.29.1".into(),
            network: String::new(),
            configuration: Value::Null,
            manages_webhooks: true,
            injects_by_default: false,
            owner: None,
            writes_shared: true,
            components: planned.collect(),
        }
    }
}

/// Returns the nearest enabled component that must be ready before this one.
fn find_parent(component: ComponentName, enabled: &[ComponentName]) -> Option<ComponentName> {
    let mut ancestors = std::iter::successors(component.depends_on(), |one| one.depends_on());
    ancestors.find(|one| enabled.contains(one))
}

fn is_injector(object: &Object) -> bool {
    let labels = object.0.at(&["metadata", "labels"]);
    let has = |label: &str| labels.and_then(|labels| labels.get(label)).is_some();
    object.kind() == "MutatingWebhookConfiguration" && has(REVISION) && !has("istio.io/tag")
}

fn text_or(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

/// The existing default tag in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTag {
    /// Revision that the tag refers to.
    pub revision: String,
    /// Whether the tag belongs to the installation of that revision.
    pub is_installed: bool,
}

/// Revision that has the default tag after an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultTag {
    /// The installed revision.
    Own,
    /// Another revision with this name.
    Other(String),
    /// The installation does not manage webhooks.
    Unmanaged,
}

/// Decides which revision has the default tag. A revision keeps the tag; otherwise the first installed
/// revision gets it.
#[must_use]
pub fn decide_default_tag(plan: &InstallationPlan, live: Option<&LiveTag>) -> DefaultTag {
    if !plan.manages_webhooks || plan.injector().is_none() {
        return DefaultTag::Unmanaged;
    }
    match live {
        Some(tag) if tag.revision != plan.revision => DefaultTag::Other(tag.revision.clone()),
        // The tag was created by a user, so the installation writes no objects for it.
        Some(tag) if !tag.is_installed => DefaultTag::Other(tag.revision.clone()),
        _ => DefaultTag::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ComponentName::{Base, Cni, IngressGateways, Pilot, Ztunnel};

    #[test]
    fn the_nearest_enabled_ancestor_is_the_parent() {
        assert_eq!(find_parent(Ztunnel, &[Base, Cni, Ztunnel]), Some(Cni));
        assert_eq!(find_parent(Ztunnel, &[Base, Ztunnel]), Some(Base));
        assert_eq!(find_parent(IngressGateways, &[IngressGateways]), None);
        assert_eq!(find_parent(Base, &[Base, Pilot]), None);
    }

    fn injecting(revision: &str) -> InstallationPlan {
        let mut plan = InstallationPlan::for_components(&[Base, Pilot]);
        revision.clone_into(&mut plan.revision);
        let text = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
             metadata: {{name: istio-sidecar-injector, labels: {{istio.io/rev: {revision}}}}}\n\
             webhooks: [{{name: a, namespaceSelector: {{}}}}]\n"
        );
        let object = mainstay_yaml::parse(text.as_bytes(), &mainstay_yaml::Budget::default());
        plan.components[1].objects.push(Object(object.unwrap()));
        plan
    }

    fn live(revision: &str, is_installed: bool) -> LiveTag {
        LiveTag {
            revision: revision.into(),
            is_installed,
        }
    }

    #[test]
    fn the_first_revision_gets_the_default_tag_and_keeps_it() {
        let check = |revision: &str, tag: Option<LiveTag>, expected: DefaultTag| {
            assert_eq!(
                decide_default_tag(&injecting(revision), tag.as_ref()),
                expected,
                "{revision}"
            );
        };
        check("default", None, DefaultTag::Own);
        check("canary", None, DefaultTag::Own);
        check("canary", Some(live("canary", true)), DefaultTag::Own);
        check(
            "canary",
            Some(live("default", true)),
            DefaultTag::Other("default".into()),
        );
        check(
            "default",
            Some(live("canary", false)),
            DefaultTag::Other("canary".into()),
        );
        check(
            "default",
            Some(live("default", false)),
            DefaultTag::Other("default".into()),
        );
    }

    #[test]
    fn without_an_injector_the_tag_is_not_managed() {
        let plan = InstallationPlan::for_components(&[Base]);
        assert_eq!(decide_default_tag(&plan, None), DefaultTag::Unmanaged);
        let mut plan = injecting("default");
        plan.manages_webhooks = false;
        assert_eq!(decide_default_tag(&plan, None), DefaultTag::Unmanaged);
    }

    #[test]
    fn the_injector_of_the_default_revision_matches_nothing_while_a_tag_injects() {
        let mut plan = injecting("default");
        plan.set_default_tag(&DefaultTag::Own, Vec::new());
        let selector = plan
            .injector()
            .and_then(|it| it.0.get("webhooks")?.as_list()?.first()?.get("objectSelector"));
        assert!(selector.is_some());
        let mut plan = injecting("canary");
        plan.set_default_tag(&DefaultTag::Own, Vec::new());
        let selector = plan
            .injector()
            .and_then(|it| it.0.get("webhooks")?.as_list()?.first()?.get("objectSelector"));
        assert!(selector.is_none());
    }
}
