//! Repositories and registries with hostile responses, on loopback.

use std::io::Write;
use std::net::TcpStream;

use mainstay_testkit::http;

use super::Hostile;

/// Writes the response to a request for `path` on the server `host`.
pub(super) type Respond = fn(path: &str, host: &str, out: &mut TcpStream) -> std::io::Result<()>;

/// Returns all cases.
pub(super) fn all() -> Vec<Hostile> {
    let pull = |name: &str, source: &str, respond: Respond, expected| {
        let case = Hostile::new(
            name,
            Vec::new(),
            &["1.30.3", source, "--to", "@out", "--plain-http"],
            expected,
        );
        Hostile {
            command: &["charts", "pull"],
            server: Some(respond),
            ..case
        }
    };
    let (repository, registry) = ("http://@server", "oci://@server");
    vec![
        pull("an endless index", repository, endless, "exceeds"),
        pull("an index of 30 MB of numbers", repository, numbers, "nodes"),
        pull("an index of aliases", repository, aliases, "alias"),
        pull("an index nested 1,000,000 deep", repository, deep, "cannot read"),
        pull("endless redirects", repository, redirects, "redirects more than"),
        pull("an endless header", repository, header, "cannot reach"),
        pull("an endless manifest", registry, endless, "exceeds"),
        pull("an endless token", registry, token, "exceeds"),
        pull("a token from another host", registry, other_realm, "another host"),
        pull("a manifest of a huge layer", registry, layer, "exceeds"),
    ]
}

/// Starts a server and returns its host and port. The server runs until the process exits.
pub(super) fn start(respond: Respond) -> anyhow::Result<String> {
    let address = http::serve(move |head, stream| {
        let host = head.value("host").unwrap_or_default();
        respond(head.path(), host, stream)
    })?;
    Ok(address.to_string())
}

fn ok(out: &mut TcpStream) -> std::io::Result<()> {
    out.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
}

fn endless(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    ok(out)?;
    let block = vec![b'#'; 1 << 20];
    loop {
        out.write_all(&block)?;
    }
}

fn body(text: &str, out: &mut TcpStream) -> std::io::Result<()> {
    ok(out)?;
    out.write_all(text.as_bytes())
}

fn numbers(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    body(&format!("entries: [{}1]\n", "1,".repeat(15_000_000)), out)
}

fn aliases(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    let long = "x".repeat(1 << 20);
    body(
        &format!("a: &a {long}\nentries: [{}1]\n", "*a, ".repeat(4_000)),
        out,
    )
}

fn deep(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    body(&"[".repeat(1_000_000), out)
}

fn redirects(path: &str, host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 302 Found\r\nLocation: http://{host}{path}x\r\nConnection: close\r\n\r\n");
    out.write_all(head.as_bytes())
}

fn header(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    out.write_all(b"HTTP/1.1 200 OK\r\nX: ")?;
    let block = vec![b'x'; 1 << 16];
    loop {
        out.write_all(&block)?;
    }
}

fn challenge(realm: &str, out: &mut TcpStream) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"{realm}\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    out.write_all(head.as_bytes())
}

fn token(path: &str, host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    if path.starts_with("/token") {
        endless(path, host, out)
    } else {
        challenge(&format!("http://{host}/token"), out)
    }
}

fn other_realm(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    challenge("http://192.0.2.1/token", out)
}

fn layer(_path: &str, _host: &str, out: &mut TcpStream) -> std::io::Result<()> {
    let digest = "0".repeat(64);
    body(
        &format!(
            "{{\"layers\":[{{\"mediaType\":\"application/vnd.cncf.helm.chart.content.v1.tar+gzip\",\"digest\":\"sha256:{digest}\",\"size\":99999999999}}]}}"
        ),
        out,
    )
}
