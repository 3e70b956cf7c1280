//! `cargo xtask peers`: takes names, leaves the built binaries in the user's cache folder.

use std::time::Instant;

use anyhow::{Context, bail};
use mainstay_testkit::browser::fetch_chromium;
use mainstay_testkit::{PEERS, build_peer};

/// The one that is fetched, not built.
const BROWSER: &str = "chromium";

/// Builds the named peers, or all.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| name.as_str() != BROWSER && PEERS.iter().all(|peer| peer.name != name.as_str()))
    {
        let known: Vec<_> = PEERS.iter().map(|peer| peer.name).chain([BROWSER]).collect();
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
    if names.is_empty() || names.iter().any(|name| name == BROWSER) {
        let begin = Instant::now();
        let path = fetch_chromium().context(BROWSER)?;
        println!("{BROWSER:<10} {} ({:.1?})", path.display(), begin.elapsed());
    }
    Ok(())
}
