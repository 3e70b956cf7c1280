//! Parses readiness times from flags and files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::error::{CliError, Kind, chain};
use crate::flag_value::duration;

/// Reads a YAML file of `namespace/name: 30s` or `never`.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Option<Duration>>, CliError> {
    let invalid = |why: &str| {
        CliError::new(Kind::Usage, format!("{}: {why}", path.display()))
            .hint("write lines such as `shop/cart: 30s` or `shop/cart: never`")
    };
    let text = std::fs::read_to_string(path).map_err(|error| invalid(&error.to_string()))?;
    let parsed = mainstay_yaml::parse(&text, &mainstay_yaml::Budget::default())
        .map_err(|error| invalid(&chain(&error)))?;
    let json = mainstay_yaml::to_json(&parsed).map_err(|error| invalid(&chain(&error)))?;
    let value: Value = serde_json::from_str(&json).map_err(|error| invalid(&error.to_string()))?;
    let map = value
        .as_object()
        .ok_or_else(|| invalid("not a map of workloads"))?;
    let entry = |(name, value): (&String, &Value)| {
        let text = value.as_str().unwrap_or_default();
        if name.matches('/').count() != 1 {
            return Err(invalid(&format!("{name:?} is not NAMESPACE/NAME")));
        }
        match text {
            "never" => Ok((name.clone(), None)),
            text => match duration(text) {
                Ok(time) => Ok((name.clone(), Some(time))),
                Err(why) => Err(invalid(&format!("{name}: {why}"))),
            },
        }
    };
    map.iter().map(entry).collect()
}
