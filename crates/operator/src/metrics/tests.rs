//! Tests for the values of metrics, and that the documentation lists exactly these metrics.

use mainstay_api::Reason;
use mainstay_mesh::plan::{Action, Event, Precondition};
use mainstay_mesh::{Requeue, Step};

use super::*;

const DOCUMENT: &str = include_str!("../../../../docs/metrics.md");

fn plan_with_step() -> Plan {
    let about = Precondition {
        subject: Subject::istio("default"),
        uid: "u".into(),
        resource_version: "1".into(),
    };
    let event = Event {
        about,
        warning: false,
        reason: Reason::TagMoved,
        message: "m".into(),
    };
    Plan {
        subject: Subject::istio("default"),
        steps: vec![Step {
            action: Action::Event(event),
            reason: Reason::TagMoved,
        }],
        requeue: Requeue::OnEvent,
    }
}

/// Returns metrics that have received reports of every kind.
fn populated_metrics() -> Metrics {
    let metrics = Metrics::new("1.2.3");
    let (idle, busy) = (Plan::empty(Subject::Webhook("w".into())), plan_with_step());
    let duration = Duration::from_micros(300);
    for plan in [&idle, &idle, &busy] {
        metrics.report(&Report::Planned(plan, duration));
    }
    let outcomes = [
        (&idle, Outcome::Noop),
        (&idle, Outcome::Panicked),
        (&busy, Outcome::Failed("no")),
    ];
    for (plan, outcome) in outcomes {
        metrics.report(&Report::Reconciled {
            plan,
            outcome,
            duration,
        });
    }
    metrics.report(&Report::Written {
        action: "status",
        reason: "StatusChanged",
    });
    metrics.report(&Report::ApiCall {
        verb: "patch",
        code: 200,
    });
    metrics.report(&Report::ApiCall {
        verb: "watch",
        code: 0,
    });
    metrics.report(&Report::Cached {
        cache: "Pod",
        objects: 20_000,
    });
    metrics.report(&Report::QueueDepth(7));
    metrics.report(&Report::Leading(true));
    metrics.report(&Report::Synced(true));
    metrics.report(&Report::InUse {
        revision: "r",
        counts: Some(Counts {
            tags: 1,
            namespaces: 2,
            labeled_pods: 3,
            running_pods: 4,
        }),
    });
    metrics.report(&Report::InstallationReconciled {
        outcome: Outcome::Succeeded,
        duration,
    });
    let states = [("", 1), ("NONE", 1), ("HEALTHY", 3)];
    let states = states.map(|(state, count)| (state.to_owned(), count));
    metrics.report(&Report::Installations(&states.into()));
    metrics
}

fn check(text: &str, line: &str) {
    assert!(
        text.lines().any(|found| found == line),
        "{line}\nis not in\n{text}"
    );
}

#[test]
fn reports_are_counted() {
    let text = populated_metrics().text();
    for line in [
        r#"mainstay_build_info{version="1.2.3"} 1"#,
        r#"mainstay_reconciles_total{kind="MutatingWebhookConfiguration",result="noop"} 1"#,
        r#"mainstay_reconciles_total{kind="MutatingWebhookConfiguration",result="panic"} 1"#,
        r#"mainstay_reconciles_total{kind="Istio",result="error"} 1"#,
        r#"mainstay_reconciles_total{kind="IstioOperator",result="success"} 1"#,
        r#"mainstay_istio_operators{state="NONE"} 2"#,
        r#"mainstay_istio_operators{state="HEALTHY"} 3"#,
        r#"mainstay_istio_operators{state="ERROR"} 0"#,
        r#"mainstay_reconcile_duration_seconds_bucket{le="0.001",kind="Istio"} 1"#,
        r#"mainstay_reconcile_duration_seconds_bucket{le="0.0001",kind="Istio"} 0"#,
        "mainstay_plans_total 3",
        "mainstay_plans_empty_total 2",
        r#"mainstay_plan_duration_seconds_bucket{le="0.0005"} 3"#,
        r#"mainstay_writes_total{action="status",reason="StatusChanged"} 1"#,
        r#"mainstay_api_calls_total{verb="patch",code="200"} 1"#,
        r#"mainstay_api_calls_total{verb="watch",code="none"} 1"#,
        r#"mainstay_cache_objects{cache="Pod"} 20000"#,
        "mainstay_queue_depth 7",
        r#"mainstay_revision_referrers{revision="r",by="tag"} 1"#,
        r#"mainstay_revision_referrers{revision="r",by="running_proxy"} 4"#,
        "mainstay_leader 1",
        "mainstay_synced 1",
        "mainstay_panics_total 1",
        "# EOF",
    ] {
        check(&text, line);
    }
}

#[test]
fn a_deleted_revision_has_no_series() {
    let metrics = populated_metrics();
    metrics.report(&Report::InUse {
        revision: "r",
        counts: None,
    });
    assert!(!metrics.text().contains("mainstay_revision_referrers{"));
}

#[test]
fn the_documentation_lists_every_metric() {
    let expected: Vec<String> = populated_metrics()
        .rows()
        .iter()
        .map(|row| {
            let labels: Vec<_> = row.labels.iter().map(|label| format!("`{label}`")).collect();
            format!(
                "| `{}` | {} | {} | {} |",
                row.name,
                row.kind,
                labels.join(", "),
                row.help
            )
        })
        .collect();
    let listed: Vec<&str> = DOCUMENT
        .lines()
        .filter(|line| line.starts_with("| `mainstay_"))
        .collect();
    assert_eq!(
        listed,
        expected,
        "docs/metrics.md should list:\n{}",
        expected.join("\n")
    );
}

#[test]
fn every_listed_metric_is_exported() {
    let metrics = populated_metrics();
    let text = metrics.text();
    for row in metrics.rows() {
        let base = row.name.strip_suffix("_total").unwrap_or(&row.name);
        check(&text, &format!("# HELP {base} {}", row.help));
        check(&text, &format!("# TYPE {base} {}", row.kind));
        for label in &row.labels {
            let found = text
                .lines()
                .any(|line| line.starts_with(base) && line.contains(&format!("{label}=\"")));
            assert!(found, "{base} {label}");
        }
    }
    let help = text.lines().filter(|line| line.starts_with("# HELP")).count();
    assert_eq!(help, metrics.rows().len(), "every exported metric is listed");
}

const DASHBOARD: &str = include_str!("../../../../deploy/monitoring/dashboard.json");
const ALERTS: &str = include_str!("../../../../deploy/monitoring/alerts.yaml");

/// Returns the words of a text that start with `mainstay_`.
fn metric_names(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_word(c))
        .filter(|word| word.starts_with("mainstay_"))
        .collect()
}

/// Returns the words in parentheses after `by`.
fn grouping_labels(text: &str) -> Vec<&str> {
    let groups = text.split("by (").skip(1);
    let groups = groups.filter_map(|rest| rest.split(')').next());
    groups.flat_map(|group| group.split(", ")).collect()
}

#[test]
fn dashboard_and_alerts_use_metrics_and_labels_that_exist() {
    let metrics = populated_metrics();
    let rows = metrics.rows();
    for (file, text) in [("dashboard.json", DASHBOARD), ("alerts.yaml", ALERTS)] {
        let found = metric_names(text);
        assert!(!found.is_empty(), "{file}");
        for name in found {
            let base = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(
                rows.iter().any(|row| row.name == base),
                "{file}: {name} does not exist"
            );
        }
        for label in grouping_labels(text) {
            let exists = label == "le" || rows.iter().any(|row| row.labels.contains(&label));
            assert!(exists, "{file}: no metric has the label {label:?}");
        }
    }
    let shown: Vec<&str> = rows
        .iter()
        .map(|row| row.name.as_str())
        .filter(|name| {
            !metric_names(DASHBOARD)
                .iter()
                .any(|shown| shown.starts_with(name))
        })
        .collect();
    assert_eq!(shown, Vec::<&str>::new(), "the dashboard shows every metric");
}
