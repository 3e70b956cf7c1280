//! Parses scripts from text such as `crash-loop 2s stop 500ms`.

use std::str::FromStr;
use std::time::Duration;

use super::Script;

impl FromStr for Script {
    type Err = String;

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
    /// An optional `stop 5s` sets the time the pod takes to stop. Durations are in `s` or `ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (script, rest) = match words.as_slice() {
            ["never-ready", rest @ ..] => (Self::never_ready(), rest),
            ["image-pull-error", rest @ ..] => (Self::image_pull_error(), rest),
            [word, time, rest @ ..] => (timed(word, duration(time)?)?, rest),
            _ => return Err(format!("no such script: {text:?}")),
        };
        match rest {
            [] => Ok(script),
            ["stop", time] => Ok(script.stopping_after(duration(time)?)),
            _ => Err(format!("a script ends with {:?}", rest.join(" "))),
        }
    }
}

fn timed(word: &str, time: Duration) -> Result<Script, String> {
    let make = match word {
        "ready-after" => Script::ready_after,
        "slow-start" => Script::slow_start,
        "crash-loop" => Script::crash_loop,
        "fails-after" => Script::fails_after,
        "completes-after" => Script::completes_after,
        "falters-after" => Script::falters_after,
        _ => return Err(format!("no such script: {word:?}")),
    };
    Ok(make(time))
}

fn duration(text: &str) -> Result<Duration, String> {
    let millis = text
        .strip_suffix("ms")
        .map(str::parse)
        .map(|it| it.map(Duration::from_millis));
    let whole = || {
        text.strip_suffix('s')
            .map(str::parse)
            .map(|it| it.map(Duration::from_secs))
    };
    match millis.or_else(whole) {
        Some(Ok(duration)) => Ok(duration),
        _ => Err(format!("no such duration: {text:?} (2s, 500ms)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Script, &str>) {
        assert_eq!(text.parse::<Script>(), expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn parses_scripts() {
        let second = Duration::from_secs(1);
        check("ready-after 1s", Ok(Script::ready_after(second)));
        check(
            "crash-loop 1000ms stop 1s",
            Ok(Script::crash_loop(second).stopping_after(second)),
        );
        check("never-ready", Ok(Script::never_ready()));
        check("ready-after", Err("no such script: \"ready-after\""));
        check("ready-after soon", Err("no such duration: \"soon\" (2s, 500ms)"));
        check("dances 2s", Err("no such script: \"dances\""));
        check("never-ready at all", Err("a script ends with \"at all\""));
    }
}
