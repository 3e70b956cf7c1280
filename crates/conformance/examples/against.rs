//! Runs all scenarios (or those named) against a server and lists those whose transcript differs from the
//! stored one.
//!
//! `against admin=http://127.0.0.1:8001,alice=http://127.0.0.1:8002 [DIRECTORY [NAME…]]`. The first
//! argument contains the address of a `kubectl proxy` for each user; an address without a name serves all
//! users. Transcripts are written to DIRECTORY. A name may end in `*`.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "the example prints its results"
)]

use std::time::Duration;

use kube::{Client, Config};
use mainstay_conformance::{Host, HostError, SCENARIOS, run};

/// Users with the addresses of their proxies. An empty name matches every user.
struct Proxies(Vec<(String, String)>);

impl Proxies {
    fn parse(text: &str) -> Self {
        let pair = |part: &str| {
            part.split_once('=')
                .map_or((String::new(), part.to_owned()), |(user, at)| {
                    (user.to_owned(), at.to_owned())
                })
        };
        Self(text.split(',').map(pair).collect())
    }
}

impl Host for Proxies {
    fn client(&self, user: &str) -> Client {
        let of_user = self.0.iter().find(|(name, _)| name == user || name.is_empty());
        let address = of_user.map_or("http://127.0.0.1:1", |(_, address)| address);
        let mut config = Config::new(address.parse().expect("an address"));
        config.default_retry = false;
        Client::try_from(config).expect("a client")
    }

    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    fn is_concurrent(&self) -> bool {
        true
    }

    fn set_pod_behavior(&self, _namespace: &str, _workload: &str, _script: &str) -> Result<(), HostError> {
        Err(HostError::NoKubelet)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().expect("the server's address");
    let directory = arguments.next();
    let names: Vec<String> = arguments.collect();
    let (mut equal, mut different) = (0, 0);
    for scenario in SCENARIOS
        .iter()
        .filter(|one| names.is_empty() || names.iter().any(|name| matches(name, one.name)))
    {
        let host = Proxies::parse(&address);
        let namespace = format!("ns-{}", scenario.name);
        let found = run(&host, &namespace, scenario.text);
        let found = match tokio::time::timeout(Duration::from_mins(1), found).await {
            Ok(Ok(found)) => found,
            Ok(Err(failure)) => format!("# {failure}\n"),
            Err(_) => "# timed out\n".to_owned(),
        };
        if let Some(directory) = &directory {
            std::fs::write(format!("{directory}/{}.txt", scenario.name), &found)
                .expect("a writable directory");
        }
        if found == scenario.text {
            equal += 1;
            continue;
        }
        different += 1;
        println!("{}", scenario.name);
    }
    println!("{equal} equal, {different} different");
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |front| name.starts_with(front))
}
