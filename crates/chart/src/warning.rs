//! What Helm says on standard error without failing: takes facts, gives the line of either dialect.

use std::fmt::Write;

use crate::dialect::Dialect;

/// Something worth saying that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A symbolic link was followed.
    SymbolicLink {
        /// The link.
        path: String,
        /// Where it led.
        resolved: String,
    },
    /// `requirements.yaml` in a v2 chart.
    RequirementsFile,
    /// `requirements.lock` in a v2 chart.
    RequirementsLock,
    /// The chart says it is deprecated.
    Deprecated,
    /// A condition's value is not a boolean.
    ConditionNotBool {
        /// The path.
        path: String,
        /// The dependency.
        chart: String,
    },
    /// A tag's value is not a boolean.
    TagNotBool {
        /// The tag.
        tag: String,
        /// The dependency.
        chart: String,
    },
    /// A name under `exports` is not there.
    MissingExport {
        /// The key that is not a table.
        key: String,
    },
    /// A table to import is not there.
    MissingTable {
        /// The dependency.
        chart: String,
        /// The key that is not a table.
        key: String,
    },
    /// Two layers of values disagree about the shape of a key.
    Values(ValuesWarning),
    /// A failure that Helm 4 also logs before it ends; Helm 3 does not.
    Failed {
        /// The step.
        step: &'static str,
        /// Why.
        error: String,
    },
    /// A flag whose use Helm 4 advises against.
    Advice(String),
    /// A hook whose event no Helm knows is left out.
    UnknownHook {
        /// The annotation.
        types: String,
    },
    /// A schema names a URN, which nothing resolves: whatever it guards is accepted.
    UnresolvedUrn {
        /// The URN.
        urn: String,
    },
}

/// Two layers of values disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuesWarning {
    /// The user gives a table where the chart has none.
    Skipped {
        /// The whole key, from the root chart's name.
        key: String,
    },
    /// A lower layer has a table, the higher layer does not.
    NotATable {
        /// The whole key.
        key: String,
        /// The table, as Go prints it.
        value: String,
    },
    /// The higher layer has a table, the lower one does not.
    IsATable {
        /// The whole key.
        key: String,
        /// What is ignored, as Go prints it.
        value: String,
    },
    /// The subchart's `global` is not a table.
    GlobalDestination,
    /// The parent's `global` is not a table.
    GlobalSource,
    /// A global is a table in the parent and something else in the subchart.
    GlobalConflict {
        /// The key under `global`.
        key: String,
    },
    /// A global is a table in the subchart and something else in the parent.
    GlobalIsTable {
        /// The key under `global`.
        key: String,
    },
}

impl Warning {
    /// The line that dialect of Helm writes, without the line break.
    #[must_use]
    pub fn line(&self, dialect: Dialect) -> String {
        match dialect {
            Dialect::Helm3 => self.helm3(),
            Dialect::Helm4 => self.helm4(),
        }
    }

    fn helm4(&self) -> String {
        match self {
            Self::SymbolicLink { path, resolved } => record(
                "INFO",
                "found symbolic link in path. Contents of linked file included and used",
                &[("path", path), ("resolved", resolved)],
            ),
            Self::RequirementsFile => record("INFO", REQUIREMENTS_FILE, &[]),
            Self::RequirementsLock => record("INFO", REQUIREMENTS_LOCK, &[]),
            Self::Deprecated => record("WARN", "this chart is deprecated", &[]),
            Self::ConditionNotBool { path, chart } => record(
                "WARN",
                "returned non-bool value",
                &[("path", path), ("chart", chart)],
            ),
            Self::TagNotBool { tag, chart } => record(
                "WARN",
                "returned non-bool value",
                &[("tag", tag), ("chart", chart)],
            ),
            Self::MissingExport { key } => record(
                "WARN",
                "ImportValues missing table",
                &[("error", &not_a_table(key))],
            ),
            Self::MissingTable { chart, key } => record(
                "WARN",
                "ImportValues missing table from chart",
                &[("chart", chart), ("error", &not_a_table(key))],
            ),
            Self::Values(warning) => record("INFO", &warning.text(), &[]),
            Self::Failed { step, error } => record("ERROR", step, &[("error", error)]),
            Self::Advice(text) => record("WARN", text, &[]),
            Self::UnknownHook { types } => record("INFO", "skipping unknown hooks", &[("hookTypes", types)]),
            Self::UnresolvedUrn { urn } => record(
                "WARN",
                "unresolved URN reference ignored; using permissive schema",
                &[("urn", urn)],
            ),
        }
    }

    fn helm3(&self) -> String {
        match self {
            Self::SymbolicLink { path, resolved } => format!(
                "walk.go:75: found symbolic link in path: {path} resolves to {resolved}. Contents of linked file included and used"
            ),
            Self::RequirementsFile => format!("load.go:120: {REQUIREMENTS_FILE}"),
            Self::RequirementsLock => format!("load.go:138: {REQUIREMENTS_LOCK}"),
            Self::Deprecated => "WARNING: This chart is deprecated".into(),
            Self::ConditionNotBool { path, chart } => format!(
                "dependencies.go:64: Warning: Condition path '{path}' for chart {chart} returned non-bool value"
            ),
            Self::TagNotBool { tag, chart } => {
                format!("dependencies.go:95: Warning: Tag '{tag}' for chart {chart} returned non-bool value")
            }
            Self::MissingExport { key } => {
                format!(
                    "dependencies.go:287: Warning: ImportValues missing table: {}",
                    not_a_table(key)
                )
            }
            Self::MissingTable { chart, key } => format!(
                "dependencies.go:270: Warning: ImportValues missing table from chart {chart}: {}",
                not_a_table(key)
            ),
            Self::Values(warning) => format!("coalesce.go:{}: {}", warning.helm3_line(), warning.text()),
            Self::Failed { error, .. } => error.clone(),
            Self::Advice(text) => text.clone(),
            Self::UnknownHook { types } => {
                format!(
                    "manifest_sorter.go:199: info: skipping unknown hook: {}",
                    crate::go::quote(types)
                )
            }
            Self::UnresolvedUrn { urn } => format!(
                "jsonschema.go:192: WARNING: unresolved URN reference ignored; using permissive schema: {urn}"
            ),
        }
    }
}

const REQUIREMENTS_FILE: &str = "Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.";
const REQUIREMENTS_LOCK: &str = "Warning: Dependency locking is handled in Chart.lock since apiVersion \"v2\". We recommend migrating to Chart.lock.";

impl ValuesWarning {
    fn text(&self) -> String {
        match self {
            Self::Skipped { key } => format!("warning: skipped value for {key}: Not a table."),
            Self::NotATable { key, value } => {
                format!("warning: cannot overwrite table with non table for {key} ({value})")
            }
            Self::IsATable { key, value } => {
                format!("warning: destination for {key} is a table. Ignoring non-table value ({value})")
            }
            Self::GlobalDestination => {
                "warning: skipping globals because destination global is not a table.".into()
            }
            Self::GlobalSource => "warning: skipping globals because source global is not a table.".into(),
            Self::GlobalConflict { key } => {
                format!(
                    "Conflict: cannot merge map onto non-map for {}. Skipping.",
                    crate::go::quote(key)
                )
            }
            Self::GlobalIsTable { key } => format!("key {key} is table. Skipping"),
        }
    }

    /// The line of Helm 3.21's source that says it, which Helm 3 shows.
    fn helm3_line(&self) -> u32 {
        match self {
            Self::Skipped { .. } => 237,
            Self::NotATable { .. } => 316,
            Self::IsATable { .. } => 319,
            Self::GlobalDestination => 138,
            Self::GlobalSource => 145,
            Self::GlobalConflict { .. } => 161,
            Self::GlobalIsTable { .. } => 175,
        }
    }
}

fn not_a_table(key: &str) -> String {
    format!("{} is not a table", crate::go::quote(key))
}

/// One line of Go's `slog` text handler, without the time.
fn record(level: &str, message: &str, attributes: &[(&str, &str)]) -> String {
    let mut line = format!("level={level} msg={}", slog_text(message));
    for (key, value) in attributes {
        // Writing to a string cannot fail.
        let _ = write!(line, " {key}={}", slog_text(value));
    }
    line
}

/// `slog` quotes what is empty, has spaces, quotes, an equals sign, or does not print.
fn slog_text(text: &str) -> String {
    let plain = !text.is_empty()
        && text
            .chars()
            .all(|c| c == '\x7f' || (c > ' ' && c != '"' && c != '=' && crate::go::is_print(c)));
    if plain {
        text.to_owned()
    } else {
        crate::go::quote(text)
    }
}
