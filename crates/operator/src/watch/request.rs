//! Builds the requests for lists and watches.

use std::time::Duration;

use http::Request;
use mainstay_cluster::write::WriteError;
use mainstay_gostd::url::query_escape;
use serde::Deserialize;

/// Collection that is followed.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// URL path of the collection, for example `/api/v1/pods`.
    pub(crate) path: String,
    /// Selectors as query parameters: empty, or ending in `&`.
    pub(crate) selector: &'static str,
    /// Whether only the metadata of objects is requested.
    pub(crate) is_metadata: bool,
    /// Whether the kind may be missing from the server. If it is missing, the collection counts as empty.
    pub(crate) is_optional: bool,
    /// Maximum age of a list at the start of a watch.
    pub(crate) max_list_age: Duration,
}

/// Maximum age of the list of a small collection. It is shorter than a watch, so that every watch starts
/// with a new list and recovers from missed events.
pub(crate) const SMALL_RELIST_INTERVAL: Duration = Duration::from_mins(3);

/// Number of objects per page if only their metadata is requested, as in client-go.
const METADATA_PAGE_SIZE: usize = 500;
/// Number of whole objects per page. It is smaller, because an object may have a size of 1.5 MiB, and the
/// server keeps a page in memory.
const PAGE_SIZE: usize = 50;

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Minimum timeout of a watch in seconds. The maximum is twice as long.
const MIN_WATCH_TIMEOUT: u64 = 200;

impl Target {
    /// Returns the timeout of a watch. It depends on the path, so that the watches do not end at the same
    /// time.
    pub(super) fn watch_timeout(&self) -> Duration {
        let mix = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
        let spread = self.path.bytes().fold(7, mix) % MIN_WATCH_TIMEOUT;
        Duration::from_secs(MIN_WATCH_TIMEOUT + spread)
    }

    /// Builds the request for a streaming list: a watch that starts with all objects and a bookmark.
    pub(super) fn streaming_list(&self) -> Result<Request<Vec<u8>>, WriteError> {
        self.build_request(
            METADATA,
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&",
            true,
        )
    }

    /// Builds the request for a watch from a version on.
    pub(super) fn watch(&self, version: &str) -> Result<Request<Vec<u8>>, WriteError> {
        self.build_request(METADATA, &format!("resourceVersion={version}&"), true)
    }

    /// Builds the request for a page of a list. `token` is that of the previous page, or empty for the
    /// first page.
    pub(super) fn list(&self, token: &str) -> Result<Request<Vec<u8>>, WriteError> {
        let token = if token.is_empty() {
            String::new()
        } else {
            format!("&continue={}", query_escape(token))
        };
        let limit = if self.is_metadata {
            METADATA_PAGE_SIZE
        } else {
            PAGE_SIZE
        };
        self.build_request(METADATA_LIST, &format!("limit={limit}{token}"), false)
    }

    fn build_request(
        &self,
        metadata: &str,
        query: &str,
        is_watch: bool,
    ) -> Result<Request<Vec<u8>>, WriteError> {
        let watch = if is_watch {
            format!(
                "watch=true&allowWatchBookmarks=true&timeoutSeconds={}",
                self.watch_timeout().as_secs()
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

/// A page of a list without its items.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Page {
    pub(super) metadata: PageMeta,
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
            max_list_age: Duration::ZERO,
        }
    }

    fn check(request: Result<Request<Vec<u8>>, WriteError>, uri: &str) {
        assert_eq!(request.unwrap().uri().to_string(), uri);
    }

    #[test]
    fn requests_of_a_watch() {
        let pods = target(true);
        let watch = "watch=true&allowWatchBookmarks=true&timeoutSeconds=277";
        let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        check(
            pods.streaming_list(),
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
    fn whole_objects_are_listed_in_smaller_pages() {
        check(target(false).list(""), "/api/v1/pods?fieldSelector=a&limit=50");
    }

    #[test]
    fn metadata_is_requested_by_content_type() {
        let accept = |request: Result<Request<Vec<u8>>, WriteError>| {
            request.unwrap().headers()["accept"].to_str().unwrap().to_owned()
        };
        assert_eq!(accept(target(true).list("")), METADATA_LIST);
        assert_eq!(accept(target(true).watch("1")), METADATA);
        assert_eq!(accept(target(false).watch("1")), "application/json");
    }
}
