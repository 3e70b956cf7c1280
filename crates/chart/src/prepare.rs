//! From a chart and the user's values to what a render needs: takes both, gives the chart with its dependencies decided
//! and the values every template sees. Knows nothing of templates.

use mainstay_template::Map;

use crate::chart::Chart;
use crate::warning::Warning;

/// A chart ready to render.
#[derive(Clone)]
pub struct Prepared {
    /// The chart: aliases applied, disabled dependencies gone, imported values in place.
    pub chart: Chart,
    /// `.Values` of the root chart, a `common.Values` in Go. A subchart's are the map under its name, with `global` in it:
    /// deeper tables of `global` are shared between charts, as in Helm, so that a template's `set` shows in all of them.
    pub values: Map,
    /// What Helm would have said on standard error, in order.
    pub warnings: Vec<Warning>,
}
