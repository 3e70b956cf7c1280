//! The machines that a release supports.

use anyhow::bail;

/// A Linux machine; its binary is static.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Target {
    /// 64-bit x86
    #[value(name = "x86_64")]
    X86,
    /// 64-bit ARM
    #[value(name = "aarch64")]
    Arm,
}

impl Target {
    /// Returns the machine that this task runs on.
    pub(crate) fn host() -> anyhow::Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::X86),
            "aarch64" => Ok(Self::Arm),
            other => bail!("no release supports this machine: {other}"),
        }
    }

    /// Returns Rust's name.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-unknown-linux-musl",
            Self::Arm => "aarch64-unknown-linux-musl",
        }
    }

    /// Returns the architecture in the terms of Go and Debian.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    /// Returns the architecture in Homebrew's terms.
    pub(super) fn homebrew(self) -> &'static str {
        match self {
            Self::X86 => "intel",
            Self::Arm => "arm",
        }
    }

    /// Returns the C compiler's name.
    pub(super) fn c_triple(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-linux-musl",
            Self::Arm => "aarch64-linux-musl",
        }
    }
}
