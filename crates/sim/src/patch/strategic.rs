//! Strategic merge patches: lists with a merge key are merged item by item, and directives (`$patch`,
//! `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, `$retainKeys`) control the merge. Merge keys come from
//! the table of Go types.

use serde_json::{Map, Value};

use crate::schema::{Field, Schema, Type, TypeId};
use crate::show;
use crate::status::{Result, Status};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Merges `patch` into `target`, both of the struct type `id`.
pub fn merge(schema: &Schema, id: TypeId, target: &Value, patch: &Value) -> Result<Value> {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return Err(Status::bad_request(
            "unable to find api field in struct for a patch that is no map",
        ));
    };
    Ok(Value::Object(Merger { schema }.merge_map(
        Some(id),
        target,
        patch,
    )?))
}

struct Merger<'s> {
    schema: &'s Schema,
}

impl<'s> Merger<'s> {
    fn merge_map(
        &self,
        id: Option<TypeId>,
        target: &Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<Map<String, Value>> {
        let mut out = target.clone();
        match patch.get(PATCH).and_then(Value::as_str) {
            Some("replace") => return Ok(without_directives(patch)),
            Some("delete") => return Ok(Map::new()),
            Some("merge") | None => {}
            Some(other) => {
                let text = format!("unknown patch type: {other} in map: {}", show::plain_map(patch));
                return Err(Status::unknown(text));
            }
        }
        if let Some(Value::Array(keep)) = patch.get(RETAIN) {
            out.retain(|key, _| keep.iter().any(|kept| kept.as_str() == Some(key)));
        }
        for (key, change) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
            let field = id.and_then(|id| self.schema.field(id, key));
            match self.merge_value(field, out.get(key), change, patch, key)? {
                Some(value) => drop(out.insert(key.clone(), value)),
                None => drop(out.remove(key)),
            }
        }
        self.apply_standalone_directives(id, &mut out, patch)?;
        Ok(out)
    }

    /// Applies list directives for lists that are not part of the patch.
    fn apply_standalone_directives(
        &self,
        id: Option<TypeId>,
        out: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<()> {
        for key in patch.keys() {
            let name = key.strip_prefix(DELETE_FROM).or_else(|| key.strip_prefix(ORDER));
            let Some(name) = name.filter(|name| !patch.contains_key(*name)) else {
                continue;
            };
            let field = id.and_then(|id| self.schema.field(id, name));
            let empty = Value::Array(Vec::new());
            if out.contains_key(name)
                && let Some(value) = self.merge_value(field, out.get(name), &empty, patch, name)?
            {
                out.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    fn merge_value(
        &self,
        field: Option<&'s Field>,
        target: Option<&Value>,
        change: &Value,
        parent_patch: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<Value>> {
        if change.is_null() {
            return Ok(None);
        }
        match (target, change) {
            (Some(Value::Object(target)), Value::Object(change)) => {
                let id = field.and_then(|field| struct_type(&field.kind));
                Ok(Some(Value::Object(self.merge_map(id, target, change)?)))
            }
            (_, Value::Object(change)) => {
                let id = field.and_then(|field| struct_type(&field.kind));
                if change.get(PATCH).and_then(Value::as_str) == Some("delete") {
                    return Ok(None);
                }
                Ok(Some(Value::Object(self.merge_map(id, &Map::new(), change)?)))
            }
            (target, Value::Array(change)) => {
                let target = target.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                self.merge_list(field, target, change, parent_patch, key)
                    .map(|list| Some(Value::Array(list)))
            }
            _ => Ok(Some(change.clone())),
        }
    }

    fn merge_list(
        &self,
        field: Option<&'s Field>,
        target: &[Value],
        change: &[Value],
        parent_patch: &Map<String, Value>,
        key: &str,
    ) -> Result<Vec<Value>> {
        let Some(field) = field.filter(|field| field.patch_merge) else {
            return Ok(change.to_vec());
        };
        let order = parent_patch
            .get(&format!("{ORDER}{key}"))
            .and_then(Value::as_array);
        let Some(merge_key) = &field.merge_key else {
            let deleted = parent_patch
                .get(&format!("{DELETE_FROM}{key}"))
                .and_then(Value::as_array);
            return Ok(merge_scalars(target, change, deleted, order));
        };
        if change
            .iter()
            .any(|item| item.get(PATCH).and_then(Value::as_str) == Some("replace"))
        {
            let items = change
                .iter()
                .filter(|item| item.get(PATCH).is_none() || item.get(&**merge_key).is_some());
            return Ok(items
                .map(|item| {
                    item.as_object()
                        .map_or(item.clone(), |map| Value::Object(without_directives(map)))
                })
                .collect());
        }
        let mut out = target.to_vec();
        for item in change {
            self.merge_item(field, merge_key, &mut out, item)?;
        }
        if let Some(order) = order {
            let wanted: Vec<&Value> = order.iter().filter_map(|one| one.get(&**merge_key)).collect();
            reorder(&mut out, &wanted, |item| item.get(&**merge_key));
        }
        Ok(out)
    }

    fn merge_item(
        &self,
        field: &'s Field,
        merge_key: &str,
        out: &mut Vec<Value>,
        item: &Value,
    ) -> Result<()> {
        let Value::Object(change) = item else {
            return Err(Status::bad_request("delete patch type with no merge key defined"));
        };
        let Some(key) = change.get(merge_key) else {
            let shown = show::plain_map(change);
            return Err(Status::unknown(format!(
                "map: {shown} does not contain declared merge key: {merge_key}"
            )));
        };
        let at = out.iter().position(|have| have.get(merge_key) == Some(key));
        if change.get(PATCH).and_then(Value::as_str) == Some("delete") {
            out.retain(|have| have.get(merge_key) != Some(key));
            return Ok(());
        }
        let id = item_struct_type(&field.kind);
        match at.and_then(|at| out.get_mut(at)) {
            Some(Value::Object(have)) => *have = self.merge_map(id, have, change)?,
            _ => out.push(Value::Object(self.merge_map(id, &Map::new(), change)?)),
        }
        Ok(())
    }
}

fn struct_type(kind: &Type) -> Option<TypeId> {
    match kind.pointee() {
        Type::Struct(id) => Some(*id),
        _ => None,
    }
}

fn item_struct_type(kind: &Type) -> Option<TypeId> {
    match kind.pointee() {
        Type::List(inner) => struct_type(inner),
        _ => None,
    }
}

fn without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| !key.starts_with('$'))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn merge_scalars(
    target: &[Value],
    change: &[Value],
    deleted: Option<&Vec<Value>>,
    order: Option<&Vec<Value>>,
) -> Vec<Value> {
    let mut out: Vec<Value> = target
        .iter()
        .filter(|item| !deleted.is_some_and(|deleted| deleted.contains(item)))
        .cloned()
        .collect();
    for item in change {
        if !out.contains(item) {
            out.push(item.clone());
        }
    }
    if let Some(order) = order {
        let wanted: Vec<&Value> = order.iter().collect();
        reorder(&mut out, &wanted, |item| Some(item));
    }
    out
}

/// Sorts the items with a key in `wanted` into that order. Other items keep their position relative to the
/// item before them.
fn reorder(items: &mut [Value], wanted: &[&Value], key: impl Fn(&Value) -> Option<&Value>) {
    let rank = |item: &Value| key(item).and_then(|key| wanted.iter().position(|one| *one == key));
    let mut ranks: Vec<(usize, usize)> = Vec::with_capacity(items.len());
    let mut last = 0;
    for (at, item) in items.iter().enumerate() {
        last = rank(item).map_or(last, |rank| rank + 1);
        ranks.push((last, at));
    }
    ranks.sort_unstable();
    let old = items.to_vec();
    for (slot, (_, from)) in items.iter_mut().zip(ranks) {
        if let Some(item) = old.get(from) {
            *slot = item.clone();
        }
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(target: Value, patch: Value, expected: Value) {
        let schema = Schema::builtin();
        let id = schema.kind("v1", "Pod").unwrap();
        let shown = merge(schema, id, &target, &patch).unwrap_or_else(|status| json!(status.message()));
        assert_eq!(shown, expected, "{patch}");
    }

    #[test]
    fn lists_merge_by_their_key() {
        check(
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}),
            json!({"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]}}),
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]}}),
        );
        check(
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            json!({"spec": {"containers": [{"name": "b"}]}}),
        );
        check(
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
            json!({"spec": {"containers": [{"name": "b"}, {"name": "a"}]}}),
        );
    }

    #[test]
    fn lists_without_a_key_are_replaced_and_sets_merged() {
        check(
            json!({"spec": {"tolerations": [{"key": "a"}]}, "metadata": {"finalizers": ["x/a", "x/b"]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}, "metadata": {"finalizers": ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}, "metadata": {"finalizers": ["x/b", "x/c"]}}),
        );
    }

    #[test]
    fn directives_replace_and_retain() {
        check(
            json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}}),
        );
        check(
            json!({"metadata": {"labels": {"a": "b"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "c": "d"}}}),
            json!({"metadata": {"labels": {"c": "d"}}}),
        );
        check(
            json!({"spec": {"containers": [{"name": "a"}]}}),
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!("map: map[image:x] does not contain declared merge key: name"),
        );
    }
}
