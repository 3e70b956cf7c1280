//! API scenarios: scripts that are run against a Kubernetes API and contain its responses.
//!
//! The same scripts run against the simulator and against a real API server. Values that differ between
//! servers (uids, times, versions, addresses) are masked, so that transcripts can be compared byte by byte. A
//! script consists of lines:
//!
//! ```text
//! # a comment
//! SHOW spec status.replicas          shows only these parts of objects from here on
//! POST /apis/apps/v1/namespaces/{ns}/deployments
//! {"metadata": {"name": "web"}, …}
//! < 201 …                            the response; ignored when a script is parsed, written when it runs
//! PATCH:merge /api/v1/…              also :json, :strategic, :apply; GET:table, GET:meta, GET:metalist
//! SET rv /metadata/resourceVersion   stores a part of the last response as `{rv}`
//! WATCH w /api/v1/…?watch=true       starts a watch
//! EVENTS w 3                         waits for three events of a watch
//! HOOK h                             serves a webhook at `{hook.h.url}` with the CA `{hook.h.ca}`; the body
//!                                    is the rule of its responses (see [`Hook`])
//! PROBE h /api/v1/…                  posts the body as a dry run until the webhook is called, then discards
//!                                    all recorded calls
//! HOOK_CALLS h                       shows the calls of the webhook since then
//! AS alice                           continues as another user (initially `admin`)
//! HEADER impersonate-user bob        adds this header to all further requests; without a value, removes it
//! POD_BEHAVIOR web never-ready       sets the script of a workload's new pods
//! AWAIT /apis/… /status/replicas 3   repeats until this part of the response has this value (or `null`);
//!                                    also AWAIT:POST with a body
//! UNTIL 404 /api/v1/…                repeats until the response has this code; also UNTIL:POST with a body
//! ```

mod hook;
mod hook_server;
mod host;
pub mod kubectl;
mod mask;
mod run;
mod script;

pub use hook::{Hook, HookAddress, HookReply};
pub use hook_server::{HookServerError, serve_hook};
pub use host::{Host, HostError};
pub use mask::Mask;
pub use run::{RunError, run};
pub use script::{Command, Script};

/// A scenario of this crate.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Name of the scenario, which is the name of its file.
    pub name: &'static str,
    /// Script with the expected responses.
    pub text: &'static str,
}

/// All scenarios: the files in `scenarios/`, sorted by name.
pub const SCENARIOS: &[Scenario] = &include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));
