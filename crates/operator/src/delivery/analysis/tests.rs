//! Tests that parse responses of Prometheus and query a server over HTTP.

use std::io::Write as _;

use mainstay_rollout::snapshot::MeasurementKey;
use mainstay_testkit::http;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;

fn check(response: &Value, expected: &Result<Option<f64>, QueryError>) {
    assert_eq!(&read_value(response), expected, "{response}");
}

#[test]
fn responses_have_one_value_or_none() {
    let vector =
        |result: Value| json!({"status": "success", "data": {"resultType": "vector", "result": result}});
    let one = json!({"metric": {}, "value": [1_700_000_000.1, "0.99"]});
    check(&vector(json!([one])), &Ok(Some(0.99)));
    check(&vector(json!([])), &Ok(None));
    check(&vector(json!([one, one])), &Err(QueryError::ManySeries(2)));
    let scalar = json!({"status": "success", "data": {"resultType": "scalar", "result": [1, "3"]}});
    check(&scalar, &Ok(Some(3.0)));
    check(
        &json!({"status": "error", "error": "bad query"}),
        &Err(QueryError::Format),
    );
    check(&vector(json!([{"value": [1]}])), &Err(QueryError::Format));
    check(&json!([]), &Err(QueryError::Format));
    let infinite = read_value(&vector(json!([{"value": [1, "+Inf"]}])));
    assert_eq!(infinite, Ok(Some(f64::INFINITY)));
    let nan = read_value(&vector(json!([{"value": [1, "NaN"]}]))).unwrap();
    assert!(nan.unwrap().is_nan(), "the planner treats NaN as no data");
}

/// Serves one response to every connection and returns the address of the server.
fn serve(status: &str, body: &[u8]) -> String {
    let response = http::response(status, body);
    let address = http::serve(move |_, stream| stream.write_all(&response)).unwrap();
    format!("http://{address}")
}

fn request(address: String, samples: bool) -> MeasureRequest {
    MeasureRequest {
        key: MeasurementKey {
            template: "t".into(),
            metric: "m".into(),
            step_hash: String::new(),
        },
        address,
        query: "sum(rate(a[1m])) / 2".into(),
        samples_query: samples.then(|| "count(a)".into()),
    }
}

const LOCAL: Prometheus = Prometheus {
    policy: AddressPolicy { allow_local: true },
};

#[tokio::test]
async fn a_query_over_http_returns_value_and_samples() {
    let body =
        json!({"status": "success", "data": {"resultType": "vector", "result": [{"value": [1, "7.5"]}]}});
    let address = serve("200 OK", body.to_string().as_bytes());
    let result = LOCAL.query(&request(address, true)).await;
    assert_eq!((result.value, result.samples), (Some(7.5), Some(7)));
}

#[tokio::test]
async fn failures_are_measurements_without_data() {
    let none = MetricResult::default();
    let unavailable = serve("503 Service Unavailable", b"{}");
    assert_eq!(LOCAL.query(&request(unavailable, false)).await, none);
    let long = serve("200 OK", &vec![b' '; MAX_RESPONSE + 1]);
    assert_eq!(LOCAL.query(&request(long.clone(), false)).await, none);
    let rejected = LOCAL.run_query(&long, "a").await;
    assert_eq!(rejected, Err(QueryError::Body));
    let strict = Prometheus::default();
    let local = strict.run_query("http://127.0.0.1:9090", "a").await.unwrap_err();
    assert!(local.to_string().contains("loopback"), "{local}");
}

/// The server accepts the connection and never responds.
#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let result = LOCAL.query(&request(address, false)).await;
    assert_eq!(result, MetricResult::default());
}
