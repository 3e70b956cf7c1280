//! Text and values, both ways, exactly as Go does it: takes YAML or JSON text, gives values with spans, and back.
//! Knows nothing of Kubernetes, charts or templates.

mod sink;

pub use sink::{KeyOrder, Sink};
