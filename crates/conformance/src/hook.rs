//! Webhooks that a scenario brings along: takes the rule of a `HOOK` command and requests, gives replies and remembers what was asked.
//! Knows no transport.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A webhook with a rule for its replies.
#[derive(Debug)]
pub struct Hook {
    /// Its name in the scenario.
    pub name: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    rule: Value,
    received: Vec<Value>,
}

/// What a webhook does about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookReply {
    /// It answers with this code and body.
    Response(u16, String),
    /// It says nothing.
    NoResponse,
    /// Nobody listens.
    Unreachable,
}

/// Where a webhook listens, as configurations name it.
pub struct HookAddress {
    /// Its address.
    pub url: String,
    /// The bundle that vouches for it, in base64.
    pub ca: String,
    /// Whatever must live as long as the webhook.
    pub guard: Box<dyn std::any::Any + Send>,
}

impl Hook {
    /// A webhook that follows `rule`:
    ///
    /// ```text
    /// {"allowed": true, "patch": [{"op": "add", …}], "warnings": ["…"], "status": {…}}   the response; its uid is filled in
    /// {"review": {…}}                     the whole review, as it stands
    /// {"code": 500, "text": "oh"}         an answer that is no review
    /// {"silent": true}                    no answer ever
    /// {"unreachable": true}               nobody listens
    /// ```
    #[must_use]
    pub fn new(name: &str, rule: Value) -> Self {
        let inner = Inner {
            rule,
            received: Vec::new(),
        };
        Self {
            name: name.to_owned(),
            inner: Mutex::new(inner),
        }
    }

    /// Follows another rule from now on.
    pub fn set_rule(&self, rule: Value) {
        self.with(|inner| inner.rule = rule);
    }

    /// Whether nobody shall listen.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.with(|inner| inner.rule.get("unreachable").is_some())
    }

    /// The requests since the last call of this.
    #[must_use]
    pub fn take_received(&self) -> Vec<Value> {
        self.with(|inner| std::mem::take(&mut inner.received))
    }

    /// The uids of the requests since the last [`Hook::take_received`].
    #[must_use]
    pub fn uids(&self) -> Vec<String> {
        let uid = |review: &Value| Some(review.pointer("/request/uid")?.as_str()?.to_owned());
        self.with(|inner| inner.received.iter().filter_map(uid).collect())
    }

    /// Whether a request came since the last [`Hook::take_received`].
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.with(|inner| !inner.received.is_empty())
    }

    /// Replies to a review, and remembers it.
    #[must_use]
    pub fn respond(&self, review: &Value) -> HookReply {
        self.with(|inner| {
            if inner.rule.get("unreachable").is_some() {
                return HookReply::Unreachable;
            }
            inner.received.push(review.clone());
            reply(&inner.rule, review)
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn reply(rule: &Value, asked: &Value) -> HookReply {
    if rule.get("silent").is_some() {
        return HookReply::NoResponse;
    }
    if let Some(code) = rule.get("code").and_then(Value::as_u64) {
        let text = rule.get("text").and_then(Value::as_str).unwrap_or("");
        return HookReply::Response(u16::try_from(code).unwrap_or(500), text.to_owned());
    }
    if let Some(review) = rule.get("review") {
        return HookReply::Response(200, review.to_string());
    }
    let mut response = rule.clone();
    if let Some(map) = response.as_object_mut() {
        map.insert(
            "uid".into(),
            asked.pointer("/request/uid").cloned().unwrap_or_default(),
        );
        if let Some(patch) = map.get("patch").filter(|patch| patch.is_array()) {
            let encoded = STANDARD.encode(patch.to_string());
            map.insert("patch".into(), encoded.into());
            map.entry("patchType").or_insert_with(|| "JSONPatch".into());
        }
    }
    let version = asked.get("apiVersion").cloned().unwrap_or_default();
    let review = json!({"apiVersion": version, "kind": "AdmissionReview", "response": response});
    HookReply::Response(200, review.to_string())
}
