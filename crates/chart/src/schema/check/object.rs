//! Keywords for objects.

use super::value::missing;
use crate::schema::outcome::{Failure, Kind, quote, quote_all};
use mainstay_yaml::{Map, Value};

use super::{Checker, Scope, Visit};
use crate::schema::draft::Draft;
use crate::schema::node::{Extra, NodeId, Requirement};

impl Checker<'_> {
    pub(super) fn object(&self, visit: &mut Visit<'_, '_>, map: &Map) {
        let node = visit.node;
        let size = map.len() as i64;
        visit.check_minimum("minProperties", size, node.min_properties);
        visit.check_maximum("maxProperties", size, node.max_properties);
        let absent = missing(map, &node.required);
        match absent.as_slice() {
            [] => {}
            [one] => visit.fail(format!("missing property {}", quote(one))),
            several => visit.fail(format!("missing properties {}", quote_all(several))),
        }
        if visit.can_stop() {
            return;
        }
        self.dependencies(visit, map);
        self.properties(visit, map);
        if node.draft == Draft::D4 {
            return;
        }
        self.property_names(visit, map);
        if node.draft == Draft::D6 {
            return;
        }
        let applicable = node
            .dependent_schemas
            .iter()
            .filter(|(name, _)| map.contains_key(*name));
        for (_, schema) in applicable {
            let result = self.evaluate_same_value(visit, *schema, "", false);
            visit.failures.extend(result.err());
        }
        for (name, names) in node
            .dependent_required
            .iter()
            .filter(|(name, _)| map.contains_key(*name))
        {
            visit.fail_if_missing(map, name, names);
        }
    }

    pub(super) fn dependencies(&self, visit: &mut Visit<'_, '_>, map: &Map) {
        for (name, requirement) in visit
            .node
            .dependencies
            .iter()
            .filter(|(name, _)| map.contains_key(*name))
        {
            match requirement {
                Requirement::Names(names) => visit.fail_if_missing(map, name, names),
                Requirement::Schema(schema) => {
                    let result = self.evaluate_same_value(visit, *schema, "", false);
                    visit.failures.extend(result.err());
                }
            }
        }
    }

    pub(super) fn properties(&self, visit: &mut Visit<'_, '_>, map: &Map) {
        let node = visit.node;
        let mut additional = Vec::new();
        for (name, value) in map {
            if visit.can_stop() {
                return;
            }
            self.add_steps(node.pattern_properties.len() * (4 + name.len() / 8));
            let patterns = node
                .pattern_properties
                .iter()
                .filter(|(regex, _)| regex.is_match(name));
            let mut schemas: Vec<NodeId> = node.properties.get(name).copied().into_iter().collect();
            schemas.extend(patterns.map(|(_, schema)| *schema));
            if schemas.is_empty() {
                match node.additional_properties {
                    None => continue,
                    Some(Extra::Allowed(true)) => {}
                    Some(Extra::Allowed(false)) => additional.push(name.clone()),
                    Some(Extra::Schema(schema)) => schemas.push(schema),
                }
            }
            for schema in schemas {
                let result = self.evaluate_part(visit, schema, value, name.clone());
                visit.failures.extend(result.err());
            }
            visit.unevaluated.properties.remove(name);
        }
        if !additional.is_empty() {
            visit.fail(format!(
                "additional properties {} not allowed",
                quote_all(&additional)
            ));
        }
    }

    /// Validates each property name as a separate document.
    pub(super) fn property_names(&self, visit: &mut Visit<'_, '_>, map: &Map) {
        let Some(schema) = visit.node.property_names else {
            return;
        };
        for name in map.keys() {
            let scope = Scope {
                node: schema,
                keyword: "",
                value_id: 0,
                depth: visit.scope.depth + 1,
                parent: None,
            };
            if let Err(failure) = self.validate(&scope, &Value::from(name.as_str()), &[], false, false) {
                let causes = if matches!(failure.kind, Kind::Group) {
                    failure.causes
                } else {
                    vec![failure]
                };
                let kind = Kind::Text(format!("invalid propertyName {}", quote(name)));
                visit.failures.push(Failure {
                    at: Vec::new(),
                    kind,
                    causes,
                });
            }
        }
    }
}
