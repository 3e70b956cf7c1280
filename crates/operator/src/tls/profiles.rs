//! Predefined TLS profiles of `OpenShift`.

use super::ProfileSpec;

const GROUPS: [&str; 4] = ["X25519MLKEM768", "X25519", "secp256r1", "secp384r1"];

const MODERN: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Ciphers of the profile `Intermediate` in addition to [`MODERN`].
const INTERMEDIATE: [&str; 6] = [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
];

/// Ciphers of the profile `Old` in addition to [`MODERN`] and [`INTERMEDIATE`].
const OLD: [&str; 15] = [
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA384",
    "ECDHE-RSA-AES256-SHA384",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES256-SHA256",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
];

/// Returns the profile with this name. Unknown names return the default profile, `Intermediate`.
pub(super) fn profile_by_name(name: &str) -> ProfileSpec {
    let (ciphers, min_version): (&[&[&str]], _) = match name {
        "Modern" => (&[&MODERN], "VersionTLS13"),
        "Old" => (&[&MODERN, &INTERMEDIATE, &OLD], "VersionTLS10"),
        _ => (&[&MODERN, &INTERMEDIATE], "VersionTLS12"),
    };
    ProfileSpec {
        ciphers: ciphers.concat().into_iter().map(str::to_owned).collect(),
        min_tls_version: min_version.to_owned(),
        groups: GROUPS.map(str::to_owned).to_vec(),
    }
}
