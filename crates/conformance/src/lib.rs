//! Scenarios for a Kubernetes API: takes a client and a script, gives the script with the server's answers written in.
//!
//! The same scripts run against the simulator and against a real API server; answers are masked where two servers must differ (uids,
//! times, versions, addresses), so the texts can be compared byte by byte. A script is lines:
//!
//! ```text
//! # a comment
//! SHOW spec status.replicas          only these parts of objects are shown from here on
//! POST /apis/apps/v1/namespaces/{ns}/deployments
//! {"metadata": {"name": "web"}, …}
//! < 201 …                            answers; left out when a script is read, written when it is run
//! PATCH:merge /api/v1/…              also :json, :strategic, :apply; GET:table, GET:meta, GET:metalist
//! SET rv /metadata/resourceVersion   remembers a part of the last answer, for `{rv}`
//! WATCH w /api/v1/…?watch=true       begins a watch
//! EVENTS w 3                         waits for three of its events
//! HOOK h                             brings a webhook along, `{hook.h.url}` and `{hook.h.ca}`; below it the rule of its replies (see [`Hook`])
//! KNOCK h /api/v1/…                  posts (dry) what is below until the webhook was asked, then forgets all it was asked
//! HOOKED h                           shows what the webhook was asked since
//! AS alice                           goes on as another user (`admin` at first)
//! HEADER impersonate-user bob        sends this header too from here on; without a value, no more
//! BEHAVE web never-ready             the pods of a workload behave like this from here on
//! AWAIT /apis/… /status/replicas 3    asks until that part of the answer is this (a part that is not there is `null`)
//! UNTIL 404 /api/v1/…                asks until this is the answer (controllers work in their own time); also UNTIL:POST, with a body
//! ```

mod hook;
mod hook_server;
mod host;
pub mod kubectl;
mod mask;
mod run;
mod script;

pub use hook::{Hook, HookAddress, HookReply};
pub use hook_server::serve_hook;
pub use host::Host;
pub use mask::Mask;
pub use run::{RunError, run};
pub use script::{Command, Script};

/// A scenario of this crate.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Its script with the expected answers.
    pub text: &'static str,
}

/// All scenarios: the files of `scenarios/`, by name.
pub const SCENARIOS: &[Scenario] = &include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));
