//! `--post-renderer`: pipes manifests through a program.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mainstay_chart::CallbackError;

use crate::error::{CliError, Kind};

/// A post-renderer.
pub(super) struct Program {
    path: PathBuf,
    args: Vec<String>,
}

impl Program {
    /// Finds the program, on `PATH` where its name has no slash.
    pub(super) fn find(names: &[String], args: &[String]) -> Result<Option<Self>, CliError> {
        let name = match names {
            [] => return Ok(None),
            [name] => name,
            _ => {
                return Err(CliError::new(
                    Kind::Usage,
                    "cannot specify --post-renderer flag more than once",
                ));
            }
        };
        match lookup(name) {
            Some(path) => Ok(Some(Self { path, args: args.to_vec() })),
            None => Err(CliError::new(
                Kind::Usage,
                format!("invalid argument {name:?} for \"--post-renderer\" flag: unable to find binary at {name}: exec: {name:?}: executable file not found in $PATH"),
            )
            .hint("use the path of an executable; Helm 4 plugins are not supported")),
        }
    }

    /// Returns the program's output for `stream`.
    pub(super) fn run(&mut self, stream: Vec<u8>) -> Result<Vec<u8>, CallbackError> {
        let failed = |error: std::io::Error| {
            CallbackError(format!(
                "error while running command {}: {error}",
                self.path.display()
            ))
        };
        let mut child = Command::new(&self.path)
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let input = child.stdin.take();
        // The program may write before it has read all input, so write in a separate thread.
        let feeder = std::thread::spawn(move || input.map(|mut input| input.write_all(&stream)));
        let output = child.wait_with_output().map_err(failed)?;
        // A program may stop reading early.
        let _ = feeder.join();
        if !output.status.success() {
            let code = output.status.code().unwrap_or(-1);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(CallbackError(format!(
                "error while running command {}. error output:\n{stderr}: exit status {code}",
                self.path.display()
            )));
        }
        if output.stdout.iter().all(u8::is_ascii_whitespace) {
            return Err(CallbackError(format!(
                "post-renderer {:?} produced empty output",
                self.path.display().to_string()
            )));
        }
        Ok(output.stdout)
    }
}

fn lookup(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = Path::new(name);
        return path.is_file().then(|| path.to_path_buf());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
