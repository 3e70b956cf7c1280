//! An independent implementation of the injection that works on values; its results are compared with the
//! output.

use mainstay_inject::{Action, Options, Outcome};
use mainstay_yaml::{Budget, Map, Value, parse_spanned_values};

/// Compares all documents with the result of the independent implementation.
pub(crate) fn check(text: &[u8], outcome: &Outcome<'_>, options: &Options) -> Result<(), String> {
    if outcome
        .reports
        .iter()
        .any(|report| report.action == Action::Failed)
    {
        return Ok(());
    }
    let (before, after) = (values(text), values(&outcome.text));
    if before.len() != after.len() {
        return Err("another number of documents".into());
    }
    for (mut before, mut after) in before.into_iter().zip(after) {
        object(&mut before, options);
        remove_records(&mut before);
        remove_records(&mut after);
        if before != after {
            return Err(format!(
                "independent implementation differs\n--- wanted\n{before:?}\n--- given\n{after:?}"
            ));
        }
    }
    Ok(())
}

/// Removes undo records, then empty annotations and metadata.
fn remove_records(value: &mut Value) {
    match value {
        Value::List(items) => items.iter_mut().for_each(remove_records),
        Value::Map(map) => {
            map.remove(crate::common::UNDO_ANNOTATION);
            map.values_mut().for_each(remove_records);
            for key in ["annotations", "metadata"] {
                if map
                    .get(key)
                    .is_some_and(|value| value.is_null() || *value == Value::Map(Map::new()))
                {
                    map.remove(key);
                }
            }
        }
        _ => {}
    }
}

fn values(text: &[u8]) -> Vec<Value> {
    let documents = parse_spanned_values(text, &Budget::default()).expect("the text is YAML");
    documents
        .into_iter()
        .map(|spanned| spanned.value.expect("the text has values"))
        .collect()
}

fn object(object: &mut Value, options: &Options) {
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let path: &[&str] = match kind.as_str() {
        "List" => {
            if let Some(Value::List(items)) = object.as_map_mut().and_then(|map| map.get_mut("items")) {
                for item in items {
                    self::object(item, options);
                }
            }
            return;
        }
        "Pod" => &[],
        "CronJob" => &["spec", "jobTemplate", "spec", "template"],
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "Job" | "ReplicationController" => {
            &["spec", "template"]
        }
        _ => return,
    };
    let own = object.clone();
    let template = path
        .iter()
        .try_fold(object, |node, key| node.as_map_mut()?.get_mut(*key));
    if let Some(template) = template {
        pod(&own, template, &kind, options);
    }
}

fn pod(object: &Value, template: &mut Value, kind: &str, options: &Options) {
    let later = options.profile.name == "later";
    let annotation = |name: &str| {
        let key = format!("contrast.edgeless.systems/{name}");
        let at = |node: &Value| {
            node.at(&["metadata", "annotations", &key])
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        at(template).or_else(|| if later { None } else { at(object) })
    };
    let class = template
        .at(&["spec", "runtimeClassName"])
        .and_then(Value::as_str)
        .unwrap_or_default();
    let role = template.at(&[
        "metadata",
        if later { "labels" } else { "annotations" },
        "contrast.edgeless.systems/pod-role",
    ]);
    if !class.starts_with("contrast-cc")
        || (kind == "StatefulSet" && role == Some(&Value::from("coordinator")))
    {
        return;
    }
    let skip = annotation("skip-initializer")
        .is_some_and(|value| if later { value == "true" } else { value != "false" });
    let initializer = !skip && !options.skip_initializer;
    let config = [
        "servicemesh-admin-interface-port",
        "servicemesh-ingress",
        "servicemesh-egress",
    ]
    .map(annotation);
    let mesh = !options.skip_service_mesh && config.iter().any(Option::is_some);
    let Some(spec) = template
        .as_map_mut()
        .and_then(|map| map.get_mut("spec"))
        .and_then(Value::as_map_mut)
    else {
        return;
    };
    let volume = if later {
        "contrast-secrets"
    } else {
        "contrast-tls-certs"
    };
    if initializer {
        items(spec, "initContainers").retain(|item| !has_name(item, "contrast-initializer"));
    }
    if mesh {
        items(spec, "initContainers").retain(|item| !has_name(item, "contrast-service-mesh"));
    }
    if initializer {
        mount(spec, "containers", volume, later);
        if later && spec.contains_key("initContainers") {
            mount(spec, "initContainers", volume, later);
        }
        items(spec, "initContainers").insert(0, initializer_container(mesh, options));
    }
    if mesh {
        items(spec, "initContainers").push(mesh_container(&config, options));
    }
    if (initializer || mesh) && !items(spec, "volumes").iter().any(|item| has_name(item, volume)) {
        let source = if later { r#"{"medium": "Memory"}"# } else { "{}" };
        items(spec, "volumes").push(value(&format!(r#"{{"name": "{volume}", "emptyDir": {source}}}"#)));
    }
}

fn mount(spec: &mut Map, list: &str, volume: &str, later: bool) {
    for container in items(spec, list) {
        let mounts = items(container.as_map_mut().expect("a container"), "volumeMounts");
        if !mounts.iter().any(|mount| has_name(mount, volume)) {
            let rest = if later {
                r#""/contrast", "readOnly": true"#
            } else {
                r#""/tls-config""#
            };
            mounts.push(value(&format!(r#"{{"name": "{volume}", "mountPath": {rest}}}"#)));
        }
    }
}

fn initializer_container(mesh: bool, options: &Options) -> Value {
    let image = options
        .images
        .resolve("ghcr.io/edgelesssys/contrast/initializer:latest");
    if options.profile.name == "later" {
        let disabled = if mesh {
            ""
        } else {
            r#", {"name": "CONTRAST_SERVICE_MESH_DISABLED", "value": "true"}"#
        };
        return value(&format!(
            r#"{{"name": "contrast-initializer", "image": "{image}",
                "env": [{{"name": "COORDINATOR_HOST", "value": "coordinator-ready.default"}}{disabled}],
                "resources": {{"requests": {{"memory": "300Mi"}}, "limits": {{"memory": "300Mi"}}}},
                "securityContext": {{"capabilities": {{"add": ["NET_ADMIN"]}}}},
                "volumeMounts": [{{"name": "contrast-secrets", "mountPath": "/contrast"}}]}}"#
        ));
    }
    value(&format!(
        r#"{{"name": "contrast-initializer", "image": "{image}",
            "env": [{{"name": "COORDINATOR_HOST", "value": "coordinator"}}],
            "resources": {{"requests": {{"memory": "50Mi"}}}},
            "volumeMounts": [{{"name": "contrast-tls-certs", "mountPath": "/tls-config"}}]}}"#
    ))
}

fn mesh_container(config: &[Option<String>; 3], options: &Options) -> Value {
    let later = options.profile.name == "later";
    let image = options
        .images
        .resolve("ghcr.io/edgelesssys/contrast/service-mesh-proxy:latest");
    let mut container = value(&format!(
        r#"{{"name": "contrast-service-mesh", "image": "{image}", "restartPolicy": "Always",
            "securityContext": {{"privileged": true, "capabilities": {{"add": ["NET_ADMIN"]}}}},
            "volumeMounts": [{{"name": "{}", "mountPath": "{}"}}]}}"#,
        if later {
            "contrast-secrets"
        } else {
            "contrast-tls-certs"
        },
        if later { "/contrast" } else { "/tls-config" },
    ));
    let map = container.as_map_mut().expect("a map");
    let prefix = if later { "CONTRAST_" } else { "EDG_" };
    for (name, value) in ["ADMIN_PORT", "INGRESS_PROXY_CONFIG", "EGRESS_PROXY_CONFIG"]
        .iter()
        .zip(config)
    {
        if let Some(given) = value.as_ref().filter(|value| !value.is_empty()) {
            items(map, "env").push(self::value(&format!(
                r#"{{"name": "{prefix}{name}", "value": "{given}"}}"#
            )));
        }
    }
    if let Some(port) = config[0].as_ref().filter(|port| !port.is_empty()) {
        map.insert(
            "ports".into(),
            value(&format!(
                r#"[{{"name": "contrast-admin", "containerPort": {port}}}]"#
            )),
        );
    }
    if later {
        map.insert("args".into(), value(r#"["-l", "debug"]"#));
        map.insert(
            "resources".into(),
            value(r#"{"requests": {"memory": "500Mi"}, "limits": {"memory": "500Mi"}}"#),
        );
        let probe = r#"{"exec": {"command": ["test", "-f", "/ready"]}, "initialDelaySeconds": 1, "periodSeconds": 5, "failureThreshold": 5}"#;
        map.insert("startupProbe".into(), value(probe));
    }
    container
}

fn items<'m>(map: &'m mut Map, list: &str) -> &'m mut Vec<Value> {
    let entry = map.entry(list.into()).or_default();
    if entry.is_null() {
        *entry = Value::List(Vec::new());
    }
    match entry {
        Value::List(items) => items,
        other => panic!("no list: {other:?}"),
    }
}

fn has_name(item: &Value, name: &str) -> bool {
    item.get("name") == Some(&Value::from(name))
}

fn value(text: &str) -> Value {
    values(text.as_bytes()).remove(0)
}
