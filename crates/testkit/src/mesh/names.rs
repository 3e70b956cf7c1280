//! Minimal DNS server for the names of Services.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;

/// Addresses by `name.namespace`, shared with the Service watch.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Mutex<BTreeMap<String, Ipv4Addr>>>);

impl Names {
    /// Replaces all names.
    pub(super) fn set(&self, names: BTreeMap<String, Ipv4Addr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Resolves `name.namespace`, with or without `.svc` and the cluster domain.
    pub(super) fn find(&self, name: &str) -> Option<Ipv4Addr> {
        let name = name.trim_end_matches('.');
        let name = name.strip_suffix(".cluster.local").unwrap_or(name);
        let name = name.strip_suffix(".svc").unwrap_or(name);
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&name.to_ascii_lowercase()).copied()
    }

    /// Serves queries until the future is dropped.
    pub(super) async fn serve(self, socket: UdpSocket) {
        let mut buffer = [0; 512];
        loop {
            let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
                continue;
            };
            let request = buffer.get(..length).unwrap_or_default();
            if let Some(response) = self.response(request) {
                self.send(&socket, &response, client).await;
            }
        }
    }

    async fn send(&self, socket: &UdpSocket, response: &[u8], client: SocketAddr) {
        // Errors are ignored: a resolver that gets no response retries.
        let _ = socket.send_to(response, client).await;
    }

    fn response(&self, request: &[u8]) -> Option<Vec<u8>> {
        let (name, end) = query_name(request)?;
        let kind = u16::from_be_bytes(request.get(end..end + 2)?.try_into().ok()?);
        let found = self.find(&name);
        let address = found.filter(|_| kind == ADDRESS);
        let mut response = request.get(..2)?.to_vec();
        let code = if found.is_some() { 0 } else { NO_SUCH_NAME };
        response.extend((RESPONSE_FLAGS | code).to_be_bytes());
        let counts = [1, u16::from(address.is_some()), 0, 0];
        response.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
        response.extend(request.get(HEADER..end + 4)?);
        if let Some(address) = address {
            response.extend(SAME_NAME.to_be_bytes());
            response.extend(ADDRESS.to_be_bytes());
            response.extend(1_u16.to_be_bytes());
            response.extend(TTL.to_be_bytes());
            response.extend(4_u16.to_be_bytes());
            response.extend(address.octets());
        }
        Some(response)
    }
}

const HEADER: usize = 12;
/// Type of an IPv4 address record.
const ADDRESS: u16 = 1;
/// Flags: authoritative response, recursion desired and available.
const RESPONSE_FLAGS: u16 = 0x8580;
const NO_SUCH_NAME: u16 = 3;
/// Compression pointer to the name in the query.
const SAME_NAME: u16 = 0xC000 | HEADER as u16;
/// TTL in seconds.
const TTL: u32 = 5;

/// Parses the name in a query. Returns the name and the offset of its end.
fn query_name(request: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*request.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = request.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let names = Names::default();
        names.set(BTreeMap::from([(
            "web.shop".to_owned(),
            Ipv4Addr::new(10, 96, 0, 7),
        )]));
        names
    }

    fn request(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1]);
        bytes
    }

    fn check(name: &str, kind: u16, code: u8, address: Option<[u8; 4]>) {
        let response = names().response(&request(name, kind)).unwrap();
        assert_eq!(response[..2], [0xAB, 0xCD]);
        assert_eq!(response[3] & 0xF, code, "{name}");
        assert_eq!(response[7], u8::from(address.is_some()), "{name}");
        if let Some(address) = address {
            assert_eq!(response[response.len() - 4..], address, "{name}");
        }
    }

    #[test]
    fn services_have_addresses() {
        check("web.shop.svc.cluster.local", ADDRESS, 0, Some([10, 96, 0, 7]));
        check("WEB.shop.svc", ADDRESS, 0, Some([10, 96, 0, 7]));
        check("web.shop", ADDRESS, 0, Some([10, 96, 0, 7]));
    }

    #[test]
    fn a_known_name_without_the_record_type_is_not_an_error() {
        check("web.shop.svc", 28, 0, None);
    }

    #[test]
    fn unknown_names_have_no_address() {
        check("example.org", ADDRESS, 3, None);
    }

    #[test]
    fn a_truncated_query_gets_no_response() {
        let request = request("web.shop", ADDRESS);
        for length in 0..request.len() - 2 {
            assert!(
                names().response(&request[..length]).is_none() || length >= request.len() - 2,
                "{length}"
            );
        }
    }
}
