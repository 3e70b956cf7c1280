//! The calls of a watch: takes what is to be followed, gives requests. Sends nothing.

use std::time::Duration;

use http::Request;
use mainstay_cluster::write::WriteError;
use mainstay_gostd::url::query_escape;
use serde::Deserialize;

/// What is to be followed.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its path, such as `/api/v1/pods`.
    pub(crate) path: String,
    /// Selectors, as they stand in a query: empty, or ending in `&`.
    pub(crate) selector: &'static str,
    /// Whether only metadata is wanted.
    pub(crate) is_metadata: bool,
    /// Whether the server may not serve it at all.
    pub(crate) is_optional: bool,
    /// How old a list may become.
    pub(crate) fresh: Duration,
}

/// Objects per page: what client-go asks for.
const PAGE: usize = 500;

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The server ends a watch after at least so long, and at most twice that.
const SHORTEST_LIFE: u64 = 200;

impl Target {
    /// How long a watch lives. Watches that begin together should not end together.
    pub(super) fn life(&self) -> Duration {
        let mix = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
        let spread = self.path.bytes().fold(7, mix) % SHORTEST_LIFE;
        Duration::from_secs(SHORTEST_LIFE + spread)
    }

    /// A list as the first events of a watch: what is there now, then a mark, then what changes.
    pub(super) fn stream(&self) -> Result<Request<Vec<u8>>, WriteError> {
        self.get(
            METADATA,
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&",
            true,
        )
    }

    /// What changes from a version on.
    pub(super) fn watch(&self, version: &str) -> Result<Request<Vec<u8>>, WriteError> {
        self.get(METADATA, &format!("resourceVersion={version}&"), true)
    }

    /// A page of what is there.
    pub(super) fn list(&self, token: &str) -> Result<Request<Vec<u8>>, WriteError> {
        let token = if token.is_empty() {
            String::new()
        } else {
            format!("&continue={}", query_escape(token))
        };
        self.get(METADATA_LIST, &format!("limit={PAGE}{token}"), false)
    }

    fn get(&self, metadata: &str, query: &str, is_watch: bool) -> Result<Request<Vec<u8>>, WriteError> {
        let watch = if is_watch {
            format!(
                "watch=true&allowWatchBookmarks=true&timeoutSeconds={}",
                self.life().as_secs()
            )
        } else {
            String::new()
        };
        let uri = format!("{}?{}{query}{watch}", self.path, self.selector);
        let accept = if self.is_metadata {
            metadata
        } else {
            "application/json"
        };
        let request = Request::get(uri)
            .header(http::header::ACCEPT, accept)
            .body(Vec::new());
        Ok(request.map_err(kube::Error::HttpError)?)
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: serde::de::DeserializeOwned"))]
pub(super) struct Page<T> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    #[serde(default = "Vec::new", deserialize_with = "null_or_list")]
    pub(super) items: Vec<T>,
}

/// A list of no metadata at all is null on a real server.
fn null_or_list<'de, T: serde::de::DeserializeOwned, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMeta {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) continue_token: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(is_metadata: bool) -> Target {
        Target {
            path: "/api/v1/pods".into(),
            selector: "fieldSelector=a&",
            is_metadata,
            is_optional: false,
            fresh: Duration::ZERO,
        }
    }

    fn check(request: Result<Request<Vec<u8>>, WriteError>, uri: &str) {
        assert_eq!(request.unwrap().uri().to_string(), uri);
    }

    #[test]
    fn the_three_calls() {
        let pods = target(true);
        let watch = "watch=true&allowWatchBookmarks=true&timeoutSeconds=277";
        let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        check(
            pods.stream(),
            &format!("/api/v1/pods?fieldSelector=a&{list}&{watch}"),
        );
        check(
            pods.watch("7"),
            &format!("/api/v1/pods?fieldSelector=a&resourceVersion=7&{watch}"),
        );
        check(pods.list(""), "/api/v1/pods?fieldSelector=a&limit=500");
        check(
            pods.list("a=/+"),
            "/api/v1/pods?fieldSelector=a&limit=500&continue=a%3D%2F%2B",
        );
    }

    #[test]
    fn metadata_is_asked_for_by_its_name() {
        let accept = |request: Result<Request<Vec<u8>>, WriteError>| {
            request.unwrap().headers()["accept"].to_str().unwrap().to_owned()
        };
        assert_eq!(accept(target(true).list("")), METADATA_LIST);
        assert_eq!(accept(target(true).watch("1")), METADATA);
        assert_eq!(accept(target(false).watch("1")), "application/json");
    }
}
