//! Table of the components, and selection of those that a configuration enables.

use mainstay_yaml::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::limits::MAX_GATEWAYS;
use crate::merge::{text_at, value_at};
use crate::path::Path;

/// Name of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentName {
    /// Definitions and cluster-wide configuration.
    Base,
    /// The control plane.
    Pilot,
    /// The CNI node agent.
    Cni,
    /// The node proxy of ambient mode.
    Ztunnel,
    /// Ingress gateways.
    IngressGateways,
    /// Egress gateways.
    EgressGateways,
    /// Add-ons from the samples of the release.
    Addons,
}

impl ComponentName {
    /// All components; each one follows those that it depends on.
    pub const ALL: [Self; 7] = [
        Self::Base,
        Self::Pilot,
        Self::Cni,
        Self::Ztunnel,
        Self::IngressGateways,
        Self::EgressGateways,
        Self::Addons,
    ];

    /// Returns the name of the component in the API and in labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "Base",
            Self::Pilot => "Pilot",
            Self::Cni => "Cni",
            Self::Ztunnel => "Ztunnel",
            Self::IngressGateways => "IngressGateways",
            Self::EgressGateways => "EgressGateways",
            Self::Addons => "Addons",
        }
    }

    /// Returns the name of the component in messages for users.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Base => "Istio core",
            Self::Pilot => "Istiod",
            Self::Cni => "CNI",
            Self::Ztunnel => "Ztunnel",
            Self::IngressGateways => "Ingress gateways",
            Self::EgressGateways => "Egress gateways",
            Self::Addons => "Add-ons",
        }
    }

    /// Returns the component that must be ready before this one.
    #[must_use]
    pub fn depends_on(self) -> Option<Self> {
        match self {
            Self::Base => None,
            Self::Pilot | Self::Cni => Some(Self::Base),
            Self::Ztunnel => Some(Self::Cni),
            Self::IngressGateways | Self::EgressGateways | Self::Addons => Some(Self::Pilot),
        }
    }
}

/// A row of the component table.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) name: ComponentName,
    /// Key below `spec.components`.
    pub(crate) key: &'static str,
    /// Whether the component is enabled if the configuration does not contain it.
    pub(crate) is_default: bool,
    /// Whether the value of the key is a list of gateways.
    pub(crate) is_gateway: bool,
    /// Name of the chart in the catalog.
    pub(crate) chart: &'static str,
    /// Path of the component's own values.
    pub(crate) values_root: &'static [&'static str],
    /// Whether the chart expects these values at the top level.
    pub(crate) flattens_values: bool,
    /// Kind of the workload; empty if there is none.
    pub(crate) workload_kind: &'static str,
    /// Name of the workload. For a gateway it is replaced by the gateway's name.
    pub(crate) workload: &'static str,
    /// Name of the main container.
    pub(crate) container: &'static str,
}

const GATEWAY: Component = Component {
    name: ComponentName::IngressGateways,
    key: "ingressGateways",
    is_default: true,
    is_gateway: true,
    chart: "istio-ingress",
    values_root: &["gateways", "istio-ingressgateway"],
    flattens_values: false,
    workload_kind: "Deployment",
    workload: "istio-ingressgateway",
    container: "istio-proxy",
};

/// All components that have a chart, in dependency order.
pub(crate) const COMPONENTS: &[Component] = &[
    Component {
        name: ComponentName::Base,
        key: "base",
        is_default: true,
        is_gateway: false,
        chart: "base",
        values_root: &["global"],
        flattens_values: false,
        workload_kind: "",
        workload: "",
        container: "",
    },
    Component {
        name: ComponentName::Pilot,
        key: "pilot",
        is_default: true,
        is_gateway: false,
        chart: "istiod",
        values_root: &["pilot"],
        flattens_values: false,
        workload_kind: "Deployment",
        workload: "istiod",
        container: "discovery",
    },
    Component {
        name: ComponentName::Cni,
        key: "cni",
        is_default: false,
        is_gateway: false,
        chart: "cni",
        values_root: &["cni"],
        flattens_values: false,
        workload_kind: "DaemonSet",
        workload: "istio-cni-node",
        container: "install-cni",
    },
    Component {
        name: ComponentName::Ztunnel,
        key: "ztunnel",
        is_default: false,
        is_gateway: false,
        chart: "ztunnel",
        values_root: &["ztunnel"],
        flattens_values: true,
        workload_kind: "DaemonSet",
        workload: "ztunnel",
        container: "istio-proxy",
    },
    GATEWAY,
    Component {
        name: ComponentName::EgressGateways,
        key: "egressGateways",
        is_default: false,
        chart: "istio-egress",
        values_root: &["gateways", "istio-egressgateway"],
        workload: "istio-egressgateway",
        ..GATEWAY
    },
];

/// An enabled component, or one enabled gateway.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) component: &'static Component,
    /// Path of the component in the configuration.
    pub(crate) path: Path,
    /// Name of the gateway; empty for other components.
    pub(crate) gateway: String,
    /// Namespace of the component's objects.
    pub(crate) namespace: String,
    /// Settings of the component; empty if the configuration does not contain it.
    pub(crate) block: Map,
}

impl Instance {
    /// Returns the `k8s` settings, or `None` if there are none.
    pub(crate) fn settings(&self) -> Option<&Map> {
        self.block.get("k8s").and_then(Value::as_map)
    }

    /// Returns the name of the workload, without a revision.
    pub(crate) fn workload(&self) -> &str {
        if self.gateway.is_empty() {
            self.component.workload
        } else {
            &self.gateway
        }
    }
}

/// Returns the enabled instances of a component.
pub(crate) fn instances(
    component: &'static Component,
    operator: &Map,
) -> Result<Vec<Instance>, Box<Diagnostic>> {
    let path = Path::from_keys(&["spec", "components", component.key]);
    let block = value_at(operator, &["spec", "components", component.key]);
    let namespace = default_namespace(operator);
    let is_forced = component.is_gateway && is_enabled_in_values(component, operator);
    let Some(block) = block else {
        let wanted = component.is_default || is_forced;
        let instance = Instance::new(component, path, Map::new(), &namespace);
        return Ok(wanted.then_some(instance).into_iter().collect());
    };
    let blocks = if component.is_gateway {
        let items = block.as_list().unwrap_or_default();
        if items.len() > MAX_GATEWAYS {
            let message = format!("more than {MAX_GATEWAYS} gateways");
            return Err(Box::new(Diagnostic::fatal(path, message)));
        }
        items.to_vec()
    } else {
        vec![block.clone()]
    };
    let instances = blocks.into_iter().enumerate().map(|(index, block)| {
        let block = block.as_map().cloned().unwrap_or_default();
        let path = match block.get("name").and_then(Value::as_str) {
            _ if !component.is_gateway => path.clone(),
            Some(name) => path.named("name", name),
            None => path.index(index),
        };
        Instance::new(component, path, block, &namespace)
    });
    let is_enabled = |block: &Map| block.get("enabled").and_then(Value::as_bool).unwrap_or(true);
    Ok(instances
        .filter(|instance| is_forced || is_enabled(&instance.block))
        .collect())
}

/// Whether a component is enabled.
pub(crate) fn is_enabled(component: &'static Component, operator: &Map) -> bool {
    instances(component, operator).is_ok_and(|found| !found.is_empty())
}

fn is_enabled_in_values(component: &Component, operator: &Map) -> bool {
    let mut keys = vec!["spec", "values"];
    keys.extend(component.values_root);
    keys.push("enabled");
    value_at(operator, &keys).and_then(Value::as_bool) == Some(true)
}

fn default_namespace(operator: &Map) -> String {
    let namespace = text_at(operator, &["metadata", "namespace"]);
    if namespace.is_empty() {
        "istio-system".into()
    } else {
        namespace
    }
}

impl Instance {
    fn new(component: &'static Component, path: Path, block: Map, namespace: &str) -> Self {
        let text = |key: &str| text_at(&block, &[key]);
        let own = text("namespace");
        Self {
            component,
            path,
            gateway: if component.is_gateway {
                text("name")
            } else {
                String::new()
            },
            namespace: if own.is_empty() { namespace.to_owned() } else { own },
            block,
        }
    }
}
