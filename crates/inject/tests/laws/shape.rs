//! Random manifests as trees; `style` formats them as text.

use crate::rng::Rng;

/// A node of a manifest.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A string that is formatted in any style.
    Text(String),
    /// A token that is written unchanged.
    Raw(&'static str),
    /// A text of several lines.
    Lines(String),
    /// An empty value, which is written as `null` if the syntax requires a value.
    Nothing,
    List(Vec<Shape>),
    Map(Vec<(String, Shape)>),
}

fn text(value: &str) -> Shape {
    Shape::Text(value.into())
}

fn map<const N: usize>(entries: [(&str, Shape); N]) -> Shape {
    Shape::Map(entries.map(|(key, value)| (key.to_owned(), value)).to_vec())
}

const KINDS: [(&str, &str, &[&str]); 8] = [
    ("v1", "Pod", &[]),
    ("v1", "ReplicationController", &["spec", "template"]),
    ("apps/v1", "Deployment", &["spec", "template"]),
    ("apps/v1", "ReplicaSet", &["spec", "template"]),
    ("apps/v1", "DaemonSet", &["spec", "template"]),
    ("apps/v1", "StatefulSet", &["spec", "template"]),
    ("batch/v1", "Job", &["spec", "template"]),
    (
        "batch/v1",
        "CronJob",
        &["spec", "jobTemplate", "spec", "template"],
    ),
];

/// Returns a random object, in most cases a workload.
pub(crate) fn object(rng: &mut Rng, lists: bool) -> Shape {
    match rng.below(12) {
        0 => config_map(),
        1 => service(),
        2 if lists => list(rng),
        _ => workload(rng),
    }
}

fn list(rng: &mut Rng) -> Shape {
    let items = (0..rng.below(4)).map(|_| object(rng, false)).collect();
    map([
        ("apiVersion", text("v1")),
        ("kind", text("List")),
        ("items", Shape::List(items)),
    ])
}

fn service() -> Shape {
    map([
        ("apiVersion", text("v1")),
        ("kind", text("Service")),
        ("metadata", map([("name", text("contrast-front"))])),
        (
            "spec",
            map([("ports", Shape::List(vec![map([("port", Shape::Raw("80"))])]))]),
        ),
    ])
}

/// Returns a `ConfigMap` that contains an injected manifest as a string.
fn config_map() -> Shape {
    let inner = "initContainers:\n- name: contrast-initializer  # mainstay:injected\n  image: x\n# mainstay:was - name: y\nruntimeClassName: contrast-cc\n";
    map([
        ("kind", text("ConfigMap")),
        ("apiVersion", text("v1")),
        ("data", map([("pod.yaml", Shape::Lines(inner.into()))])),
    ])
}

fn workload(rng: &mut Rng) -> Shape {
    let (version, kind, path) = rng.pick(&KINDS);
    let pod = map([("metadata", metadata(rng)), ("spec", pod_spec(rng))]);
    let Shape::Map(pod) = pod else { unreachable!() };
    let mut object = if path.is_empty() {
        pod
    } else {
        let inner = path.iter().rev().fold(Shape::Map(pod), |inner, key| {
            let mut entries = vec![((*key).to_owned(), inner)];
            if rng.percent(40) {
                entries.push(("replicas".into(), Shape::Raw("3")));
            }
            rng.shuffle(&mut entries);
            Shape::Map(entries)
        });
        let Shape::Map(mut entries) = inner else {
            unreachable!()
        };
        entries.push(("metadata".into(), metadata(rng)));
        entries
    };
    object.retain(|(key, _)| key != "replicas");
    object.push(("apiVersion".into(), text(version)));
    object.push(("kind".into(), text(kind)));
    if rng.percent(60) {
        rng.shuffle(&mut object);
    }
    Shape::Map(object)
}

fn metadata(rng: &mut Rng) -> Shape {
    let mut annotations: Vec<(String, Shape)> = Vec::new();
    let mut annotate = |rng: &mut Rng, percent, key: &str, values: &[&str]| {
        if rng.percent(percent) {
            annotations.push((
                format!("contrast.edgeless.systems/{key}"),
                text(rng.pick::<&str>(values)),
            ));
        }
    };
    annotate(rng, 8, "skip-initializer", &["true", "", "false"]);
    annotate(
        rng,
        20,
        "servicemesh-ingress",
        &["", "web#8080#false##metrics#7890#true"],
    );
    annotate(
        rng,
        15,
        "servicemesh-egress",
        &["billing#127.137.0.1:8081#billing-svc:8080"],
    );
    annotate(rng, 15, "servicemesh-admin-interface-port", &["9901", ""]);
    annotate(rng, 3, "pod-role", &["coordinator", "other"]);
    if rng.percent(20) {
        annotations.push(("note".into(), Shape::Lines("one\n\n  two # three\n".into())));
    }
    let mut entries = vec![("name".to_owned(), text(rng.pick(&["web", "a-b", "naïve", "x"])))];
    if !annotations.is_empty() || rng.percent(10) {
        let annotations = if annotations.is_empty() {
            Shape::Nothing
        } else {
            Shape::Map(annotations)
        };
        entries.push(("annotations".into(), annotations));
    }
    if rng.percent(30) {
        entries.push(("labels".into(), map([("app", text("web"))])));
    }
    rng.shuffle(&mut entries);
    Shape::Map(entries)
}

fn pod_spec(rng: &mut Rng) -> Shape {
    let mut entries: Vec<(String, Shape)> = Vec::new();
    let class = rng.pick(&[
        "contrast-cc",
        "contrast-cc",
        "contrast-cc",
        "contrast-cc-snp",
        "runc",
    ]);
    if rng.percent(97) {
        entries.push(("runtimeClassName".into(), text(class)));
    }
    let count = 1 + rng.below(3);
    let containers = (0..count)
        .map(|index| container(rng, &format!("app-{index}")))
        .collect();
    entries.push(("containers".into(), Shape::List(containers)));
    if let Some(inits) = init_containers(rng) {
        entries.push(("initContainers".into(), inits));
    }
    let volumes = ["data", "contrast-tls-certs", "contrast-secrets"];
    if let Some(volumes) = named_list(rng, &volumes, |rng| {
        map([(
            "emptyDir",
            rng.pick(&[Shape::Map(Vec::new()), map([("medium", text("Memory"))])]),
        )])
    }) {
        entries.push(("volumes".into(), volumes));
    }
    if rng.percent(30) {
        entries.push((
            "nodeSelector".into(),
            rng.pick(&[map([("disk", text("ssd"))]), Shape::Nothing]),
        ));
    }
    if rng.percent(70) {
        rng.shuffle(&mut entries);
    }
    Shape::Map(entries)
}

fn init_containers(rng: &mut Rng) -> Option<Shape> {
    Some(match rng.below(10) {
        0..=3 => return None,
        4 => Shape::Nothing,
        5 => Shape::List(Vec::new()),
        6 => Shape::Raw(rng.pick(&["~", "null", "Null", "NULL"])),
        _ => {
            let names = ["wait", "contrast-initializer", "migrate", "contrast-service-mesh"];
            let mut items = Vec::new();
            for name in names {
                if rng.percent(if name.starts_with("contrast") { 15 } else { 60 }) {
                    items.push(container(rng, name));
                }
            }
            rng.shuffle(&mut items);
            Shape::List(items)
        }
    })
}

fn container(rng: &mut Rng, name: &str) -> Shape {
    let mut entries = vec![
        ("name".to_owned(), text(name)),
        ("image".to_owned(), text("registry.example/app:1@sha256:abc")),
    ];
    if rng.percent(40) {
        entries.push((
            "command".into(),
            Shape::List(vec![text("sh"), text("-c"), script(rng)]),
        ));
    }
    if rng.percent(30) {
        entries.push(("args".into(), script(rng)));
    }
    if rng.percent(20) {
        entries.push(("resources".into(), Shape::Map(Vec::new())));
    }
    if rng.percent(20) {
        entries.push(("stdin".into(), Shape::Nothing));
    }
    let mounts = ["data", "contrast-tls-certs", "contrast-secrets"];
    if let Some(mounts) = named_list(rng, &mounts, |_| map([("mountPath", text("/data"))])) {
        entries.push(("volumeMounts".into(), mounts));
    }
    if rng.percent(50) {
        rng.shuffle(&mut entries);
    }
    Shape::Map(entries)
}

fn script(rng: &mut Rng) -> Shape {
    let scripts = [
        "set -e\necho 'contrast-cc' # not ours\n\nexec app\n",
        "one\ntwo",
        "\n  indented\nlast\n\n\n",
        "# mainstay:was not\nhere\n",
    ];
    Shape::Lines(rng.pick::<&str>(&scripts).to_owned())
}

/// Returns a list of named items, or one of the forms of an empty list. Names of injected items are rare.
fn named_list(rng: &mut Rng, names: &[&str], rest: impl Fn(&mut Rng) -> Shape) -> Option<Shape> {
    Some(match rng.below(12) {
        0..=4 => return None,
        5 => Shape::Nothing,
        6 => Shape::List(Vec::new()),
        7 => Shape::Raw(rng.pick(&["~", "null"])),
        _ => {
            let mut items = Vec::new();
            for name in names {
                if rng.percent(if name.starts_with("contrast") { 15 } else { 70 }) {
                    let Shape::Map(mut entries) = rest(rng) else {
                        unreachable!()
                    };
                    entries.insert(rng.below(2), ("name".into(), text(name)));
                    items.push(Shape::Map(entries));
                }
            }
            Shape::List(items)
        }
    })
}
