//! Converts a pod to processes: programs, arguments, environment variables, probes and hooks. Pure.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use mainstay_sim::tree;
use serde_json::Value;

use super::app;

/// A pod of which all containers can be run as processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunnablePod {
    /// Whether the pod's traffic is redirected to the proxy, as istio-init does.
    pub(super) redirected: bool,
    /// Containers that are started one after another before the others, and stopped after them.
    pub(super) sidecars: Vec<Container>,
    /// Containers that are started and stopped together.
    pub(super) containers: Vec<Container>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    /// Port and path of the readiness probe.
    pub(super) probe: Option<(u16, String)>,
    pub(super) pre_stop: Option<Hook>,
}

/// Program of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// istiod in this version.
    Istiod(String),
    /// The agent in this version.
    Agent(String),
    /// The test application.
    App,
}

/// A preStop hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Sleep(Duration),
    /// Runs the container's own program with these arguments.
    Run(Vec<String>),
}

/// Converts a pod. Returns `None` if a container has an unknown image: the pod then follows its script.
pub(super) fn read(pod: &Value, ip: Ipv4Addr, node: Ipv4Addr) -> Option<RunnablePod> {
    let fields = PodFields { pod, ip, node };
    let inits = tree::list(pod, &["spec", "initContainers"]);
    let is_sidecar = |container: &&Value| tree::text(container, &["restartPolicy"]) == "Always";
    let redirects = |container: &Value| tree::text(container, &["name"]) == "istio-init";
    let sidecars: Option<Vec<_>> = inits
        .iter()
        .filter(is_sidecar)
        .map(|one| fields.container(one))
        .collect();
    let containers = tree::list(pod, &["spec", "containers"]).iter();
    let containers: Option<Vec<_>> = containers.map(|one| fields.container(one)).collect();
    Some(RunnablePod {
        redirected: inits.iter().any(redirects),
        sidecars: sidecars?,
        containers: containers?,
    })
}

struct PodFields<'a> {
    pod: &'a Value,
    ip: Ipv4Addr,
    node: Ipv4Addr,
}

impl PodFields<'_> {
    fn container(&self, container: &Value) -> Option<Container> {
        let program = program(tree::text(container, &["image"]))?;
        let environment = self.environment(container);
        let arguments = tree::list(container, &["args"]);
        let arguments = arguments.iter().filter_map(Value::as_str);
        let arguments = arguments.map(|argument| expand(argument, &environment)).collect();
        Some(Container {
            name: tree::text(container, &["name"]).to_owned(),
            program,
            arguments,
            probe: probe(container),
            pre_stop: pre_stop(container),
            environment,
        })
    }

    fn environment(&self, container: &Value) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::new();
        for variable in tree::list(container, &["env"]) {
            let value = match tree::get(variable, &["valueFrom"]) {
                None => expand(tree::text(variable, &["value"]), &environment),
                Some(source) => match self.resolve(source) {
                    Some(value) => value,
                    None => continue,
                },
            };
            environment.insert(tree::text(variable, &["name"]).to_owned(), value);
        }
        environment
    }

    fn resolve(&self, source: &Value) -> Option<String> {
        if let Some(resource) = tree::get(source, &["resourceFieldRef", "resource"]) {
            return Some(limit(resource.as_str()?).to_owned());
        }
        let path = tree::get(source, &["fieldRef", "fieldPath"])?.as_str()?;
        Some(match path {
            "status.podIP" => self.ip.to_string(),
            "status.hostIP" => self.node.to_string(),
            path => match path.split_once("['") {
                Some((map, key)) => self.text(map, Some(key.trim_end_matches("']"))),
                None => self.text(path, None),
            },
        })
    }

    fn text(&self, path: &str, key: Option<&str>) -> String {
        let path: Vec<&str> = path.split('.').chain(key).collect();
        tree::text(self.pod, &path).to_owned()
    }
}

/// Returns the value of a resource limit. No limits are enforced; the values are those of a small machine.
fn limit(resource: &str) -> &'static str {
    if resource == "limits.cpu" {
        "2"
    } else {
        "1073741824"
    }
}

fn program(image: &str) -> Option<Program> {
    let (name, tag) = image.rsplit('/').next()?.split_once(':')?;
    // Variants of an image, such as `1.29.1-distroless`, contain the same program.
    let version = tag.split('-').next().unwrap_or(tag).to_owned();
    match name {
        "pilot" => Some(Program::Istiod(version)),
        "proxyv2" => Some(Program::Agent(version)),
        _ if image == app::APP_IMAGE => Some(Program::App),
        _ => None,
    }
}

/// Replaces `$(NAME)` by the variable's value. References to unknown variables are not changed.
fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$(") {
        expanded.push_str(before);
        let known = after
            .split_once(')')
            .and_then(|(name, rest)| Some((environment.get(name)?, rest)));
        if let Some((value, after)) = known {
            expanded.push_str(value);
            rest = after;
        } else {
            expanded.push_str("$(");
            rest = after;
        }
    }
    expanded + rest
}

/// Returns port and path of the container's readiness probe.
fn probe(container: &Value) -> Option<(u16, String)> {
    let http = tree::get(container, &["readinessProbe", "httpGet"])?;
    let port = tree::int(http, &["port"]).and_then(|port| u16::try_from(port).ok());
    let port = port.or_else(|| named_port(container, tree::text(http, &["port"])))?;
    let path = tree::text(http, &["path"]);
    Some((port, if path.is_empty() { "/" } else { path }.to_owned()))
}

fn named_port(container: &Value, name: &str) -> Option<u16> {
    let ports = tree::list(container, &["ports"]);
    let port = ports.iter().find(|port| tree::text(port, &["name"]) == name)?;
    u16::try_from(tree::int(port, &["containerPort"])?).ok()
}

fn pre_stop(container: &Value) -> Option<Hook> {
    let hook = tree::get(container, &["lifecycle", "preStop"])?;
    if let Some(seconds) = tree::int(hook, &["sleep", "seconds"]) {
        return Some(Hook::Sleep(Duration::from_secs(
            u64::try_from(seconds).unwrap_or(0),
        )));
    }
    let command = tree::list(hook, &["exec", "command"]);
    let words: Vec<String> = command
        .iter()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    match words.split_first()? {
        (first, [seconds]) if first == "sleep" => {
            Some(Hook::Sleep(Duration::from_secs(seconds.parse().ok()?)))
        }
        (_, arguments) => Some(Hook::Run(arguments.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn runnable(spec: &Value) -> Option<RunnablePod> {
        let pod = json!({
            "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
            "spec": spec,
        });
        read(&pod, Ipv4Addr::new(10, 244, 0, 9), Ipv4Addr::new(10, 244, 0, 1))
    }

    #[test]
    fn an_unknown_image_follows_its_script() {
        assert_eq!(
            runnable(&json!({"containers": [{"name": "c", "image": "nginx:1"}]})),
            None
        );
        let mixed =
            json!({"containers": [{"name": "c", "image": app::APP_IMAGE}, {"name": "d", "image": "auto"}]});
        assert_eq!(runnable(&mixed), None);
    }

    #[test]
    fn the_image_selects_the_program_regardless_of_registry_and_variant() {
        assert_eq!(
            program("docker.io/istio/pilot:1.28.2"),
            Some(Program::Istiod("1.28.2".into()))
        );
        assert_eq!(
            program("hub/proxyv2:1.29.1-distroless"),
            Some(Program::Agent("1.29.1".into()))
        );
        assert_eq!(program(app::APP_IMAGE), Some(Program::App));
        assert_eq!(program("auto"), None);
    }

    #[test]
    fn the_environment_is_resolved_from_the_pod() {
        let runnable = runnable(&json!({"containers": [{
            "name": "c", "image": app::APP_IMAGE, "args": ["--domain", "$(NS).svc", "$(UNKNOWN)"],
            "env": [
                {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "BOTH", "value": "$(NS)-$(APP)"},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
        }]}));
        let container = &runnable.unwrap().containers[0];
        assert_eq!(container.arguments, ["--domain", "shop.svc", "$(UNKNOWN)"]);
        let pairs: Vec<_> = container
            .environment
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            pairs,
            ["APP=web", "BOTH=shop-web", "CPU=2", "IP=10.244.0.9", "NS=shop"]
        );
    }

    #[test]
    fn probes_and_pre_stop_hooks_are_parsed() {
        let runnable = runnable(&json!({
            "initContainers": [
                {"name": "istio-init", "image": "hub/proxyv2:1.29.1"},
                {"name": "istio-proxy", "image": "hub/proxyv2:1.29.1", "restartPolicy": "Always",
                 "lifecycle": {"preStop": {"exec": {"command": ["pilot-agent", "request", "POST", "drain"]}}}},
            ],
            "containers": [{
                "name": "c", "image": app::APP_IMAGE, "ports": [{"name": "http", "containerPort": 8080}],
                "readinessProbe": {"httpGet": {"port": "http"}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
            }],
        }));
        let runnable = runnable.unwrap();
        assert!(runnable.redirected);
        assert_eq!(
            runnable.sidecars[0].pre_stop,
            Some(Hook::Run(
                ["request", "POST", "drain"].map(str::to_owned).to_vec()
            ))
        );
        assert_eq!(runnable.containers[0].probe, Some((8080, "/".to_owned())));
        assert_eq!(
            runnable.containers[0].pre_stop,
            Some(Hook::Sleep(Duration::from_secs(3)))
        );
    }
}
