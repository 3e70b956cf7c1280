//! Access to other clusters: kubeconfigs from Secrets through a strict gate, and clients that reject local
//! addresses.
//!
//! A kubeconfig can run commands and read files in the process that loads it. So it is parsed into a separate
//! type, which accepts a server, CA data, and a token or a client certificate, and rejects everything else.
//! No error contains a value of the text.

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
