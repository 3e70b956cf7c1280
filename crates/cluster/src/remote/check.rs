//! Checks whether a cluster can be used for application delivery: connectivity, version, permissions, routing
//! kinds and clock.

use std::collections::BTreeSet;

use futures::StreamExt;
use http::header::DATE;
use http::{Method, Request};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use mainstay_api::delivery::Provider;
use serde::Serialize;
use serde_json::{Value, json};

use crate::access::member_rules;
use crate::write::{Body, WriteError, Writer};

mod findings;

pub use findings::{Finding, Severity};

/// Maximum number of concurrent access reviews.
const CONCURRENT_REVIEWS: usize = 8;

/// Resources that each route provider needs: provider, group and version, resources.
const ROUTING: &[(Provider, &str, &[&str])] = &[
    (
        Provider::Istio,
        "networking.istio.io/v1",
        &["destinationrules", "virtualservices"],
    ),
    (
        Provider::GatewayApi,
        "gateway.networking.k8s.io/v1",
        &["httproutes"],
    ),
    (Provider::Ingress, "networking.k8s.io/v1", &["ingresses"]),
];

/// Result of checking a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberReport {
    /// Version of Kubernetes.
    pub version: String,
    /// Round-trip time of one call, in milliseconds.
    pub round_trip_millis: i64,
    /// Minimum difference between the clock of the cluster and the local one, in milliseconds. Positive
    /// if the clock of the cluster is ahead; `None` if responses contain no date.
    pub clock_skew_millis: Option<i64>,
    /// Permissions of the member role.
    pub permissions: Vec<Permission>,
    /// Kinds of each route provider.
    pub routing: Vec<RoutingKinds>,
}

/// One permission of the member role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural resource name, such as `deployments`.
    pub resource: String,
    /// Verb, such as `create`.
    pub verb: String,
    /// Whether the account has the permission in all namespaces.
    pub is_allowed: bool,
}

/// Kinds of a route provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingKinds {
    /// Route provider that needs the kinds.
    pub provider: Provider,
    /// Group and version in the form of `apiVersion`.
    pub api_version: String,
    /// Resources that the cluster serves.
    pub served: Vec<String>,
    /// Resources that the cluster does not serve.
    pub missing: Vec<String>,
}

impl RoutingKinds {
    /// Whether routes of this provider can be written.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    fn group(&self) -> &str {
        self.api_version.split('/').next().unwrap_or_default()
    }
}

/// Checks the cluster of a client. Fails if an API call fails; a missing routing API is not an error.
pub async fn check_member(client: &Client, now: impl Fn() -> Timestamp) -> Result<MemberReport, WriteError> {
    let (before, version, date, after) = read_version(client, &now).await?;
    let writer = Writer::new(client.clone());
    let mut routing = Vec::new();
    for (provider, api_version, resources) in ROUTING {
        routing.push(read_routing(&writer, *provider, api_version, resources).await?);
    }
    let round_trip = after.duration_since(before);
    Ok(MemberReport {
        version,
        round_trip_millis: i64::try_from(round_trip.as_millis()).unwrap_or(i64::MAX),
        clock_skew_millis: date.map(|date| clock_skew(before, date, after)),
        permissions: review_permissions(&writer, &routing).await?,
        routing,
    })
}

async fn read_version(
    client: &Client,
    now: &impl Fn() -> Timestamp,
) -> Result<(Timestamp, String, Option<Timestamp>, Timestamp), WriteError> {
    let request = Request::get("/version").body(kube::client::Body::empty());
    let request = request.map_err(kube::Error::HttpError)?;
    let before = now();
    let response = client.send(request).await?;
    let after = now();
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
    // Repeats the call with the writer, so that a rejection is reported like those of the other calls.
    let version = Writer::new(client.clone())
        .call(Method::GET, "/version", None)
        .await?;
    let version = version
        .get("gitVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok((before, version.to_owned(), date, after))
}

/// Returns the smallest clock difference, in milliseconds, that explains a date in whole seconds that was
/// sent between two instants.
fn clock_skew(before: Timestamp, date: Timestamp, after: Timestamp) -> i64 {
    let millis = |duration: SignedDuration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let ahead = millis(date.duration_since(after));
    let behind = millis(before.duration_since(date)) - 1000;
    if ahead > 0 { ahead } else { -behind.max(0) }
}

async fn read_routing(
    writer: &Writer,
    provider: Provider,
    api_version: &str,
    resources: &[&str],
) -> Result<RoutingKinds, WriteError> {
    let list = match writer
        .call(Method::GET, &format!("/apis/{api_version}"), None)
        .await
    {
        Ok(list) => list,
        Err(error) if error.is_not_found() => Value::Null,
        Err(error) => return Err(error),
    };
    let found = list.get("resources").and_then(Value::as_array);
    let found: BTreeSet<&str> = found
        .into_iter()
        .flatten()
        .filter_map(|resource| resource.get("name").and_then(Value::as_str))
        .collect();
    let (served, missing) = resources.iter().partition(|resource| found.contains(*resource));
    let owned = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect();
    Ok(RoutingKinds {
        provider,
        api_version: api_version.to_owned(),
        served: owned(served),
        missing: owned(missing),
    })
}

/// Reviews every permission of the member role except those for kinds that the cluster does not serve.
async fn review_permissions(
    writer: &Writer,
    routing: &[RoutingKinds],
) -> Result<Vec<Permission>, WriteError> {
    let is_served = |permission: &Permission| {
        !routing
            .iter()
            .any(|kinds| kinds.group() == permission.group && kinds.missing.contains(&permission.resource))
    };
    let wanted: Vec<Permission> = wanted_permissions().into_iter().filter(is_served).collect();
    let reviews = futures::stream::iter(wanted).map(|permission| async move {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": permission.group, "resource": permission.resource, "verb": permission.verb,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let response = writer.call(Method::POST, path, Some(Body::Json(review))).await?;
        let is_allowed = response.pointer("/status/allowed") == Some(&Value::Bool(true));
        Ok(Permission {
            is_allowed,
            ..permission
        })
    });
    let responses: Vec<Result<Permission, WriteError>> = reviews.buffered(CONCURRENT_REVIEWS).collect().await;
    responses.into_iter().collect()
}

fn wanted_permissions() -> BTreeSet<Permission> {
    let mut wanted = BTreeSet::new();
    for rule in member_rules() {
        for group in &rule.groups {
            for resource in &rule.resources {
                wanted.extend(rule.verbs.iter().map(|verb| Permission {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    is_allowed: false,
                }));
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn clock_skew_ignores_the_rounding_of_dates() {
        let check = |before, date, after, expected| {
            assert_eq!(clock_skew(at(before), at(date), at(after)), expected);
        };
        check(5_100, 5_000, 5_200, 0);
        check(5_999, 5_000, 6_100, 0);
        check(5_100, 9_000, 5_200, 3_800);
        check(9_000, 5_000, 9_100, -3_000);
    }

    #[test]
    fn every_permission_of_the_member_role_is_reviewed() {
        let wanted = wanted_permissions();
        let count: usize = member_rules()
            .iter()
            .map(|rule| rule.groups.len() * rule.resources.len() * rule.verbs.len())
            .sum();
        assert_eq!(wanted.len(), count);
        assert!(count >= 50, "{count}");
    }
}
