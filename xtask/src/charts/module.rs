//! Downloads a pinned Go module and verifies its sum.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use mainstay_catalog::Pin;

/// Downloads the module into Go's cache, verifies its sum and returns its directory.
pub(crate) fn download(pin: &Pin) -> Result<PathBuf> {
    verify(pin, &DownloadResult::from_output(&go(pin)?))
}

/// Returns the module's directory if its sum is the pinned one.
fn verify(pin: &Pin, result: &DownloadResult) -> Result<PathBuf> {
    if let Some(error) = result.field("Error") {
        bail!(
            "go cannot download {}: {error}\nhint: check the network, GOPROXY and GOFLAGS, then run `cargo xtask charts` again",
            pin.query()
        );
    }
    let sum = result.field("Sum").context("go reported no sum")?;
    if sum != pin.sum {
        bail!(
            "the sum of {} is {sum}, but charts.lock pins {}; the download is not used",
            pin.query(),
            pin.sum
        );
    }
    Ok(PathBuf::from(
        result.field("Dir").context("go reported no directory")?,
    ))
}

fn go(pin: &Pin) -> Result<Output> {
    let mut command = Command::new("go");
    // Outside any module, so that no go.mod of the caller applies.
    command
        .args(["mod", "download", "-json", &pin.query()])
        .current_dir(std::env::temp_dir());
    command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "the `go` command is not installed; it downloads and verifies Istio's charts\nhint: install Go (https://go.dev/dl), then run `cargo xtask charts` again"
        ),
        _ => anyhow::Error::new(error).context("cannot run the `go` command"),
    })
}

/// Output of `go mod download -json`: one flat object, one field per line.
struct DownloadResult {
    text: String,
    stderr: String,
}

impl DownloadResult {
    fn from_output(output: &Output) -> Self {
        Self {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: if output.status.success() {
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
            // Without JSON output, stderr explains the failure.
            "Error" => found.or_else(|| (!self.stderr.is_empty()).then(|| self.stderr.clone())),
            _ => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, stderr: &str) -> DownloadResult {
        DownloadResult {
            text: text.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn fields_are_read() {
        let result = result(
            "{\n\t\"Path\": \"m\",\n\t\"Dir\": \"/x/m@v1\",\n\t\"Sum\": \"h1:a=\"\n}\n",
            "",
        );
        assert_eq!(result.field("Dir").as_deref(), Some("/x/m@v1"));
        assert_eq!(result.field("Sum").as_deref(), Some("h1:a="));
        assert_eq!(result.field("Error"), None);
    }

    #[test]
    fn another_sum_is_rejected() {
        let pin = mainstay_catalog::parse_lock("1.2.3 m v0 h1:right=")
            .unwrap()
            .remove(0);
        let check = |sum: &str| {
            let text = format!("{{\n\t\"Dir\": \"/x\",\n\t\"Sum\": \"{sum}\"\n}}");
            verify(&pin, &result(&text, "")).map_err(|error| error.to_string())
        };
        assert_eq!(check("h1:right="), Ok(PathBuf::from("/x")));
        assert_eq!(
            check("h1:wrong="),
            Err(
                "the sum of m@v0 is h1:wrong=, but charts.lock pins h1:right=; the download is not used"
                    .into()
            )
        );
    }

    #[test]
    fn errors_are_read_from_json_or_stderr() {
        assert_eq!(
            result("{\n\t\"Error\": \"m: no \\\"v1\\\"\"\n}", "x")
                .field("Error")
                .as_deref(),
            Some("m: no \"v1\"")
        );
        assert_eq!(
            result("", "go: dial tcp").field("Error").as_deref(),
            Some("go: dial tcp")
        );
    }
}
