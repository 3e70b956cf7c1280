//! Upstream programs, built from the Go module proxy into the user's cache directory.
//!
//! A binary is cached under the hash of its sources, so that it is not built again for another clone.

mod fetched;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

pub use fetched::{FETCHED, Fetched, GATEWAY_API, ZIG, fetch};

/// An upstream program.
#[derive(Debug)]
pub struct Peer {
    /// Name of the peer.
    pub name: &'static str,
    /// Directory under `tools/` with the module that pins the program.
    pub module: &'static str,
    /// Go package to build.
    pub package: &'static str,
    /// Linker settings as `(symbol, value)`. Without them the program reports a wrong version.
    pub stamps: &'static [(&'static str, &'static str)],
    /// Build tags, separated by commas.
    pub tags: &'static str,
}

/// Version stamps of Kubernetes programs, for both packages that contain a version.
const KUBERNETES: &[(&str, &str)] = &[
    ("k8s.io/component-base/version.gitVersion", "v1.36.4"),
    ("k8s.io/component-base/version.gitMajor", "1"),
    ("k8s.io/component-base/version.gitMinor", "36"),
    ("k8s.io/component-base/version.gitTreeState", "clean"),
    (
        "k8s.io/component-base/version.gitCommit",
        "bb826b1d48562f110659e64e8ec444327433db95",
    ),
    ("k8s.io/client-go/pkg/version.gitVersion", "v1.36.4"),
    ("k8s.io/client-go/pkg/version.gitMajor", "1"),
    ("k8s.io/client-go/pkg/version.gitMinor", "36"),
    ("k8s.io/client-go/pkg/version.gitTreeState", "clean"),
    (
        "k8s.io/client-go/pkg/version.gitCommit",
        "bb826b1d48562f110659e64e8ec444327433db95",
    ),
];

/// Version stamps of Istio programs.
const ISTIO_1_28: &[(&str, &str)] = &[
    ("istio.io/istio/pkg/version.buildVersion", "1.28.2"),
    ("istio.io/istio/pkg/version.buildTag", "1.28.2"),
    ("istio.io/istio/pkg/version.buildStatus", "Clean"),
];
const ISTIO_1_29: &[(&str, &str)] = &[
    ("istio.io/istio/pkg/version.buildVersion", "1.29.1"),
    ("istio.io/istio/pkg/version.buildTag", "1.29.1"),
    ("istio.io/istio/pkg/version.buildStatus", "Clean"),
];

/// All peers that can be built.
pub const PEERS: &[Peer] = &[
    Peer {
        name: "helm4",
        module: "helm4",
        package: "helm.sh/helm/v4/cmd/helm",
        stamps: &[
            ("helm.sh/helm/v4/internal/version.version", "v4.2.4"),
            ("helm.sh/helm/v4/internal/version.gitTreeState", "clean"),
        ],
        tags: "",
    },
    Peer {
        name: "helm3",
        module: "helm3",
        package: "helm.sh/helm/v3/cmd/helm",
        // The Kubernetes version is the version of the client library, as in Helm's Makefile.
        stamps: &[
            ("helm.sh/helm/v3/internal/version.version", "v3.21.4"),
            ("helm.sh/helm/v3/internal/version.gitTreeState", "clean"),
            ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor", "1"),
            ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", "36"),
            ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor", "1"),
            ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor", "36"),
        ],
        tags: "",
    },
    Peer {
        name: "oracle",
        module: "helm4",
        package: "./oracle",
        stamps: &[],
        tags: "",
    },
    Peer {
        name: "etcd",
        module: "kubernetes",
        package: "go.etcd.io/etcd/server/v3",
        stamps: &[],
        tags: "",
    },
    Peer {
        name: "kube-apiserver",
        module: "kubernetes",
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
        stamps: KUBERNETES,
        tags: "",
    },
    Peer {
        name: "kube-controller-manager",
        module: "kubernetes",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        stamps: KUBERNETES,
        tags: "",
    },
    Peer {
        name: "kubectl",
        module: "kubernetes",
        package: "k8s.io/kubernetes/cmd/kubectl",
        stamps: KUBERNETES,
        tags: "",
    },
    Peer {
        name: "istioctl",
        module: "istio-1.29",
        package: "istio.io/istio/istioctl/cmd/istioctl",
        stamps: ISTIO_1_29,
        tags: "",
    },
    Peer {
        name: "pilot-discovery-1.29.1",
        module: "istio-1.29",
        package: "istio.io/istio/pilot/cmd/pilot-discovery",
        stamps: ISTIO_1_29,
        tags: "",
    },
    Peer {
        name: "pilot-discovery-1.28.2",
        module: "istio-1.28",
        package: "istio.io/istio/pilot/cmd/pilot-discovery",
        stamps: ISTIO_1_28,
        tags: "",
    },
    Peer {
        name: "pilot-agent-1.29.1",
        module: "istio-1.29",
        package: "istio.io/istio/pilot/cmd/pilot-agent",
        stamps: ISTIO_1_29,
        tags: "",
    },
    Peer {
        name: "pilot-agent-1.28.2",
        // A separate module, because the agent requires modules that the other 1.28 programs do not require.
        // The builds of these programs remain unchanged.
        module: "agent-1.28",
        package: "istio.io/istio/pilot/cmd/pilot-agent",
        stamps: ISTIO_1_28,
        tags: "",
    },
    Peer {
        name: "formats",
        module: "formats",
        package: "./formats",
        stamps: &[],
        tags: "",
    },
    Peer {
        name: "yq",
        module: "formats",
        package: "github.com/mikefarah/yq/v4",
        stamps: &[],
        tags: "",
    },
    Peer {
        name: "prometheus",
        module: "prometheus",
        package: "github.com/prometheus/prometheus/cmd/prometheus",
        stamps: &[("github.com/prometheus/common/version.Version", "3.15.0")],
        // Built without service discovery: its client libraries are most of the build.
        tags: "remove_all_sd",
    },
    Peer {
        name: "packaging",
        module: "packaging",
        package: "./packaging",
        stamps: &[],
        tags: "",
    },
];

/// Errors of building or fetching a peer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The name is not in [`PEERS`].
    #[error("unknown peer {0:?}")]
    Unknown(String),
    /// Neither `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("set HOME or XDG_CACHE_HOME: peers are cached in the user's cache directory")]
    NoCache,
    /// A file or directory could not be read or written.
    #[error("{path}")]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// System error.
        source: io::Error,
    },
    /// The Go tool could not be started.
    #[error("the Go tool could not be started (peers are built with Go 1.26 or later)")]
    NoGo(#[source] io::Error),
    /// npm or node could not be started.
    #[error("npm and node could not be started (the browser is fetched with Node 20 or later)")]
    NoNode(#[source] io::Error),
    /// The peer is not in the cache and cannot be built in this environment.
    #[error("{0} is not built: run `cargo xtask peers {0}`")]
    NotBuilt(&'static str),
    /// Downloading a peer failed.
    #[error("fetching {name} failed:\n{output}")]
    Fetch {
        /// Name of the peer.
        name: &'static str,
        /// Output of the tool.
        output: String,
    },
    /// The build failed.
    #[error("building {name} failed:\n{output}")]
    Build {
        /// Name of the peer.
        name: &'static str,
        /// Output of the compiler.
        output: String,
    },
}

/// Returns the path of a peer's binary. Builds or downloads the peer if it is not cached.
pub fn peer(name: &str) -> Result<PathBuf, PeerError> {
    match fetched::find(name) {
        Some(fetched) => fetch(fetched),
        None => build_peer(find_peer(name)?),
    }
}

/// Returns the path of a peer's binary without building it. For tests that must not wait for a build, or
/// that have no network.
pub fn built_peer(name: &str) -> Result<PathBuf, PeerError> {
    let (known, path) = if let Some(fetched) = fetched::find(name) {
        (fetched.name, fetched.path()?)
    } else {
        let peer = find_peer(name)?;
        (peer.name, binary_directory(peer)?.join(peer.name))
    };
    if path.exists() {
        return Ok(path);
    }
    Err(PeerError::NotBuilt(known))
}

fn find_peer(name: &str) -> Result<&'static Peer, PeerError> {
    PEERS
        .iter()
        .find(|peer| peer.name == name)
        .ok_or_else(|| PeerError::Unknown(name.into()))
}

fn module_of(peer: &Peer) -> PathBuf {
    repository_root().join("tools").join(peer.module)
}

/// Returns the directory of a peer's binary, which is named by the hash of its module's sources.
fn binary_directory(peer: &Peer) -> Result<PathBuf, PeerError> {
    let directory = format!("{}-{}", peer.module, fingerprint(&module_of(peer))?);
    Ok(cache_home()?.join("peers").join(directory))
}

/// Returns the path of a peer's binary, building it if necessary. A lock ensures that only one process
/// builds it.
pub fn build_peer(peer: &Peer) -> Result<PathBuf, PeerError> {
    let (module, home) = (module_of(peer), binary_directory(peer)?);
    let binary = home.join(peer.name);
    if binary.exists() {
        return Ok(binary);
    }
    fs::create_dir_all(&home).map_err(|source| PeerError::File {
        path: home.clone(),
        source,
    })?;
    let _lock = lock(&home.join("lock"))?;
    if !binary.exists() {
        compile(peer, &module, &home.join(format!("{}.new", peer.name)), &binary)?;
    }
    Ok(binary)
}

/// Returns the root directory of this workspace.
#[must_use]
pub fn repository_root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory
        .ancestors()
        .nth(2)
        .unwrap_or(crate_directory)
        .to_path_buf()
}

fn compile(peer: &Peer, module: &Path, scratch: &Path, binary: &Path) -> Result<(), PeerError> {
    let stamps: Vec<_> = peer
        .stamps
        .iter()
        .map(|(symbol, value)| format!("-X {symbol}={value}"))
        .collect();
    let output = Command::new("go")
        .args([
            "build",
            "-trimpath",
            // Debug information is a quarter of the compiler's time, and the linker drops it.
            "-gcflags=all=-dwarf=false",
            "-tags",
            peer.tags,
            "-ldflags",
            &format!("-s -w {}", stamps.join(" ")),
            "-o",
        ])
        .arg(scratch)
        .arg(peer.package)
        .current_dir(module)
        .envs([
            ("GOTOOLCHAIN", "local"),
            ("CGO_ENABLED", "0"),
            ("GOFLAGS", "-buildvcs=false"),
        ])
        .output()
        .map_err(PeerError::NoGo)?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(PeerError::Build {
            name: peer.name,
            output,
        });
    }
    fs::rename(scratch, binary).map_err(|source| PeerError::File {
        path: binary.into(),
        source,
    })
}

/// Locks a file. The lock is released when the handle is closed, also if the process dies.
pub(crate) fn lock(path: &Path) -> Result<File, PeerError> {
    let file = File::create(path).map_err(file_error(path))?;
    file.lock().map_err(file_error(path))?;
    Ok(file)
}

/// Returns a function that creates an error about a file or directory.
pub(crate) fn file_error(path: &Path) -> impl Fn(io::Error) -> PeerError {
    move |source| PeerError::File {
        path: path.into(),
        source,
    }
}

/// Returns the cache directory of peers and tools: `mainstay` in the user's cache directory. It is shared
/// by all clones.
pub fn cache_home() -> Result<PathBuf, PeerError> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    Ok(cache.ok_or(PeerError::NoCache)?.join("mainstay"))
}

/// Returns the hash of the sources of a module's peers: go.mod, go.sum, our own Go files, and the stamps.
fn fingerprint(module: &Path) -> Result<String, PeerError> {
    hash_of(&settings(module), &sources(module, &packages(module))?)
}

/// Returns the stamps of all peers of a module, one per line, followed by their tags.
fn settings(module: &Path) -> String {
    let peers = || PEERS.iter().filter(|peer| module.ends_with(peer.module));
    let line = |(symbol, value): &(&str, &str)| format!("{symbol}={value}\n");
    let stamps: String = peers().flat_map(|peer| peer.stamps).map(line).collect();
    let tags: String = peers().map(|peer| peer.tags).collect();
    stamps + &tags
}

/// Returns a hash of `settings` and of the names and contents of files.
pub(crate) fn hash_of(settings: &str, files: &[PathBuf]) -> Result<String, PeerError> {
    let mut hash = Sha256::new();
    hash.update(settings);
    for file in files {
        let text = fs::read(file).map_err(file_error(file))?;
        hash.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(&text);
    }
    let digest = hash.finalize();
    let prefix = digest
        .iter()
        .take(8)
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    Ok(format!("{prefix:016x}"))
}

/// Returns the directories of our own packages in a module. Other directories contain no sources.
fn packages(module: &Path) -> Vec<PathBuf> {
    PEERS
        .iter()
        .filter(|peer| module.ends_with(peer.module))
        .filter_map(|peer| peer.package.strip_prefix("./"))
        .map(|package| module.join(package))
        .collect()
}

fn sources(directory: &Path, packages: &[PathBuf]) -> Result<Vec<PathBuf>, PeerError> {
    let failed = |source| PeerError::File {
        path: directory.into(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if packages.iter().any(|package| path.starts_with(package)) && path.is_dir() {
            found.extend(sources(&path, packages)?);
        } else if path
            .extension()
            .is_some_and(|ending| ["go", "mod", "sum"].iter().any(|known| ending == *known))
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_peer_is_an_error_with_its_name() {
        assert_eq!(
            peer("missing").unwrap_err().to_string(),
            "unknown peer \"missing\""
        );
    }

    #[test]
    fn every_peer_has_its_module_and_sums() {
        for peer in PEERS {
            let module = repository_root().join("tools").join(peer.module);
            assert!(module.join("go.mod").is_file(), "{}", peer.name);
            assert!(module.join("go.sum").is_file(), "{}", peer.name);
        }
    }

    #[test]
    fn one_module_has_one_fingerprint() {
        let module = repository_root().join("tools/helm4");
        assert_eq!(fingerprint(&module).unwrap(), fingerprint(&module).unwrap());
        assert_ne!(
            fingerprint(&module).unwrap(),
            fingerprint(&repository_root().join("tools/helm3")).unwrap()
        );
    }
}
