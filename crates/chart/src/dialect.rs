//! Differences between Helm 3 and Helm 4, one method for each.
//!
//! The struct that holds the state of an operation (loader, render options, printer) also holds its
//! [`Dialect`]. Code calls these methods and does not compare versions.

use mainstay_template::{Function, NamedType};

use crate::error::{ArchiveError, ChartError, SourceError};
use crate::functions;
use crate::manifest::split;
use crate::objects;
use crate::warning::Warning;

/// Helm version that determines rules and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Helm 3.
    Helm3,
    /// Helm 4.
    #[default]
    Helm4,
}

/// Methods for loading.
impl Dialect {
    /// Whether a directory without `Chart.yaml` is rejected before `.helmignore` and other files are read.
    ///
    /// Helm 4 opens `Chart.yaml` first. Helm 3 reads the whole directory and detects the missing file at
    /// the end.
    pub(crate) fn opens_chart_yaml_first(self) -> bool {
        self == Self::Helm4
    }

    /// Whether the root chart's `apiVersion` is checked before anything else is decoded.
    ///
    /// Helm 4 selects a loader by `apiVersion` and rejects all values except `v1` and `v2`. Helm 3 has one
    /// loader.
    pub(crate) fn selects_loader_by_api_version(self) -> bool {
        self == Self::Helm4
    }

    /// Returns the error for an archive file that cannot be unpacked.
    ///
    /// Helm 4 prefixes the cause with "unable to load chart archive". Helm 3 reports only the cause.
    pub(crate) fn archive_error(self, source: ArchiveError) -> ChartError {
        match self {
            Self::Helm3 => source.into(),
            Self::Helm4 => SourceError::Archive { source }.into(),
        }
    }

    /// Returns the Go package of `Metadata`, `Lock`, `Maintainer` and `Dependency` in decoding errors.
    ///
    /// `chart` in Helm 3, `v2` in Helm 4.
    pub(crate) fn metadata_package(self) -> &'static str {
        match self {
            Self::Helm3 => "chart",
            Self::Helm4 => "v2",
        }
    }
}

/// Methods for values and dependencies.
impl Dialect {
    /// Whether all documents of a values file are read and merged.
    ///
    /// Helm 4 reads all documents. Helm 3 reads only the first.
    pub(crate) fn merges_values_documents(self) -> bool {
        self == Self::Helm4
    }

    /// Whether `--set-json` accepts a whole object such as `{"a": 1}`.
    ///
    /// Helm 4 does. Helm 3 accepts only assignments.
    pub(crate) fn accepts_set_json_object(self) -> bool {
        self == Self::Helm4
    }

    /// Whether `--set` ignores an index whose closing bracket is missing at the end of the argument.
    ///
    /// Helm 4 stops without an error. Helm 3 fails with "error parsing index: EOF".
    pub(crate) fn ignores_unclosed_index(self) -> bool {
        self == Self::Helm4
    }

    /// Whether null values among a chart's defaults are removed when values are coalesced.
    ///
    /// Helm 4 removes them. Helm 3 passes them to templates.
    pub(crate) fn removes_null_defaults(self) -> bool {
        self == Self::Helm4
    }

    /// Returns the start of the error for dependencies in `Chart.yaml` that are missing in `charts/`.
    pub(crate) fn missing_dependencies_prefix(self) -> &'static str {
        match self {
            Self::Helm3 => {
                "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies:"
            }
            Self::Helm4 => {
                "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies:"
            }
        }
    }

    /// Returns the error for dependencies that cannot be enabled, disabled or imported from.
    ///
    /// Helm 4 prefixes the cause with "chart dependencies processing failed". Helm 3 reports only the
    /// cause.
    pub(crate) fn dependencies_error(self, source: ChartError) -> ChartError {
        match self {
            Self::Helm3 => source,
            Self::Helm4 => ChartError::Dependencies(Box::new(source)),
        }
    }
}

/// Methods for the objects that are visible in templates.
impl Dialect {
    /// Returns the Go type of `.Values`: `chartutil.Values` in Helm 3, `common.Values` in Helm 4.
    pub(crate) fn values_type(self) -> &'static NamedType {
        match self {
            Self::Helm3 => &objects::HELM3_VALUES,
            Self::Helm4 => &objects::HELM4_VALUES,
        }
    }

    /// Returns the Go types of `.Capabilities` and its fields. Their package is `chartutil` in Helm 3 and
    /// `common` in Helm 4.
    pub(crate) fn capabilities_types(self) -> CapabilitiesTypes {
        match self {
            Self::Helm3 => CapabilitiesTypes {
                capabilities: "*chartutil.Capabilities",
                version_set: &objects::HELM3_VERSION_SET,
                kube_version: "chartutil.KubeVersion",
            },
            Self::Helm4 => CapabilitiesTypes {
                capabilities: "*common.Capabilities",
                version_set: &objects::HELM4_VERSION_SET,
                kube_version: "common.KubeVersion",
            },
        }
    }

    /// Returns `.Capabilities.HelmVersion.Version`: the release that this crate is compared with.
    pub(crate) fn helm_version(self) -> &'static str {
        match self {
            Self::Helm3 => "v3.21.4",
            Self::Helm4 => "v4.2.4",
        }
    }

    /// Returns `.Capabilities.HelmVersion.KubeClientVersion`, which does not exist in Helm 3.
    pub(crate) fn kube_client_version(self) -> Option<&'static str> {
        match self {
            Self::Helm3 => None,
            Self::Helm4 => Some("v1.36"),
        }
    }

    /// Whether `.Capabilities.KubeVersion.Version` keeps suffixes such as `-gke.1`.
    ///
    /// Helm 4 keeps them. Helm 3 removes everything after the patch number.
    pub(crate) fn keeps_kube_version_suffix(self) -> bool {
        self == Self::Helm4
    }

    /// Whether printing `.Capabilities.KubeVersion` also shows the normalized version.
    ///
    /// It is a field of the struct in Helm 4, but not in Helm 3.
    pub(crate) fn prints_normalized_kube_version(self) -> bool {
        self == Self::Helm4
    }

    /// Whether `.Chart`, its maintainers and dependencies are maps.
    ///
    /// In Helm 4 they are maps by Go field name. In Helm 3 they are structs, which are printed and
    /// serialized differently.
    pub(crate) fn shows_chart_as_map(self) -> bool {
        self == Self::Helm4
    }

    /// Whether `.Files.Lines` fails for an empty file.
    ///
    /// Helm 4 fails with a Go runtime error. Helm 3 returns an empty list.
    pub(crate) fn fails_on_lines_of_empty_file(self) -> bool {
        self == Self::Helm4
    }

    /// Returns the template functions that only this version of Helm has or overrides.
    ///
    /// Helm 4 adds `mustToToml`, `mustToYaml` and `mustToJson`. Helm 3 has only Sprig's `mustToJson`.
    pub(crate) fn additional_functions(self) -> &'static [Function] {
        match self {
            Self::Helm3 => &[],
            Self::Helm4 => functions::HELM4,
        }
    }

    /// Whether a chain of template errors is printed with one line per error.
    ///
    /// Helm 4 does so. Helm 3 prints Go's single line.
    pub(crate) fn prints_error_trace(self) -> bool {
        self == Self::Helm4
    }
}

/// Methods for manifests and messages.
impl Dialect {
    /// Splits rendered text into its non-blank YAML documents.
    ///
    /// In Helm 4, three dashes at the start of any line are a separator, and trailing white space is kept.
    /// In Helm 3, a separator includes the white space around it, so that the second of two consecutive
    /// separators is part of the document.
    pub(crate) fn split_documents(self, text: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Helm3 => split::split_trimmed(text),
            Self::Helm4 => split::split_lines(text),
        }
    }

    /// Whether admission webhooks are installed last.
    ///
    /// Helm 4 does so, so that a webhook does not reject objects of the service that implements it. Helm 3
    /// treats them as unknown kinds.
    pub(crate) fn installs_webhooks_last(self) -> bool {
        self == Self::Helm4
    }

    /// Returns the Go type of a manifest's head in decoding errors.
    ///
    /// `releaseutil.SimpleHead` in Helm 3, `util.SimpleHead` in Helm 4.
    pub(crate) fn head_type(self) -> &'static str {
        match self {
            Self::Helm3 => "releaseutil.SimpleHead",
            Self::Helm4 => "util.SimpleHead",
        }
    }

    /// Returns the line for `warning` on standard error, without the line break.
    ///
    /// Helm 4 writes `slog` records. Helm 3 writes the source file and line of Helm's code before the
    /// message.
    pub(crate) fn warning_line(self, warning: &Warning) -> String {
        match self {
            Self::Helm3 => warning.helm3(),
            Self::Helm4 => warning.helm4(),
        }
    }
}

/// Go types of `.Capabilities` and its fields.
#[derive(Clone, Copy)]
pub(crate) struct CapabilitiesTypes {
    pub(crate) capabilities: &'static str,
    pub(crate) version_set: &'static NamedType,
    pub(crate) kube_version: &'static str,
}
