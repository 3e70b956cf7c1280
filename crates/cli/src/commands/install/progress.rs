//! Progress of components: bars on a terminal, a line per change otherwise.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use mainstay_cluster::install::{ComponentOutcome, InstallEvent};
use mainstay_manifest::ComponentName;

use crate::commands::escape_control_characters;
use crate::ui::{BarRow, Bars};

/// Shows the progress of all components until it is dropped.
pub(crate) struct ComponentDisplay {
    state: Mutex<State>,
}

struct State {
    bars: Option<Bars>,
    rows: BTreeMap<ComponentName, BarRow>,
    reasons: BTreeMap<ComponentName, String>,
}

impl ComponentDisplay {
    /// Starts the display.
    pub(crate) fn new() -> Self {
        let bars = std::io::stdout().is_terminal().then(Bars::new);
        Self {
            state: Mutex::new(State {
                bars,
                rows: BTreeMap::new(),
                reasons: BTreeMap::new(),
            }),
        }
    }

    /// Shows an event.
    pub(crate) fn show(&self, event: InstallEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            InstallEvent::Applying(component, objects) => {
                state.update(component, 0, objects, &format!("applying {objects} objects"));
            }
            InstallEvent::Applied(..) => {}
            InstallEvent::Waiting {
                component,
                ready,
                total,
                reason,
            } => state.update(component, ready, total, &format!("waiting for {reason}")),
            InstallEvent::Finished(component, outcome) => state.finish(component, &outcome),
            InstallEvent::Pruned(id) => state.line(&format!("pruned {} {}", id.kind, id.name)),
        }
    }
}

impl State {
    /// Sets the row of a component; without a terminal, a line if the text is new.
    fn update(&mut self, component: ComponentName, done: usize, total: usize, note: &str) {
        if self.bars.is_none() {
            let last = self.reasons.insert(component, note.to_owned());
            if last.as_deref() != Some(note) {
                self.line(&format!("{}: {note}", component.title()));
            }
            return;
        }
        let row = BarRow {
            label: component.title().to_owned(),
            done,
            total,
            note: note.to_owned(),
        };
        self.rows.insert(component, row);
        let rows: Vec<BarRow> = self.rows.values().cloned().collect();
        if let Some(bars) = &mut self.bars {
            bars.show(&rows);
        }
    }

    fn finish(&mut self, component: ComponentName, outcome: &ComponentOutcome) {
        match outcome {
            ComponentOutcome::Ready { objects, written } => {
                let note = format!("ready ({objects} objects, {written} written)");
                self.update(component, *objects, *objects, &note);
            }
            ComponentOutcome::Failed(error) => {
                self.update(component, 0, 1, "failed");
                self.line(&error.to_string());
            }
            ComponentOutcome::Skipped(failed) => {
                let note = format!("skipped because {} failed", failed.title());
                self.update(component, 0, 1, &note);
            }
        }
    }

    fn line(&self, text: &str) {
        let text = escape_control_characters(text);
        match &self.bars {
            Some(bars) => bars.print(&text),
            // A closed stdout is reported by the next print.
            None => drop(writeln!(anstream::stdout(), "{text}")),
        }
    }
}
