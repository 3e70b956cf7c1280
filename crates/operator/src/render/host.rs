//! Clock and random source of templates, with a record of their use.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mainstay_template::Host;

use super::RenderError;

/// Time by which the second render differs from the first. Long enough to change every date format.
const LATER: Duration = Duration::from_hours(401 * 24);

/// The system's clock and random source. Templates have no access to network, files or environment.
#[derive(Debug, Default)]
pub(super) struct ReleaseHost {
    is_used: bool,
    error: Option<String>,
    offset: Duration,
}

impl ReleaseHost {
    /// Whether the templates used random bytes or the time.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns a host with another time, for a second render.
    pub(super) fn later(&self) -> Self {
        Self {
            offset: self.offset + LATER,
            ..Self::default()
        }
    }

    /// Checks that random bytes were available whenever they were used.
    pub(super) fn check(&self) -> Result<(), RenderError> {
        match &self.error {
            Some(error) => Err(RenderError::Entropy(error.clone())),
            None => Ok(()),
        }
    }
}

impl Host for ReleaseHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        self.is_used = true;
        if let Err(error) = getrandom::fill(buffer) {
            self.error.get_or_insert(error.to_string());
        }
    }

    fn now(&mut self) -> i128 {
        self.is_used = true;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::try_from((since + self.offset).as_nanos()).unwrap_or(i128::MAX)
    }
}
