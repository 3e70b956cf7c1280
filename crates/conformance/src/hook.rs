//! Webhooks of a scenario: respond to reviews as specified by the rule of a `HOOK` command, and record the
//! requests. Independent of the transport.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A webhook with a rule that determines its responses.
#[derive(Debug)]
pub struct Hook {
    /// Name in the scenario.
    pub name: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    rule: Value,
    received: Vec<Value>,
}

/// Reaction of a webhook to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookReply {
    /// Responds with this status code and body.
    Response(u16, String),
    /// Keeps the connection open without a response.
    NoResponse,
    /// Connection refused.
    Unreachable,
}

/// Address of a webhook, as used in webhook configurations.
pub struct HookAddress {
    /// URL of the webhook.
    pub url: String,
    /// CA bundle in base64.
    pub ca: String,
    /// Resources that are released together with the address, such as the webhook's server.
    pub guard: Box<dyn std::any::Any + Send>,
}

impl Hook {
    /// Creates a webhook with a rule:
    ///
    /// ```text
    /// {"allowed": true, "patch": [{"op": "add", …}], "warnings": ["…"], "status": {…}}
    ///                                     the response; its uid is filled in
    /// {"review": {…}}                     the whole review
    /// {"code": 500, "text": "oh"}         a response that is not a review
    /// {"silent": true}                    no response
    /// {"unreachable": true}               connection refused
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

    /// Replaces the rule.
    pub fn set_rule(&self, rule: Value) {
        self.with_inner(|inner| inner.rule = rule);
    }

    /// Whether the webhook is unreachable.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.with_inner(|inner| inner.rule.get("unreachable").is_some())
    }

    /// Returns the requests received since the previous call, and clears the record.
    #[must_use]
    pub fn take_received(&self) -> Vec<Value> {
        self.with_inner(|inner| std::mem::take(&mut inner.received))
    }

    /// Returns the uids of the requests since the last [`Hook::take_received`].
    #[must_use]
    pub fn uids(&self) -> Vec<String> {
        let uid = |review: &Value| Some(review.pointer("/request/uid")?.as_str()?.to_owned());
        self.with_inner(|inner| inner.received.iter().filter_map(uid).collect())
    }

    /// Whether there was a request since the last [`Hook::take_received`].
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.with_inner(|inner| !inner.received.is_empty())
    }

    /// Records a review and returns the webhook's reaction.
    #[must_use]
    pub fn respond(&self, review: &Value) -> HookReply {
        self.with_inner(|inner| {
            if inner.rule.get("unreachable").is_some() {
                return HookReply::Unreachable;
            }
            inner.received.push(review.clone());
            evaluate_rule(&inner.rule, review)
        })
    }

    fn with_inner<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn evaluate_rule(rule: &Value, review: &Value) -> HookReply {
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
            review.pointer("/request/uid").cloned().unwrap_or_default(),
        );
        if let Some(patch) = map.get("patch").filter(|patch| patch.is_array()) {
            let encoded = STANDARD.encode(patch.to_string());
            map.insert("patch".into(), encoded.into());
            map.entry("patchType").or_insert_with(|| "JSONPatch".into());
        }
    }
    let version = review.get("apiVersion").cloned().unwrap_or_default();
    let review = json!({"apiVersion": version, "kind": "AdmissionReview", "response": response});
    HookReply::Response(200, review.to_string())
}
