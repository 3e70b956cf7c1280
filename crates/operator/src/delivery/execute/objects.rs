//! Writes generated objects in any cluster.

use http::Method;
use mainstay_cluster::connect::MANAGER;
use mainstay_cluster::write::{Body, WriteError, Writer};
use mainstay_mesh::ErrorClass;
use mainstay_rollout::manifest::ObjectKey;
use mainstay_rollout::plan::{Action, Apply, Delete, Release, Scale};
use mainstay_rollout::snapshot::Version;
use serde_json::{Value, json};

use super::{Executor, stale_error};
use crate::delivery::names::{ClusterKey, ObjectType};
use crate::delivery::observed::{applied_replicas, apply_body, object_version};
use crate::object::string_at;

/// Reads an object. Returns `None` if it does not exist.
pub(super) async fn get(writer: &Writer, path: &str) -> Result<Option<Value>, WriteError> {
    match writer.call(Method::GET, path, None).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the options of a deletion that requires a version.
pub(super) fn delete_options(precondition: &Version) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": precondition.uid, "resourceVersion": precondition.resource_version},
        "propagationPolicy": "Background",
    })
}

/// Returns the owner references of an object except those to `owner`.
fn other_owners(object: &Value, owner: &str) -> Vec<Value> {
    let references = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let others = references.into_iter().flatten();
    let others = others.filter(|reference| string_at(reference, "/uid") != owner);
    others.cloned().collect()
}

fn require_version(body: &mut Value, precondition: &Version) {
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        metadata.insert("uid".into(), json!(precondition.uid));
        metadata.insert("resourceVersion".into(), json!(precondition.resource_version));
    }
}

impl Executor {
    /// Runs a step that writes a generated object.
    pub(super) async fn run_object_step(
        &self,
        cluster: &ClusterKey,
        writer: &Writer,
        action: &Action,
    ) -> Result<(), WriteError> {
        match action {
            Action::EnsureNamespace(name) => ensure_namespace(writer, name).await,
            Action::Apply(apply) => self.apply(cluster, writer, apply).await,
            Action::Scale(scale) => self.scale(cluster, writer, scale).await,
            Action::Delete(delete) => self.delete(cluster, writer, delete).await,
            Action::Release(release) => self.release(cluster, writer, release).await,
            _ => Ok(()),
        }
    }

    fn path(&self, cluster: &ClusterKey, key: &ObjectKey) -> Result<String, WriteError> {
        let path = self.shared.with(|index| {
            index
                .cluster(cluster)
                .and_then(|state| state.path(key, Some(&key.name)))
        });
        path.ok_or_else(|| {
            let message = format!("the cluster does not serve {} {}", key.api_version, key.kind);
            WriteError {
                code: 422,
                class: ErrorClass::Other,
                message,
                retry_after: None,
            }
        })
    }

    /// Stores the current state of an object. If it does not exist (`found` is `None`), the known version
    /// is removed.
    fn refresh(
        &self,
        cluster: &ClusterKey,
        key: &ObjectKey,
        found: Option<Value>,
        precondition: Option<&Version>,
    ) {
        self.shared.with(|index| match (found, precondition) {
            (Some(object), _) => index.observe_object(cluster, &ObjectType::from(key), object),
            (None, Some(precondition)) => index.remove_object(cluster, key, &precondition.uid),
            (None, None) => {}
        });
    }

    /// Reads and applies an object. The read is needed because the watches do not contain objects of other
    /// owners, and because replicas that an earlier apply set must be part of this apply.
    async fn apply(&self, cluster: &ClusterKey, writer: &Writer, apply: &Apply) -> Result<(), WriteError> {
        let key = &apply.manifest.key;
        let path = self.path(cluster, key)?;
        let live = get(writer, &path).await?;
        if live.as_ref().map(object_version) != apply.precondition {
            self.refresh(cluster, key, live, apply.precondition.as_ref());
            return Err(stale_error("the object was changed"));
        }
        let replicas = match &live {
            Some(live) => applied_replicas(live),
            None => apply.replicas.map(u64::from),
        };
        let mut body = apply_body(&apply.manifest, apply.owner.as_ref(), replicas);
        let mut query = format!("fieldManager={MANAGER}");
        if let Some(precondition) = &apply.precondition {
            require_version(&mut body, precondition);
            query.push_str("&force=true");
        }
        let applied = writer
            .call(Method::PATCH, &format!("{path}?{query}"), Some(Body::Apply(body)))
            .await?;
        self.shared
            .with(|index| index.observe_applied(cluster, key, applied));
        Ok(())
    }

    async fn scale(&self, cluster: &ClusterKey, writer: &Writer, scale: &Scale) -> Result<(), WriteError> {
        let path = self.path(cluster, &scale.key)?;
        let mut body = json!({"metadata": {}, "spec": {"replicas": scale.replicas}});
        require_version(&mut body, &scale.precondition);
        let target = format!("{path}?fieldManager={MANAGER}");
        match writer.call(Method::PATCH, &target, Some(Body::Merge(body))).await {
            Ok(object) => {
                self.refresh(cluster, &scale.key, Some(object), None);
                Ok(())
            }
            Err(error) => {
                self.read_again(cluster, writer, &scale.key, &scale.precondition, error)
                    .await
            }
        }
    }

    async fn delete(&self, cluster: &ClusterKey, writer: &Writer, delete: &Delete) -> Result<(), WriteError> {
        let path = self.path(cluster, &delete.key)?;
        let body = Body::Json(delete_options(&delete.precondition));
        match writer.call(Method::DELETE, &path, Some(body)).await {
            Ok(object) if object.pointer("/metadata/deletionTimestamp").is_some() => {
                self.refresh(cluster, &delete.key, Some(object), None);
                Ok(())
            }
            Ok(_) => {
                self.refresh(cluster, &delete.key, None, Some(&delete.precondition));
                Ok(())
            }
            Err(error) => {
                self.read_again(cluster, writer, &delete.key, &delete.precondition, error)
                    .await
            }
        }
    }

    /// Removes one owner reference. Others are kept.
    async fn release(
        &self,
        cluster: &ClusterKey,
        writer: &Writer,
        release: &Release,
    ) -> Result<(), WriteError> {
        let path = self.path(cluster, &release.key)?;
        let live = get(writer, &path).await?;
        let Some(found) = live
            .as_ref()
            .filter(|live| object_version(live) == release.precondition)
        else {
            self.refresh(cluster, &release.key, live, Some(&release.precondition));
            return Err(stale_error("the object was changed"));
        };
        let mut body = json!({"metadata": {"ownerReferences": other_owners(found, &release.owner)}});
        require_version(&mut body, &release.precondition);
        let target = format!("{path}?fieldManager={MANAGER}");
        let object = writer
            .call(Method::PATCH, &target, Some(Body::Merge(body)))
            .await?;
        self.refresh(cluster, &release.key, Some(object), None);
        Ok(())
    }

    /// Reads an object after a conflict. Always returns an error: that of the write, or that of the read.
    async fn read_again(
        &self,
        cluster: &ClusterKey,
        writer: &Writer,
        key: &ObjectKey,
        precondition: &Version,
        error: WriteError,
    ) -> Result<(), WriteError> {
        if error.is_stale() {
            let path = self.path(cluster, key)?;
            let found = get(writer, &path).await?;
            self.refresh(cluster, key, found, Some(precondition));
        }
        Err(error)
    }
}

/// Creates a namespace if it does not exist. Namespaces are never deleted.
async fn ensure_namespace(writer: &Writer, name: &str) -> Result<(), WriteError> {
    if get(writer, &format!("/api/v1/namespaces/{name}"))
        .await?
        .is_some()
    {
        return Ok(());
    }
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let path = format!("/api/v1/namespaces?fieldManager={MANAGER}");
    match writer.call(Method::POST, &path, Some(Body::Json(body))).await {
        Err(error) if error.code != 409 => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_owner_references_are_kept() {
        let reference = |uid: &str| json!({"kind": "ConfigMap", "name": uid, "uid": uid});
        let object = json!({"metadata": {"ownerReferences": [reference("own"), reference("other")]}});
        assert_eq!(other_owners(&object, "own"), [reference("other")]);
        assert!(other_owners(&json!({"metadata": {}}), "own").is_empty());
    }
}
