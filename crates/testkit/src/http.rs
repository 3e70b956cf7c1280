//! Minimal blocking HTTP client and server for tests. Both can run inside the network of any pod.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub code: u16,
    /// Body as text.
    pub body: String,
    /// Whether the server closes the connection.
    pub closes: bool,
}

/// A keep-alive connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// Maximum length of headers and bodies in bytes.
const MAX_LEN: u64 = 16 << 20;

impl Connection {
    /// Connects to `address`. `timeout` applies to every operation of the connection.
    pub fn open(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a GET request and returns the response.
    pub fn get(&mut self, host: &str, path: &str) -> io::Result<Reply> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let head = read_head(&mut self.stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let code = head
            .first_line()
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| io::Error::other("no status line"))?;
        Ok(Reply {
            code,
            body: self.read_body(&head)?,
            closes: head
                .value("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close")),
        })
    }

    fn read_body(&mut self, head: &Head) -> io::Result<String> {
        if head.value("transfer-encoding").is_some() {
            return self.read_chunks();
        }
        let Some(length) = head.value("content-length") else {
            return Ok(String::new());
        };
        let length: u64 = length.parse().map_err(io::Error::other)?;
        self.read_exactly(length)
    }

    fn read_chunks(&mut self) -> io::Result<String> {
        let mut body = String::new();
        loop {
            let line = read_line(&mut self.stream)?;
            let length = u64::from_str_radix(&line, 16).map_err(io::Error::other)?;
            body.push_str(&self.read_exactly(length)?);
            read_line(&mut self.stream)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn read_exactly(&mut self, length: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.stream
            .by_ref()
            .take(length.min(MAX_LEN))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Sends one GET request on a new connection and returns the response.
pub fn get(address: SocketAddr, path: &str, timeout: Duration) -> io::Result<Reply> {
    Connection::open(address, timeout)?.get(&address.to_string(), path)
}

/// Serves requests on a free port of loopback until the process exits, and returns the address. `respond`
/// is called with the headers of the first request of each connection; then the connection is closed.
pub fn serve(
    respond: impl Fn(&Head, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    accept(listener, move |mut stream| {
        let head = stream
            .try_clone()
            .and_then(|stream| read_head(&mut BufReader::new(stream)));
        if let Ok(Some(head)) = head {
            // Clients may close the connection early.
            let _ = respond(&head, &mut stream);
        }
    });
    Ok(address)
}

/// Accepts connections on a new thread until the process exits. Each connection is handled in a separate
/// thread.
pub fn accept(listener: TcpListener, handle: impl Fn(TcpStream) + Send + Sync + 'static) {
    let handle = Arc::new(handle);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handle = Arc::clone(&handle);
            std::thread::spawn(move || handle(stream));
        }
    });
}

/// Returns a response that closes the connection. `status` is a code with its reason, such as `200 OK`.
#[must_use]
pub fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// First line and headers of a message.
#[derive(Clone, Debug)]
pub struct Head(Vec<String>);

impl Head {
    /// Returns the first line. For a request it has the form `GET /ready HTTP/1.1`.
    #[must_use]
    pub fn first_line(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Returns the path of a request, including its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.first_line().split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the value of a header, or `None` if there is no such header.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter().skip(1).filter_map(|line| line.split_once(':'));
        let (_, value) = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// Reads the first line and the headers of a message. Returns `None` if the peer closed the connection
/// before the first byte.
pub(crate) fn read_head(from: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut lines = Vec::new();
    loop {
        let line = match read_line(from) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && lines.is_empty() => {
                return Ok(None);
            }
            line => line?,
        };
        if line.is_empty() {
            return Ok(Some(Head(lines)));
        }
        lines.push(line);
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.by_ref().take(MAX_LEN).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> io::Result<Option<Head>> {
        read_head(&mut BufReader::new(text.as_bytes()))
    }

    #[test]
    fn header_names_are_case_insensitive() {
        let head = head("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nconnection: close\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(head.first_line(), "HTTP/1.1 200 OK");
        assert_eq!(head.value("content-length"), Some("3"));
        assert_eq!(head.value("Connection"), Some("close"));
        assert_eq!(head.value("x"), None);
    }

    #[test]
    fn requests_are_served_on_loopback() {
        let address = serve(|head, stream| {
            let body = format!("{} {}", head.path(), head.value("host").unwrap_or_default());
            stream.write_all(&response("200 OK", body.as_bytes()))
        })
        .unwrap();
        let reply = get(address, "/a?b", Duration::from_secs(10)).unwrap();
        assert_eq!(
            reply,
            Reply {
                code: 200,
                body: format!("/a?b {address}"),
                closes: true
            }
        );
    }

    #[test]
    fn a_closed_connection_is_not_an_error_but_truncated_headers_are() {
        assert!(head("").unwrap().is_none());
        assert!(head("HTTP/1.1 200 OK\r\n").is_err());
    }
}
