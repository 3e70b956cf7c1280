//! `cargo xtask peers`: takes names, leaves the built binaries and fetched files in the user's cache folder.

use std::time::Instant;

use anyhow::{Context, bail};
use mainstay_testkit::browser::fetch_chromium;
use mainstay_testkit::{FETCHED, PEERS, peer};

/// The one that is fetched in a way of its own.
const BROWSER: &str = "chromium";

/// Builds or fetches the named peers, or all.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    let built = PEERS.iter().map(|peer| peer.name);
    let fetched = FETCHED.iter().map(|fetched| fetched.name);
    let known: Vec<&str> = built.chain(fetched).chain([BROWSER]).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no peer is called {unknown:?}; there are {}", known.join(", "));
    }
    let is_wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let wanted: Vec<&str> = known.into_iter().filter(is_wanted).collect();
    for (number, name) in wanted.iter().enumerate() {
        // The first of a module takes minutes.
        println!("peers: [{}/{}] {name}", number + 1, wanted.len());
        let begin = Instant::now();
        let path = match *name {
            BROWSER => fetch_chromium(),
            name => peer(name),
        };
        let path = path.with_context(|| format!("peer {name}"))?;
        println!("peers: {} ({:.1?})", path.display(), begin.elapsed());
    }
    Ok(())
}
