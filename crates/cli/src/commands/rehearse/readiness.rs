//! How long workloads take, as people write it: takes a file or a flag, gives durations.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mainstay_api::GoDuration;
use serde_json::Value;

use crate::error::{CliError, Kind, chain};

/// A duration in Go's spelling.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let span = GoDuration(text.to_owned())
        .span()
        .map_err(|error| error.to_string())?;
    Duration::try_from(span).map_err(|_| "it must not be negative".to_owned())
}

/// A file of `namespace/name: 30s` or `never` per line.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Option<Duration>>, CliError> {
    let wrong = |why: &str| CliError::new(Kind::Usage, format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let parsed = mainstay_yaml::parse(&text, &mainstay_yaml::Budget::default())
        .map_err(|error| wrong(&chain(&error)))?;
    let json = mainstay_yaml::to_json(&parsed).map_err(|error| wrong(&chain(&error)))?;
    let value: Value = serde_json::from_str(&json).map_err(|error| wrong(&error.to_string()))?;
    let map = value.as_object().ok_or_else(|| wrong("no map of workloads"))?;
    let entry = |(name, value): (&String, &Value)| {
        let said = value.as_str().unwrap_or_default();
        if name.matches('/').count() != 1 {
            return Err(wrong(&format!("{name:?} is no namespace/name")));
        }
        match said {
            "never" => Ok((name.clone(), None)),
            said => match duration(said) {
                Ok(time) => Ok((name.clone(), Some(time))),
                Err(why) => Err(wrong(&format!("{name}: {why}"))),
            },
        }
    };
    map.iter().map(entry).collect()
}
