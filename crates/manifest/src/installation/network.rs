//! Checks the settings of other network plugins for conflicts with Istio.

use std::collections::BTreeMap;

use super::eligibility::EligibilityFinding;
use super::plan::InstallationPlan;
use crate::component::ComponentName;
use crate::diagnostic::Severity;

/// Settings of a cluster's network plugins, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    /// `spec` of Calico's default `FelixConfiguration`.
    pub calico: BTreeMap<String, String>,
    /// Data of Cilium's `ConfigMap`.
    pub cilium: BTreeMap<String, String>,
}

impl NetworkSettings {
    fn calico(&self, key: &str) -> Option<&str> {
        self.calico.get(key).map(String::as_str)
    }

    fn cilium(&self, key: &str) -> &str {
        self.cilium.get(key).map(String::as_str).unwrap_or_default()
    }
}

/// Returns a warning for each setting that conflicts with the components of a plan.
#[must_use]
pub fn check_network(settings: &NetworkSettings, plan: &InstallationPlan) -> Vec<EligibilityFinding> {
    let has = |name: ComponentName| plan.components.iter().any(|one| one.component == name);
    find_conflicts(settings, has(ComponentName::Cni), has(ComponentName::Ztunnel))
}

fn find_conflicts(settings: &NetworkSettings, has_cni: bool, has_ztunnel: bool) -> Vec<EligibilityFinding> {
    let mut found = Vec::new();
    let mut warn = |plugin: &str, setting: String, effect: &str, fix: &str| {
        found.push(EligibilityFinding {
            severity: Severity::Warning,
            message: format!("{plugin} has {setting}: {effect}"),
            hint: Some(format!("set {fix} in the configuration of {plugin}")),
        });
    };
    let direct = "traffic to pods bypasses the proxies";
    let balancing = "bpfConnectTimeLoadBalancing";
    if let Some(value) = settings.calico(balancing).filter(|value| *value != "Disabled") {
        warn(
            "Calico",
            format!("{balancing}={value}"),
            direct,
            &format!("{balancing}=Disabled"),
        );
    }
    let enabled = "bpfConnectTimeLoadBalancingEnabled";
    if settings.calico(enabled) == Some("true") {
        warn(
            "Calico",
            format!("{enabled}=true"),
            direct,
            &format!("{enabled}=false"),
        );
    }
    if has_cni && settings.cilium("cni-exclusive") == "true" {
        let effect = "it overwrites the configuration of Istio's CNI plugin";
        warn(
            "Cilium",
            "cni-exclusive=true".to_owned(),
            effect,
            "cni-exclusive=false",
        );
    }
    if has_ztunnel && settings.cilium("enable-bpf-masquerade") == "true" {
        let effect = "health checks of pods in ambient mode fail";
        warn(
            "Cilium",
            "enable-bpf-masquerade=true".to_owned(),
            effect,
            "enable-bpf-masquerade=false",
        );
    }
    if settings.cilium("bpf-lb-sock-hostns-only") != "true" {
        for setting in ["bpf-lb-sock=true", "kube-proxy-replacement=strict"] {
            let (key, value) = setting.split_once('=').unwrap_or_default();
            if settings.cilium(key) == value {
                warn(
                    "Cilium",
                    setting.to_owned(),
                    direct,
                    "bpf-lb-sock-hostns-only=true",
                );
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calico: &[(&str, &str)], cilium: &[(&str, &str)], expected: &[&str]) {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let settings = NetworkSettings {
            calico: map(calico),
            cilium: map(cilium),
        };
        let found: Vec<String> = find_conflicts(&settings, true, true)
            .into_iter()
            .map(|one| one.message)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn settings_that_conflict_are_reported() {
        check(
            &[
                ("bpfConnectTimeLoadBalancing", "TCP"),
                ("bpfConnectTimeLoadBalancingEnabled", "true"),
            ],
            &[],
            &[
                "Calico has bpfConnectTimeLoadBalancing=TCP: traffic to pods bypasses the proxies",
                "Calico has bpfConnectTimeLoadBalancingEnabled=true: traffic to pods bypasses the proxies",
            ],
        );
        check(
            &[],
            &[
                ("cni-exclusive", "true"),
                ("enable-bpf-masquerade", "true"),
                ("bpf-lb-sock", "true"),
                ("kube-proxy-replacement", "strict"),
            ],
            &[
                "Cilium has cni-exclusive=true: it overwrites the configuration of Istio's CNI plugin",
                "Cilium has enable-bpf-masquerade=true: health checks of pods in ambient mode fail",
                "Cilium has bpf-lb-sock=true: traffic to pods bypasses the proxies",
                "Cilium has kube-proxy-replacement=strict: traffic to pods bypasses the proxies",
            ],
        );
    }

    #[test]
    fn compatible_settings_are_not_reported() {
        check(
            &[
                ("bpfConnectTimeLoadBalancing", "Disabled"),
                ("bpfConnectTimeLoadBalancingEnabled", "false"),
            ],
            &[
                ("cni-exclusive", "false"),
                ("bpf-lb-sock", "true"),
                ("kube-proxy-replacement", "strict"),
                ("bpf-lb-sock-hostns-only", "true"),
            ],
            &[],
        );
        check(&[], &[], &[]);
        let settings = NetworkSettings {
            cilium: [("cni-exclusive".to_owned(), "true".to_owned())].into(),
            ..NetworkSettings::default()
        };
        assert_eq!(find_conflicts(&settings, false, false), []);
    }
}
