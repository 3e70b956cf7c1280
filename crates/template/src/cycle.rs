//! Maps that contain themselves: takes note of every map written to, and when the outermost [`CycleScope`] ends frees those that only
//! reach each other.
//!
//! Values are counted references, so a template can leak memory with `set . "self" .`. Only a map that is written to after it was
//! made can close a cycle, and every write goes through `Map::entries_mut`, so those maps are all there is to look at. What they
//! reach is counted: a container held more often than the containers in reach hold it is held from outside, and so is all it
//! reaches; the rest is garbage and is emptied. Objects are opaque: what one holds counts as held from outside.

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
    /// At this length the dead are dropped, so that a long run's list stays in proportion to what is alive.
    prune_at: usize,
}

/// While one lives, maps written to on this thread are noted; when the outermost ends, cycles among them are freed.
///
/// [`execute`](crate::execute) opens one of its own. Open one around it where the values outlive the run, and drop it after them.
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
            free(maps.iter().filter_map(Weak::upgrade).collect());
        }
    }
}

/// Notes a map that is about to be written to for the first time.
pub(crate) fn note(map: &Rc<MapCell>) {
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

/// A container met on the way, and how often other containers met hold it.
struct Met {
    container: Container,
    within: usize,
}

#[derive(Clone)]
enum Container {
    Map(Rc<MapCell>),
    List(Rc<ListData>),
}

impl Container {
    fn of(value: &Value) -> Option<Self> {
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

    /// How often it is held, this handle not counted.
    fn held(&self) -> usize {
        match self {
            Self::Map(map) => Rc::strong_count(map) - 1,
            Self::List(list) => Rc::strong_count(list) - 1,
        }
    }

    fn for_each_child(&self, mut visit: impl FnMut(Container)) {
        match self {
            Self::Map(map) => {
                if let Ok(data) = map.try_borrow() {
                    data.entries.values().filter_map(Self::of).for_each(&mut visit);
                }
            }
            Self::List(list) => list.items.iter().filter_map(Self::of).for_each(&mut visit),
        }
    }
}

fn free(roots: Vec<Rc<MapCell>>) {
    if roots.is_empty() {
        return;
    }
    let met = count(roots);
    let kept = reachable_from_outside(&met);
    for (address, met) in &met {
        // All are still held by `met`, so emptying one drops none in the middle of another's drop.
        if !kept.contains(address)
            && let Container::Map(map) = &met.container
            && let Ok(mut data) = map.try_borrow_mut()
        {
            data.entries.clear();
        }
    }
}

/// Everything in reach of the roots.
fn count(roots: Vec<Rc<MapCell>>) -> HashMap<usize, Met> {
    let mut met: HashMap<usize, Met> = HashMap::new();
    let mut pending = Vec::new();
    for root in roots {
        let container = Container::Map(root);
        pending.push(container.clone());
        met.insert(container.address(), Met { container, within: 0 });
    }
    while let Some(container) = pending.pop() {
        container.for_each_child(|child| match met.entry(child.address()) {
            Entry::Occupied(mut known) => known.get_mut().within += 1,
            Entry::Vacant(new) => {
                pending.push(child.clone());
                new.insert(Met {
                    container: child,
                    within: 1,
                });
            }
        });
    }
    met
}

fn reachable_from_outside(met: &HashMap<usize, Met>) -> HashSet<usize> {
    let outside = |met: &&Met| met.container.held() > met.within;
    let mut pending: Vec<Container> = met
        .values()
        .filter(outside)
        .map(|met| met.container.clone())
        .collect();
    let mut kept = HashSet::new();
    while let Some(container) = pending.pop() {
        if kept.insert(container.address()) {
            container.for_each_child(|child| pending.push(child));
        }
    }
    kept
}
