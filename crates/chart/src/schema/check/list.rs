//! Keywords for arrays.

use super::value::{duplicates, total_size};
use crate::schema::number::format_count;
use mainstay_yaml::Value;

use super::{Checker, Visit};
use crate::schema::draft::Draft;
use crate::schema::node::{Extra, Items, NodeId};

impl Checker<'_> {
    pub(super) fn list(&self, visit: &mut Visit<'_, '_>, items: &[Value]) {
        let node = visit.node;
        let size = items.len() as i64;
        visit.check_minimum("minItems", size, node.min_items);
        visit.check_maximum("maxItems", size, node.max_items);
        if node.unique_items {
            self.add_steps(8 * total_size(items.iter()));
        }
        if node.unique_items
            && let Some((first, second)) = duplicates(items)
        {
            visit.fail(format!(
                "items at {} and {} are equal",
                format_count(first as i64),
                format_count(second as i64)
            ));
        }
        if node.draft < Draft::D2020 {
            self.items(visit, items);
        } else {
            self.items_2020(visit, items);
        }
        self.contains(visit, items);
    }

    pub(super) fn items(&self, visit: &mut Visit<'_, '_>, items: &[Value]) {
        let (schemas, evaluated): (Vec<NodeId>, usize) = match &visit.node.items {
            None => (Vec::new(), 0),
            Some(Items::All(schema)) => (vec![*schema; items.len()], items.len()),
            Some(Items::ByPosition(list)) => (
                list.iter().take(items.len()).copied().collect(),
                list.len().min(items.len()),
            ),
        };
        self.each(visit, items, &schemas, 0);
        let rest = items.get(evaluated..).unwrap_or_default();
        match visit.node.additional_items {
            Some(Extra::Allowed(false)) if !rest.is_empty() => {
                visit.fail(format!(
                    "last {} additionalItem(s) not allowed",
                    format_count(rest.len() as i64)
                ));
            }
            // The Go library numbers these items from zero.
            Some(Extra::Schema(schema)) => self.each(visit, rest, &vec![schema; rest.len()], 0),
            _ => {}
        }
    }

    pub(super) fn items_2020(&self, visit: &mut Visit<'_, '_>, items: &[Value]) {
        let prefix: Vec<NodeId> = visit
            .node
            .prefix_items
            .iter()
            .take(items.len())
            .copied()
            .collect();
        self.each(visit, items, &prefix, 0);
        if let Some(schema) = visit.node.other_items {
            let rest = items.get(prefix.len()..).unwrap_or_default();
            self.each(visit, rest, &vec![schema; rest.len()], 0);
        }
    }

    pub(super) fn each(&self, visit: &mut Visit<'_, '_>, items: &[Value], schemas: &[NodeId], from: usize) {
        for (index, (item, schema)) in items.iter().zip(schemas).enumerate() {
            let result = self.evaluate_part(visit, *schema, item, (from + index).to_string());
            visit.failures.extend(result.err());
        }
    }

    pub(super) fn contains(&self, visit: &mut Visit<'_, '_>, items: &[Value]) {
        let Some(schema) = visit.node.contains else { return };
        let (mut failures, mut matched) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            if let Err(failure) = self.evaluate_part(visit, schema, item, index.to_string()) {
                failures.push(failure);
                continue;
            }
            matched.push(index);
            if visit.node.draft >= Draft::D2020 {
                visit.unevaluated.items.remove(&index);
            }
        }
        let count = matched.len() as i64;
        let indexes = matched.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let bound = |limit: &str, want: i64| {
            let (want, count) = (format_count(want), format_count(count));
            format!(
                "{limit} {want} items required to match contains schema, but matched {count} items at {indexes}"
            )
        };
        match visit.node.min_contains {
            Some(want) if count < want && count == 0 => {
                let want = format_count(want);
                let text = format!("min {want} items required to match contains schema, but none matched");
                visit.fail_because(text, failures);
            }
            Some(want) if count < want => visit.fail_because(bound("min", want), failures),
            None if count == 0 => visit.fail_because("no items match contains schema".into(), failures),
            _ => {}
        }
        if let Some(want) = visit.node.max_contains.filter(|want| count > *want) {
            visit.fail(bound("max", want));
        }
    }
}
