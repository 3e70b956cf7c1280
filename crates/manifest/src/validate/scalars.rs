//! Validates scalars: registries, tags, labels, names, networks, ports, domains, addresses.

/// Maximum length of a label.
const MAX_LABEL_LEN: usize = 63;

/// Whether a text is a registry with an optional path, such as `registry.example.com:5000/istio`.
pub(super) fn is_hub(text: &str) -> bool {
    let mut parts = text.split('/');
    let host = parts.next().unwrap_or_default();
    let (name, port) = host.split_once(':').unwrap_or((host, "1"));
    let is_host = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        && port.parse::<u16>().is_ok();
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_'))
    };
    text.len() <= 255 && is_host && parts.all(is_part)
}

/// Whether a text is an image tag.
pub(super) fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut chars = text.chars();
    chars.next().is_some_and(is_word)
        && text.len() <= 128
        && chars.all(|c| is_word(c) || matches!(c, '.' | '-'))
}

/// Whether a text is an RFC 1123 label.
pub(super) fn is_label(text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= MAX_LABEL_LEN
        && is_edge(text.chars().next())
        && is_edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Whether a text is a valid object name.
pub(super) fn is_object_name(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    (1..=254).contains(&text.len()) && text.chars().all(is_name)
}

/// Whether a text is an IP address with a prefix length.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let is_length = !bits.is_empty()
        && bits.chars().all(|c| c.is_ascii_digit())
        && !(bits.len() > 1 && bits.starts_with('0'));
    let longest = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    is_length && bits.parse::<u32>().is_ok_and(|bits| bits <= longest)
}

/// Whether a text is a port number, `*` or empty.
pub(super) fn is_port(text: &str) -> bool {
    matches!(text, "" | "*") || text.parse::<i64>().is_ok_and(|port| (0..=65535).contains(&port))
}

/// Whether a text is a DNS label; unlike in object names, upper-case letters are valid.
fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= MAX_LABEL_LEN
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Whether a text consists of DNS labels. A dot at the end is valid.
fn has_dns_labels(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.split('.').all(is_dns_label)
}

/// Whether a text is a domain name. The last label of a domain is not a number.
fn is_domain(text: &str) -> bool {
    let is_number = |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    let last = text.rsplit('.').next().unwrap_or_default();
    (1..=255).contains(&text.len()) && !is_number(last) && has_dns_labels(text)
}

/// Whether a text is a domain name, the first label of which may be `*` or start with `*`.
pub(super) fn is_wildcard_domain(text: &str) -> bool {
    let (first, rest) = match text.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    };
    let label = first
        .strip_prefix("*-")
        .or(first.strip_prefix('*'))
        .unwrap_or(first);
    let is_first = first == "*" || (first.len() <= MAX_LABEL_LEN && is_dns_label(label));
    text.len() <= 255 && is_first && rest.is_none_or(|rest| rest.is_empty() || is_domain(rest))
}

/// Whether a text is a trust domain.
pub(super) fn is_trust_domain(text: &str) -> bool {
    !text.is_empty() && has_dns_labels(text)
}

/// Whether a text is the address of a server: `HOST:PORT` with a domain name or an IP address.
pub(super) fn is_address(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once("]:") {
            Some(parts) => parts,
            None => return false,
        },
        None => match text.split_once(':') {
            Some(parts) => parts,
            None => return false,
        },
    };
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = is_number && port.parse::<u16>().is_ok_and(|port| port > 0);
    is_port && (is_domain(host) || host.parse::<std::net::IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(test: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(test(text), "{text}");
        }
        for text in bad {
            assert!(!test(text), "{text}");
        }
    }

    #[test]
    fn scalars_are_validated() {
        check(
            is_hub,
            &["docker.io/istio", "host:5000/a/b", "localhost"],
            &["", "a b", "a//b", "host:x/a", "h/A"],
        );
        check(
            is_tag,
            &["1.29.1", "_x", "latest-distroless"],
            &["", "-a", "a b", "a:b"],
        );
        check(
            is_label,
            &["canary", "1-29-1"],
            &["", "1.29", "Canary", "-a", "a-"],
        );
        check(
            is_object_name,
            &["istio-ingressgateway", "a.b"],
            &["", "A", "a_b"],
        );
        check(
            is_cidr,
            &["10.0.0.0/8", "::1/128"],
            &["10.0.0.0", "10.0.0.0/33", "10.0.0.256/8", "*", "1.1.1.1/08"],
        );
        check(is_port, &["0", "65535", "*", ""], &["65536", "-1", "http", "80 "]);
        check(
            is_trust_domain,
            &["cluster.local", "Example.org.", "a.1"],
            &["", "*.example.org", "a..b", "a_b", "-a"],
        );
        check(
            is_wildcard_domain,
            &["*", "*.example.org", "*a.b", "*-a.b", "a.example.org.", "a"],
            &["", "**", "a.*.b", "*.1", "a_b.c", ".a"],
        );
        check(
            is_address,
            &["zipkin:9411", "a.b.svc:1", "10.0.0.1:80", "[::1]:65535"],
            &[
                "",
                "zipkin",
                "zipkin:",
                "zipkin:0",
                "zipkin:70000",
                "zipkin:+1",
                "::1:80",
                "a b:1",
                "[::1]",
            ],
        );
    }
}
