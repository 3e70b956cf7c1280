//! A pinned Go module: takes a [`Pin`], gives the folder in Go's module cache once its sum is verified.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use mainstay_catalog::Pin;

/// Downloads the module unless Go's cache has it, and verifies its sum.
pub(crate) fn download(pin: &Pin) -> Result<PathBuf> {
    verify(pin, &Answer::of(&go(pin)?))
}

/// The module's folder, if Go downloaded what is pinned.
fn verify(pin: &Pin, answer: &Answer) -> Result<PathBuf> {
    if let Some(error) = answer.field("Error") {
        bail!(
            "go cannot download {}: {error}\nhint: check the network, GOPROXY and GOFLAGS, then run `cargo xtask charts` again",
            pin.query()
        );
    }
    let sum = answer.field("Sum").context("go told no sum")?;
    if sum != pin.sum {
        bail!(
            "the sum of {} is {sum}, but charts.lock pins {}: nothing is used",
            pin.query(),
            pin.sum
        );
    }
    Ok(PathBuf::from(answer.field("Dir").context("go told no folder")?))
}

fn go(pin: &Pin) -> Result<Output> {
    let mut command = Command::new("go");
    // Outside any module, so that no go.mod of the caller has a say.
    command
        .args(["mod", "download", "-json", &pin.query()])
        .current_dir(std::env::temp_dir());
    command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "the `go` command is not there: it downloads and verifies Istio's charts\nhint: install Go (https://go.dev/dl), then run `cargo xtask charts` again"
        ),
        _ => anyhow::Error::new(error).context("cannot run the `go` command"),
    })
}

/// What `go mod download -json` printed: one flat object, a field per line.
struct Answer {
    text: String,
    trouble: String,
}

impl Answer {
    fn of(output: &Output) -> Self {
        Self {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            trouble: if output.status.success() {
                String::new()
            } else {
                String::from_utf8_lossy(&output.stderr).trim().to_owned()
            },
        }
    }

    fn field(&self, name: &str) -> Option<String> {
        let start = format!("\"{name}\": \"");
        let found = self
            .text
            .lines()
            .find_map(|line| line.trim().strip_prefix(&start))
            .map(|rest| {
                let rest = rest.trim_end_matches(',');
                rest.strip_suffix('"')
                    .unwrap_or(rest)
                    .replace("\\n", "\n")
                    .replace("\\\"", "\"")
            });
        match name {
            // Without any answer, what go said on stderr is all there is.
            "Error" => found.or_else(|| (!self.trouble.is_empty()).then(|| self.trouble.clone())),
            _ => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, trouble: &str) -> Answer {
        Answer {
            text: text.to_owned(),
            trouble: trouble.to_owned(),
        }
    }

    #[test]
    fn fields_are_read() {
        let answer = answer(
            "{\n\t\"Path\": \"m\",\n\t\"Dir\": \"/x/m@v1\",\n\t\"Sum\": \"h1:a=\"\n}\n",
            "",
        );
        assert_eq!(answer.field("Dir").as_deref(), Some("/x/m@v1"));
        assert_eq!(answer.field("Sum").as_deref(), Some("h1:a="));
        assert_eq!(answer.field("Error"), None);
    }

    #[test]
    fn another_sum_is_refused() {
        let pin = mainstay_catalog::parse_lock("1.2.3 m v0 h1:right=")
            .unwrap()
            .remove(0);
        let check = |sum: &str| {
            let text = format!("{{\n\t\"Dir\": \"/x\",\n\t\"Sum\": \"{sum}\"\n}}");
            verify(&pin, &answer(&text, "")).map_err(|error| error.to_string())
        };
        assert_eq!(check("h1:right="), Ok(PathBuf::from("/x")));
        assert_eq!(
            check("h1:wrong="),
            Err("the sum of m@v0 is h1:wrong=, but charts.lock pins h1:right=: nothing is used".into())
        );
    }

    #[test]
    fn an_error_is_found_wherever_go_puts_it() {
        assert_eq!(
            answer("{\n\t\"Error\": \"m: no \\\"v1\\\"\"\n}", "x")
                .field("Error")
                .as_deref(),
            Some("m: no \"v1\"")
        );
        assert_eq!(
            answer("", "go: dial tcp").field("Error").as_deref(),
            Some("go: dial tcp")
        );
    }
}
