//! Namespaces of a world: made, labelled, and known by words that are the same in every world.

use serde_json::{Value, json};

use super::{Backing, World};
use crate::support::at::At;
use crate::support::made;

impl World {
    /// A namespace of this scenario, with these labels (`a=b c=d`). Gives its name.
    pub async fn namespace(&self, labels: &str) -> String {
        self.serial.set(self.serial.get() + 1);
        let name = match &self.backing {
            Backing::Sim(_) => format!("app-{}", self.serial.get()),
            Backing::Real(real) => format!("app-{}", real.next()),
        };
        self.create(made::namespace(&name, labels)).await;
        self.namespaces.borrow_mut().push(name.clone());
        name
    }

    /// What the namespace called `word` in a play is called in this world: on a server that many share, nobody else has it.
    pub fn space(&self, word: &str) -> String {
        format!("{}{word}", self.prefix())
    }

    fn prefix(&self) -> String {
        match &self.backing {
            Backing::Sim(_) => String::new(),
            Backing::Real(_) => format!("app-{}-", self.number),
        }
    }

    /// A namespace that a play knows by this word, with these labels.
    pub async fn known_namespace(&self, word: &str, labels: &str) {
        let name = self.space(word);
        self.create(made::namespace(&name, labels)).await;
        self.namespaces.borrow_mut().push(name);
    }

    /// An object as it would be in any other world: namespaces have the words of the play.
    pub fn anywhere(&self, object: &Value) -> Value {
        match self.prefix().as_str() {
            "" => object.clone(),
            prefix => serde_json::from_str(&object.to_string().replace(prefix, "")).unwrap(),
        }
    }

    /// The namespaces that the play knows, by their names in this world.
    pub fn known_namespaces(&self) -> Vec<String> {
        let (all, prefix) = (self.namespaces.borrow(), self.prefix());
        all.iter()
            .filter(|name| name.starts_with(&prefix))
            .cloned()
            .collect()
    }

    /// Replaces labels of a namespace: `a=b` sets one, `a=` takes it away.
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
        let at = At::cluster("Namespace", namespace);
        self.patch(&at, json!({"metadata": {"labels": labels}})).await;
    }
}
