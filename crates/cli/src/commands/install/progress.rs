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
        Self::with_bars(std::io::stdout().is_terminal().then(Bars::new))
    }

    fn with_bars(bars: Option<Bars>) -> Self {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mainstay_cluster::desired::ObjectId;
    use mainstay_cluster::install::InstallError;
    use serde_json::json;

    use super::*;
    use crate::ui::progress::screen::Screen;

    const COLUMNS: usize = 80;

    /// Shows events on a terminal with 80 columns, and compares the screen after each of them.
    fn check(steps: Vec<(InstallEvent, String)>) {
        let screen = Screen::new(COLUMNS);
        let display = ComponentDisplay::with_bars(Some(Bars::on_screen(&screen)));
        let mut last = String::new();
        for (event, expected) in steps {
            let label = format!("{event:?}");
            display.show(event);
            assert_eq!(screen.lines().join("\n"), expected, "{label}");
            last = expected;
        }
        drop(display);
        assert_eq!(screen.lines().join("\n"), last, "after the end");
    }

    fn id(kind: &str, name: &str) -> ObjectId {
        let metadata = json!({"name": name, "namespace": "istio-system"});
        ObjectId::from_object(&json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata})).unwrap()
    }

    fn waiting(component: ComponentName, reason: &str) -> InstallEvent {
        InstallEvent::Waiting {
            component,
            ready: 1,
            total: 2,
            reason: reason.into(),
        }
    }

    #[test]
    fn an_installation_on_a_terminal() {
        use ComponentName::{Base, Pilot};
        let ready = |objects, written| ComponentOutcome::Ready { objects, written };
        let applying = "Istio core [                   ] 0/16 applying 16 objects";
        let base = "Istio core [===================] 16/16 ready (16 objects, 16 written)";
        let lines = |pilot: &str| format!("{base}\n{pilot}");
        let pilot = "Istiod     [===================] 25/25 ready (25 objects, 3 written)";
        let long = "Deployment istio-system/istiod: 0 of 1 replicas are ready, and this reason is too long";
        check(vec![
            (InstallEvent::Applying(Base, 16), applying.to_owned()),
            (InstallEvent::Applied(Base, 16), applying.to_owned()),
            (InstallEvent::Finished(Base, ready(16, 16)), base.to_owned()),
            (
                InstallEvent::Applying(Pilot, 25),
                lines("Istiod     [                   ]  0/25 applying 25 objects"),
            ),
            (
                waiting(Pilot, long),
                lines("Istiod     [=========>         ]   1/2 waiting for Deployment istio-system/ist…"),
            ),
            (InstallEvent::Finished(Pilot, ready(25, 3)), lines(pilot)),
            (
                InstallEvent::Pruned(id("Deployment", "istio-egressgateway")),
                format!("pruned Deployment istio-egressgateway\n{}", lines(pilot)),
            ),
        ]);
    }

    #[test]
    fn a_failed_installation_on_a_terminal() {
        use ComponentName::{IngressGateways, Pilot};
        let error = InstallError::NotReady {
            component: Pilot,
            after: Duration::from_secs(90),
            unready: vec![(
                id("Deployment", "istiod"),
                "container discovery: ErrImagePull".into(),
            )],
        };
        let reason = "Istiod: not ready after 90 s\n  Deployment istio-system/istiod: container discovery: ErrImagePull";
        check(vec![
            (
                InstallEvent::Applying(Pilot, 25),
                "Istiod [                   ] 0/25 applying 25 objects".to_owned(),
            ),
            (
                InstallEvent::Finished(Pilot, ComponentOutcome::Failed(error)),
                format!("{reason}\nIstiod [                   ] 0/1 failed"),
            ),
            (
                InstallEvent::Finished(IngressGateways, ComponentOutcome::Skipped(Pilot)),
                format!(
                    "{reason}\nIstiod           [                   ] 0/1 failed\n\
                     Ingress gateways [                   ] 0/1 skipped because Istiod failed"
                ),
            ),
        ]);
    }
}
