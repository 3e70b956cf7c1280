//! Parsed webhook configurations: the webhooks in call order, and which of them match a write.

use std::sync::Arc;

use serde_json::Value;

use super::condition::Condition;
use super::{Handlers, PendingWebhookCalls, ReviewedWrite};
use crate::admission::Operation;
use crate::auth::texts;
use crate::context::{Context, Destination};
use crate::object::Object;
use crate::resource::Resource;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::store::Store;
use crate::tree;

const TABLES: [&str; 2] = [
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
];
const DEFAULT_TIMEOUT_SECONDS: i64 = 10;

/// Webhooks of a cluster in call order, and the handlers in this process.
#[derive(Debug, Default)]
pub struct Hooks {
    /// Last version of each table when its configurations were parsed.
    seen: [u64; 2],
    pub(super) mutating: Arc<Vec<Arc<Hook>>>,
    pub(super) validating: Arc<Vec<Arc<Hook>>>,
    /// Webhook handlers in this process.
    pub handlers: Handlers,
    /// Webhook calls of controllers that have no reply yet.
    pub pending: PendingWebhookCalls,
}

impl Hooks {
    /// Parses all configurations again if one of them has changed.
    pub(super) fn refresh(&mut self, store: &Store) {
        let now = TABLES.map(|table| {
            store
                .history(table)
                .map_or(0, crate::store::History::last_version)
        });
        if now == self.seen {
            return;
        }
        self.seen = now;
        let [mutating, validating] = TABLES.map(|table| {
            let hooks = store.all(table).flat_map(|object| Hook::parse_all(object));
            Arc::new(hooks.map(Arc::new).collect::<Vec<_>>())
        });
        (self.mutating, self.validating) = (mutating, validating);
    }
}

/// A webhook of a configuration.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent properties of a webhook"
)]
pub(super) struct Hook {
    /// Configuration name and webhook name, which is unique in a cluster.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) mutating: bool,
    rules: Vec<Rule>,
    namespaces: LabelSelector,
    objects: LabelSelector,
    conditions: Vec<Condition>,
    matches_equivalents: bool,
    pub(super) ignores_failures: bool,
    pub(super) has_side_effects: bool,
    pub(super) reinvoked: bool,
    pub(super) timeout_seconds: i64,
    /// Supported `AdmissionReview` versions in order of preference.
    pub(super) versions: Vec<String>,
    pub(super) to: Destination,
    /// The CA bundle: base64-encoded PEM.
    pub(super) ca_bundle: String,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

impl Hook {
    fn parse_all(object: &Object) -> Vec<Self> {
        let configuration = object.value();
        let mutating = tree::text(&configuration, &["kind"]).starts_with("Mutating");
        let hooks = tree::list(&configuration, &["webhooks"]).iter();
        hooks
            .map(|hook| Self::parse(&object.meta().name, mutating, hook))
            .collect()
    }

    fn parse(configuration: &str, mutating: bool, hook: &Value) -> Self {
        let text = |key| tree::text(hook, &[key]);
        let selector = |key| {
            LabelSelector::from_object(Some(
                hook.get(key).unwrap_or(&Value::Object(serde_json::Map::new())),
            ))
        };
        Self {
            id: format!("{configuration}/{}", text("name")),
            name: text("name").to_owned(),
            mutating,
            rules: tree::list(hook, &["rules"]).iter().map(Rule::parse).collect(),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: tree::list(hook, &["matchConditions"])
                .iter()
                .map(Condition::parse)
                .collect(),
            matches_equivalents: text("matchPolicy") != "Exact",
            ignores_failures: text("failurePolicy") == "Ignore",
            has_side_effects: !matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
            timeout_seconds: tree::int(hook, &["timeoutSeconds"]).unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            versions: texts(tree::list(hook, &["admissionReviewVersions"])),
            to: Destination::parse(hook.get("clientConfig").unwrap_or(&Value::Null)),
            ca_bundle: tree::text(hook, &["clientConfig", "caBundle"]).to_owned(),
        }
    }

    /// Returns the resource in which the write is shown to this webhook: the resource of the write, or the
    /// same resource in another version. `None` if the webhook does not match.
    pub(super) fn matching_resource(
        &self,
        state: &State,
        reviewed: &ReviewedWrite<'_>,
        context: &Context,
    ) -> Result<Option<Arc<Resource>>> {
        let namespace_selected = self.selects_namespace(state, reviewed);
        if !namespace_selected.as_ref().map_or(true, |selected| *selected) || !self.selects_object(reviewed) {
            return Ok(None);
        }
        let Some(shown_as) = self.find_by_rules(state, reviewed, context) else {
            return Ok(None);
        };
        namespace_selected?;
        if self.conditions.is_empty() {
            return Ok(Some(shown_as));
        }
        match super::condition::conditions_hold(&self.conditions, self, reviewed, &shown_as, context) {
            Ok(true) => Ok(Some(shown_as)),
            Ok(false) => Ok(None),
            Err(_) if self.ignores_failures => Ok(None),
            Err(error) => {
                let resource = reviewed.attributes.target.resource;
                let what = Qualified {
                    group: &resource.group,
                    name: &resource.plural,
                };
                Err(Status::forbidden(
                    what,
                    super::object_name(reviewed),
                    &error.to_string(),
                ))
            }
        }
    }

    fn selects_namespace(&self, state: &State, reviewed: &ReviewedWrite<'_>) -> Result<bool> {
        let target = reviewed.attributes.target;
        let is_namespace = target.resource.is("", "namespaces");
        if self.namespaces.is_empty() || !target.resource.namespaced && !is_namespace {
            return Ok(true);
        }
        if let (true, Some(object)) = (is_namespace, reviewed.object) {
            return Ok(self
                .namespaces
                .matches_map(tree::get(object, &["metadata", "labels"])));
        }
        let name = if is_namespace {
            target.name
        } else {
            target.namespace
        };
        let Some(namespace) = state.store.get("namespaces", name) else {
            let what = Qualified {
                group: "",
                name: "namespaces",
            };
            return Err(Status::not_found(what, name));
        };
        Ok(self.namespaces.matches(&|key| namespace.meta().label(key)))
    }

    fn selects_object(&self, reviewed: &ReviewedWrite<'_>) -> bool {
        let selected = |object: Option<&Value>| {
            object.is_some_and(|object| {
                self.objects
                    .matches_map(tree::get(object, &["metadata", "labels"]))
            })
        };
        self.objects.is_empty() || selected(reviewed.object) || selected(reviewed.attributes.old)
    }

    /// Returns the resource of the write if a rule matches it, otherwise another version of it that a rule
    /// matches.
    fn find_by_rules(
        &self,
        state: &State,
        reviewed: &ReviewedWrite<'_>,
        context: &Context,
    ) -> Option<Arc<Resource>> {
        let own = reviewed.attributes.target.resource;
        let operation = reviewed.attributes.operation;
        let matches_rule = |resource: &Resource| {
            self.rules
                .iter()
                .any(|rule| rule.matches(resource, operation, &context.subresource))
        };
        if matches_rule(own) {
            return Some(Arc::clone(own));
        }
        let others = || state.resources.iter().filter(|other| other.table == own.table);
        let equivalent =
            |rule: &Rule| others().find(|other| rule.matches(other, operation, &context.subresource));
        if !self.matches_equivalents {
            return None;
        }
        self.rules.iter().find_map(equivalent).cloned()
    }
}

impl Rule {
    fn parse(rule: &Value) -> Self {
        let list = |key| texts(tree::list(rule, &[key]));
        Self {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            scope: tree::text(rule, &["scope"]).to_owned(),
        }
    }

    fn matches(&self, resource: &Resource, operation: Operation, subresource: &str) -> bool {
        let has = |list: &[String], one: &str| list.iter().any(|have| have == "*" || have == one);
        let scope_matches = match self.scope.as_str() {
            "Namespaced" => resource.namespaced,
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        let named = |rule: &String| {
            let (name, sub) = rule.split_once('/').unwrap_or((rule, ""));
            (name == "*" || name == &*resource.plural) && (sub == "*" || sub == subresource)
        };
        scope_matches
            && has(&self.operations, operation.name())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.resources.iter().any(named)
    }
}
