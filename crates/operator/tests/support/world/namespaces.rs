//! Namespaces of a world: creates and labels them, and converts between their unique names and the names in
//! a scenario.

use serde_json::{Value, json};

use super::{Backing, World};
use crate::support::fixtures;
use crate::support::path::ObjectPath;

impl World {
    /// Creates a namespace with these labels (`a=b c=d`) and returns its name.
    pub async fn namespace(&self, labels: &str) -> String {
        self.serial.set(self.serial.get() + 1);
        let name = match &self.backing {
            Backing::Sim(_) => format!("app-{}", self.serial.get()),
            Backing::Real(real) => format!("app-{}", real.next_number()),
        };
        self.create(fixtures::namespace(&name, labels)).await;
        self.namespaces.borrow_mut().push(name.clone());
        name
    }

    /// Returns the unique name of the namespace that a scenario calls `name`. Worlds may share a server.
    pub fn unique_namespace(&self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    fn prefix(&self) -> String {
        match &self.backing {
            Backing::Sim(_) => String::new(),
            Backing::Real(_) => format!("app-{}-", self.number),
        }
    }

    /// Creates the namespace that a scenario calls `name`, with these labels.
    pub async fn create_scenario_namespace(&self, name: &str, labels: &str) {
        let name = self.unique_namespace(name);
        self.create(fixtures::namespace(&name, labels)).await;
        self.namespaces.borrow_mut().push(name);
    }

    /// Replaces the unique namespace names in an object by the names in the scenario.
    pub fn with_scenario_namespaces(&self, object: &Value) -> Value {
        match self.prefix().as_str() {
            "" => object.clone(),
            prefix => serde_json::from_str(&object.to_string().replace(prefix, "")).unwrap(),
        }
    }

    /// Returns the unique names of the scenario's namespaces.
    pub fn scenario_namespaces(&self) -> Vec<String> {
        let (all, prefix) = (self.namespaces.borrow(), self.prefix());
        all.iter()
            .filter(|name| name.starts_with(&prefix))
            .cloned()
            .collect()
    }

    /// Changes labels of a namespace: `a=b` sets one, `a=` removes it.
    pub async fn label(&self, namespace: &str, labels: &str) {
        let labels: serde_json::Map<String, Value> = labels
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| {
                let value = if value.is_empty() {
                    Value::Null
                } else {
                    value.into()
                };
                (key.to_owned(), value)
            })
            .collect();
        let at = ObjectPath::cluster_scoped("Namespace", namespace);
        self.patch(&at, json!({"metadata": {"labels": labels}})).await;
    }
}
