//! Why there is no rehearsal.

use std::path::PathBuf;

use mainstay_harness::HarnessError;
use mainstay_sim::snapshot::SnapshotError;

/// Why there is no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// A snapshot cannot be read.
    #[error("the snapshot {} cannot be read", path.display())]
    Snapshot {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<SnapshotError>,
    },
    /// An object of the input is none that a cluster could hold.
    #[error("object {number} of the input is no object of a cluster: {why}")]
    Object {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A cluster cannot be read.
    #[error("cannot list {what}: {message}")]
    Cluster {
        /// Which kind.
        what: &'static str,
        /// What the server says.
        message: String,
    },
    /// There is nothing to upgrade.
    #[error("there is no Istio in the input")]
    NoIstio,
    /// Nobody knows which one is meant.
    #[error("there are several Istios: {}", .0.join(", "))]
    SeveralIstios(Vec<String>),
    /// The Istio that is meant is not there.
    #[error("there is no Istio {name:?}: {}", known(.names))]
    UnknownIstio {
        /// Which.
        name: String,
        /// Those that are there.
        names: Vec<String>,
    },
    /// An object of ours cannot be understood.
    #[error("Istio {name:?} cannot be read")]
    Istio {
        /// Its name.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The upgrade leads nowhere.
    #[error("{0} is no version that can be installed")]
    Version(String),
    /// A readiness file is wrong.
    #[error("the readiness of {0}")]
    Readiness(String),
    /// The embedded cluster failed.
    #[error(transparent)]
    Harness(#[from] HarnessError),
}

fn known(names: &[String]) -> String {
    if names.is_empty() {
        "there is none".to_owned()
    } else {
        format!("there is {}", names.join(", "))
    }
}
