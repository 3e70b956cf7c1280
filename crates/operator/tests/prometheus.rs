//! Tests analyses with a real Prometheus server on loopback. It scrapes a target of this test, and the
//! metric source of the delivery controllers queries it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a panic is how a test fails; the server is a process with files"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mainstay_cluster::remote::AddressPolicy;
use mainstay_operator::delivery::{MetricResult, MetricSource, Prometheus};
use mainstay_rollout::plan::MeasureRequest;
use mainstay_rollout::snapshot::MeasurementKey;
use mainstay_testkit::{http, peer};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// Metrics of the target. 99 of 100 requests to v2 succeeded, and half of the requests to v1.
const METRICS: &str = r#"# TYPE requests_total counter
requests_total{revision="v2",code="200"} 99
requests_total{revision="v2",code="500"} 1
requests_total{revision="v1",code="200"} 5
requests_total{revision="v1",code="500"} 5
"#;

/// Maximum time until the first scrape.
const STARTUP_TIMEOUT: Duration = Duration::from_mins(1);

/// Serves the metrics to every connection and returns the address.
fn serve_metrics() -> String {
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{METRICS}",
        METRICS.len()
    );
    let address = http::serve(move |_, stream| stream.write_all(response.as_bytes()));
    address.unwrap().to_string()
}

/// Starts Prometheus on a free port. The process is killed when the child is dropped.
async fn start_prometheus(directory: &Path, target: &str) -> (Child, String) {
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: test\n  static_configs: [{{targets: ['{target}']}}]\n"
    );
    let config_file = directory.join("prometheus.yml");
    std::fs::write(&config_file, config).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let child = Command::new(peer("prometheus").unwrap())
        .arg(format!("--config.file={}", config_file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            directory.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .current_dir(directory)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    (child, format!("http://{address}"))
}

async fn measure(address: &str, query: &str, samples: Option<&str>) -> MetricResult {
    let source = Prometheus {
        policy: AddressPolicy { allow_local: true },
    };
    let request = MeasureRequest {
        key: MeasurementKey {
            template: "t".into(),
            metric: "m".into(),
            step_hash: String::new(),
        },
        address: address.to_owned(),
        query: query.to_owned(),
        samples_query: samples.map(str::to_owned),
    };
    source.query(&request).await
}

/// Returns the query for the success rate of a revision, as in an `AnalysisTemplate`.
fn success_rate(revision: &str) -> String {
    format!(
        "sum(requests_total{{revision=\"{revision}\",code=\"200\"}}) / sum(requests_total{{revision=\"{revision}\"}})"
    )
}

#[tokio::test]
async fn a_real_server_is_queried() {
    let directory = tempfile::tempdir().unwrap();
    let target = serve_metrics();
    let (_server, address) = start_prometheus(directory.path(), &target).await;
    let end = Instant::now() + STARTUP_TIMEOUT;
    while measure(&address, &success_rate("v2"), None).await.value.is_none() {
        assert!(Instant::now() < end, "nothing was scraped");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let good = measure(
        &address,
        &success_rate("v2"),
        Some("sum(requests_total{revision=\"v2\"})"),
    )
    .await;
    assert_eq!((good.value, good.samples), (Some(0.99), Some(100)));
    let bad = measure(&address, &success_rate("v1"), None).await;
    assert_eq!(bad.value, Some(0.5));
    let scalar = measure(&address, "scalar(count(requests_total))", None).await;
    assert_eq!(scalar.value, Some(4.0));
    let nan = measure(&address, "scalar(absent_metric)", None).await;
    assert!(nan.value.unwrap().is_nan(), "the planner treats NaN as no data");
    let none = MetricResult::default();
    for query in ["absent_metric", "requests_total", "sum(", "requests_total[1m]"] {
        assert_eq!(measure(&address, query, None).await, none, "{query}");
    }
    println!("prometheus: values 0.99 of 100 samples and 0.5, NaN, and 4 queries without data");
}
