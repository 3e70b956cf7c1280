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
//! The proxy parses its configuration when the pod starts; this module checks it before anything is written.
//! Text that the proxy rejects or silently misreads (a port truncated to 16 bits) is an error; probable
//! mistakes are warnings.

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

/// Version of the configuration language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Syntax of RFC 005 and the first proxies.
    #[default]
    Rfc,
    /// Syntax of later proxies: `DISABLED` disables ingress, and an egress configuration must not be empty.
    Later,
}

/// Result of parsing an annotation: the value, as far as it is valid, and all flaws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<T> {
    /// Parsed value without entries that have an error.
    pub value: T,
    /// Flaws in the order of their positions.
    pub flaws: Vec<Flaw>,
}

/// An error or a probable mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Kind of the flaw.
    pub code: FlawCode,
    /// Byte range in the annotation's text; empty if something is missing.
    pub range: Range<usize>,
    /// Message for users.
    pub message: String,
    /// Suggested action for users.
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

    /// Whether the proxy would reject or misread the text.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.is_error()
    }
}

/// Kind of a flaw, with a stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlawCode {
    /// An entry does not have exactly three parts.
    Entry,
    /// A port is not a number.
    PortNumber,
    /// A port is not between 1 and 65535.
    PortRange,
    /// A value is not a boolean of Go's `strconv.ParseBool`.
    Bool,
    /// A listen address is not an IPv4 address with a port.
    Listen,
    /// A listen address is not in 127.0.0.0/8.
    Loopback,
    /// An upstream address is not HOST:PORT.
    Upstream,
    /// The proxy itself listens on the port.
    ReservedPort,
    /// Two egress entries have the same name: Envoy rejects the second one.
    DuplicateName,
    /// Two egress entries have the same listen address.
    DuplicateListen,
    /// Two ingress entries have the same port.
    DuplicatePort,
    /// The proxy does not support `DISABLED`.
    Disabled,
    /// The egress annotation is empty, which the proxy rejects.
    EmptyEgress,
    /// The text is valid but probably not intended, such as white space around a name, or an entry without
    /// a name.
    Odd,
}

impl FlawCode {
    /// Returns the stable name.
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

/// Ports that the proxy listens on: with and without a client certificate.
pub const RESERVED_PORTS: [u16; 2] = [15006, 15007];
