//! A ServiceAccount for the operator in another cluster: creates it, or prints the commands that create it.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use mainstay_cluster::deploy::document;
use mainstay_cluster::remote::{
    Credential, Kubeconfig, MEMBER_ACCOUNT, MEMBER_TOKEN, SecretBytes, account_objects,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::member::MemberFlags;
use super::remedy::rejected;
use crate::commands::rollout::api::{FIELD_MANAGER, call};
use crate::error::{CliError, Kind, chain};
use crate::kubeconfig::client_for;

/// Maximum number of reads of a Secret while waiting for its token.
const TOKEN_READS: usize = 12;
/// Time between two reads of the Secret.
const TOKEN_INTERVAL: Duration = Duration::from_millis(250);
/// Lifetime in seconds of a requested token, if the cluster does not fill token Secrets.
const TOKEN_SECONDS: u64 = 365 * 24 * 3600;

/// An account with its credential.
pub(super) struct Account {
    pub(super) kubeconfig: Kubeconfig,
    /// When the token expires; `None` if it is valid as long as its Secret exists.
    pub(super) expires: Option<String>,
}

/// Creates the account with the credential of the kubeconfig, and reads its token.
pub(super) async fn create(flags: &MemberFlags, namespace: &str) -> Result<Account, CliError> {
    let (config, origin) = flags.login()?.config().await?;
    let server = flags
        .server
        .clone()
        .unwrap_or_else(|| config.cluster_url.to_string());
    let authorities = config.root_cert.clone();
    let client = client_for(config, origin).await?;
    for object in account_objects(namespace) {
        let path = format!("{}?fieldManager={FIELD_MANAGER}", object_path(&object));
        let sent = call(&client, "PATCH", &path, Some(&object)).await;
        sent.map_err(|error| failed(&error, &reference(&object)))?;
    }
    let (token, expires, published) = read_token(&client, namespace).await?;
    let kubeconfig = Kubeconfig {
        server: server.trim_end_matches('/').to_owned(),
        authorities: authorities.or(published).unwrap_or_default(),
        credential: Credential::Token(SecretBytes::new(token)),
    };
    let checked = Kubeconfig::parse(kubeconfig.to_text().as_bytes(), flags.policy());
    let checked = checked.map_err(|error| rejected(&error, &flags.path().unwrap_or_default(), None));
    Ok(Account {
        kubeconfig: checked?,
        expires,
    })
}

type Token = (Vec<u8>, Option<String>, Option<Vec<Vec<u8>>>);

/// Reads the token of the Secret, or requests one if the cluster does not fill it.
async fn read_token(client: &Client, namespace: &str) -> Result<Token, CliError> {
    for attempt in 1..=TOKEN_READS {
        if let Some(token) = read_secret(client, namespace).await? {
            return Ok(token);
        }
        if attempt < TOKEN_READS {
            sleep(TOKEN_INTERVAL).await;
        }
    }
    request_token(client, namespace).await
}

/// Reads the token of the Secret; `None` if it has none yet.
async fn read_secret(client: &Client, namespace: &str) -> Result<Option<Token>, CliError> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{MEMBER_TOKEN}");
    let secret = call(client, "GET", &path, None).await;
    let secret = secret.map_err(|error| failed(&error, &format!("secret/{MEMBER_TOKEN}")))?;
    let decode = |key: &str| {
        let text = secret.pointer(&format!("/data/{key}")).and_then(Value::as_str)?;
        STANDARD.decode(text).ok()
    };
    let authorities = || decode("ca.crt").and_then(|text| Kubeconfig::authorities_from_pem(&text));
    Ok(decode("token").map(|token| (token, None, authorities())))
}

async fn request_token(client: &Client, namespace: &str) -> Result<Token, CliError> {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{MEMBER_ACCOUNT}/token");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    });
    let response = call(client, "POST", &path, Some(&request)).await;
    let response = response.map_err(|error| failed(&error, &format!("serviceaccount/{MEMBER_ACCOUNT}")))?;
    let text = |key: &str| response.pointer(key).and_then(Value::as_str).map(str::to_owned);
    let token = text("/status/token").ok_or_else(|| {
        CliError::new(Kind::Cluster, "the cluster issued no token")
            .hint("create a token with `kubectl create token`, and add a kubeconfig with it")
    })?;
    Ok((token.into_bytes(), text("/status/expirationTimestamp"), None))
}

fn failed(error: &kube::Error, what: &str) -> CliError {
    let message = match error {
        kube::Error::Api(status) => status.message.clone(),
        other => chain(other),
    };
    CliError::new(Kind::Cluster, format!("cannot create {what} in the cluster: {message}"))
        .hint("use a context with permission to create it, or let its administrator run the commands of --print-commands")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns kind and name of an object.
pub(super) fn reference(object: &Value) -> String {
    format!(
        "{}/{}",
        text(object, "/kind").to_lowercase(),
        text(object, "/metadata/name")
    )
}

/// Returns the path of an object whose kind has a regular plural.
pub(super) fn object_path(object: &Value) -> String {
    let version = text(object, "/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let plural = format!("{}s", text(object, "/kind").to_lowercase());
    let name = text(object, "/metadata/name");
    match text(object, "/metadata/namespace") {
        "" => format!("{root}/{version}/{plural}/{name}"),
        namespace => format!("{root}/{version}/namespaces/{namespace}/{plural}/{name}"),
    }
}

/// Returns a shell script that creates the account with kubectl and adds the cluster.
pub(super) fn script(name: &str, flags: &MemberFlags, namespace: &str) -> Result<String, CliError> {
    let path = flags.path()?;
    let mut login = format!("--kubeconfig={}", quote(&path.display().to_string()));
    if let Some(context) = &flags.cluster_context {
        let _ = write!(login, " --context={}", quote(context));
    }
    let mut manifests = String::new();
    for object in account_objects(namespace) {
        let text = document(&object).map_err(|error| CliError::new(Kind::Io, error.to_string()))?;
        let _ = write!(manifests, "---\n{text}");
    }
    let server = match &flags.server {
        Some(server) => quote(server),
        None => "\"$(member config view --minify -o jsonpath='{.clusters[0].cluster.server}')\"".to_owned(),
    };
    let local = if flags.allow_local_clusters {
        " --allow-local-clusters"
    } else {
        ""
    };
    let name = quote(name);
    Ok(format!(
        "#!/bin/sh
# Creates an account for the operator in the cluster, and adds the cluster with its token.
set -eu
umask 077
member() {{ kubectl {login} \"$@\"; }}
member apply --server-side -f - <<'EOF'
{manifests}EOF
token=
for _ in 1 2 3 4 5; do
  token=$(member get secret {MEMBER_TOKEN} -n {namespace} -o jsonpath='{{.data.token}}' | base64 -d)
  test -z \"$token\" || break
  sleep 1
done
test -n \"$token\" || token=$(member create token {MEMBER_ACCOUNT} -n {namespace} --duration=8760h)
directory=$(mktemp -d)
trap 'rm -rf \"$directory\"' EXIT
config() {{ kubectl --kubeconfig=\"$directory/kubeconfig\" config \"$@\" > /dev/null; }}
member config view --raw --minify --flatten -o jsonpath='{{.clusters[0].cluster.certificate-authority-data}}' \\
  | base64 -d > \"$directory/ca.crt\"
config set-cluster member --server={server} --certificate-authority=\"$directory/ca.crt\" --embed-certs
config set-credentials member --token=\"$token\"
config set-context member --cluster=member --user=member
config use-context member
mainstay cluster add {name} --cluster-kubeconfig \"$directory/kubeconfig\"{local}
"
    ))
}

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(all(test, feature = "simulator"))]
mod tests {
    use mainstay_sim::Cluster;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_requested_right_after_the_last_read() {
        let client = Client::new(Cluster::default().connect("test"), "default");
        for (plural, kind, name) in [
            ("serviceaccounts", "ServiceAccount", MEMBER_ACCOUNT),
            ("secrets", "Secret", MEMBER_TOKEN),
        ] {
            let path = format!("/api/v1/namespaces/default/{plural}");
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
            call(&client, "POST", &path, Some(&object)).await.unwrap();
        }
        let started = Instant::now();
        let (token, expires, _) = read_token(&client, "default").await.unwrap();
        assert!(!token.is_empty() && expires.is_some());
        let intervals = u32::try_from(TOKEN_READS).unwrap() - 1;
        assert_eq!(started.elapsed(), TOKEN_INTERVAL * intervals);
    }
}
