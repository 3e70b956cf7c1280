//! Clients for other clusters and for metric servers. They use no proxies, follow no redirects, and do
//! not connect to local addresses, even if a name resolves to one.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioExecutor;
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use tower_service::Service;

use super::address::{AddressError, AddressPolicy, check_host};
use super::kubeconfig::{Credential, Kubeconfig};

/// Timeout of establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Reason why a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The URL is invalid.
    #[error("the server is not a valid URL")]
    Url,
    /// The address is rejected.
    #[error("{0}; allow it with --allow-local-clusters")]
    Address(#[from] AddressError),
    /// The credential cannot be used. The cause is not included, because it may contain the credential.
    #[error("the certificates, the key or the token cannot be used")]
    Credential,
}

/// Creates a client for the cluster of a kubeconfig.
pub fn connect_remote(kubeconfig: &Kubeconfig, policy: AddressPolicy) -> Result<Client, RemoteError> {
    let url: Uri = kubeconfig.server.parse().map_err(|_| RemoteError::Url)?;
    let mut config = Config::new(url);
    config.root_cert = Some(kubeconfig.authorities.clone());
    let mut token = None;
    match &kubeconfig.credential {
        Credential::Token(secret) => {
            let mut value = b"Bearer ".to_vec();
            value.extend_from_slice(secret.expose());
            let mut value = HeaderValue::from_bytes(&value).map_err(|_| RemoteError::Credential)?;
            value.set_sensitive(true);
            token = Some(value);
        }
        Credential::Certificate { certificate, key } => {
            config.auth_info = AuthInfo {
                client_certificate_data: Some(STANDARD.encode(certificate)),
                client_key_data: Some(STANDARD.encode(key.expose()).into()),
                ..AuthInfo::default()
            };
        }
    }
    connect(&config, policy, token)
}

/// Creates a client for an HTTP API without credentials, such as that of Prometheus.
pub fn connect_http(url: &str, policy: AddressPolicy) -> Result<Client, RemoteError> {
    let url: Uri = url.parse().map_err(|_| RemoteError::Url)?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    let has_user = url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    if !is_http || has_user || url.query().is_some() {
        return Err(RemoteError::Url);
    }
    connect(&Config::new(url), policy, None)
}

fn connect(
    config: &Config,
    policy: AddressPolicy,
    token: Option<HeaderValue>,
) -> Result<Client, RemoteError> {
    let url = &config.cluster_url;
    let (Some(scheme), Some(authority), Some(host)) = (url.scheme(), url.authority(), url.host()) else {
        return Err(RemoteError::Url);
    };
    check_host(host, policy)?;
    let resolver = CheckedResolver {
        inner: GaiResolver::new(),
        policy,
    };
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connector = crate::tls::https_connector(config, connector);
    let connector = connector.map_err(|_| RemoteError::Credential)?;
    let service = RemoteService {
        client: HttpClient::builder(TokioExecutor::new()).build(connector),
        base: Base {
            scheme: scheme.clone(),
            authority: authority.clone(),
            path: url.path().trim_end_matches('/').to_owned(),
        },
        token,
    };
    Ok(Client::new(service, "default"))
}

/// Resolves names and removes the addresses that the policy rejects.
#[derive(Clone)]
struct CheckedResolver {
    inner: GaiResolver,
    policy: AddressPolicy,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (resolved, policy) = (self.inner.call(name), self.policy);
        Box::pin(async move {
            let mut rejected = None;
            let mut allowed = Vec::new();
            for address in resolved.await? {
                match policy.check(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(error) => rejected = Some(error),
                }
            }
            match (allowed.is_empty(), rejected) {
                (true, Some(error)) => Err(error.into()),
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Server to which every request is sent.
#[derive(Clone)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    path: String,
}

impl Base {
    fn complete(&self, uri: &Uri) -> Result<Uri, http::Error> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}", self.path))
            .build()
    }
}

#[derive(Clone)]
struct RemoteService<C> {
    client: HttpClient<C, Body>,
    base: Base,
    token: Option<HeaderValue>,
}

impl<C> Service<Request<Body>> for RemoteService<C>
where
    C: hyper_util::client::legacy::connect::Connect + Clone + Send + Sync + 'static,
{
    type Response = Response<hyper::body::Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let uri = self.base.complete(request.uri());
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let client = self.client.clone();
        Box::pin(async move {
            *request.uri_mut() = uri?;
            Ok(client.request(request).await?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(policy: AddressPolicy) -> Result<Vec<SocketAddr>, BoxError> {
        let mut resolver = CheckedResolver {
            inner: GaiResolver::new(),
            policy,
        };
        let name: Name = "localhost".parse().unwrap();
        Ok(resolver.call(name).await?.collect())
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_local_address_is_rejected() {
        let rejected = resolve(AddressPolicy::default()).await.unwrap_err();
        assert_eq!(rejected.downcast_ref(), Some(&AddressError::Loopback));
        let allowed = resolve(AddressPolicy { allow_local: true }).await.unwrap();
        assert!(
            allowed.iter().all(|address| address.ip().is_loopback()),
            "{allowed:?}"
        );
    }

    #[test]
    fn urls_of_metric_servers_are_checked() {
        let check = |url: &str| {
            connect_http(url, AddressPolicy::default())
                .err()
                .map(|error| error.to_string())
        };
        assert_eq!(
            check("ftp://a.example.com").as_deref(),
            Some("the server is not a valid URL")
        );
        assert_eq!(
            check("http://user@a.example.com").as_deref(),
            Some("the server is not a valid URL")
        );
        let local = "the address is that of a metadata service; allow it with --allow-local-clusters";
        assert_eq!(check("http://169.254.169.254/api").as_deref(), Some(local));
    }
}
