//! Parses scripts from text such as `crash-loop 2s stop 500ms`.

use std::str::FromStr;
use std::time::Duration;

use super::Script;

/// Error for a script that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// No script has this name.
    #[error("unknown script {0:?}")]
    UnknownScript(String),
    /// A duration is not in `s` or `ms`.
    #[error("invalid duration {0:?}: expected a number with a unit, such as 2s or 500ms")]
    InvalidDuration(String),
    /// There is text after the script.
    #[error("unexpected text {0:?} after the script")]
    TrailingText(String),
}

impl FromStr for Script {
    type Err = ScriptError;

    /// Parses a script:
    ///
    /// ```text
    /// ready-after 2s       ready 2s after the start
    /// slow-start 2s        containers start after 2s
    /// never-ready          runs, but is never ready
    /// crash-loop 2s        exits with an error 2s after each start
    /// fails-after 2s       ready immediately, exits with an error after 2s
    /// completes-after 2s   ready immediately, completes after 2s
    /// falters-after 2s     unready 2s after it became ready
    /// image-pull-error     the image cannot be pulled
    /// ```
    ///
    /// An optional `stop 5s` at the end sets the time that the pod takes to stop. Durations are in `s` or
    /// `ms`.
    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (script, rest) = match words.as_slice() {
            ["never-ready", rest @ ..] => (Self::never_ready(), rest),
            ["image-pull-error", rest @ ..] => (Self::image_pull_error(), rest),
            [word, time, rest @ ..] => (parse_timed_script(word, parse_duration(time)?)?, rest),
            _ => return Err(ScriptError::UnknownScript(text.to_owned())),
        };
        match rest {
            [] => Ok(script),
            ["stop", time] => Ok(script.stopping_after(parse_duration(time)?)),
            _ => Err(ScriptError::TrailingText(rest.join(" "))),
        }
    }
}

fn parse_timed_script(word: &str, time: Duration) -> Result<Script, ScriptError> {
    let make = match word {
        "ready-after" => Script::ready_after,
        "slow-start" => Script::slow_start,
        "crash-loop" => Script::crash_loop,
        "fails-after" => Script::fails_after,
        "completes-after" => Script::completes_after,
        "falters-after" => Script::falters_after,
        _ => return Err(ScriptError::UnknownScript(word.to_owned())),
    };
    Ok(make(time))
}

fn parse_duration(text: &str) -> Result<Duration, ScriptError> {
    let millis = text
        .strip_suffix("ms")
        .map(str::parse)
        .map(|it| it.map(Duration::from_millis));
    let seconds = || {
        text.strip_suffix('s')
            .map(str::parse)
            .map(|it| it.map(Duration::from_secs))
    };
    match millis.or_else(seconds) {
        Some(Ok(duration)) => Ok(duration),
        _ => Err(ScriptError::InvalidDuration(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Result<Script, ScriptError>) {
        assert_eq!(text.parse::<Script>(), *expected, "{text}");
    }

    #[test]
    fn parses_scripts() {
        let second = Duration::from_secs(1);
        check("ready-after 1s", &Ok(Script::ready_after(second)));
        check(
            "crash-loop 1000ms stop 1s",
            &Ok(Script::crash_loop(second).stopping_after(second)),
        );
        check("never-ready", &Ok(Script::never_ready()));
        check(
            "ready-after",
            &Err(ScriptError::UnknownScript("ready-after".into())),
        );
        check(
            "ready-after soon",
            &Err(ScriptError::InvalidDuration("soon".into())),
        );
        check("dances 2s", &Err(ScriptError::UnknownScript("dances".into())));
        check(
            "never-ready at all",
            &Err(ScriptError::TrailingText("at all".into())),
        );
    }
}
