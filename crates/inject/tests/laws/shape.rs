//! Random manifests as trees; `style` prints them as text.

use crate::dice::Dice;

/// One node.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A string, to be written in any style.
    Text(String),
    /// A token, to be written as it is.
    Raw(&'static str),
    /// A text of several lines.
    Lines(String),
    /// An empty value; written as `null` where the syntax requires one.
    Nothing,
    /// A list.
    List(Vec<Shape>),
    /// A map.
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
pub(crate) fn object(dice: &mut Dice, lists: bool) -> Shape {
    match dice.below(12) {
        0 => config_map(),
        1 => service(),
        2 if lists => list(dice),
        _ => workload(dice),
    }
}

fn list(dice: &mut Dice) -> Shape {
    let items = (0..dice.below(4)).map(|_| object(dice, false)).collect();
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

/// Returns a `ConfigMap` with a string that looks like an injected manifest.
fn config_map() -> Shape {
    let inner = "initContainers:\n- name: contrast-initializer  # mainstay:injected\n  image: x\n# mainstay:was - name: y\nruntimeClassName: contrast-cc\n";
    map([
        ("kind", text("ConfigMap")),
        ("apiVersion", text("v1")),
        ("data", map([("pod.yaml", Shape::Lines(inner.into()))])),
    ])
}

fn workload(dice: &mut Dice) -> Shape {
    let (version, kind, path) = dice.pick(&KINDS);
    let pod = map([("metadata", metadata(dice)), ("spec", pod_spec(dice))]);
    let Shape::Map(pod) = pod else { unreachable!() };
    let mut object = if path.is_empty() {
        pod
    } else {
        let inner = path.iter().rev().fold(Shape::Map(pod), |inner, key| {
            let mut entries = vec![((*key).to_owned(), inner)];
            if dice.percent(40) {
                entries.push(("replicas".into(), Shape::Raw("3")));
            }
            dice.shuffle(&mut entries);
            Shape::Map(entries)
        });
        let Shape::Map(mut entries) = inner else {
            unreachable!()
        };
        entries.push(("metadata".into(), metadata(dice)));
        entries
    };
    object.retain(|(key, _)| key != "replicas");
    object.push(("apiVersion".into(), text(version)));
    object.push(("kind".into(), text(kind)));
    if dice.percent(60) {
        dice.shuffle(&mut object);
    }
    Shape::Map(object)
}

fn metadata(dice: &mut Dice) -> Shape {
    let mut annotations: Vec<(String, Shape)> = Vec::new();
    let mut annotate = |dice: &mut Dice, percent, key: &str, values: &[&str]| {
        if dice.percent(percent) {
            annotations.push((
                format!("contrast.edgeless.systems/{key}"),
                text(dice.pick::<&str>(values)),
            ));
        }
    };
    annotate(dice, 8, "skip-initializer", &["true", "", "false"]);
    annotate(
        dice,
        20,
        "servicemesh-ingress",
        &["", "web#8080#false##metrics#7890#true"],
    );
    annotate(
        dice,
        15,
        "servicemesh-egress",
        &["billing#127.137.0.1:8081#billing-svc:8080"],
    );
    annotate(dice, 15, "servicemesh-admin-interface-port", &["9901", ""]);
    annotate(dice, 3, "pod-role", &["coordinator", "other"]);
    if dice.percent(20) {
        annotations.push(("note".into(), Shape::Lines("one\n\n  two # three\n".into())));
    }
    let mut entries = vec![("name".to_owned(), text(dice.pick(&["web", "a-b", "naïve", "x"])))];
    if !annotations.is_empty() || dice.percent(10) {
        let annotations = if annotations.is_empty() {
            Shape::Nothing
        } else {
            Shape::Map(annotations)
        };
        entries.push(("annotations".into(), annotations));
    }
    if dice.percent(30) {
        entries.push(("labels".into(), map([("app", text("web"))])));
    }
    dice.shuffle(&mut entries);
    Shape::Map(entries)
}

fn pod_spec(dice: &mut Dice) -> Shape {
    let mut entries: Vec<(String, Shape)> = Vec::new();
    let class = dice.pick(&[
        "contrast-cc",
        "contrast-cc",
        "contrast-cc",
        "contrast-cc-snp",
        "runc",
    ]);
    if dice.percent(97) {
        entries.push(("runtimeClassName".into(), text(class)));
    }
    let count = 1 + dice.below(3);
    let containers = (0..count)
        .map(|index| container(dice, &format!("app-{index}")))
        .collect();
    entries.push(("containers".into(), Shape::List(containers)));
    if let Some(inits) = init_containers(dice) {
        entries.push(("initContainers".into(), inits));
    }
    let volumes = ["data", "contrast-tls-certs", "contrast-secrets"];
    if let Some(volumes) = named_list(dice, &volumes, |dice| {
        map([(
            "emptyDir",
            dice.pick(&[Shape::Map(Vec::new()), map([("medium", text("Memory"))])]),
        )])
    }) {
        entries.push(("volumes".into(), volumes));
    }
    if dice.percent(30) {
        entries.push((
            "nodeSelector".into(),
            dice.pick(&[map([("disk", text("ssd"))]), Shape::Nothing]),
        ));
    }
    if dice.percent(70) {
        dice.shuffle(&mut entries);
    }
    Shape::Map(entries)
}

fn init_containers(dice: &mut Dice) -> Option<Shape> {
    Some(match dice.below(10) {
        0..=3 => return None,
        4 => Shape::Nothing,
        5 => Shape::List(Vec::new()),
        6 => Shape::Raw(dice.pick(&["~", "null", "Null", "NULL"])),
        _ => {
            let names = ["wait", "contrast-initializer", "migrate", "contrast-service-mesh"];
            let mut items = Vec::new();
            for name in names {
                if dice.percent(if name.starts_with("contrast") { 15 } else { 60 }) {
                    items.push(container(dice, name));
                }
            }
            dice.shuffle(&mut items);
            Shape::List(items)
        }
    })
}

fn container(dice: &mut Dice, name: &str) -> Shape {
    let mut entries = vec![
        ("name".to_owned(), text(name)),
        ("image".to_owned(), text("registry.example/app:1@sha256:abc")),
    ];
    if dice.percent(40) {
        entries.push((
            "command".into(),
            Shape::List(vec![text("sh"), text("-c"), script(dice)]),
        ));
    }
    if dice.percent(30) {
        entries.push(("args".into(), script(dice)));
    }
    if dice.percent(20) {
        entries.push(("resources".into(), Shape::Map(Vec::new())));
    }
    if dice.percent(20) {
        entries.push(("stdin".into(), Shape::Nothing));
    }
    let mounts = ["data", "contrast-tls-certs", "contrast-secrets"];
    if let Some(mounts) = named_list(dice, &mounts, |_| map([("mountPath", text("/data"))])) {
        entries.push(("volumeMounts".into(), mounts));
    }
    if dice.percent(50) {
        dice.shuffle(&mut entries);
    }
    Shape::Map(entries)
}

fn script(dice: &mut Dice) -> Shape {
    let scripts = [
        "set -e\necho 'contrast-cc' # not ours\n\nexec app\n",
        "one\ntwo",
        "\n  indented\nlast\n\n\n",
        "# mainstay:was not\nhere\n",
    ];
    Shape::Lines(dice.pick::<&str>(&scripts).to_owned())
}

/// Returns a list of named items, or a form of the empty list; names of injected items are rare.
fn named_list(dice: &mut Dice, names: &[&str], rest: impl Fn(&mut Dice) -> Shape) -> Option<Shape> {
    Some(match dice.below(12) {
        0..=4 => return None,
        5 => Shape::Nothing,
        6 => Shape::List(Vec::new()),
        7 => Shape::Raw(dice.pick(&["~", "null"])),
        _ => {
            let mut items = Vec::new();
            for name in names {
                if dice.percent(if name.starts_with("contrast") { 15 } else { 70 }) {
                    let Shape::Map(mut entries) = rest(dice) else {
                        unreachable!()
                    };
                    entries.insert(dice.below(2), ("name".into(), text(name)));
                    items.push(Shape::Map(entries));
                }
            }
            Shape::List(items)
        }
    })
}
