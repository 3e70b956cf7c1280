//! Generated manifests.

use std::fmt::Write as _;

/// Returns a Deployment of about ten thousand bytes that is a target of injection.
pub(super) fn target(number: usize) -> String {
    let mut text = format!(
        "---\n# application {number}\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{number}\n  namespace: bench\n  labels:\n    \
         app: app-{number}\nspec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app: app-{number}\n  template:\n    metadata:\n      labels:\n        \
         app: app-{number}\n    spec:\n      runtimeClassName: contrast-cc\n      containers:\n      - name: app\n        \
         image: registry.example.com/app-{number}:1.0.0\n        args:\n        - |\n"
    );
    // Writing to a string cannot fail.
    for step in 0..64 {
        let _ = writeln!(text, "          echo \"step {step} of application {number}\"");
    }
    text.push_str("        env:\n");
    for setting in 0..64 {
        let _ = writeln!(
            text,
            "        - name: SETTING_{setting:03}\n          value: \"value of setting {setting} in application {number}, long enough to be real\""
        );
    }
    text.push_str("        ports:\n        - containerPort: 8080\n");
    text
}

/// Returns the same Deployment on the network of its node, without the runtime class that makes it a target.
/// istioctl does not inject it either.
pub(super) fn other(number: usize) -> String {
    target(number).replace("runtimeClassName: contrast-cc\n", "hostNetwork: true\n")
}

/// Returns every second Deployment as a target of injection.
pub(super) fn every_second_target(number: usize) -> String {
    if number.is_multiple_of(2) {
        target(number)
    } else {
        other(number)
    }
}

/// Returns a Service, or a Deployment of about a thousand bytes that is a target.
pub(super) fn short(number: usize) -> String {
    if number.is_multiple_of(2) {
        let labels = format!("    app: app-{number}\n    team: shop\n");
        return format!(
            "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: app-{number}\n  labels:\n{labels}spec:\n  selector:\n{labels}  ports:\n  - name: http\n    port: 80\n    targetPort: 8080\n"
        );
    }
    let text = target(number);
    let is_kept = |line: &&str| {
        !["echo \"step", "- |", "args:"]
            .iter()
            .any(|part| line.contains(part))
    };
    let lines = text.lines().filter(is_kept);
    let short: Vec<_> = lines.take_while(|line| !line.contains("SETTING_006")).collect();
    short.join("\n") + "\n"
}

/// Returns one Deployment of about ten million bytes.
pub(super) fn large() -> String {
    let mut text = target(0).replace("        ports:\n        - containerPort: 8080\n", "");
    for number in 64..100_000 {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "        - name: SETTING_{number}\n          value: \"value of setting {number}, long enough to be real\""
        );
    }
    text
}

/// Returns the manifests as items of one `List`.
pub(super) fn list(manifests: &[String]) -> String {
    let mut text = String::from("apiVersion: v1\nkind: List\nitems:\n");
    for manifest in manifests {
        for (number, line) in manifest.lines().skip(2).enumerate() {
            text.push_str(if number == 0 { "- " } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Returns a `List` of `count` manifests of the same shape, formatted like `kubectl get --output json`.
pub(super) fn json_list(count: usize) -> anyhow::Result<String> {
    let items: Vec<_> = (0..count).map(json).collect();
    let list = serde_json::json!({"apiVersion": "v1", "items": items, "kind": "List"});
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn json(number: usize) -> serde_json::Value {
    let name = format!("app-{number}");
    let steps = (0..64).map(|step| format!("echo \"step {step} of application {number}\"\n"));
    let script = steps.collect::<Vec<_>>().concat();
    let env: Vec<_> = (0..64)
        .map(|setting| {
            let value = format!("value of setting {setting} in application {number}, long enough to be real");
            serde_json::json!({"name": format!("SETTING_{setting:03}"), "value": value})
        })
        .collect();
    let image = format!("registry.example.com/{name}:1.0.0");
    let container = serde_json::json!({"name": "app", "image": image, "args": [script], "env": env, "ports": [{"containerPort": 8080}]});
    serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "bench", "labels": {"app": name}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"runtimeClassName": "contrast-cc", "containers": [container]},
            },
        },
    })
}
