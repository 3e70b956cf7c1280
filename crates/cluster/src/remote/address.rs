//! Rejects addresses that a controller must not connect to on behalf of users: loopback and link-local
//! addresses, and metadata services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Policy for the addresses that may be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Whether loopback, link-local and metadata addresses are allowed.
    pub allow_local: bool,
}

/// Reason why an address is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A loopback address.
    #[error("the address is a loopback address")]
    Loopback,
    /// A link-local address.
    #[error("the address is a link-local address")]
    LinkLocal,
    /// The address or name of a cloud metadata service.
    #[error("the address is that of a metadata service")]
    Metadata,
    /// An unspecified, multicast or broadcast address.
    #[error("the address is not that of a single host")]
    NotAHost,
    /// An unusual notation of an address, such as a number, that resolvers accept.
    #[error("the host is neither a name nor an address in its usual spelling")]
    Unusual,
}

/// Metadata services outside of the link-local range.
const METADATA_V4: &[Ipv4Addr] = &[
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: &[Ipv6Addr] = &[Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)];
const METADATA_NAMES: &[&str] = &["metadata", "metadata.google.internal", "instance-data"];

impl AddressPolicy {
    /// Checks an address. An IPv4 address that is embedded in an IPv6 address is checked as IPv4.
    pub fn check(self, address: IpAddr) -> Result<(), AddressError> {
        if self.allow_local {
            return Ok(());
        }
        match address {
            IpAddr::V4(address) => check_v4(address),
            IpAddr::V6(address) => match embedded_v4(address) {
                Some(inner) => check_v4(inner),
                None => check_v6(address),
            },
        }
    }
}

/// Checks the host of a URL, which is an address or a name.
pub fn check_host(host: &str, policy: AddressPolicy) -> Result<(), AddressError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        return policy.check(address);
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if policy.allow_local {
        return Ok(());
    }
    if METADATA_NAMES.contains(&name.as_str()) {
        return Err(AddressError::Metadata);
    }
    if name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" {
        return Err(AddressError::Loopback);
    }
    if is_unusual(&name) {
        return Err(AddressError::Unusual);
    }
    Ok(())
}

/// Whether the last label is a number. Resolvers accept names such as `127.1` and `0x7f000001` as
/// addresses.
fn is_unusual(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hex = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    last.is_empty() || is_hex || last.bytes().all(|byte| byte.is_ascii_digit()) || name.contains(':')
}

fn check_v4(address: Ipv4Addr) -> Result<(), AddressError> {
    if address.is_loopback() {
        Err(AddressError::Loopback)
    } else if METADATA_V4.contains(&address) || address == Ipv4Addr::new(169, 254, 169, 254) {
        Err(AddressError::Metadata)
    } else if address.is_link_local() {
        Err(AddressError::LinkLocal)
    } else if address.octets().first() == Some(&0) || address.is_multicast() || address.is_broadcast() {
        Err(AddressError::NotAHost)
    } else {
        Ok(())
    }
}

fn check_v6(address: Ipv6Addr) -> Result<(), AddressError> {
    if address.is_loopback() {
        Err(AddressError::Loopback)
    } else if METADATA_V6.contains(&address) {
        Err(AddressError::Metadata)
    } else if address.is_unicast_link_local() {
        Err(AddressError::LinkLocal)
    } else if address.is_unspecified() || address.is_multicast() {
        Err(AddressError::NotAHost)
    } else {
        Ok(())
    }
}

/// Returns the IPv4 address inside a mapped, compatible, NAT64 or 6to4 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(one, two, three, four)
    };
    match address.segments() {
        // The loopback and the unspecified address.
        [0, 0, 0, 0, 0, 0, 0, _] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, expected: Result<(), AddressError>) {
        assert_eq!(check_host(host, AddressPolicy::default()), expected, "{host}");
        assert_eq!(
            check_host(host, AddressPolicy { allow_local: true }),
            Ok(()),
            "{host}"
        );
    }

    #[test]
    fn local_addresses_are_rejected_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "127.8.9.1",
            "[::1]",
            "::ffff:127.0.0.1",
            "localhost",
            "a.LOCALHOST.",
        ] {
            check(host, Err(AddressError::Loopback));
        }
        for host in [
            "169.254.1.1",
            "fe80::1",
            "[64:ff9b::169.254.1.1]",
            "2002:a9fe:101::",
        ] {
            check(host, Err(AddressError::LinkLocal));
        }
        for host in [
            "169.254.169.254",
            "fd00:ec2::254",
            "100.100.100.200",
            "Metadata.Google.Internal",
        ] {
            check(host, Err(AddressError::Metadata));
        }
        for host in ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255"] {
            check(host, Err(AddressError::NotAHost));
        }
        for host in ["127.1", "2130706433", "0x7f.0.0.0x1", "017700000001", ""] {
            check(host, Err(AddressError::Unusual));
        }
    }

    #[test]
    fn private_and_public_addresses_and_names_are_allowed() {
        for host in [
            "10.0.0.1",
            "192.168.1.5",
            "fd12::1",
            "203.0.113.7",
            "api.prod.example.com",
        ] {
            check(host, Ok(()));
        }
    }
}
