//! The validating webhook: serves reviews, and keeps its certificate and configuration.
//!
//! ```text
//! Secret ──read──▶ certificate ──▶ server
//!    ▲                  │ due, and this process leads
//!    └── second ◀── new certificate ── first ──▶ caBundle of the configuration (old and new CA)
//! ```
//!
//! *Invariant:* the configuration trusts a certificate before any replica serves it.

mod certificate;
mod review;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_cluster::admission::{CONFIGURATION, SECRET, WebhookAddress, configuration};
use mainstay_cluster::compare::difference;
use mainstay_cluster::connect::{Fence, MANAGER, Meter, guard};
use mainstay_cluster::write::{Body, WriteError, Writer};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

pub use certificate::{Material, MaterialError};
pub use review::review;

use super::run::has_definition;
use crate::clock::Clock;
use crate::server::{Bind, Certificates, Server, serve_admission};

/// Interval of checks of the Secret and the configuration.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Options of the webhook.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// Address to listen on.
    pub bind: Bind,
    /// Where the API server sends reviews.
    pub address: WebhookAddress,
}

/// The webhook and what it needs to run.
pub struct Webhook {
    /// A client for the cluster.
    pub client: Client,
    /// The charts that configurations are checked with.
    pub catalog: Arc<Catalog>,
    /// Whether this process may write.
    pub fence: Fence,
    /// Counts API calls.
    pub meter: Meter,
    /// The source of time.
    pub clock: Clock,
    /// The operator's namespace.
    pub namespace: String,
    /// Options.
    pub options: WebhookOptions,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.options.bind)
    }
}

/// Why a check of certificate and configuration failed.
#[derive(Debug, thiserror::Error)]
enum WebhookError {
    #[error("cannot read or write {what}: {error}")]
    Call { what: &'static str, error: WriteError },
    #[error(transparent)]
    Material(#[from] MaterialError),
    #[error(transparent)]
    Certificate(#[from] crate::server::CertificateError),
    #[error(transparent)]
    Listen(#[from] crate::server::ListenError),
}

/// The running server and what it serves.
struct Serving {
    _server: Server,
    certificates: Arc<Certificates>,
    certificate: String,
    _stop: watch::Sender<bool>,
}

impl Webhook {
    /// Waits until the definition is installed, then serves until the future is dropped.
    pub async fn run(self) {
        let client = guard(self.client.clone(), self.fence.clone(), self.meter.clone());
        let writer = Writer::new(client);
        let mut serving = None;
        loop {
            if has_definition(&writer).await {
                match self.check(&writer, &mut serving).await {
                    Ok(()) => {}
                    Err(error) => tracing::warn!(error = %error, "cannot keep the webhook"),
                }
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Reads the certificate, renews it if it is due, and serves it.
    async fn check(&self, writer: &Writer, serving: &mut Option<Serving>) -> Result<(), WebhookError> {
        let material = self.keep_material(writer).await?;
        let Some(material) = material else {
            return Ok(());
        };
        if self.fence.is_open() {
            self.write_configuration(writer, &material.authorities).await?;
        }
        match serving {
            Some(serving) if serving.certificate == material.certificate => {}
            Some(serving) => {
                serving
                    .certificates
                    .replace(&material.certificate, &material.key)?;
                serving.certificate = material.certificate;
                tracing::info!("serving the renewed certificate of the webhook");
            }
            None => *serving = Some(self.start(material).await?),
        }
        Ok(())
    }

    async fn start(&self, material: Material) -> Result<Serving, WebhookError> {
        let certificates = Arc::new(Certificates::from_pem(&material.certificate, &material.key)?);
        let (sender, stop) = watch::channel(false);
        let catalog = self.catalog.clone();
        let reviewer = Arc::new(move |body: &Value| review(&catalog, body));
        let server = serve_admission(&self.options.bind, certificates.clone(), reviewer, stop).await?;
        tracing::info!(address = %server.address, "serving the webhook for IstioOperators");
        Ok(Serving {
            _server: server,
            certificates,
            certificate: material.certificate,
            _stop: sender,
        })
    }

    /// Returns the certificate. Only the leader renews it.
    async fn keep_material(&self, writer: &Writer) -> Result<Option<Material>, WebhookError> {
        let path = format!("/api/v1/namespaces/{}/secrets/{SECRET}", self.namespace);
        let failed = |error| WebhookError::Call {
            what: "the certificate's Secret",
            error,
        };
        let secret = match writer.call(Method::GET, &path, None).await {
            Ok(secret) => Some(secret),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(failed(error)),
        };
        let names = self.options.address.host_names();
        let stored = secret
            .as_ref()
            .and_then(|secret| Material::from_secret(secret, &names));
        let now = self.clock.now();
        match stored {
            Some(stored) if !stored.is_due(now) => return Ok(Some(stored)),
            stored if !self.fence.is_open() => return Ok(stored),
            _ => {}
        }
        let renewed = Material::generate(&names, stored.as_ref(), now)?;
        self.write_configuration(writer, &renewed.authorities).await?;
        let version = secret
            .as_ref()
            .and_then(|secret| secret.pointer("/metadata/resourceVersion"));
        let body = renewed.to_secret(&self.namespace, version.and_then(Value::as_str));
        let path = format!("{path}?fieldManager={MANAGER}&force=true");
        let sent = writer.call(Method::PATCH, &path, Some(Body::Apply(body))).await;
        sent.map_err(failed)?;
        tracing::info!(until = %renewed.not_after, "renewed the certificate of the webhook");
        Ok(Some(renewed))
    }

    /// Writes the configuration unless the live one equals it.
    async fn write_configuration(&self, writer: &Writer, authorities: &str) -> Result<(), WebhookError> {
        let wanted = configuration(&self.options.address, Some(&STANDARD.encode(authorities)));
        let path = format!("{CONFIGURATIONS}/{CONFIGURATION}");
        let failed = |error| WebhookError::Call {
            what: "the webhook's configuration",
            error,
        };
        let live = match writer.call(Method::GET, &path, None).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() => json!({}),
            Err(error) => return Err(failed(error)),
        };
        let authorities_of = |object: &Value| object.pointer("/webhooks/0/clientConfig/caBundle").cloned();
        let is_equal =
            authorities_of(&live) == authorities_of(&wanted) && difference(&wanted, &live, MANAGER).is_none();
        if is_equal {
            return Ok(());
        }
        let path = format!("{path}?fieldManager={MANAGER}&force=true");
        let sent = writer.call(Method::PATCH, &path, Some(Body::Apply(wanted))).await;
        sent.map(|_| ()).map_err(failed)
    }
}
