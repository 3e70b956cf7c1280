//! The toolchain of static binaries: Rust's musl target and linker, and a pinned C compiler for the few C and
//! assembly files. The binary does not depend on the compilers of the machine and contains no path of the
//! machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use mainstay_testkit::{ZIG, fetch, repository_root};

use super::Target;
use super::elf::is_static;
use crate::build::{Profile, cargo};

/// Stores a relative relocation as a bit instead of 24 bytes. A static binary relocates itself; musl's start
/// code supports this format since 1.2.4.
const PACKED_RELOCATIONS: &str = "link-arg=-zpack-relative-relocs";

/// Target and directories of a build.
#[derive(Clone, Copy)]
pub(crate) struct Build<'a> {
    pub(crate) target: Target,
    /// Root directory of the sources.
    pub(crate) root: &'a Path,
    /// Directory of cargo's output.
    pub(crate) directory: &'a Path,
}

impl Build<'_> {
    /// Builds `mainstay` with these features and returns the path of the binary.
    pub(crate) fn binary(&self, features: &[&str]) -> anyhow::Result<PathBuf> {
        install_target(self.target)?;
        let compilers = Compilers::write(self.target, &self.directory.join("compilers"))?;
        let triple = self.target.triple();
        println!(
            "$ cargo rustc --profile dist --target {triple} --bin mainstay {} -- -C {PACKED_RELOCATIONS}",
            features.join(" ")
        );
        let status = cargo()
            .args(["rustc", "--profile", Profile::Dist.name(), "--target", triple])
            .args(["--package", "mainstay", "--bin", "mainstay", "--target-dir"])
            .arg(self.directory)
            .args(features)
            .args(["--", "-C", PACKED_RELOCATIONS])
            .envs(compilers.variables(self.target))
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags()?)
            .env_remove("RUSTFLAGS")
            .current_dir(self.root)
            .status()
            .context("starting cargo")?;
        ensure!(status.success(), "the build for {triple} failed");
        let binary = self.directory.join(triple).join("dist/mainstay");
        ensure!(is_static(&binary)?, "{} is not static", binary.display());
        Ok(binary)
    }

    /// Returns flags that replace the machine's directories in panic messages, so that all machines build the
    /// same bytes.
    fn flags(&self) -> anyhow::Result<OsString> {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let default = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
        let home = home
            .or_else(default)
            .context("neither CARGO_HOME nor HOME is set")?;
        let replaced = [
            (home.as_path(), "/cargo"),
            (self.directory, "/target"),
            (self.root, "/mainstay"),
        ];
        let mut flags = OsString::new();
        for (path, replacement) in replaced {
            if !flags.is_empty() {
                flags.push("\u{1f}");
            }
            flags.push("--remap-path-prefix=");
            flags.push(path);
            flags.push("=");
            flags.push(replacement);
        }
        Ok(flags)
    }
}

/// Installs Rust's standard library for `target`, unless it is already installed.
fn install_target(target: Target) -> anyhow::Result<()> {
    let triple = target.triple();
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .current_dir(repository_root())
        .output()
        .context("starting rustc")?;
    if Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() {
        return Ok(());
    }
    let status = Command::new("rustup")
        .args(["target", "add", triple])
        .current_dir(repository_root())
        .status()
        .context("starting rustup; without rustup, install the standard library of the musl target")?;
    ensure!(status.success(), "rustup cannot install the target {triple}");
    Ok(())
}

/// Scripts that call the pinned compiler for one target.
struct Compilers {
    compiler: PathBuf,
    archiver: PathBuf,
}

impl Compilers {
    fn write(target: Target, directory: &Path) -> anyhow::Result<Self> {
        let zig = fetch(&ZIG)?;
        let (zig, triple) = (zig.display(), target.c_triple());
        fs::create_dir_all(directory)?;
        let compilers = Self {
            compiler: directory.join(format!("{triple}-cc")),
            archiver: directory.join(format!("{triple}-ar")),
        };
        // Build scripts pass Rust's name of the target, which this compiler does not support.
        let compiler = format!(
            "#!/bin/sh\nfor argument; do\n  shift\n  case \"$argument\" in\n    --target=*) ;;\n    *) set -- \"$@\" \"$argument\" ;;\n  esac\ndone\n\
             exec '{zig}' cc -target {triple} -fno-sanitize=all \"$@\"\n"
        );
        script(&compilers.compiler, &compiler)?;
        script(
            &compilers.archiver,
            &format!("#!/bin/sh\nexec '{zig}' ar \"$@\"\n"),
        )?;
        Ok(compilers)
    }

    /// Returns the variables that build scripts and cargo read.
    fn variables(&self, target: Target) -> [(String, OsString); 4] {
        let name = target.triple().replace('-', "_");
        [
            (format!("CC_{name}"), self.compiler.clone().into()),
            (format!("AR_{name}"), self.archiver.clone().into()),
            // The linker of Rust's toolchain, which links with the target's own C library and start files.
            (
                format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()),
                "rust-lld".into(),
            ),
            // C code that contains the date of the build; the compiler reads this variable.
            ("SOURCE_DATE_EPOCH".to_owned(), "0".into()),
        ]
    }
}

/// Writes an executable file. An equal file is not written, because cargo compares modification times.
fn script(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::read(path).is_ok_and(|stored| stored == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_the_build_is_fixed() {
        let compilers = Compilers {
            compiler: "cc".into(),
            archiver: "ar".into(),
        };
        let variables = compilers.variables(Target::X86);
        let date = variables.iter().find(|(name, _)| name == "SOURCE_DATE_EPOCH");
        assert_eq!(date.map(|(_, value)| value.as_os_str()), Some("0".as_ref()));
    }

    #[test]
    fn no_path_of_the_machine_is_kept() {
        let build = Build {
            target: Target::X86,
            root: Path::new("/src"),
            directory: Path::new("/build"),
        };
        let flags = build.flags().unwrap().into_string().unwrap();
        let flags: Vec<&str> = flags.split('\u{1f}').skip(1).collect();
        let expected = ["/build=/target", "/src=/mainstay"].map(|one| format!("--remap-path-prefix={one}"));
        assert_eq!(flags, expected);
    }
}
