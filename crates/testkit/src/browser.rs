//! A headless Chromium: opens a file and returns its elements, a screenshot and console errors.
//!
//! The browser is controlled over a pipe with the debugging protocol and does not listen on a port. [`fetch`]
//! installs the browser.

mod fetch;
mod pipe;
mod screenshot;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub use fetch::{chromium, fetch_chromium};
use pipe::Pipe;
pub use screenshot::{Screenshot, ScreenshotError};

use crate::PeerError;

/// Errors of the browser.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The browser is not installed.
    #[error("the browser is not available")]
    Peer(#[from] PeerError),
    /// The browser process could not be started.
    #[error("the browser could not be started")]
    Start(#[source] std::io::Error),
    /// The browser exited or did not respond in time.
    #[error("the browser does not respond to {method}:\n{log_tail}")]
    NoResponse {
        /// Method of the request.
        method: String,
        /// Last lines of the browser's log.
        log_tail: String,
    },
    /// The browser rejected the request.
    #[error("{method}: {response}")]
    Rejected {
        /// Method of the request, or the expression that was evaluated.
        method: String,
        /// Error response.
        response: Value,
    },
    /// The screenshot cannot be parsed.
    #[error("cannot parse the screenshot")]
    Screenshot(#[from] ScreenshotError),
}

/// Viewport and media settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Width of the window in pixels.
    pub width: u32,
    /// Height of the window in pixels.
    pub height: u32,
    /// Whether the page prefers dark colors.
    pub dark: bool,
    /// Whether the print layout is used.
    pub printed: bool,
}

impl Default for View {
    fn default() -> Self {
        Self {
            width: 1240,
            height: 900,
            dark: false,
            printed: false,
        }
    }
}

/// Running browser with one open page. The process is ended on drop.
#[derive(Debug)]
pub struct Browser {
    pipe: Pipe,
    session: String,
}

impl Browser {
    /// Starts a browser with an empty page.
    pub fn start() -> Result<Self, BrowserError> {
        let mut pipe = Pipe::start(&chromium()?)?;
        let target = pipe.call("Target.createTarget", &json!({"url": "about:blank"}), "")?;
        let attach = json!({"targetId": target.get("targetId"), "flatten": true});
        let session = pipe.call("Target.attachToTarget", &attach, "")?;
        let session = session
            .get("sessionId")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut browser = Self {
            session: session.to_owned(),
            pipe,
        };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, &json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a file and waits for its load event.
    pub fn open(&mut self, file: &Path, view: View) -> Result<(), BrowserError> {
        let size =
            json!({"width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size)?;
        let scheme = if view.dark { "dark" } else { "light" };
        let media = json!({
            "media": if view.printed { "print" } else { "screen" },
            "features": [{"name": "prefers-color-scheme", "value": scheme}],
        });
        self.call("Emulation.setEmulatedMedia", &media)?;
        self.pipe.clear_events();
        self.call(
            "Page.navigate",
            &json!({"url": format!("file://{}", file.display())}),
        )?;
        self.pipe.wait_for("Page.loadEventFired")
    }

    /// Evaluates an expression and returns its value as JSON.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let request = json!({"expression": expression, "returnByValue": true});
        let response = self.call("Runtime.evaluate", &request)?;
        if response.get("exceptionDetails").is_some() {
            return Err(BrowserError::Rejected {
                method: expression.to_owned(),
                response,
            });
        }
        Ok(response.pointer("/result/value").cloned().unwrap_or_default())
    }

    /// Takes a screenshot of the whole page, including the part outside the window.
    pub fn screenshot(&mut self) -> Result<Screenshot, BrowserError> {
        self.capture(&json!({"format": "png", "captureBeyondViewport": true}))
    }

    /// Takes a screenshot of the page's content only. The height is correct even after a script has removed
    /// elements.
    pub fn screenshot_of_content(&mut self) -> Result<Screenshot, BrowserError> {
        // The height of the element itself: `scrollHeight` is never smaller than the window.
        let size = self.evaluate(
            "[document.documentElement.clientWidth, Math.ceil(document.documentElement.getBoundingClientRect().height)]",
        )?;
        let clip = json!({"x": 0, "y": 0, "width": size.get(0), "height": size.get(1), "scale": 1});
        self.capture(&json!({"format": "png", "captureBeyondViewport": true, "clip": clip}))
    }

    /// Takes a screenshot of the page's first `height` pixels.
    pub fn screenshot_of_top(&mut self, height: u32) -> Result<Screenshot, BrowserError> {
        let size = self.evaluate(&format!(
            "[document.documentElement.clientWidth, Math.min({height}, document.documentElement.scrollHeight)]"
        ))?;
        let clip = json!({"x": 0, "y": 0, "width": size.get(0), "height": size.get(1), "scale": 1});
        self.capture(&json!({"format": "png", "captureBeyondViewport": true, "clip": clip}))
    }

    fn capture(&mut self, wanted: &Value) -> Result<Screenshot, BrowserError> {
        let response = self.call("Page.captureScreenshot", wanted)?;
        let data = response.get("data").and_then(Value::as_str).unwrap_or_default();
        let bytes = STANDARD.decode(data).map_err(|_| ScreenshotError::NotPng)?;
        Ok(Screenshot::read(bytes)?)
    }

    /// Returns the errors since the page was opened: exceptions of scripts, violations of policies, failed
    /// loads.
    #[must_use]
    pub fn console_errors(&self) -> Vec<Value> {
        let sorts = [
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
        ];
        let is_complaint = |event: &&Value| {
            let method = event.get("method").and_then(Value::as_str);
            method.is_some_and(|method| sorts.contains(&method))
        };
        self.pipe.events().iter().filter(is_complaint).cloned().collect()
    }

    /// Returns the URLs requested since the page was opened. The first URL is that of the page.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let is_request =
            |event: &&Value| event.get("method").and_then(Value::as_str) == Some("Network.requestWillBeSent");
        let address = |event: &Value| event.pointer("/params/request/url")?.as_str().map(str::to_owned);
        let events = self.pipe.events().iter().filter(is_request);
        events.filter_map(address).collect()
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, BrowserError> {
        self.pipe.call(method, parameters, &self.session)
    }
}
