//! Certificate of a server: self-signed, read from a directory and reloaded when it changes, or passed as
//! PEM text that can be replaced.

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

/// File names of certificate and key in a mounted Secret.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];
/// Minimum time between two checks of the directory.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Error of loading or generating a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of reading or parsing the file.
        source: pem::Error,
    },
    /// Certificate or key are not valid PEM.
    #[error("cannot parse a certificate or key")]
    Parse(#[from] pem::Error),
    /// A file contains no certificate.
    #[error("{} contains no certificate", .0.display())]
    Empty(PathBuf),
    /// The certificate does not match its key, or is not supported.
    #[error("the certificate cannot be used")]
    Unusable(#[from] rustls::Error),
    /// A certificate could not be generated.
    #[error("cannot generate a certificate")]
    Generate(#[from] rcgen::Error),
}

/// Current certificate of a server.
#[derive(Debug)]
pub struct Certificates {
    directory: Option<PathBuf>,
    profile: Option<TlsProfile>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    checked: Instant,
    stamps: FileStamps,
}

/// Modification time and size of both files; `None` for a file that cannot be read.
type FileStamps = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    /// Generates a self-signed certificate for `names`, like controller-runtime without a directory.
    pub fn self_signed(names: Vec<String>, profile: Option<&TlsProfile>) -> Result<Self, CertificateError> {
        let generated = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der()));
        let config = new_server_config(vec![generated.cert.der().clone()], key, profile)?;
        Ok(Self::new(None, profile, config, FileStamps::default()))
    }

    /// Parses a certificate and its key from PEM. They can be replaced with [`Certificates::replace`].
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let config = parse_config(certificate, key)?;
        Ok(Self::new(None, None, config, FileStamps::default()))
    }

    /// Replaces certificate and key for new connections.
    pub fn replace(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        let config = Arc::new(parse_config(certificate, key)?);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).config = config;
        Ok(())
    }

    /// Reads `tls.crt` and `tls.key` from a directory.
    pub fn from_directory(directory: &Path, profile: Option<&TlsProfile>) -> Result<Self, CertificateError> {
        let stamps = file_stamps(directory);
        let config = load_config(directory, profile)?;
        Ok(Self::new(Some(directory.to_owned()), profile, config, stamps))
    }

    fn new(
        directory: Option<PathBuf>,
        profile: Option<&TlsProfile>,
        config: ServerConfig,
        stamps: FileStamps,
    ) -> Self {
        Self {
            directory,
            profile: profile.cloned(),
            state: Mutex::new(State {
                config: Arc::new(config),
                checked: Instant::now(),
                stamps,
            }),
        }
    }

    /// Returns the TLS configuration for a new connection. Reloads the certificate if the directory
    /// changed; if the new certificate cannot be loaded, the old one is kept.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &self.directory
            && state.checked.elapsed() >= CHECK_INTERVAL
        {
            state.checked = Instant::now();
            self.refresh(directory, &mut state);
        }
        state.config.clone()
    }

    fn refresh(&self, directory: &Path, state: &mut State) {
        let stamps = file_stamps(directory);
        if stamps == state.stamps {
            return;
        }
        match load_config(directory, self.profile.as_ref()) {
            Ok(config) => {
                tracing::info!(directory = %directory.display(), "reloaded the metrics certificate");
                *state = State {
                    config: Arc::new(config),
                    checked: state.checked,
                    stamps,
                };
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot reload the metrics certificate, keeping the previous certificate"
            ),
        }
    }
}

fn file_stamps(directory: &Path) -> FileStamps {
    FILES.map(|name| {
        let metadata = std::fs::metadata(directory.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

fn load_config(directory: &Path, profile: Option<&TlsProfile>) -> Result<ServerConfig, CertificateError> {
    let [certificate, key] = FILES.map(|name| directory.join(name));
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
    Ok(new_server_config(chain, key, profile)?)
}

fn parse_config(certificate: &str, key: &str) -> Result<ServerConfig, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    Ok(new_server_config(chain, key, None)?)
}

fn new_server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    profile: Option<&TlsProfile>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = server_config(profile)?.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl CertificateError {
    /// Whether a file is missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source: pem::Error::Io(error), .. } if error.kind() == io::ErrorKind::NotFound)
    }
}
