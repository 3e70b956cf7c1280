//! Collection of reference cycles. Records every map that is written to, and frees maps that are only
//! reachable from each other when the outermost [`CycleScope`] ends.
//!
//! Values are reference-counted, so a template can leak memory with `set . "self" .`. Only a map that is
//! written to after its creation can close a cycle, and every write uses `Map::entries_mut`, so only those
//! maps are examined. References from reachable containers are counted: a container with more references
//! than that is referenced from outside, and so is everything reachable from it. All other containers are
//! garbage and are emptied. Objects are opaque: their references count as external.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::{Rc, Weak};

use crate::value::{ListData, MapData, Value};

type MapCell = RefCell<MapData>;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static WRITTEN: RefCell<Written> = const { RefCell::new(Written { maps: Vec::new(), prune_at: 1024 }) };
}

struct Written {
    maps: Vec<Weak<MapCell>>,
    /// Length of the list at which dropped maps are removed from it. Keeps its length proportional to the
    /// number of live maps.
    prune_at: usize,
}

/// Records maps that are written to on this thread, and frees cycles among them when the outermost scope is
/// dropped.
///
/// [`execute`](crate::execute) opens its own scope. Open an enclosing scope if values outlive the run, and
/// drop it after these values.
#[must_use = "cycles are freed when it is dropped"]
pub struct CycleScope(());

impl CycleScope {
    /// Opens a scope.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for CycleScope {
    fn drop(&mut self) {
        let depth = DEPTH.get().saturating_sub(1);
        DEPTH.set(depth);
        if depth == 0 {
            let maps = WRITTEN.with_borrow_mut(|written| std::mem::take(&mut written.maps));
            free_cycles(maps.iter().filter_map(Weak::upgrade).collect());
        }
    }
}

/// Records a map that is about to be written to for the first time.
pub(crate) fn record_write(map: &Rc<MapCell>) {
    if DEPTH.get() == 0 {
        return;
    }
    WRITTEN.with_borrow_mut(|written| {
        if written.maps.len() >= written.prune_at {
            written.maps.retain(|map| map.strong_count() > 0);
            written.prune_at = 1024.max(2 * written.maps.len());
        }
        written.maps.push(Rc::downgrade(map));
    });
}

/// A reachable container and the number of references to it from other reachable containers.
struct Reached {
    container: Container,
    within: usize,
}

#[derive(Clone)]
enum Container {
    Map(Rc<MapCell>),
    List(Rc<ListData>),
}

impl Container {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Map(map) => Some(Self::Map(map.cell())),
            Value::List(list) => Some(Self::List(list.data())),
            _ => None,
        }
    }

    fn address(&self) -> usize {
        match self {
            Self::Map(map) => Rc::as_ptr(map).cast::<u8>() as usize,
            Self::List(list) => Rc::as_ptr(list).cast::<u8>() as usize,
        }
    }

    /// Returns the number of references, without the one that this handle holds.
    fn reference_count(&self) -> usize {
        match self {
            Self::Map(map) => Rc::strong_count(map) - 1,
            Self::List(list) => Rc::strong_count(list) - 1,
        }
    }

    fn for_each_child(&self, mut visit: impl FnMut(Container)) {
        match self {
            Self::Map(map) => {
                if let Ok(data) = map.try_borrow() {
                    data.entries
                        .values()
                        .filter_map(Self::from_value)
                        .for_each(&mut visit);
                }
            }
            Self::List(list) => list
                .items
                .iter()
                .filter_map(Self::from_value)
                .for_each(&mut visit),
        }
    }
}

fn free_cycles(roots: Vec<Rc<MapCell>>) {
    if roots.is_empty() {
        return;
    }
    let reached = collect_reachable(roots);
    let kept = reachable_from_outside(&reached);
    for (address, reached) in &reached {
        // All containers are still referenced by `reached`, so emptying one does not drop another one
        // recursively.
        if !kept.contains(address)
            && let Container::Map(map) = &reached.container
            && let Ok(mut data) = map.try_borrow_mut()
        {
            data.entries.clear();
        }
    }
}

/// Returns all containers that are reachable from the roots, by address.
fn collect_reachable(roots: Vec<Rc<MapCell>>) -> HashMap<usize, Reached> {
    let mut reached: HashMap<usize, Reached> = HashMap::new();
    let mut pending = Vec::new();
    for root in roots {
        let container = Container::Map(root);
        pending.push(container.clone());
        reached.insert(container.address(), Reached { container, within: 0 });
    }
    while let Some(container) = pending.pop() {
        container.for_each_child(|child| match reached.entry(child.address()) {
            Entry::Occupied(mut known) => known.get_mut().within += 1,
            Entry::Vacant(new) => {
                pending.push(child.clone());
                new.insert(Reached {
                    container: child,
                    within: 1,
                });
            }
        });
    }
    reached
}

fn reachable_from_outside(reached: &HashMap<usize, Reached>) -> HashSet<usize> {
    let outside = |reached: &&Reached| reached.container.reference_count() > reached.within;
    let mut pending: Vec<Container> = reached
        .values()
        .filter(outside)
        .map(|reached| reached.container.clone())
        .collect();
    let mut kept = HashSet::new();
    while let Some(container) = pending.pop() {
        if kept.insert(container.address()) {
            container.for_each_child(|child| pending.push(child));
        }
    }
    kept
}
