//! HTTP server on loopback with scripted responses, including invalid ones.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use mainstay_testkit::http::{self, Head};

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
        let responses = Arc::<Mutex<HashMap<String, Response>>>::default();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (known, seen) = (Arc::clone(&responses), Arc::clone(&requests));
        let address = http::serve(move |head, stream| {
            let credential = head.value("authorization").unwrap_or_default().to_lowercase();
            seen.lock().unwrap().push(request(head, &credential));
            let response = known.lock().unwrap().get(head.path()).cloned();
            let response = response.unwrap_or_else(|| Response::status(404));
            stream.write_all(&encode(&response, &credential))
        });
        Self {
            host: address.unwrap().to_string(),
            responses,
            requests,
        }
    }

    pub fn put(&self, path: impl Into<String>, response: Response) -> &Self {
        self.responses.lock().unwrap().insert(path.into(), response);
        self
    }

    /// Returns every request as `PATH AUTHORIZATION`.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn request(head: &Head, credential: &str) -> String {
    format!("{} {credential}", head.path()).trim_end().to_owned()
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
