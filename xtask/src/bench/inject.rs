//! Injection: whole runs compared with `istioctl kube-inject`, and the throughput of `mainstay generate` on
//! streams of several kinds.

pub(crate) mod istioctl;
mod manifests;
mod streams;

use std::path::{Path, PathBuf};

use mainstay_testkit::peer;

use super::{Bench, Suite};
use crate::build::{Profile, example, mainstay_binary};
use crate::measure::{Cost, cost_of};

/// Programs of the area.
pub(super) struct Programs {
    mainstay: PathBuf,
    istioctl: PathBuf,
    /// An example that runs a command with access to an API server.
    in_cluster: PathBuf,
}

impl Programs {
    pub(super) fn build() -> anyhow::Result<Self> {
        for part in ["etcd", "kube-apiserver"] {
            peer(part)?;
        }
        Ok(Self {
            mainstay: mainstay_binary(Profile::Dist)?,
            istioctl: peer("istioctl")?,
            in_cluster: example("in_cluster")?,
        })
    }
}

impl Suite for Programs {
    fn measure(&self, bench: &mut Bench) -> anyhow::Result<()> {
        bench.attempt("generate beside istioctl", |bench| istioctl::measure(self, bench));
        streams::measure(&self.mainstay, bench)
    }
}

/// Runs `mainstay generate` once.
fn generate(mainstay: &Path, arguments: &[&str], scratch: &Path) -> anyhow::Result<Cost> {
    let program = mainstay.display().to_string();
    cost_of(
        &[&[program.as_str(), "generate", "--quiet"], arguments].concat(),
        scratch,
    )
}
