//! Warnings that Helm writes to stderr.

use std::fmt::Write;

use crate::dialect::Dialect;

/// A warning, with the data of its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A symbolic link was followed.
    SymbolicLink {
        /// Path of the link.
        path: String,
        /// Path of its target.
        resolved: String,
    },
    /// A v2 chart contains `requirements.yaml`.
    RequirementsFile,
    /// A v2 chart contains `requirements.lock`.
    RequirementsLock,
    /// The chart is marked as deprecated.
    Deprecated,
    /// The value of a condition is not a boolean.
    ConditionNotBool {
        /// Path of the value.
        path: String,
        /// Name of the dependency.
        chart: String,
    },
    /// The value of a tag is not a boolean.
    TagNotBool {
        /// Name of the tag.
        tag: String,
        /// Name of the dependency.
        chart: String,
    },
    /// A name in `exports` does not exist.
    MissingExport {
        /// The key that is not a table.
        key: String,
    },
    /// A table to import does not exist.
    MissingTable {
        /// Name of the dependency.
        chart: String,
        /// The key that is not a table.
        key: String,
    },
    /// Two layers of values have different types for a key.
    Values(ValuesWarning),
    /// A failure that Helm 4 logs before it exits. Helm 3 does not.
    Failed {
        /// Name of the failed step.
        step: &'static str,
        /// Error text.
        error: String,
    },
    /// A flag that Helm 4 advises against.
    Advice(String),
    /// A hook is omitted because its event is unknown.
    UnknownHook {
        /// Value of the annotation.
        types: String,
    },
    /// A schema refers to a URN, which is not resolved. Every value is accepted.
    UnresolvedUrn {
        /// URN in the schema.
        urn: String,
    },
}

/// Two layers of values have different types for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuesWarning {
    /// The user sets a table, and the chart's default has another type.
    Skipped {
        /// Full key. The first part is the name of the root chart.
        key: String,
    },
    /// The lower layer has a table, and the higher layer has another type.
    NotATable {
        /// Full key.
        key: String,
        /// The table as Go prints it.
        value: String,
    },
    /// The higher layer has a table, and the lower layer has another type.
    IsATable {
        /// Full key.
        key: String,
        /// The ignored value as Go prints it.
        value: String,
    },
    /// The subchart's `global` is not a table.
    GlobalDestination,
    /// The parent's `global` is not a table.
    GlobalSource,
    /// A global is a table in the parent and has another type in the subchart.
    GlobalConflict {
        /// Key in `global`.
        key: String,
    },
    /// A global is a table in the subchart and has another type in the parent.
    GlobalIsTable {
        /// Key in `global`.
        key: String,
    },
}

impl Warning {
    /// Returns the line that Helm writes, without the line break.
    #[must_use]
    pub fn line(&self, dialect: Dialect) -> String {
        dialect.warning_line(self)
    }

    /// Returns the line of Helm 4.
    pub(crate) fn helm4(&self) -> String {
        match self {
            Self::SymbolicLink { path, resolved } => format_record(
                "INFO",
                "found symbolic link in path. Contents of linked file included and used",
                &[("path", path), ("resolved", resolved)],
            ),
            Self::RequirementsFile => format_record("INFO", REQUIREMENTS_FILE, &[]),
            Self::RequirementsLock => format_record("INFO", REQUIREMENTS_LOCK, &[]),
            Self::Deprecated => format_record("WARN", "this chart is deprecated", &[]),
            Self::ConditionNotBool { path, chart } => format_record(
                "WARN",
                "returned non-bool value",
                &[("path", path), ("chart", chart)],
            ),
            Self::TagNotBool { tag, chart } => format_record(
                "WARN",
                "returned non-bool value",
                &[("tag", tag), ("chart", chart)],
            ),
            Self::MissingExport { key } => format_record(
                "WARN",
                "ImportValues missing table",
                &[("error", &not_a_table(key))],
            ),
            Self::MissingTable { chart, key } => format_record(
                "WARN",
                "ImportValues missing table from chart",
                &[("chart", chart), ("error", &not_a_table(key))],
            ),
            Self::Values(warning) => format_record("INFO", &warning.text(), &[]),
            Self::Failed { step, error } => format_record("ERROR", step, &[("error", error)]),
            Self::Advice(text) => format_record("WARN", text, &[]),
            Self::UnknownHook { types } => {
                format_record("INFO", "skipping unknown hooks", &[("hookTypes", types)])
            }
            Self::UnresolvedUrn { urn } => format_record(
                "WARN",
                "unresolved URN reference ignored; using permissive schema",
                &[("urn", urn)],
            ),
        }
    }

    /// Returns the line of Helm 3.
    pub(crate) fn helm3(&self) -> String {
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
                    mainstay_gostd::quote::quote(types)
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
                    mainstay_gostd::quote::quote(key)
                )
            }
            Self::GlobalIsTable { key } => format!("key {key} is table. Skipping"),
        }
    }

    /// Returns the line number in the source of Helm 3.21, which is part of the line.
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
    format!("{} is not a table", mainstay_gostd::quote::quote(key))
}

/// Formats a record of Go's `slog` text handler, without the time.
fn format_record(level: &str, message: &str, attributes: &[(&str, &str)]) -> String {
    let mut line = format!("level={level} msg={}", slog_text(message));
    for (key, value) in attributes {
        // Writing to a string cannot fail.
        let _ = write!(line, " {key}={}", slog_text(value));
    }
    line
}

/// Formats a value of a record. Go's `slog` quotes empty texts and texts with spaces, quotes, equals signs
/// or non-printable characters.
fn slog_text(text: &str) -> String {
    let plain = !text.is_empty()
        && text.chars().all(|c| {
            c == '\x7f' || (c > ' ' && c != '"' && c != '=' && mainstay_gostd::unicode::is_print(c))
        });
    if plain {
        text.to_owned()
    } else {
        mainstay_gostd::quote::quote(text)
    }
}
