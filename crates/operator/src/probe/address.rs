//! Parses the URL of a probe into host and port of a Service, and resolves the host to addresses that a
//! Service can have.

use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::ProbeError;

/// Host and port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name `SERVICE.NAMESPACE.svc`.
    pub host: String,
    /// Port of the Service.
    pub port: u16,
}

impl Address {
    /// Parses `https://SERVICE.NAMESPACE.svc:PORT/ready`. Fails for all other URLs.
    pub fn parse(url: &str) -> Result<Self, ProbeError> {
        Self::parse_url(url).ok_or(ProbeError::Url)
    }

    fn parse_url(url: &str) -> Option<Self> {
        let (host, port) = url
            .strip_prefix("https://")?
            .strip_suffix("/ready")?
            .split_once(':')?;
        let (service, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = port.parse().ok().filter(|port| digits && *port > 0)?;
        (is_label(service) && is_label(namespace)).then(|| Self {
            host: host.to_owned(),
            port,
        })
    }
}

fn is_label(text: &str) -> bool {
    let is_label_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_label_byte)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A resolver for the addresses of Services.
pub trait Resolver: Send + Sync {
    /// Resolves a Service to all of its addresses.
    fn resolve(&self, address: &Address) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// The resolver of the system, which queries the DNS of the cluster when it runs in a pod.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, address: &Address) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let (host, port) = (address.host.clone(), address.port);
        async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            let usable: Vec<_> = found.filter(|address| is_service_address(address.ip())).collect();
            if usable.is_empty() {
                let message = "no address that a Service can have";
                return Err(io::Error::new(io::ErrorKind::NotFound, message));
            }
            Ok(usable)
        }
        .boxed()
    }
}

/// Whether a Service can have this address. The API server does not assign loopback or link-local addresses
/// to Services, but a DNS name may resolve to one.
fn is_service_address(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            !(ip.is_loopback()
                || ip.is_link_local()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_broadcast())
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified() || ip.is_multicast())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Option<(&str, u16)>) {
        let found = Address::parse(url).ok();
        let found = found
            .as_ref()
            .map(|address| (address.host.as_str(), address.port));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn only_services_of_this_cluster_are_accepted() {
        check(
            "https://istiod-remote.istio-system.svc:443/ready",
            Some(("istiod-remote.istio-system.svc", 443)),
        );
        check("https://a.b.svc:15017/ready", Some(("a.b.svc", 15017)));
        for url in [
            "http://a.b.svc:443/ready",
            "https://a.b.svc/ready",
            "https://a.b.svc:0/ready",
            "https://a.b.svc:+443/ready",
            "https://a.b.svc:65536/ready",
            "https://a.b.svc:443/other",
            "https://a.b.svc:443/../ready",
            "https://a.b.svc:443/x?y=/ready",
            "https://user@a.b.svc:443/ready",
            "https://a.b.c.svc:443/ready",
            "https://b.svc:443/ready",
            "https://a.b.example.com:443/ready",
            "https://169.254.svc:443/ready#/ready",
            "https://A.b.svc:443/ready",
            "https://-a.b.svc:443/ready",
            "https://a.b.svc:443@evil:1/ready",
            "",
        ] {
            check(url, None);
        }
    }

    #[test]
    fn loopback_and_link_local_addresses_are_rejected() {
        for (ip, expected) in [
            ("10.96.0.1", true),
            ("fd00::1", true),
            ("8.8.8.8", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
        ] {
            assert_eq!(is_service_address(ip.parse().unwrap()), expected, "{ip}");
        }
    }
}
