//! HTTP server on loopback with scripted responses, including invalid ones.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Response to requests for one path.
#[derive(Clone, Default)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Value of `content-length`; `None` for the length of the body.
    pub content_length: Option<usize>,
    /// Required `authorization` header and the challenge of the 401 response to requests without it.
    pub authorization: Option<(String, String)>,
}

impl Response {
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            body: body.into(),
            ..Self::default()
        }
    }

    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Server with a response per path (with query); 404 for other paths. Runs until the process ends.
#[derive(Clone)]
pub struct Server {
    pub host: String,
    responses: Arc<Mutex<HashMap<String, Response>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = Self {
            host,
            responses: Arc::default(),
            requests: Arc::default(),
        };
        let own = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                // Tests may close the connection early, so errors are ignored.
                std::thread::spawn(move || drop(own.serve(stream)));
            }
        });
        server
    }

    pub fn put(&self, path: impl Into<String>, response: Response) -> &Self {
        self.responses.lock().unwrap().insert(path.into(), response);
        self
    }

    /// Returns every request as `PATH AUTHORIZATION`.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut credential = String::new();
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("authorization: ") {
                value.clone_into(&mut credential);
            }
        }
        self.requests
            .lock()
            .unwrap()
            .push(format!("{path} {credential}").trim_end().to_owned());
        let response = self
            .responses
            .lock()
            .unwrap()
            .get(&path)
            .cloned()
            .unwrap_or_else(|| Response::status(404));
        stream.write_all(&encode(&response, &credential))
    }
}

fn encode(response: &Response, credential: &str) -> Vec<u8> {
    let rejected = response
        .authorization
        .as_ref()
        .filter(|(wanted, _)| wanted != credential);
    let challenge =
        rejected.map(|(_, challenge)| Response::status(401).header("www-authenticate", challenge));
    let response = challenge.as_ref().unwrap_or(response);
    let length = response.content_length.unwrap_or(response.body.len());
    let mut text = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {length}\r\nconnection: close\r\n",
        response.status
    );
    for (name, value) in &response.headers {
        text += &format!("{name}: {value}\r\n");
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend_from_slice(&response.body);
    bytes
}
