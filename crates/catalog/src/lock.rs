//! Parses `charts.lock`, the pinned sources of Istio's charts.

use crate::error::CatalogError;
use crate::version::Version;

/// A pinned Istio version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Istio version of the charts.
    pub version: Version,
    /// Go module that contains the charts.
    pub module: String,
    /// Module version.
    pub module_version: String,
    /// `h1:` checksum of the module.
    pub sum: String,
}

impl Pin {
    /// Returns `module@version`, the form that the `go` command accepts.
    #[must_use]
    pub fn query(&self) -> String {
        format!("{}@{}", self.module, self.module_version)
    }
}

/// Returns the pins of `text` in order.
pub fn parse_lock(text: &str) -> Result<Vec<Pin>, CatalogError> {
    let mut pins: Vec<Pin> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(pin) = parse_line(line).map_err(|reason| CatalogError::Lock {
            line: index + 1,
            reason,
        })?
        else {
            continue;
        };
        if pins.iter().any(|known| known.version == pin.version) {
            return Err(CatalogError::Lock {
                line: index + 1,
                reason: "the version is pinned twice",
            });
        }
        pins.push(pin);
    }
    Ok(pins)
}

fn parse_line(line: &str) -> Result<Option<Pin>, &'static str> {
    let line = line.split('#').next().unwrap_or_default();
    let fields: Vec<&str> = line.split_whitespace().collect();
    match fields.as_slice() {
        [] => Ok(None),
        [version, module, module_version, sum] if sum.starts_with("h1:") => Ok(Some(Pin {
            version: version.parse().map_err(|_| "the first field is not a version")?,
            module: (*module).to_owned(),
            module_version: (*module_version).to_owned(),
            sum: (*sum).to_owned(),
        })),
        _ => Err("expected: version, module, module version, h1: sum"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_this_repository_pins_seven_versions() {
        let pins = parse_lock(include_str!("../../../charts.lock")).unwrap();
        let versions: Vec<_> = pins.iter().map(|pin| pin.version.to_string()).collect();
        assert_eq!(
            versions,
            [
                "1.24.2",
                "1.25.1",
                "1.26.1",
                "1.27.9",
                "1.28.2",
                "1.29.1",
                "1.31.0-alpha.eed52ebb"
            ]
        );
    }

    #[test]
    fn errors_have_a_line_number() {
        let check =
            |text: &str, expected: &str| assert_eq!(parse_lock(text).unwrap_err().to_string(), expected);
        check(
            "# c\n1.2.3 m v0",
            "charts.lock line 2: expected: version, module, module version, h1: sum",
        );
        check(
            "1.2 m v0 h1:x",
            "charts.lock line 1: the first field is not a version",
        );
        check(
            "1.2.3 m v0 h1:x\n\n1.2.3 m v1 h1:y",
            "charts.lock line 3: the version is pinned twice",
        );
        check(
            "1.2.3 m v0 sha256:x",
            "charts.lock line 1: expected: version, module, module version, h1: sum",
        );
    }
}
