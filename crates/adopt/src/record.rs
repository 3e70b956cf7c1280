//! Record of an adoption: a `ConfigMap` with everything that is necessary to undo it.

use mainstay_api::ObjectKind;
use mainstay_cluster::desired::ObjectId;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::AdoptError;
use crate::ownership::{OriginalState, restore, restore_records};
use crate::session::{Adoption, Applied, Session};

/// Name of the `ConfigMap`.
pub const RECORD: &str = "mainstay-adoption";
/// Key of the record in the data of the `ConfigMap`.
const KEY: &str = "record.json";

/// Changes of an adoption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    /// Resources that were created.
    pub(crate) resources: Vec<Resource>,
    /// Original state of the changed objects.
    pub(crate) objects: Vec<OriginalState>,
    /// Secrets that Helm no longer finds.
    pub(crate) hidden: Vec<HiddenRelease>,
    /// Secrets that were created for Helm.
    pub(crate) created: Vec<HiddenRelease>,
}

/// A custom resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resource {
    pub(crate) kind: ObjectKind,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The Secret of a Helm release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HiddenRelease {
    /// Namespace of the Secret.
    pub(crate) namespace: String,
    /// Name of the Secret.
    pub(crate) secret: String,
}

impl Record {
    /// Adds the changes that an adoption will make.
    pub(crate) fn add(&mut self, adoption: &Adoption) {
        let owned = adoption.plans.iter().flat_map(|plan| &plan.objects);
        for owned in owned {
            self.add_original(owned.original.clone());
        }
        for release in &adoption.hidden {
            let hidden = HiddenRelease {
                namespace: release.namespace.clone(),
                secret: release.secret.clone(),
            };
            if !self.hidden.contains(&hidden) {
                self.hidden.push(hidden);
            }
        }
    }

    /// Adds the original state of an object. If it is known already, only missing labels and annotations
    /// are added, because the later state contains our own changes.
    pub(crate) fn add_original(&mut self, before: OriginalState) {
        let is_same = |known: &&mut OriginalState| {
            known.kind == before.kind && known.name == before.name && known.namespace == before.namespace
        };
        match self.objects.iter_mut().find(is_same) {
            None => self.objects.push(before),
            Some(known) => {
                for (name, value) in before.labels {
                    known.labels.entry(name).or_insert(value);
                }
                for (name, value) in before.annotations {
                    known.annotations.entry(name).or_insert(value);
                }
            }
        }
    }
}

impl Session {
    /// Reads the record in a namespace; `None` if there is none.
    pub(crate) async fn read_record(&self, namespace: &str) -> Result<Option<Record>, AdoptError> {
        let found = self.adopter.get(&record_id(namespace)).await;
        let found = found.map_err(AdoptError::call("cannot read the record of the adoption"))?;
        let Some(found) = found else { return Ok(None) };
        let text = mainstay_cluster::installer::text(&found, "/data/record.json").to_owned();
        let record = serde_json::from_str(&text);
        record
            .map(Some)
            .map_err(|_| AdoptError::Record(format!("{namespace}/{RECORD}")))
    }

    pub(crate) async fn write_record(&self, namespace: &str, record: &Record) -> Result<(), AdoptError> {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": RECORD, "namespace": namespace},
            "data": {KEY: json!(record).to_string()},
        });
        let written = self.adopter.put(&record_id(namespace), &object).await;
        written.map_err(AdoptError::call("cannot write the record of the adoption"))?;
        Ok(())
    }

    /// Undoes an adoption. Ownership is restored first, so that deleting the resources deletes no other
    /// objects.
    pub async fn undo(&self, namespace: &str) -> Result<Applied, AdoptError> {
        let record = self.read_record(namespace).await?;
        let record = record.ok_or_else(|| AdoptError::NoRecord(namespace.to_owned()))?;
        let uids: Vec<String> = record.resources.iter().map(|one| one.uid.clone()).collect();
        let mut applied = Applied::default();
        for before in &record.objects {
            applied.objects += usize::from(self.restore_object(before, &uids).await?);
        }
        for hidden in &record.hidden {
            self.label_secret(hidden, crate::helm::OWNER).await?;
            applied.hidden += 1;
        }
        for created in &record.created {
            let id = crate::session::secret_id(&created.namespace, &created.secret);
            let removed = self.adopter.remove(&id).await;
            removed.map_err(AdoptError::call(format!("cannot delete {id}")))?;
        }
        for resource in record.resources.iter().rev() {
            let what = format!("cannot delete {} {}", resource.kind.name(), resource.name);
            let deleted = self.adopter.delete(resource.kind, &resource.name).await;
            deleted.map_err(AdoptError::call(what))?;
            applied.resources += 1;
        }
        let removed = self.adopter.remove(&record_id(namespace)).await;
        removed.map_err(AdoptError::call("cannot delete the record of the adoption"))?;
        Ok(applied)
    }

    async fn restore_object(&self, before: &OriginalState, uids: &[String]) -> Result<bool, AdoptError> {
        let id = object_id(before);
        let what = || format!("cannot restore {id}");
        let live = self.adopter.get(&id).await.map_err(AdoptError::call(what()))?;
        let Some(mut live) = live else { return Ok(false) };
        let restored = restore(&live, before, uids);
        if let Some(patch) = &restored {
            live = self
                .adopter
                .patch(&id, patch)
                .await
                .map_err(AdoptError::call(what()))?;
        }
        if let Some(patch) = restore_records(&live, before) {
            self.adopter
                .patch(&id, &patch)
                .await
                .map_err(AdoptError::call(what()))?;
        }
        Ok(restored.is_some())
    }
}

pub(crate) fn object_id(before: &OriginalState) -> ObjectId {
    let (group, version) = before
        .api_version
        .split_once('/')
        .unwrap_or(("", &before.api_version));
    ObjectId {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: before.kind.clone(),
        namespace: before.namespace.clone(),
        name: before.name.clone(),
    }
}

fn record_id(namespace: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: namespace.to_owned(),
        name: RECORD.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_state_of_an_object_is_kept() {
        let before = |value: &str| OriginalState {
            kind: "Service".to_owned(),
            name: "istiod".to_owned(),
            labels: [("release".to_owned(), Some(value.to_owned()))].into(),
            ..OriginalState::default()
        };
        let mut record = Record::default();
        record.add_original(before("istiod"));
        record.add_original(before("default-istiod"));
        assert_eq!(record.objects, [before("istiod")]);
    }
}
