//! Tests for the line format and redaction.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_api::{OwnerReference, Reason};
use mainstay_mesh::plan::{Action, Release, ReleaseKey};
use mainstay_mesh::{Plan, Requeue, Step, Subject};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::report::{Observer as _, Outcome, Report};

/// Returns the lines that `act` logs with these options, without the time.
fn capture_log(options: LogOptions, act: impl FnOnce()) -> String {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let sink = Sink(bytes.clone());
    let subscriber = Registry::default().with(Lines::new(options, move || sink.clone()));
    tracing::subscriber::with_default(subscriber, act);
    let text = String::from_utf8(bytes.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = text.lines().map(without_time).collect();
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

#[derive(Clone)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn without_time(line: &str) -> String {
    match line.strip_prefix(r#"{"level":"#) {
        Some(_) => {
            let (head, rest) = line.split_once(r#""ts":""#).unwrap();
            format!("{head}{}", rest.split_once(r#"","#).unwrap().1)
        }
        None => line.split_once('\t').unwrap().1.to_owned(),
    }
}

fn options(level: &str, encoder: Encoder) -> LogOptions {
    LogOptions {
        level: level.parse().unwrap(),
        encoder,
        ..LogOptions::default()
    }
}

fn check(level: &str, encoder: Encoder, expected: &str) {
    let found = capture_log(options(level, encoder), || {
        tracing::info!(target: "mainstay_operator::run", count = 3, name = "a\"b", "two\nlines");
        tracing::debug!(target: "mainstay_operator::run", "details");
        tracing::info!(target: "kube_client::client", "chatter");
        tracing::warn!(target: "kube_client::client", "problem");
    });
    assert_eq!(found, expected, "{level}");
}

#[test]
fn lines_are_json_or_columns() {
    check(
        "info",
        Encoder::Json,
        "{\"level\":\"info\",\"logger\":\"operator.run\",\"msg\":\"two\\nlines\",\"count\":3,\"name\":\"a\\\"b\"}\n\
         {\"level\":\"warn\",\"logger\":\"kube_client.client\",\"msg\":\"problem\"}\n",
    );
    check(
        "debug",
        Encoder::Console,
        "INFO\toperator.run\ttwo lines\t{\"count\":3,\"name\":\"a\\\"b\"}\n\
         DEBUG\toperator.run\tdetails\n\
         WARN\tkube_client.client\tproblem\n",
    );
    check("error", Encoder::Console, "");
    check("panic", Encoder::Console, "");
}

#[test]
fn times_are_written_as_zap_writes_them() {
    let now = "2026-11-15T16:48:00.25Z".parse().unwrap();
    let line = line::Line {
        level: "info",
        logger: "l".into(),
        message: "m".into(),
        fields: Vec::new(),
    };
    for (encoding, expected) in [
        ("epoch", "1794761280.25"),
        ("millis", "1794761280250"),
        ("nanos", "1794761280250000000"),
        ("ISO8601", "2026-11-15T16:48:00.250Z"),
        ("rfc3339", "2026-11-15T16:48:00Z"),
        ("rfc3339nano", "2026-11-15T16:48:00.25Z"),
    ] {
        let options = LogOptions {
            time: encoding.parse().unwrap(),
            ..LogOptions::default()
        };
        assert_eq!(
            line.format(options, now),
            format!("{expected}\tINFO\tl\tm\n"),
            "{encoding}"
        );
    }
}

#[test]
fn unknown_options_are_rejected_with_zaps_messages() {
    assert_eq!("loud".parse::<Level>(), Err(LogOptionError::Level("loud".into())));
    assert_eq!("0".parse::<Level>(), Err(LogOptionError::Level("0".into())));
    assert_eq!("-1".parse::<Level>(), Err(LogOptionError::Level("-1".into())));
    assert_eq!("5".parse::<Level>(), Ok(Level(LevelFilter::TRACE)));
    assert_eq!(
        "xml".parse::<Encoder>(),
        Err(LogOptionError::Encoder("xml".into()))
    );
    assert_eq!(
        "never".parse::<TimeEncoding>(),
        Err(LogOptionError::TimeEncoding("never".into()))
    );
}

/// Returns a plan with a secret in its values.
fn plan() -> Plan {
    let values = serde_json::json!({"global": {"env": [{"PASSWORD": "canary-7f3a"}], "hub": "short", "key": "first-\"line\"\nsecond-line"}});
    let release = Release {
        key: ReleaseKey {
            owner: "uid".into(),
            namespace: "istio-system".into(),
            name: "default-istiod".into(),
        },
        chart: "istiod",
        version: "v1.29.1".into(),
        values: values.as_object().unwrap().clone(),
        owner: OwnerReference::default(),
    };
    Plan {
        subject: Subject::revision("default"),
        steps: vec![Step {
            action: Action::Install(Arc::new(release)),
            reason: Reason::ReleaseMissing,
        }],
        requeue: Requeue::OnEvent,
    }
}

#[test]
fn an_executed_plan_is_one_line() {
    let plan = plan();
    let duration = Duration::from_millis(5);
    let log = |outcome| {
        capture_log(options("info", Encoder::Console), || {
            PlanLog::default().report(&Report::Reconciled {
                plan: &plan,
                outcome,
                duration,
            });
        })
    };
    let rest = r#""subject":"IstioRevision/default","actions":"install istiod v1.29.1 as istio-system/default-istiod","reasons":"ReleaseMissing","milliseconds":5.0"#;
    assert_eq!(
        log(Outcome::Succeeded),
        format!("INFO\toperator.log.plans\treconciled\t{{{rest}}}\n")
    );
    assert_eq!(log(Outcome::Noop), "", "debug level only");
    let failed = log(Outcome::Failed("no"));
    assert_eq!(
        failed,
        format!("ERROR\toperator.log.plans\treconcile failed\t{{{rest},\"error\":\"no\"}}\n")
    );
}

#[test]
fn messages_are_redacted() {
    let plan = plan();
    let check = |text: &str, expected: &str| {
        for action in plan.actions() {
            assert_eq!(redact(text, action), expected);
        }
    };
    check(
        "data: Invalid value: \"canary-7f3a\": short",
        "data: Invalid value: \"(a value)\": short",
    );
    check("nothing of ours", "nothing of ours");
    // Escaped like in JSON or Go, escaped twice, encoded, and line by line.
    check(
        r#"invalid "first-\"line\"\nsecond-line""#,
        r#"invalid "(a value)""#,
    );
    check(
        r#"at \"first-\\\"line\\\"\\nsecond-line\""#,
        r#"at \"(a value)\""#,
    );
    check("line 2: second-line: bad", "line 2: (a value): bad");
    check("line 1: first-\"line\": bad", "line 1: (a value): bad");
    check("data: Zmlyc3QtImxpbmUiCnNlY29uZC1saW5l", "data: (a value)");
    let event = Action::Uninstall(ReleaseKey {
        owner: String::new(),
        namespace: String::new(),
        name: String::new(),
    });
    assert_eq!(redact("canary-7f3a", &event), "canary-7f3a", "it has no values");
}

#[test]
fn causes_are_logged_on_request() {
    let subject = Subject::istio("default");
    let enqueued = Report::Enqueued {
        subject: &subject,
        cause: "Namespace/shop",
    };
    let log = |log_enqueues| {
        capture_log(options("info", Encoder::Console), || {
            PlanLog { log_enqueues }.report(&enqueued);
        })
    };
    assert_eq!(log(false), "");
    let expected = "INFO\toperator.log.plans\tObject queued for reconciliation due to event\t{\"object\":\"Istio/default\",\"cause\":\"Namespace/shop\"}\n";
    assert_eq!(log(true), expected);
}
