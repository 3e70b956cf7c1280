//! Flag spellings of Go's `flag` package, which existing Deployments use.

use std::ffi::{OsStr, OsString};

use clap::ArgAction;

/// Replaces one leading dash by two after `operator run`, because Go accepts both.
pub(crate) fn with_two_dashes(argv: Vec<OsString>) -> Vec<OsString> {
    let after = argv
        .windows(2)
        .position(|words| matches!(words, [first, second] if first == "operator" && second == "run"));
    let Some(after) = after else { return argv };
    let flags = |(index, word): (usize, OsString)| if index > after + 1 { doubled(word) } else { word };
    argv.into_iter().enumerate().map(flags).collect()
}

fn doubled(word: OsString) -> OsString {
    let bytes = word.as_encoded_bytes();
    let single = bytes.len() > 2 && bytes.starts_with(b"-") && !bytes.starts_with(b"--");
    if single && bytes.get(1).is_some_and(u8::is_ascii_alphabetic) {
        return [OsStr::new("-"), &word].into_iter().collect();
    }
    word
}

/// Parses booleans like Go and lets the last of two flags win.
pub(crate) fn as_go_flags(operator: clap::Command, as_go_flag: fn(clap::Arg) -> clap::Arg) -> clap::Command {
    operator.mut_subcommand("run", |run| {
        run.args_override_self(true)
            .mut_args(|arg| match arg.get_action() {
                ArgAction::SetTrue => as_go_flag(arg),
                ArgAction::Set => arg.allow_hyphen_values(true),
                _ => arg,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argv: &str, expected: &str) {
        let words = argv.split(' ').map(OsString::from).collect();
        let found: Vec<_> = with_two_dashes(words)
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn one_dash_equals_two() {
        check(
            "mainstay operator run -zap-log-level=5 --zap-devel -h",
            "mainstay operator run --zap-log-level=5 --zap-devel -h",
        );
        check(
            "mainstay operator run -max-concurrent-reconciles -1",
            "mainstay operator run --max-concurrent-reconciles -1",
        );
        check("mainstay operator -run", "mainstay operator -run");
        check("mainstay template operator run", "mainstay template operator run");
        check("mainstay template x -nfoo", "mainstay template x -nfoo");
    }
}
