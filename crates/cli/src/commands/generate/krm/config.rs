//! Options from a list's `functionConfig`: the `data` of a `ConfigMap` or the `spec` of another kind, named
//! like the flags.

use mainstay_inject::{Images, Mode, Options, PodTemplatePath, Profile};
use mainstay_yaml::{Budget, Value, parse};

/// Returns the options and the keep-going setting; `functionConfig` takes precedence over flags.
pub(super) fn configured(
    text: &[u8],
    options: &Options,
    keep_going: bool,
) -> Result<(Options, bool), String> {
    let mut configured = (options.clone(), keep_going);
    let list = parse(text, &Budget::default()).map_err(|error| error.to_string())?;
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
        apply(&mut configured, &normal, value)
            .map_err(|problem| format!("functionConfig: {key}: {problem}"))?;
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

fn apply((options, keep_going): &mut (Options, bool), key: &str, value: &Value) -> Result<(), String> {
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
            options.profile = Profile::by_name(name).ok_or_else(|| format!("unknown profile {name:?}"))?;
            options.images = Images::for_profile(options.profile);
        }
        "coordinatornamespace" => options.coordinator_namespace = Some(string(value)?.to_owned()),
        "podtemplatepath" | "podtemplatepaths" => {
            for given in strings(value)? {
                options
                    .pod_template_paths
                    .push(PodTemplatePath::parse(given).map_err(|error| error.to_string())?);
            }
        }
        "imagereplacements" => {
            let images = Images::parse(string(value)?).map_err(|errors| {
                let shown = errors.iter().map(|error| format!("line {}: {error}", error.line));
                shown.collect::<Vec<_>>().join("; ")
            })?;
            options.images = std::mem::take(&mut options.images).with(images);
        }
        _ => return Err("unknown setting".to_owned()),
    }
    Ok(())
}

fn string(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("expected a string, found {}", value.json_kind()))
}

/// Parses a boolean; a `ConfigMap` has strings only.
fn boolean(value: &Value) -> Result<bool, String> {
    match (value.as_bool(), value.as_str()) {
        (Some(value), _) => Ok(value),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Parses a list, or a string of words.
fn strings(value: &Value) -> Result<Vec<&str>, String> {
    match value.as_list() {
        Some(items) => items.iter().map(string).collect(),
        None => Ok(string(value)?
            .split([',', ' ', '\n'])
            .filter(|word| !word.is_empty())
            .collect()),
    }
}
