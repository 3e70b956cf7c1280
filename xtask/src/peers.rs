//! `cargo xtask peers`: builds or fetches peers into the user's cache directory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, bail};
use mainstay_testkit::browser::fetch_chromium;
use mainstay_testkit::formats::{YAML_READERS, YamlReaders};
use mainstay_testkit::{FETCHED, PEERS, peer};

/// Fetched from npm, unlike the others.
const BROWSER: &str = "chromium";

/// Number of Go modules that build at the same time: downloads and linking leave a core idle.
const CONCURRENT_MODULES: usize = 2;

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
    provide_all(by_module(&wanted))
}

/// Groups peers by Go module: binaries of one module share a lock and most of their packages.
fn by_module<'a>(names: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let peer = PEERS.iter().find(|peer| peer.name == *name);
        groups
            .entry(peer.map_or(*name, |peer| peer.module))
            .or_default()
            .push(name);
    }
    groups.into_values().collect()
}

/// Provides the peers of all groups, several groups at a time, each in order. Returns the first error.
fn provide_all(groups: Vec<Vec<&str>>) -> anyhow::Result<()> {
    let queue = Mutex::new(groups.into_iter());
    let next = || queue.lock().ok()?.next();
    let worker = || -> anyhow::Result<()> {
        while let Some(group) = next() {
            group.into_iter().try_for_each(provide)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT_MODULES).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Builds or fetches one peer and prints its path and duration. The first binary of a Go module takes
/// minutes.
fn provide(name: &str) -> anyhow::Result<()> {
    println!("peers: {name}");
    let begin = Instant::now();
    let path: anyhow::Result<PathBuf> = match name {
        BROWSER => fetch_chromium().map_err(Into::into),
        YAML_READERS => YamlReaders::fetch()
            .map(|readers| readers.directory().to_owned())
            .map_err(Into::into),
        name => peer(name).map_err(Into::into),
    };
    let path = path.with_context(|| format!("peer {name}"))?;
    println!("peers: {} ({:.1?})", path.display(), begin.elapsed());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_one_module_are_one_group() {
        let groups = by_module(&["helm4", BROWSER, "oracle", "etcd"]);
        assert_eq!(groups, [vec![BROWSER], vec!["helm4", "oracle"], vec!["etcd"]]);
    }
}
