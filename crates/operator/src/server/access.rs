//! Who may read metrics: takes a token, asks the API server who it is and what it may, remembers the answer for a while.

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

/// The one path there is.
const PATH: &str = "/metrics";
/// How long an answer of the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a yes holds, and how long a no: as long as controller-runtime believes a token.
const YES: Duration = Duration::from_mins(1);
const NO: Duration = Duration::from_secs(30);
/// As many tokens as are remembered.
const MOST_REMEMBERED: usize = 256;
/// No token is longer.
const MOST_TOKEN: usize = 16 << 10;

/// Whether somebody may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// They may.
    Allowed,
    /// Nobody knows who they are.
    Unauthorized,
    /// They are known, and may not.
    Denied(String),
    /// It could not be found out who they are.
    Unknown,
    /// It could not be found out whether this one may.
    Undecided(String),
}

impl Access {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Allowed => StatusCode::OK,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Denied(_) => StatusCode::FORBIDDEN,
            Self::Unknown | Self::Undecided(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// How long it holds; a failure not at all.
    fn lifetime(&self) -> Option<Duration> {
        match self {
            Self::Allowed => Some(YES),
            Self::Unauthorized | Self::Denied(_) => Some(NO),
            Self::Unknown | Self::Undecided(_) => None,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed => f.write_str("OK"),
            Self::Unauthorized => f.write_str("Unauthorized"),
            Self::Denied(user) => write!(f, "Authorization denied for user {user}"),
            Self::Unknown => f.write_str("Authentication failed"),
            Self::Undecided(user) => write!(f, "Authorization for user {user} failed"),
        }
    }
}

/// Lets people in, or not.
pub trait Gate: Send + Sync {
    /// Whether the bearer of this token may use the verb.
    fn ask(&self, token: Option<String>, verb: String) -> BoxFuture<'_, Access>;
}

/// The token in the headers.
pub(super) fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let fits = scheme.eq_ignore_ascii_case("bearer") && (1..=MOST_TOKEN).contains(&token.len());
    fits.then(|| token.to_owned())
}

/// Asks the API server.
pub struct ClusterGate {
    client: Client,
    remembered: Mutex<HashMap<[u8; 32], (Instant, Access)>>,
}

impl ClusterGate {
    /// Asks through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            remembered: Mutex::default(),
        }
    }

    fn recall(&self, key: &[u8; 32]) -> Option<Access> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, access) = remembered.get(key)?;
        (*until > Instant::now()).then(|| access.clone())
    }

    fn remember(&self, key: [u8; 32], access: &Access) {
        let Some(lifetime) = access.lifetime() else { return };
        let now = Instant::now();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.retain(|_, (until, _)| *until > now);
        }
        // Still full: whoever floods us with tokens makes only the API server's work larger, not our memory.
        if remembered.len() < MOST_REMEMBERED {
            remembered.insert(key, (now + lifetime, access.clone()));
        }
    }

    async fn decide(&self, token: String, verb: String) -> Access {
        let user = match self.identify(token).await {
            Ok(Some(user)) => user,
            Ok(None) => return Access::Unauthorized,
            Err(error) => {
                tracing::error!(error, "Authentication failed");
                return Access::Unknown;
            }
        };
        let name = user.username.clone().unwrap_or_default();
        match self.authorize(user, verb).await {
            Ok(true) => Access::Allowed,
            Ok(false) => Access::Denied(name),
            Err(error) => {
                tracing::error!(user = name, error, "Authorization failed");
                Access::Undecided(name)
            }
        }
    }

    async fn identify(&self, token: String) -> Result<Option<UserInfo>, String> {
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

    async fn authorize(&self, user: UserInfo, verb: String) -> Result<bool, String> {
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

    /// Never tells what was asked: it holds the token.
    async fn review<R>(&self, review: R) -> Result<R, String>
    where
        R: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<R> = Api::all(self.client.clone());
        let answer = tokio::time::timeout(PATIENCE, api.create(&PostParams::default(), &review)).await;
        match answer {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }
}

impl Gate for ClusterGate {
    fn ask(&self, token: Option<String>, verb: String) -> BoxFuture<'_, Access> {
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
            if let Some(access) = self.recall(&key) {
                return access;
            }
            let access = self.decide(token, verb).await;
            self.remember(key, &access);
            access
        }
        .boxed()
    }
}
