//! Clock and random source of the system for templates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mainstay_template::Host;

use super::RenderError;

/// Offset of the time in the second render. It is long enough to change the output of every date format.
const SECOND_RENDER_OFFSET: Duration = Duration::from_hours(401 * 24);

/// Clock and random source of the system. Templates have no access to network, files or environment.
#[derive(Debug, Default)]
pub(super) struct SystemHost {
    error: Option<String>,
    offset: Duration,
}

impl SystemHost {
    /// Returns a host with a later time, for the second render.
    pub(super) fn later() -> Self {
        Self {
            error: None,
            offset: SECOND_RENDER_OFFSET,
        }
    }

    /// Fails if random bytes were requested but not available.
    pub(super) fn check(&self) -> Result<(), RenderError> {
        match &self.error {
            Some(error) => Err(RenderError::Entropy(error.clone())),
            None => Ok(()),
        }
    }
}

impl Host for SystemHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            self.error.get_or_insert(error.to_string());
        }
    }

    fn now(&mut self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::try_from((since + self.offset).as_nanos()).unwrap_or(i128::MAX)
    }
}
