//! Placeholder.
use mainstay_template::Map;

use crate::chart::Chart;
use crate::error::ChartError;
use crate::warning::Warning;

#[allow(clippy::unnecessary_wraps, clippy::ptr_arg)]
pub(crate) fn validate_values(_: &Chart, _: &Map, _: &mut Vec<Warning>) -> Result<(), ChartError> {
    Ok(())
}
