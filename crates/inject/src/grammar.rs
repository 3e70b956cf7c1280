//! The proxy's configuration language: parses a mesh annotation into entries and flaws with offsets.
//!
//! ```text
//! ingress   = "" | "DISABLED" | in-entry { "##" in-entry }      DISABLED: later profile only
//! in-entry  = NAME "#" PORT "#" BOOL
//! egress    = "" | out-entry { "##" out-entry }                 "": RFC profile only
//! out-entry = NAME "#" IPv4 ":" PORT "#" HOST ":" PORT
//! admin     = "" | INT
//! ```
//!
//! The proxy parses it at pod start; here it is checked before anything is written. Text that the proxy
//! rejects or silently misreads (a port cut to 16 bits) is an error; probable mistakes are warnings.

mod address;
mod admin;
mod egress;
mod entry;
mod ingress;
mod number;

use std::fmt;
use std::ops::Range;

pub use admin::{Admin, parse_admin};
pub use egress::{Egress, parse_egress};
pub use ingress::{Ingress, IngressPort, parse_ingress};

/// Which spelling of the language is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As RFC 005 and the first proxies have it.
    #[default]
    Rfc,
    /// As later proxies have it: `DISABLED` turns ingress off, and an empty egress means nothing.
    Later,
}

/// The parsed value, as far as possible, and all flaws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<T> {
    /// What was understood; entries with an error are left out.
    pub value: T,
    /// In the order of their places.
    pub flaws: Vec<Flaw>,
}

/// One thing that is wrong, or looks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// What kind of thing.
    pub code: FlawCode,
    /// Bytes of the annotation's text; empty at a place where something is missing.
    pub range: Range<usize>,
    /// For people: what.
    pub message: String,
    /// For people: what to do.
    pub help: Option<&'static str>,
}

impl Flaw {
    fn new(code: FlawCode, range: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            code,
            range,
            message: message.into(),
            help: None,
        }
    }

    fn help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }

    /// Whether the proxy would reject or misread it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.is_error()
    }
}

/// What kind of flaw: stable names for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlawCode {
    /// An entry does not have its three parts.
    Entry,
    /// A port is no number.
    PortNumber,
    /// A port is outside 1–65535.
    PortRange,
    /// Not one of Go's booleans.
    Bool,
    /// Not an IPv4 address with a port.
    Listen,
    /// Not in 127.0.0.0/8.
    Loopback,
    /// Not HOST:PORT.
    Upstream,
    /// A port the proxy itself listens on.
    ReservedPort,
    /// Two egress entries with one name: Envoy rejects the second.
    DuplicateName,
    /// Two egress entries on one address.
    DuplicateListen,
    /// Two ingress entries for one port.
    DuplicatePort,
    /// `DISABLED` where the proxy does not know it.
    Disabled,
    /// An empty egress annotation where the proxy rejects it.
    EmptyEgress,
    /// The text looks unlike what was meant: white space around it, an entry without a name.
    Odd,
}

impl FlawCode {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "mesh-entry",
            Self::PortNumber => "mesh-port-number",
            Self::PortRange => "mesh-port-range",
            Self::Bool => "mesh-bool",
            Self::Listen => "mesh-listen-address",
            Self::Loopback => "mesh-listen-loopback",
            Self::Upstream => "mesh-upstream-address",
            Self::ReservedPort => "mesh-reserved-port",
            Self::DuplicateName => "mesh-duplicate-name",
            Self::DuplicateListen => "mesh-duplicate-listen",
            Self::DuplicatePort => "mesh-duplicate-port",
            Self::Disabled => "mesh-disabled",
            Self::EmptyEgress => "mesh-empty-egress",
            Self::Odd => "mesh-odd",
        }
    }

    fn is_error(self) -> bool {
        !matches!(self, Self::DuplicatePort | Self::Odd)
    }
}

impl fmt::Display for FlawCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Ports the proxy listens on itself: with a client certificate, and without.
pub const RESERVED_PORTS: [u16; 2] = [15006, 15007];
