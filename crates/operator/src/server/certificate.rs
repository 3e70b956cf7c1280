//! A server's certificate: self-signed, from a directory that is read again when it changes, or given as a
//! text that can be replaced.

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

/// Why there is no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The read or parse error.
        source: pem::Error,
    },
    /// A text is not valid PEM.
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

/// The current certificate.
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

/// Modification time and size of both files.
type FileStamps = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    /// Generates a self-signed certificate for `names`, as controller-runtime does without a directory.
    pub fn self_signed(names: Vec<String>, profile: Option<&TlsProfile>) -> Result<Self, CertificateError> {
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = settings(vec![made.cert.der().clone()], key, profile)?;
        Ok(Self::new(None, profile, config, FileStamps::default()))
    }

    /// Takes a certificate and its key as PEM; [`Certificates::replace`] replaces them.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let config = parse(certificate, key)?;
        Ok(Self::new(None, None, config, FileStamps::default()))
    }

    /// Replaces certificate and key for new connections.
    pub fn replace(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        let config = Arc::new(parse(certificate, key)?);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).config = config;
        Ok(())
    }

    /// Reads `tls.crt` and `tls.key` from a directory.
    pub fn from_directory(directory: &Path, profile: Option<&TlsProfile>) -> Result<Self, CertificateError> {
        let stamps = file_stamps(directory);
        let config = read(directory, profile)?;
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

    /// Returns the TLS settings for a new connection. The old certificate stays in use if the new one cannot
    /// be read.
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
        match read(directory, self.profile.as_ref()) {
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
                "cannot reload the metrics certificate, keeping the old one"
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

fn read(directory: &Path, profile: Option<&TlsProfile>) -> Result<ServerConfig, CertificateError> {
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
    Ok(settings(chain, key, profile)?)
}

fn parse(certificate: &str, key: &str) -> Result<ServerConfig, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    Ok(settings(chain, key, None)?)
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
    /// Whether a file is missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source: pem::Error::Io(error), .. } if error.kind() == io::ErrorKind::NotFound)
    }
}
