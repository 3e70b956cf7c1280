//! Minimal blocking HTTP for applications, load and checks; it can run inside any pod's network.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub code: u16,
    /// The body.
    pub body: String,
    /// Whether the server closes the connection.
    pub closes: bool,
}

/// A keep-alive connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// Maximum length of headers and bodies.
const MAX_LEN: u64 = 16 << 20;

impl Connection {
    /// Connects; every operation has this `timeout`.
    pub fn open(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a GET request.
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

/// Sends one GET request on a new connection.
pub fn get(address: SocketAddr, path: &str, timeout: Duration) -> io::Result<Reply> {
    Connection::open(address, timeout)?.get(&address.to_string(), path)
}

/// Headers of a message.
pub(super) struct Head(Vec<String>);

impl Head {
    pub(super) fn first_line(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The value of a header.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter().skip(1).filter_map(|line| line.split_once(':'));
        let (_, value) = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// `None` if the peer closed the connection before the first byte.
pub(super) fn read_head(from: &mut impl BufRead) -> io::Result<Option<Head>> {
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
    fn a_closed_connection_is_not_an_error_but_truncated_headers_are() {
        assert!(head("").unwrap().is_none());
        assert!(head("HTTP/1.1 200 OK\r\n").is_err());
    }
}
