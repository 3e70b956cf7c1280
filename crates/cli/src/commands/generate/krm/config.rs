//! Options from a list's `functionConfig`: the `data` of a `ConfigMap` or the `spec` of another kind, named
//! like the flags.

use mainstay_inject::{Images, Mode, Options, PodTemplatePath, Profile};
use mainstay_yaml::{Budget, Value, parse};

/// Options after applying `functionConfig`.
pub(super) struct Configured {
    pub(super) options: Options,
    pub(super) keep_going: bool,
}

/// Error of a `functionConfig`.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    #[error(transparent)]
    Syntax(#[from] mainstay_yaml::Error),
    #[error("functionConfig: {key}: {source}")]
    Setting { key: String, source: SettingError },
}

/// Error of a setting.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingError {
    #[error("unknown setting")]
    Unknown,
    #[error("unknown profile {0:?}")]
    UnknownProfile(String),
    #[error("expected a string, found {0}")]
    NotAString(String),
    #[error("expected true or false")]
    NotABoolean,
    #[error("{0}")]
    Invalid(String),
}

/// Returns the options and the keep-going setting; `functionConfig` takes precedence over flags.
pub(super) fn configured(
    text: &[u8],
    options: &Options,
    keep_going: bool,
) -> Result<Configured, ConfigError> {
    let mut configured = Configured {
        options: options.clone(),
        keep_going,
    };
    let list = parse(text, &Budget::default())?;
    let Some(config) = list.get("functionConfig").filter(|config| !config.is_null()) else {
        return Ok(configured);
    };
    let settings = config.get("data").or_else(|| config.get("spec"));
    let entries = settings
        .and_then(Value::as_map)
        .into_iter()
        .flat_map(|map| map.iter());
    // The profile is applied first: it sets the images that replacements change.
    let mut entries: Vec<_> = entries.map(|(key, value)| (normal(key), key, value)).collect();
    entries.sort_by_key(|(normal, ..)| normal != "profile");
    for (normal, key, value) in entries {
        apply(&mut configured, &normal, value).map_err(|source| ConfigError::Setting {
            key: key.clone(),
            source,
        })?;
    }
    Ok(configured)
}

/// Normalizes `skip-initializer`, `skipInitializer` and `SKIP_INITIALIZER`.
fn normal(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn apply(configured: &mut Configured, key: &str, value: &Value) -> Result<(), SettingError> {
    let Configured { options, keep_going } = configured;
    match key {
        "skipinitializer" => options.skip_initializer = boolean(value)?,
        "skipservicemesh" => options.skip_service_mesh = boolean(value)?,
        "keepgoing" => *keep_going = boolean(value)?,
        "uninject" => {
            options.mode = if boolean(value)? {
                Mode::Uninject
            } else {
                Mode::Inject
            }
        }
        "profile" => {
            let name = string(value)?;
            options.profile =
                Profile::by_name(name).ok_or_else(|| SettingError::UnknownProfile(name.to_owned()))?;
            options.images = Images::for_profile(options.profile);
        }
        "coordinatornamespace" => options.coordinator_namespace = Some(string(value)?.to_owned()),
        "podtemplatepath" | "podtemplatepaths" => {
            for given in strings(value)? {
                options.pod_template_paths.push(
                    PodTemplatePath::parse(given)
                        .map_err(|error| SettingError::Invalid(error.to_string()))?,
                );
            }
        }
        "imagereplacements" => {
            let images = Images::parse(string(value)?).map_err(|errors| {
                let shown = errors.iter().map(|error| format!("line {}: {error}", error.line));
                SettingError::Invalid(shown.collect::<Vec<_>>().join("; "))
            })?;
            options.images = std::mem::take(&mut options.images).with(images);
        }
        _ => return Err(SettingError::Unknown),
    }
    Ok(())
}

fn string(value: &Value) -> Result<&str, SettingError> {
    value
        .as_str()
        .ok_or_else(|| SettingError::NotAString(value.json_kind().to_owned()))
}

/// Parses a boolean; a `ConfigMap` has strings only.
fn boolean(value: &Value) -> Result<bool, SettingError> {
    match (value.as_bool(), value.as_str()) {
        (Some(value), _) => Ok(value),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err(SettingError::NotABoolean),
    }
}

/// Parses a list, or a string of words.
fn strings(value: &Value) -> Result<Vec<&str>, SettingError> {
    match value.as_list() {
        Some(items) => items.iter().map(string).collect(),
        None => Ok(string(value)?
            .split([',', ' ', '\n'])
            .filter(|word| !word.is_empty())
            .collect()),
    }
}
