//! Webhook calls of a sandbox, restricted to this machine: webhooks of a snapshot belong to another cluster
//! and must not be called.

use std::net::IpAddr;

use mainstay_sim::admission::HttpsTransport;
use mainstay_sim::context::{Destination, WebhookCall, WebhookReply};
use mainstay_sim::{ReplyFuture, WebhookTransport};

/// Calls webhooks on loopback only.
pub(super) struct Loopback(HttpsTransport);

impl Loopback {
    /// Creates a transport without services: the pods of a sandbox are simulated.
    pub(super) fn new() -> Self {
        Self(HttpsTransport::new(|_| None))
    }
}

impl WebhookTransport for Loopback {
    fn call(&self, call: WebhookCall) -> ReplyFuture {
        match &call.to {
            Destination::Url(url) if !is_local(url) => {
                let host = host(url).unwrap_or_default();
                let why = format!("dial tcp {host}: a sandbox calls webhooks on this machine only");
                Box::pin(std::future::ready(WebhookReply::Failed(why)))
            }
            _ => self.0.call(call),
        }
    }
}

/// Whether the host of a URL is `localhost` or a loopback address. No name is resolved.
fn is_local(url: &str) -> bool {
    host(url).is_some_and(|host| {
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
    })
}

/// Returns the host of a URL, without its port.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // The part before an `@` contains credentials, not the host.
    let authority = authority.rsplit('@').next()?;
    match authority.split_once(']') {
        Some((inside, _)) => authority.get(..=inside.len()),
        None => authority.split(':').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    fn check(url: &str, expected: bool) {
        assert_eq!(is_local(url), expected, "{url}");
    }

    #[test]
    fn only_loopback_urls_are_local() {
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
