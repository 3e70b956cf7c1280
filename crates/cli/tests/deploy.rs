//! The operator's own chart under the real Helm: it lints, and both engines render it to the same bytes or
//! reject it with the same message.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use mainstay_testkit::{peer, repository_root};

/// Value sets: what a user may set, and what the schema rejects.
const SETS: &[&[&str]] = &[
    &[],
    &["--set", "replicas=2,podDisruptionBudget.enabled=true"],
    &[
        "--set",
        "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.team=mesh",
    ],
    &[
        "--set",
        "rbac.create=false,serviceAccount.create=false,serviceAccount.name=mine",
    ],
    &[
        "--set",
        "rbac.grants=false",
        "--set-json",
        r#"rbac.extraRules=[{"apiGroups":["x"],"resources":["y"],"verbs":["get"]}]"#,
    ],
    &["--set", "crds.install=false"],
    &[
        "--set",
        "crds.only=istio,crds.istioVersion=1.28.2,imagePullSecrets={a,b}",
    ],
    &[
        "--set",
        "operator.images.v1_29_1.istiod=r/pilot@sha256:1,operator.images.v1_29_1.cni=r/cni:1",
    ],
    &[
        "--set",
        "image.tag=dev,nameOverride=sail,priorityClassName=high,podLabels.a=b,podAnnotations.c=d",
    ],
    &[
        "--set-json",
        r#"tolerations=[{"operator":"Exists"}]"#,
        "--set",
        "nodeSelector.os=linux,operator.extraArgs={--log-api-requests}",
    ],
    &[
        "--set",
        "operator.maxConcurrentReconciles=4,operator.leaderElect=false,operator.platform=openshift",
        "--set-json",
        r#"operator.env=[{"name":"A","value":"b"}]"#,
    ],
    &[
        "--set",
        "image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ],
    &[
        "--set",
        "charts.pull[0].version=v1.30.3,charts.pull[0].digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "--set",
        "charts.pull[0].source=oci://r/charts,charts.env[0].name=HTTPS_PROXY,charts.env[0].value=http://proxy",
    ],
    &[
        "--set",
        "charts.volume.persistentVolumeClaim.claimName=istio-charts",
    ],
    &["--set", "charts.warn=false"],
    &[
        "--set",
        "charts.volume.emptyDir.medium=Memory,charts.pull[0].version=1.30.3,charts.pull[0].digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ],
    &["--set", "charts.pull[0].version=1.30.3"],
    &[
        "--set",
        "charts.pull[0].version=latest,charts.pull[0].digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ],
    &["--set", "replicas=many"],
    &["--set", "replica=2"],
    &["--set", "image.digest=latest"],
    &["--set", "crds.only=ours"],
    &["--set", "operator.maxConcurrentReconciles=0"],
    &["--set", "metrics.port=70000"],
    &["--set", "operator.platform=nomad"],
];

fn run(program: &Path, arguments: &[&str]) -> Output {
    let home = std::env::temp_dir().join("mainstay-no-helm-home");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(repository_root())
        .env("HELM_CONFIG_HOME", &home);
    command
        .env("HELM_CACHE_HOME", &home)
        .env("HELM_DATA_HOME", &home)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn both_engines_render_and_reject_equally() {
    let helm = peer("helm4").unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_mainstay"));
    let (mut rendered, mut rejected) = (0, 0);
    for set in SETS {
        for extra in [&[][..], &["--include-crds"]] {
            let arguments = [
                &["template", "mainstay", "deploy/chart", "-n", "sail-operator"],
                *set,
                extra,
            ]
            .concat();
            let (theirs, own) = (run(&helm, &arguments), run(ours, &arguments));
            assert_eq!(
                theirs.status.code(),
                own.status.code(),
                "{set:?}: {}",
                text(&own.stderr)
            );
            assert!(theirs.stdout == own.stdout, "{set:?}\n{}", text(&own.stdout));
            if theirs.status.success() {
                rendered += 1;
            } else {
                rejected += 1;
                // A template error is followed by its source line.
                let (theirs, own) = (text(&theirs.stderr), text(&own.stderr));
                let message = own.split("   --> ").next().unwrap_or_default();
                assert_eq!(theirs, message, "{set:?}");
            }
        }
    }
    assert_eq!((rendered, rejected), (30, 20));
}

#[test]
fn helm_lint_reports_no_warning() {
    for name in ["helm4", "helm3"] {
        let output = run(&peer(name).unwrap(), &["lint", "--strict", "deploy/chart"]);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{name}: {said}{}", text(&output.stderr));
        assert!(
            !said.contains("[WARNING]") && !said.contains("[ERROR]"),
            "{name}: {said}"
        );
    }
}
