//! Webhooks of a sandbox: takes a question of the cluster, asks it over HTTPS on this machine, and nowhere else. A snapshot of somebody's
//! cluster names webhooks of that cluster: a rehearsal must not reach them.

use std::net::IpAddr;

use mainstay_sim::admission::HttpsTransport;
use mainstay_sim::context::{Destination, WebhookCall, WebhookReply};
use mainstay_sim::{ReplyFuture, WebhookTransport};

/// Asks webhooks on loopback.
pub(super) struct Loopback(HttpsTransport);

impl Loopback {
    /// Nobody is behind the services of a sandbox: its pods are simulated.
    pub(super) fn new() -> Self {
        Self(HttpsTransport::new(|_| None))
    }
}

impl WebhookTransport for Loopback {
    fn call(&self, call: WebhookCall) -> ReplyFuture {
        match &call.to {
            Destination::Url(url) if !is_here(url) => {
                let host = host(url).unwrap_or_default();
                let why = format!("dial tcp {host}: a sandbox calls webhooks on this machine only");
                Box::pin(std::future::ready(WebhookReply::Failed(why)))
            }
            _ => self.0.call(call),
        }
    }
}

/// Whether a URL's host is this machine by its very name: no name is looked up.
fn is_here(url: &str) -> bool {
    host(url).is_some_and(|host| {
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
    })
}

/// The host of a URL, without its port.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // A name before an `@` is no host.
    let authority = authority.rsplit('@').next()?;
    match authority.split_once(']') {
        Some((inside, _)) => authority.get(..=inside.len()),
        None => authority.split(':').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_here;

    fn check(url: &str, expected: bool) {
        assert_eq!(is_here(url), expected, "{url}");
    }

    #[test]
    fn only_this_machine_is_here() {
        check("https://127.0.0.1:8443/validate", true);
        check("https://127.8.9.1", true);
        check("https://localhost/x?y", true);
        check("https://[::1]:9/x", true);
        check("https://127.0.0.1.example.com/", false);
        check("https://127.0.0.1@example.com/", false);
        check("https://example.com#127.0.0.1", false);
        check("https://hooks.example.com/localhost", false);
        check("https://10.0.0.1/", false);
        check("https://[2001:db8::1]/", false);
        check("http://127.0.0.1/", false);
        check("https://2130706433/", false);
        check("", false);
    }
}
