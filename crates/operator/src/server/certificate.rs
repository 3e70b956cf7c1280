//! The metrics server's certificate: takes a folder or nothing, gives TLS settings. A folder is read again when it changes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mainstay_mesh::TlsProfile;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::time::Instant;

use crate::tls::server_config;

/// The names Kubernetes gives them in a Secret.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];
/// How often the folder is looked at, while somebody connects.
const PERIOD: Duration = Duration::from_secs(10);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// Nothing in it.
    #[error("{} holds no certificate", .0.display())]
    Empty(PathBuf),
    /// It does not fit its key, or is not understood.
    #[error("the certificate cannot be used")]
    Refused(#[from] rustls::Error),
    /// None could be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
}

/// The current certificate.
#[derive(Debug)]
pub struct Certificates {
    folder: Option<PathBuf>,
    profile: Option<TlsProfile>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    looked: Instant,
    stamp: Stamp,
}

/// What changes when a file is replaced.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    /// One made up for `names`, that nobody can verify; as controller-runtime does without a folder.
    pub fn self_signed(names: Vec<String>, profile: Option<&TlsProfile>) -> Result<Self, CertificateError> {
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = settings(vec![made.cert.der().clone()], key, profile)?;
        Ok(Self::new(None, profile, config, Stamp::default()))
    }

    /// `tls.crt` and `tls.key` of a folder.
    pub fn from_folder(folder: &Path, profile: Option<&TlsProfile>) -> Result<Self, CertificateError> {
        let stamp = stamp(folder);
        let config = read(folder, profile)?;
        Ok(Self::new(Some(folder.to_owned()), profile, config, stamp))
    }

    fn new(
        folder: Option<PathBuf>,
        profile: Option<&TlsProfile>,
        config: ServerConfig,
        stamp: Stamp,
    ) -> Self {
        Self {
            folder,
            profile: profile.cloned(),
            state: Mutex::new(State {
                config: Arc::new(config),
                looked: Instant::now(),
                stamp,
            }),
        }
    }

    /// The settings for a new connection. A folder that became unreadable leaves the old certificate in use.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &self.folder
            && state.looked.elapsed() >= PERIOD
        {
            state.looked = Instant::now();
            self.refresh(folder, &mut state);
        }
        state.config.clone()
    }

    fn refresh(&self, folder: &Path, state: &mut State) {
        let stamp = stamp(folder);
        if stamp == state.stamp {
            return;
        }
        match read(folder, self.profile.as_ref()) {
            Ok(config) => {
                tracing::info!(folder = %folder.display(), "a new certificate for the metrics");
                *state = State {
                    config: Arc::new(config),
                    looked: state.looked,
                    stamp,
                };
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the certificate for the metrics stays"
            ),
        }
    }
}

fn stamp(folder: &Path) -> Stamp {
    FILES.map(|name| {
        let metadata = std::fs::metadata(folder.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

fn read(folder: &Path, profile: Option<&TlsProfile>) -> Result<ServerConfig, CertificateError> {
    let [certificate, key] = FILES.map(|name| folder.join(name));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::Read { path, source }
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&certificate)
        .and_then(Iterator::collect)
        .map_err(failed(&certificate))?;
    if chain.is_empty() {
        return Err(CertificateError::Empty(certificate));
    }
    let key = PrivateKeyDer::from_pem_file(&key).map_err(failed(&key))?;
    Ok(settings(chain, key, profile)?)
}

fn settings(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    profile: Option<&TlsProfile>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = server_config(profile)?.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl CertificateError {
    /// Whether it is the file that is missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source: pem::Error::Io(error), .. } if error.kind() == io::ErrorKind::NotFound)
    }
}
