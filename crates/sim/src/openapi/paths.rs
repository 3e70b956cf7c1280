//! The paths and operations of a resource, with the query parameters that `kubectl` checks.

use serde_json::{Map, Value, json};

use crate::resource::{Resource, Verb, Verbs};

/// Adds the paths of a resource and its subresources.
pub(super) fn add_resource(resource: &Resource, schema: &str, paths: &mut Map<String, Value>) {
    let base = super::group_path(&resource.group, &resource.version);
    let all = format!("/{base}/{}", resource.plural);
    let many = if resource.namespaced {
        format!("/{base}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        all.clone()
    };
    let kind = json!({"group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind});
    let one = format!("{many}/{{name}}");
    let operations = |verbs: Verbs, which: &[Verb], kind: &Value| operations(verbs, which, kind, schema);
    insert_path(
        paths,
        many,
        operations(
            resource.verbs,
            &[Verb::List, Verb::Create, Verb::DeleteCollection],
            &kind,
        ),
    );
    if resource.namespaced {
        insert_path(paths, all, operations(resource.verbs, &[Verb::List], &kind));
    }
    let single = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
    insert_path(paths, one.clone(), operations(resource.verbs, &single, &kind));
    for sub in &resource.subresources {
        let own = sub.version.is_empty();
        let (group, version) = if own {
            (&resource.group, &resource.version)
        } else {
            (&sub.group, &sub.version)
        };
        let kind = json!({"group": &**group, "version": &**version, "kind": &*sub.kind});
        let which = [Verb::Create, Verb::Get, Verb::Update, Verb::Patch];
        insert_path(
            paths,
            format!("{one}/{}", sub.name),
            operations(sub.verbs, &which, &kind),
        );
    }
}

fn insert_path(paths: &mut Map<String, Value>, path: String, operations: Map<String, Value>) {
    if !operations.is_empty() {
        paths.insert(path, Value::Object(operations));
    }
}

fn operations(verbs: Verbs, which: &[Verb], kind: &Value, schema: &str) -> Map<String, Value> {
    which
        .iter()
        .filter(|verb| verbs.contains(**verb))
        .map(|verb| (method(*verb).to_owned(), operation(*verb, kind, schema)))
        .collect()
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "post",
        Verb::Delete | Verb::DeleteCollection => "delete",
        Verb::Get | Verb::List | Verb::Watch => "get",
        Verb::Patch => "patch",
        Verb::Update => "put",
    }
}

/// Returns the query parameters of a verb and their types. `kubectl` checks that `fieldValidation` and
/// `dryRun` are listed before it uses them.
fn parameters(verb: Verb) -> &'static [(&'static str, &'static str)] {
    match verb {
        Verb::Create | Verb::Update => &[
            ("dryRun", "string"),
            ("fieldManager", "string"),
            ("fieldValidation", "string"),
        ],
        Verb::Patch => &[
            ("dryRun", "string"),
            ("fieldManager", "string"),
            ("fieldValidation", "string"),
            ("force", "boolean"),
        ],
        Verb::Delete => &[
            ("dryRun", "string"),
            ("gracePeriodSeconds", "integer"),
            ("orphanDependents", "boolean"),
            ("propagationPolicy", "string"),
        ],
        Verb::List | Verb::Watch | Verb::DeleteCollection => &[
            ("allowWatchBookmarks", "boolean"),
            ("continue", "string"),
            ("fieldSelector", "string"),
            ("labelSelector", "string"),
            ("limit", "integer"),
            ("resourceVersion", "string"),
            ("resourceVersionMatch", "string"),
            ("sendInitialEvents", "boolean"),
            ("timeoutSeconds", "integer"),
            ("watch", "boolean"),
        ],
        Verb::Get => &[],
    }
}

fn operation(verb: Verb, kind: &Value, schema: &str) -> Value {
    let parameters: Vec<Value> = parameters(verb)
        .iter()
        .map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}}))
        .collect();
    let content = json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
    json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": verb.name(),
        "x-kubernetes-group-version-kind": kind,
    })
}
