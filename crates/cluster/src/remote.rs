//! Access to other clusters: strict validation of kubeconfigs from Secrets, and clients that reject local
//! addresses.
//!
//! A kubeconfig can run commands and read files in the process that loads it. So it is parsed into a
//! separate type that consists of a server, CA data, and a token or a client certificate; everything else
//! is rejected. No error contains a value of the text.

mod account;
mod address;
mod check;
mod client;
mod kubeconfig;
mod pem;

pub use account::{MEMBER_ACCOUNT, MEMBER_TOKEN, account_objects};
pub use address::{AddressError, AddressPolicy, check_host};
pub use check::{Finding, MemberReport, Permission, RoutingKinds, Severity, check_member};
pub use client::{RemoteError, connect_http, connect_remote};
pub use kubeconfig::{ContextSelection, Credential, Kubeconfig, KubeconfigError, Rejection, SecretBytes};
