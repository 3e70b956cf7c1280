//! Authorizes readers of metrics: reviews the bearer token and its permissions with the API server, and
//! caches the result.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// Path that is authorized.
const PATH: &str = "/metrics";
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which the result for an allowed token is cached, as in controller-runtime.
const ALLOWED_TTL: Duration = Duration::from_mins(1);
/// Time for which the result for a denied token is cached, as in controller-runtime.
const DENIED_TTL: Duration = Duration::from_secs(30);
/// Maximum number of cached tokens.
const MAX_CACHED: usize = 256;
/// Maximum length of a token in bytes.
const MAX_TOKEN_LEN: usize = 16 << 10;

/// Result of an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The client is authorized.
    Allowed,
    /// The client is not authenticated.
    Unauthorized,
    /// The client is authenticated, but not authorized.
    Denied(String),
    /// Authentication failed with an error.
    AuthenticationFailed,
    /// Authorization failed with an error.
    AuthorizationFailed(String),
}

impl Access {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Allowed => StatusCode::OK,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Denied(_) => StatusCode::FORBIDDEN,
            Self::AuthenticationFailed | Self::AuthorizationFailed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the time for which the result is cached, or `None` for errors, which are not cached.
    fn ttl(&self) -> Option<Duration> {
        match self {
            Self::Allowed => Some(ALLOWED_TTL),
            Self::Unauthorized | Self::Denied(_) => Some(DENIED_TTL),
            Self::AuthenticationFailed | Self::AuthorizationFailed(_) => None,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed => f.write_str("OK"),
            Self::Unauthorized => f.write_str("Unauthorized"),
            Self::Denied(user) => write!(f, "Authorization denied for user {user}"),
            Self::AuthenticationFailed => f.write_str("Authentication failed"),
            Self::AuthorizationFailed(user) => write!(f, "Authorization for user {user} failed"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error("cannot send the review")]
    Request(#[source] Box<kube::Error>),
    #[error("no response within {} s", REVIEW_TIMEOUT.as_secs())]
    Timeout,
}

/// An authorizer of clients.
pub trait Authorizer: Send + Sync {
    /// Checks whether a client with this token may use the verb.
    fn check(&self, token: Option<String>, verb: String) -> BoxFuture<'_, Access>;
}

/// Returns the bearer token of a request, or `None` if it is missing, empty or too long.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let is_valid = scheme.eq_ignore_ascii_case("bearer") && (1..=MAX_TOKEN_LEN).contains(&token.len());
    is_valid.then(|| token.to_owned())
}

/// An authorizer that uses reviews of the API server.
pub struct ClusterAuthorizer {
    client: Client,
    cached: Mutex<HashMap<[u8; 32], (Instant, Access)>>,
}

impl ClusterAuthorizer {
    /// Creates an authorizer that uses `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            cached: Mutex::default(),
        }
    }

    fn lookup(&self, key: &[u8; 32]) -> Option<Access> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, access) = cached.get(key)?;
        (*until > Instant::now()).then(|| access.clone())
    }

    fn cache(&self, key: [u8; 32], access: &Access) {
        let Some(ttl) = access.ttl() else { return };
        let now = Instant::now();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, (until, _)| *until > now);
        }
        // Many different tokens cause more reviews, but do not exhaust memory.
        if cached.len() < MAX_CACHED {
            cached.insert(key, (now + ttl, access.clone()));
        }
    }

    async fn review_access(&self, token: String, verb: String) -> Access {
        let user = match self.authenticate(token).await {
            Ok(Some(user)) => user,
            Ok(None) => return Access::Unauthorized,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "Authentication failed");
                return Access::AuthenticationFailed;
            }
        };
        let name = user.username.clone().unwrap_or_default();
        match self.authorize(user, verb).await {
            Ok(true) => Access::Allowed,
            Ok(false) => Access::Denied(name),
            Err(error) => {
                tracing::error!(
                    user = name,
                    error = &error as &dyn std::error::Error,
                    "Authorization failed"
                );
                Access::AuthorizationFailed(name)
            }
        }
    }

    async fn authenticate(&self, token: String) -> Result<Option<UserInfo>, ReviewError> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token,
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.review(review).await?.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn authorize(&self, user: UserInfo, verb: String) -> Result<bool, ReviewError> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(PATH.into()),
                    verb: Some(verb),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.review(review).await?.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }

    /// Sends a review. Errors must not contain the review, because it contains the token.
    async fn review<R>(&self, review: R) -> Result<R, ReviewError>
    where
        R: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<R> = Api::all(self.client.clone());
        let response =
            tokio::time::timeout(REVIEW_TIMEOUT, api.create(&PostParams::default(), &review)).await;
        match response {
            Ok(response) => response.map_err(|error| ReviewError::Request(Box::new(error))),
            Err(_) => Err(ReviewError::Timeout),
        }
    }
}

impl Authorizer for ClusterAuthorizer {
    fn check(&self, token: Option<String>, verb: String) -> BoxFuture<'_, Access> {
        async move {
            let Some(token) = token else {
                return Access::Unauthorized;
            };
            let key = Sha256::new()
                .chain_update(&verb)
                .chain_update([0])
                .chain_update(&token)
                .finalize()
                .into();
            if let Some(access) = self.lookup(&key) {
                return access;
            }
            let access = self.review_access(token, verb).await;
            self.cache(key, &access);
            access
        }
        .boxed()
    }
}
