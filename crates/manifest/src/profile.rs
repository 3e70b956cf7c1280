//! Loads a profile: the default profile merged with the selected one.

use mainstay_yaml::Map;

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::merge::merge_operators;
use crate::package::{PackageError, Profiles};
use crate::path::Path;
use crate::request::GatewayLists;
use crate::source::{InputFile, Layer};

/// Profile that all others extend.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// Former and current names of renamed profiles.
const RENAMED: &[(&str, &str)] = &[("external", "remote")];

/// Maximum number of profiles that an error lists.
const MAX_LISTED: usize = 30;

/// A merged profile.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The complete `IstioOperator`.
    pub(crate) operator: Map,
}

/// Loads the profile `name`. An empty name selects the default profile.
pub(crate) fn load_profile(profiles: &dyn Profiles, name: &str) -> Result<Profile, Box<Diagnostic>> {
    let name = if name.is_empty() { DEFAULT_PROFILE } else { name };
    let mut operator = read_profile(profiles, DEFAULT_PROFILE)?;
    if name != DEFAULT_PROFILE {
        merge_operators(
            &mut operator,
            read_profile(profiles, name)?,
            GatewayLists::MergeByName,
        );
    }
    Ok(Profile { operator })
}

fn read_profile(profiles: &dyn Profiles, name: &str) -> Result<Map, Box<Diagnostic>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(is_name) || name.starts_with('.') {
        return Err(Box::new(invalid_name(name)));
    }
    let text = profiles
        .profile(name)
        .map_err(|error| Box::new(unknown_profile(profiles, name, &error)))?;
    let file = InputFile {
        name: format!("profile {name}"),
        text,
    };
    Ok(Layer::parse(&file)?.value)
}

fn invalid_name(name: &str) -> Diagnostic {
    Diagnostic::fatal(profile_path(), "a profile is a name, not a path")
        .value(name)
        .hint("put the profile's file first: -f PROFILE.yaml -f FILE")
}

fn profile_path() -> Path {
    Path::from_keys(&["spec", "profile"])
}

fn unknown_profile(profiles: &dyn Profiles, name: &str, error: &PackageError) -> Diagnostic {
    let result = Diagnostic::fatal(profile_path(), mainstay_gostd::error::chain(error));
    let hint = match error {
        PackageError::NotFound { .. } => other_profiles(profiles, name),
        PackageError::Read { .. } => {
            Some("fix the file of the profile, or choose another profile".to_owned())
        }
    };
    match hint {
        Some(hint) => result.hint(hint),
        None => result,
    }
}

/// Returns a hint with the profile that was probably meant, or with the first profiles.
fn other_profiles(profiles: &dyn Profiles, name: &str) -> Option<String> {
    let names = profiles.profile_names().unwrap_or_default();
    let renamed = RENAMED.iter().find(|(former, _)| *former == name);
    renamed
        .map(|(_, now)| format!("use {now:?}, its name since Istio 1.24"))
        .or_else(|| did_you_mean(name, names.iter().map(String::as_str)))
        .or_else(|| (!names.is_empty()).then(|| format!("use one of {}", listed(&names))))
}

/// Returns the first names, and the number of further ones.
fn listed(names: &[String]) -> String {
    let text = names.iter().take(MAX_LISTED).map(String::as_str);
    let text = text.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_LISTED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
