//! Runs real upstream programs as references for tests: clusters, a mesh, a browser, and the Go oracle.

#[cfg(feature = "cluster")]
mod account;
#[cfg(feature = "browser")]
pub mod browser;
mod cases;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod formats;
pub mod http;
#[cfg(feature = "cluster")]
pub mod image;
#[cfg(feature = "cluster")]
pub mod inventory;
#[cfg(feature = "cluster")]
pub mod isolation;
#[cfg(feature = "cluster")]
pub mod istiod;
#[cfg(feature = "cluster")]
pub mod kubelet;
#[cfg(feature = "mesh")]
pub mod mesh;
mod oracle;
mod peer;
pub mod report_text;
#[cfg(feature = "cluster")]
pub mod suite;
mod usage;

pub use cases::{CaseCounts, Random, SAMPLE, case_count};
pub use oracle::{Oracle, OracleError, OracleRequest, OracleResponse};
pub use peer::{
    FETCHED, Fetched, GATEWAY_API, PEERS, Peer, PeerError, ZIG, build_peer, built_peer, cache_home, fetch,
    peer, repository_root,
};
pub use usage::Usage;
