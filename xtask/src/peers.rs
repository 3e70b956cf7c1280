//! `cargo xtask peers`: takes names, leaves the built binaries in the user's cache folder.

use std::time::Instant;

use anyhow::{Context, bail};
use mainstay_testkit::{PEERS, build_peer};

/// Builds the named peers, or all.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| PEERS.iter().all(|peer| peer.name != name.as_str()))
    {
        let known: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        bail!("no peer is called {unknown:?}; there are {}", known.join(", "));
    }
    for peer in PEERS
        .iter()
        .filter(|peer| names.is_empty() || names.iter().any(|name| name == peer.name))
    {
        let begin = Instant::now();
        let path = build_peer(peer).with_context(|| format!("peer {}", peer.name))?;
        println!("{:<10} {} ({:.1?})", peer.name, path.display(), begin.elapsed());
    }
    Ok(())
}
