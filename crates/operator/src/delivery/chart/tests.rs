//! Tests that charts whose objects depend on random values or on the time are rejected.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use mainstay_api::delivery::ApplicationSpec;
use mainstay_api::{ConditionType, Reason};
use serde_json::json;

use super::*;
use crate::delivery::application::{ApplicationAction, ApplicationInput, plan_application};

/// Packages a chart with one template.
fn package(template: &str) -> String {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let metadata = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
    for (name, text) in [("web/Chart.yaml", metadata), ("web/templates/a.yaml", template)] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let mut gzip = archive.into_inner().unwrap();
    gzip.flush().unwrap();
    STANDARD.encode(gzip.finish().unwrap())
}

/// Returns an application with a chart that renders a Secret with this value.
fn application(value: &str) -> Application {
    let template = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: generated}}\nstringData: {{key: {value}}}\n"
    );
    let component = Component {
        name: "db".into(),
        kind: component_type::HELM.into(),
        properties: json!({"chart": package(&template)}),
    };
    let spec = ApplicationSpec {
        components: vec![component],
        ..ApplicationSpec::default()
    };
    Application::new("shop", "app", spec)
}

/// Plans an application. Returns the reason and the message of its condition, and whether a revision is
/// created.
fn plan(application: &Application) -> (Reason, String, bool) {
    let actions = plan_application(&ApplicationInput {
        now: Timestamp::UNIX_EPOCH,
        application,
        rendered: render_components(application),
        revisions: &[],
        deployments: &[],
    });
    let creates = actions
        .iter()
        .any(|action| matches!(action, ApplicationAction::CreateRevision(_)));
    let status = actions.iter().find_map(|action| match action {
        ApplicationAction::WriteStatus(status) => Some(status),
        _ => None,
    });
    let ready = status.unwrap().conditions.get(&ConditionType::Ready);
    (ready.reason.clone(), ready.message.clone(), creates)
}

#[test]
fn a_chart_that_generates_a_secret_is_rejected() {
    let cases = [
        "{{ randAlphaNum 20 }}",
        "{{ uuidv4 }}",
        "{{ genPrivateKey \"ecdsa\" | b64enc }}",
        "{{ now | date \"2006-01-02\" | quote }}",
    ];
    for value in cases {
        let (reason, message, creates) = plan(&application(value));
        assert_eq!(
            (reason, message.as_str(), creates),
            (
                Reason::InvalidSpec,
                "component \"db\": Secret generated differs between two renders, because the chart uses random values or the current \
                 time; use a chart without them",
                false
            ),
            "{value}"
        );
    }
}

#[test]
fn the_same_application_always_has_the_same_objects() {
    let application = application("{{ randAlphaNum 20 | len }}");
    let (reason, message, creates) = plan(&application);
    assert_eq!((reason, message.as_str(), creates), (Reason::Ready, "", true));
    let render = || serde_json::to_value(render_components(&application).unwrap()).unwrap();
    assert_eq!(render(), render());
}
