//! Writes certificates, keys, tokens and kubeconfigs for the processes of a cluster.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};

use super::{Access, ClusterError, User};

/// CA certificate in DER format.
#[derive(Debug)]
pub(super) struct Authority {
    pub(super) der: Vec<u8>,
}

/// Writes all files that the flags of the API server and its controllers refer to.
pub(super) fn write(directory: &Path, users: &[User], address: Ipv4Addr) -> Result<Authority, ClusterError> {
    let rows: Vec<String> = users.iter().map(token_row).collect();
    fs::write(directory.join("tokens.csv"), rows.concat())?;
    fs::write(directory.join("audit.json"), AUDIT_POLICY)?;
    let accounts = KeyPair::generate()?;
    fs::write(directory.join("accounts.key"), accounts.serialize_pem())?;
    fs::write(directory.join("accounts.pub"), accounts.public_key_pem())?;
    certify(directory, address)
}

/// Audit policy: one entry per request without bodies. Long-running requests are logged when they begin.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata"}]}"#;

fn token_row(user: &User) -> String {
    format!(
        "{},{},{},\"{}\"\n",
        token(&user.name),
        user.name,
        user.name,
        user.group
    )
}

fn certify(directory: &Path, address: Ipv4Addr) -> Result<Authority, ClusterError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    let names = ["localhost", "kubernetes.default.svc"].map(str::to_owned);
    let mut server = CertificateParams::new(names)?;
    for ip in [Ipv4Addr::LOCALHOST, address] {
        server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(ip)));
    }
    let server_key = KeyPair::generate()?;
    let issuer = Issuer::new(params, key);
    let certificate = server.signed_by(&server_key, &issuer)?;
    fs::write(directory.join("ca.crt"), authority.pem())?;
    fs::write(directory.join("server.crt"), certificate.pem())?;
    fs::write(directory.join("server.key"), server_key.serialize_pem())?;
    Ok(Authority {
        der: authority.der().to_vec(),
    })
}

/// Returns a kubeconfig. It refers to the CA certificate by path.
pub(super) fn kubeconfig(access: &Access, user: &str, token: &str) -> String {
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": access.server, "certificate-authority": access.authority}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    });
    kubeconfig.to_string()
}

/// Returns a user's token. The token need not be secret, because no other program can connect to the
/// server.
pub(super) fn token(user: &str) -> String {
    format!("token-of-{}", user.replace(':', "-"))
}
