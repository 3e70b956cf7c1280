//! OCI registries: downloads the chart layer of a tag and verifies its digest.

use mainstay_catalog::Version;
use mainstay_gostd::url::query_escape;
use mainstay_yaml::{Budget, Numbers, Value, parse_json};

use super::MAX_ARCHIVE;
use super::address::Address;
use super::error::RemoteError;
use super::http::{Client, Reply, is_sha256, verify};

const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MANIFESTS: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
/// Maximum size of a manifest; registries reject larger ones.
const MAX_MANIFEST: u64 = 4 << 20;

/// A registry and the hosts that it may request tokens from.
pub(crate) struct Registry<'a> {
    pub(crate) client: &'a Client,
    pub(crate) address: &'a Address,
    /// Hosts besides the registry's own.
    pub(crate) token_hosts: &'a [String],
}

impl Registry<'_> {
    /// Downloads the archive of a chart; returns it with its digest.
    pub(crate) fn fetch(&self, chart: &str, version: &Version) -> Result<(Vec<u8>, String), RemoteError> {
        let session = Session {
            registry: self,
            token: None,
        };
        fetch(session, chart, version)
    }

    /// Whether a token may be requested from `realm`.
    fn allows(&self, realm: &Address) -> bool {
        let host = realm.host();
        host == self.address.host() || self.token_hosts.iter().any(|allowed| allowed == host)
    }
}

fn fetch(mut session: Session<'_>, chart: &str, version: &Version) -> Result<(Vec<u8>, String), RemoteError> {
    let registry = session.registry.address;
    let repository = Repository {
        registry,
        name: format!("{}/{chart}", registry.bare_path())
            .trim_matches('/')
            .to_owned(),
    };
    let address = repository.address("manifests", &tag(version));
    let reply = session.get(&address, Some(MANIFESTS), MAX_MANIFEST)?;
    let missing = || RemoteError::NoVersion {
        address: registry.to_string(),
        chart: chart.to_owned(),
        version: version.to_string(),
        newest: Vec::new(),
    };
    if reply.status == 404 {
        return Err(missing());
    }
    check_manifest(&reply)?;
    let layer = Layer::parse(&address, &reply.success()?, chart)?;
    let address = repository.address("blobs", &format!("sha256:{}", layer.digest));
    let bytes = session.get(&address, None, layer.size)?.success()?;
    verify(&address, &bytes, &layer.digest)?;
    Ok((bytes, format!("sha256:{}", layer.digest)))
}

/// Tags cannot contain a plus sign; Helm writes an underscore.
fn tag(version: &Version) -> String {
    version.to_string().replace('+', "_")
}

struct Repository<'a> {
    registry: &'a Address,
    name: String,
}

impl Repository<'_> {
    fn address(&self, kind: &str, reference: &str) -> Address {
        self.registry.at(&format!("/v2/{}/{kind}/{reference}", self.name))
    }
}

/// Verifies the manifest's digest if the registry sends one.
fn check_manifest(reply: &Reply) -> Result<(), RemoteError> {
    let digest = reply
        .header("docker-content-digest")
        .and_then(|digest| digest.strip_prefix("sha256:"));
    match (reply.status, digest) {
        (200, Some(digest)) => verify(&reply.address, &reply.body, digest),
        _ => Ok(()),
    }
}

/// The chart layer of a manifest.
struct Layer {
    digest: String,
    size: u64,
}

impl Layer {
    fn parse(address: &Address, manifest: &[u8], chart: &str) -> Result<Self, RemoteError> {
        let malformed = |reason: String| RemoteError::Malformed {
            address: address.to_string(),
            reason,
        };
        let budget = Budget {
            bytes: MAX_MANIFEST as usize,
            depth: 32,
            ..Budget::default()
        };
        let manifest =
            parse_json(manifest, Numbers::Exact, &budget).map_err(|error| malformed(error.to_string()))?;
        let layers = manifest
            .get("layers")
            .and_then(Value::as_list)
            .unwrap_or_default();
        let mut charts = layers
            .iter()
            .filter(|layer| layer.get("mediaType").and_then(Value::as_str) == Some(CHART_LAYER));
        let layer = charts
            .next()
            .ok_or_else(|| malformed(format!("no layer of type {CHART_LAYER}")))?;
        if charts.next().is_some() {
            return Err(malformed(format!("several layers of type {CHART_LAYER}")));
        }
        let digest = layer
            .get("digest")
            .and_then(Value::as_str)
            .and_then(|digest| digest.strip_prefix("sha256:"));
        let no_digest = || RemoteError::NoDigest {
            address: address.to_string(),
            chart: chart.to_owned(),
        };
        let digest = digest.filter(|digest| is_sha256(digest)).ok_or_else(no_digest)?;
        let size = match layer.get("size") {
            Some(Value::Int(size)) => u64::try_from(*size).unwrap_or(u64::MAX),
            _ => MAX_ARCHIVE,
        };
        if size > MAX_ARCHIVE {
            return Err(RemoteError::TooLarge {
                address: address.to_string(),
                limit: MAX_ARCHIVE,
            });
        }
        Ok(Self {
            digest: digest.to_ascii_lowercase(),
            size,
        })
    }
}

/// Requests with an anonymous token, if the registry requires one.
struct Session<'a> {
    registry: &'a Registry<'a>,
    token: Option<String>,
}

impl Session<'_> {
    fn get(&mut self, address: &Address, accept: Option<&str>, limit: u64) -> Result<Reply, RemoteError> {
        let reply = self.send(address, accept, limit)?;
        if reply.status != 401 || self.token.is_some() {
            return Ok(reply);
        }
        let challenge = reply.header("www-authenticate").unwrap_or_default().to_owned();
        self.token = Some(fetch_token(self.registry, address, &challenge)?);
        self.send(address, accept, limit)
    }

    fn send(&self, address: &Address, accept: Option<&str>, limit: u64) -> Result<Reply, RemoteError> {
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let accept = accept.map(|accept| ("accept", accept));
        let authorization = bearer.as_deref().map(|bearer| ("authorization", bearer));
        let headers: Vec<(&str, &str)> = accept.into_iter().chain(authorization).collect();
        self.registry.client.get(address, &headers, limit)
    }
}

const MAX_TOKEN: u64 = 64 << 10;

/// Requests an anonymous token for `Bearer realm="…",service="…",scope="…"`.
fn fetch_token(registry: &Registry<'_>, address: &Address, challenge: &str) -> Result<String, RemoteError> {
    let login = |reason: &str| RemoteError::Login {
        address: address.to_string(),
        reason: reason.to_owned(),
    };
    let challenge = challenge
        .strip_prefix("Bearer ")
        .ok_or_else(|| login("unsupported authentication challenge"))?;
    let fields = parameters(challenge);
    let field = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    let realm = field("realm").ok_or_else(|| login("authentication challenge without a realm"))?;
    let query: Vec<String> = ["service", "scope"]
        .iter()
        .filter_map(|name| Some(format!("{name}={}", query_escape(field(name)?))))
        .collect();
    let separator = if realm.contains('?') { '&' } else { '?' };
    let realm = address
        .join(&format!("{realm}{separator}{}", query.join("&")))
        .map_err(login)?;
    if !registry.allows(&realm) {
        return Err(RemoteError::TokenHost {
            address: address.to_string(),
            host: realm.host().to_owned(),
        });
    }
    let reply = registry
        .client
        .get_within(&realm, &[], MAX_TOKEN, &|next| registry.allows(next))?;
    if reply.status != 200 {
        return Err(login(&format!("{realm} responded with status {}", reply.status)));
    }
    let budget = Budget {
        bytes: MAX_TOKEN as usize,
        depth: 32,
        ..Budget::default()
    };
    let response =
        parse_json(&reply.body, Numbers::Exact, &budget).map_err(|_| login("token response is not JSON"))?;
    let token = ["token", "access_token"]
        .iter()
        .find_map(|name| response.get(name).and_then(Value::as_str));
    let token = token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    token
        .map(ToOwned::to_owned)
        .ok_or_else(|| login("token response has no token"))
}

/// Parses `a="x",b="y, z"` into pairs.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((
            key.trim_matches([',', ' ']).to_ascii_lowercase(),
            value.to_owned(),
        ));
        rest = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let found = parameters(
            r#"realm="https://h.example/token",service="h.example", scope="repository:a/b:pull,push""#,
        );
        let shown: Vec<_> = found
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            shown,
            [
                "realm=https://h.example/token",
                "service=h.example",
                "scope=repository:a/b:pull,push"
            ]
        );
        assert_eq!(parameters("nothing"), []);
        assert_eq!(parameters("a=\"open"), [("a".to_owned(), "open".to_owned())]);
    }
}
