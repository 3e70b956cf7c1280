//! Listen addresses in the notation of Go: `:8443`, `127.0.0.1:0`, or `0` for none.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// A listen address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// No address: the server is disabled.
    Disabled,
    /// A port on all addresses of the machine.
    AllAddresses(u16),
    /// An IP address and port.
    Ip(IpAddr, u16),
    /// A host name and port.
    Host(String, u16),
}

/// Error of parsing a listen address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl FromStr for Bind {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if matches!(text, "" | "0") {
            return Ok(Self::Disabled);
        }
        let invalid = |problem: &str| AddressError(format!("address {text}: {problem}"));
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| invalid("missing port in address"))?;
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = port
            .parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| invalid("invalid port"))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match (host, bare.unwrap_or(host).parse()) {
            ("", _) => Ok(Self::AllAddresses(port)),
            (_, Ok(ip)) => Ok(Self::Ip(ip, port)),
            _ if host.contains([':', '[', ']', '/', ' ']) => Err(invalid("too many colons in address")),
            _ => Ok(Self::Host(host.to_owned(), port)),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("0"),
            Self::AllAddresses(port) => write!(f, ":{port}"),
            Self::Ip(ip, port) => SocketAddr::new(*ip, *port).fmt(f),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl Bind {
    /// Binds a listener.
    pub(super) async fn listen(&self) -> io::Result<TcpListener> {
        match self {
            Self::Disabled => Err(io::Error::new(io::ErrorKind::InvalidInput, "disabled")),
            Self::Ip(ip, port) => TcpListener::bind((*ip, *port)).await,
            Self::Host(host, port) => TcpListener::bind((host.as_str(), *port)).await,
            // If the machine supports IPv6, a dual-stack socket also accepts IPv4 connections.
            Self::AllAddresses(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await
                }
                other => other,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = text
            .parse::<Bind>()
            .map_or_else(|error| error.to_string(), |bind| format!("{bind:?}"));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn addresses_are_parsed_as_in_go() {
        check(":8443", "AllAddresses(8443)");
        check("0", "Disabled");
        check("", "Disabled");
        check("127.0.0.1:0", "Ip(127.0.0.1, 0)");
        check("[::1]:8081", "Ip(::1, 8081)");
        check("localhost:8081", "Host(\"localhost\", 8081)");
        check("8443", "address 8443: missing port in address");
        check(":https", "address :https: invalid port");
        check(":70000", "address :70000: invalid port");
        check(":+1", "address :+1: invalid port");
        check("[x]:1", "address [x]:1: too many colons in address");
    }
}
