//! Validating webhook: serves admission reviews, renews its certificate and updates its configuration.
//!
//! ```text
//! Secret ──read──▶ certificate ──▶ server
//!    ▲                  │ renewal is due, and this process is the leader
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

use super::run::is_crd_installed;
use crate::clock::Clock;
use crate::server::{Bind, Certificates, Server, serve_admission};

/// Interval at which Secret and configuration are checked.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Options of the webhook.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// Address to listen on.
    pub bind: Bind,
    /// Address to which the API server sends reviews.
    pub address: WebhookAddress,
}

/// The webhook with its dependencies.
pub struct Webhook {
    /// Client for the cluster.
    pub client: Client,
    /// Charts that are used to validate a configuration.
    pub catalog: Arc<Catalog>,
    /// Fence that allows writes only while this process is the leader.
    pub fence: Fence,
    /// Counter of API calls.
    pub meter: Meter,
    /// Source of time.
    pub clock: Clock,
    /// Namespace of the operator.
    pub namespace: String,
    /// Options.
    pub options: WebhookOptions,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.options.bind)
    }
}

/// Error of reconciling certificate and configuration.
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

/// The running server and its certificate.
struct RunningServer {
    _server: Server,
    certificates: Arc<Certificates>,
    certificate: String,
    _stop: watch::Sender<bool>,
}

impl Webhook {
    /// Waits until the CRD is installed, then serves until the future is dropped.
    pub async fn run(self) {
        let client = guard(self.client.clone(), self.fence.clone(), self.meter.clone());
        let writer = Writer::new(client);
        let mut serving = None;
        loop {
            if is_crd_installed(&writer).await {
                match self.reconcile(&writer, &mut serving).await {
                    Ok(()) => {}
                    Err(error) => tracing::warn!(error = %error, "cannot reconcile the webhook"),
                }
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Reads the certificate, renews it if needed, updates the configuration, and serves the certificate.
    async fn reconcile(
        &self,
        writer: &Writer,
        serving: &mut Option<RunningServer>,
    ) -> Result<(), WebhookError> {
        let material = self.load_or_renew(writer).await?;
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

    async fn start(&self, material: Material) -> Result<RunningServer, WebhookError> {
        let certificates = Arc::new(Certificates::from_pem(&material.certificate, &material.key)?);
        let (sender, stop) = watch::channel(false);
        let catalog = self.catalog.clone();
        let reviewer = Arc::new(move |body: &Value| review(&catalog, body));
        let server = serve_admission(&self.options.bind, certificates.clone(), reviewer, stop).await?;
        tracing::info!(address = %server.address, "serving the webhook for IstioOperators");
        Ok(RunningServer {
            _server: server,
            certificates,
            certificate: material.certificate,
            _stop: sender,
        })
    }

    /// Returns the certificate, renewed if needed. Only the leader renews it: other processes return the
    /// stored one, or `None` if there is none.
    async fn load_or_renew(&self, writer: &Writer) -> Result<Option<Material>, WebhookError> {
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
            Some(stored) if !stored.needs_renewal(now) => return Ok(Some(stored)),
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

    /// Writes the configuration if it differs from the live one.
    async fn write_configuration(&self, writer: &Writer, authorities: &str) -> Result<(), WebhookError> {
        let desired = configuration(&self.options.address, Some(&STANDARD.encode(authorities)));
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
        let ca_bundle = |object: &Value| object.pointer("/webhooks/0/clientConfig/caBundle").cloned();
        let is_equal =
            ca_bundle(&live) == ca_bundle(&desired) && difference(&desired, &live, MANAGER).is_none();
        if is_equal {
            return Ok(());
        }
        let path = format!("{path}?fieldManager={MANAGER}&force=true");
        let sent = writer
            .call(Method::PATCH, &path, Some(Body::Apply(desired)))
            .await;
        sent.map(|_| ()).map_err(failed)
    }
}
