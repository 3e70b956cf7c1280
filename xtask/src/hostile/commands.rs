//! Hostile input of the commands other than `template`.
#![allow(clippy::format_collect, reason = "a table of generated inputs")]

use super::Hostile;

/// Head of an `IstioOperator` file.
const OPERATOR: &str =
    "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: minimal\n";
/// Head of a kubeconfig.
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\n";

/// Returns all cases.
pub(super) fn all() -> Vec<Hostile> {
    let mut cases = vec![large_list()];
    cases.extend(manifest());
    cases.extend(validate());
    cases.extend(rehearse());
    cases.extend(rollout());
    cases.extend(status());
    cases
}

/// Returns a case that must fail with any message.
fn case(
    name: &str,
    command: &'static [&'static str],
    files: Vec<(String, Vec<u8>)>,
    arguments: &[&str],
) -> Hostile {
    Hostile {
        command,
        ..Hostile::new(name, files, arguments, "")
    }
}

fn file(name: &str, text: impl Into<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    vec![(name.to_owned(), text.into())]
}

/// Returns entries with many aliases of a large anchor, indented for `spec`.
fn aliases() -> String {
    let long = "x".repeat(1 << 20);
    format!("  a: &a {long}\n  b: [{}]\n", "*a, ".repeat(4_000))
}

/// Returns 300,000 items that share one anchor: 21 MB.
fn large_list() -> Hostile {
    let item = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n  data: *d\n";
    let text = format!(
        "apiVersion: v1\nkind: List\nmetadata:\n  annotations: &d {{a: b}}\nitems:\n{}",
        item.repeat(300_000)
    );
    let files = file("in.yaml", text);
    case(
        "generate: a List with one anchor, 21 MB",
        &["generate"],
        files,
        &["@in.yaml"],
    )
    .or_accepted()
}

fn manifest() -> Vec<Hostile> {
    let generate: &[&str] = &["manifest", "generate"];
    let operator = |text: String| file("mesh.yaml", format!("{OPERATOR}{text}"));
    let f = &["-f", "@mesh.yaml"];
    let mut sets = case(
        "manifest generate: 400 × --set k[65536]",
        generate,
        Vec::new(),
        &[],
    );
    for number in 0..400 {
        let set = format!("values.pilot.k{number}[65536]=1");
        sets.arguments.extend(["--set".to_owned(), set]);
    }
    let pipe = Hostile {
        pipes: vec!["release/charts/base/Chart.yaml"],
        ..case(
            "manifest generate: a pipe as Chart.yaml",
            generate,
            file(
                "release/profiles/default.yaml",
                OPERATOR.replace("minimal", "default"),
            ),
            &["-d", "@release"],
        )
    };
    let injection = "  values:\n    global:\n      logging:\n        level: \"default:info\\n---\\nkind: X\\nmetadata: {name: x}\\na:\\n          - b\"\n";
    vec![
        case("manifest generate: aliases", generate, operator(aliases()), f),
        case(
            "manifest generate: nested 100,000 deep",
            generate,
            operator(format!("  values: {}", "[".repeat(100_000))),
            f,
        ),
        case(
            "manifest generate: 10,000 gateways",
            generate,
            operator(format!(
                "  components:\n    ingressGateways:\n{}",
                (0..10_000)
                    .map(|number| format!("    - {{name: g{number}, enabled: true}}\n"))
                    .collect::<String>()
            )),
            f,
        ),
        case(
            "manifest generate: a value that adds an object",
            generate,
            operator(injection.to_owned()),
            f,
        )
        .or_accepted(),
        case(
            "manifest generate: -f /dev/zero",
            generate,
            Vec::new(),
            &["-f", "/dev/zero"],
        ),
        case(
            "manifest diff: /dev/zero",
            &["manifest", "diff"],
            Vec::new(),
            &["/dev/zero", "/dev/zero"],
        ),
        sets,
        pipe,
    ]
}

fn validate() -> Vec<Hostile> {
    let validate: &[&str] = &["manifest", "validate"];
    let operator = |text: String| file("mesh.yaml", format!("{OPERATOR}{text}"));
    let f = &["-f", "@mesh.yaml"];
    vec![
        case("manifest validate: aliases", validate, operator(aliases()), f),
        case(
            "manifest validate: maps nested 100,000 deep",
            validate,
            operator(format!("  values: {}", "{a: ".repeat(100_000))),
            f,
        ),
    ]
}

fn rehearse() -> Vec<Hostile> {
    let rehearse: &[&str] = &["rehearse"];
    let arguments = &["--snapshot", "@cluster", "--to", "v1.29.1"];
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\ndata:\n";
    let pipe = Hostile {
        pipes: vec!["cluster/v1/pipe.yaml"],
        ..case(
            "rehearse: a pipe in a snapshot",
            rehearse,
            file("cluster/v1/a.yaml", format!("{object}  a: b\n")),
            arguments,
        )
    };
    vec![
        case(
            "rehearse: aliases in a snapshot",
            rehearse,
            file("cluster/a.yaml", format!("{object}{}", aliases())),
            arguments,
        ),
        case(
            "rehearse: --snapshot /dev/zero",
            rehearse,
            Vec::new(),
            &["--snapshot", "/dev/zero", "--to", "v1.29.1"],
        ),
        pipe,
    ]
}

fn rollout() -> Vec<Hostile> {
    let plan: &[&str] = &["rollout", "plan"];
    let head = "apiVersion: delivery.mainstay.dev/v1alpha1\nkind: ApplicationDeployment\nmetadata: {name: a}\nspec:\n";
    let revisions: String = (0..50_000)
        .map(|number| {
            format!(
                "  - {{revisionName: r{number}, placement: [{{distribution: {{replicas: 1000000000}}}}]}}\n"
            )
        })
        .collect();
    let f = &["-f", "@app.yaml"];
    vec![
        case(
            "rollout plan: aliases",
            plan,
            file("app.yaml", format!("{head}{}", aliases())),
            f,
        ),
        case(
            "rollout plan: 50,000 revisions",
            plan,
            file("app.yaml", format!("{head}  appRevisions:\n{revisions}")),
            f,
        ),
        case(
            "rollout plan: -f /dev/zero",
            plan,
            Vec::new(),
            &["-f", "/dev/zero"],
        ),
    ]
}

fn status() -> Vec<Hostile> {
    let status: &[&str] = &["status"];
    let users = |text: &str| format!("{KUBECONFIG}users:\n- name: u\n  user:\n{text}");
    let long = "x".repeat(1 << 20);
    let shared = format!(
        "x: &a {long}\nextensions: [{}]\n",
        "{name: n, extension: *a}, ".repeat(4_000)
    );
    vec![
        case(
            "status: aliases in a kubeconfig",
            status,
            file("config", format!("{KUBECONFIG}{shared}")),
            &["--kubeconfig", "@config"],
        ),
        case(
            "status: a kubeconfig nested 100,000 deep",
            status,
            file("config", users(&format!("    token: {}", "[".repeat(100_000)))),
            &["--kubeconfig", "@config"],
        ),
        case(
            "status: --kubeconfig /dev/zero",
            status,
            Vec::new(),
            &["--kubeconfig", "/dev/zero"],
        ),
    ]
}
