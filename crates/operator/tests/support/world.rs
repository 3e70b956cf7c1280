//! The world of a scenario: takes steps (create, patch, label, delete), answers questions, and lets time pass until they have the
//! expected answer. Knows neither what is tried nor what is behind it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use mainstay_mesh::Settings;
use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::at::{At, INSTALLED_KINDS, MESH_KINDS};
use super::calls::{self, Call, Mark, Sort};
use super::operator::{Promises, Running};
use super::real::Real;
use super::sim::Sim;

/// Where the operator itself lives.
pub const OPERATOR_NAMESPACE: &str = "sail-operator";

/// Namespaces that are there before anybody does anything.
pub const NAMESPACES: [&str; 4] = ["istio-system", "istio-cni", "ztunnel", OPERATOR_NAMESPACE];

/// What is behind a world.
pub enum Backing {
    Sim(Sim),
    Real(Arc<Real>),
}

/// A cluster with an operator in it.
pub struct World {
    pub backing: Backing,
    client: Client,
    operator: RefCell<Option<Running>>,
    settings: RefCell<Settings>,
    /// What the operator's plans would have broken.
    pub promises: Promises,
    namespaces: RefCell<Vec<String>>,
    serial: Cell<u64>,
}

impl World {
    /// An operator on the simulator, with settings that are usual.
    pub async fn simulated() -> Self {
        let world = Self::without_operator(Sim::new(0)).await;
        world.start_operator().await;
        world
    }

    /// An operator on the simulator, whose istiods inject pods.
    pub async fn simulated_injecting() -> Self {
        let world = Self::without_operator(Sim::new(0)).await;
        if let Backing::Sim(sim) = &world.backing {
            sim.inject();
        }
        world.start_operator().await;
        world
    }

    /// The simulator with our kinds in it, and nobody who serves them yet.
    pub async fn without_operator(sim: Sim) -> Self {
        let client = sim.client("tester");
        let world = Self::over(Backing::Sim(sim), client);
        world.furnish().await;
        world
    }

    /// The simulator as it is.
    pub fn furnished(sim: Sim) -> Self {
        let client = sim.client("tester");
        Self::over(Backing::Sim(sim), client)
    }

    /// An operator on the real API server that the trials of this program share.
    pub async fn real() -> Self {
        Self::on(Real::shared(false).await).await
    }

    /// The same with real istiods that inject pods.
    pub async fn real_injecting() -> Self {
        Self::on(Real::shared(true).await).await
    }

    async fn on(real: Arc<Real>) -> Self {
        let client = real.client("tester");
        let world = Self::over(Backing::Real(real), client);
        world.furnish().await;
        world.start_operator().await;
        world.sweep().await;
        world
    }

    fn over(backing: Backing, client: Client) -> Self {
        Self {
            backing,
            client,
            operator: RefCell::new(None),
            settings: RefCell::new(Settings {
                operator_namespace: OPERATOR_NAMESPACE.into(),
                ..Settings::default()
            }),
            promises: Promises::default(),
            namespaces: RefCell::new(Vec::new()),
            serial: Cell::new(0),
        }
    }

    /// Our definitions and the namespaces, unless they are there.
    async fn furnish(&self) {
        for definition in super::made::definitions() {
            let at = At::of(&definition);
            if self.get(&at).await.is_none() {
                self.create(definition).await;
            }
        }
        for kind in MESH_KINDS {
            let at = At::cluster(kind, "");
            self.until(&format!("{kind} is served"), async |world| {
                let (code, _) = world.call("GET", &at.collection(), "", None).await;
                (code == 200).then_some(()).ok_or(format!("code {code}"))
            })
            .await;
        }
        for name in NAMESPACES {
            if self.get(&At::cluster("Namespace", name)).await.is_none() {
                self.create(super::made::namespace(name, "")).await;
            }
        }
        for object in super::made::roles(calls::OPERATOR, OPERATOR_NAMESPACE) {
            if self.get(&At::of(&object)).await.is_none() {
                self.create(object).await;
            }
        }
    }

    // ---- the operator

    /// Starts the operator; it runs until [`stop_operator`](Self::stop_operator) or the end of the world.
    #[allow(clippy::unused_async, reason = "it reads as every other step of a scenario")]
    pub async fn start_operator(&self) {
        let client = match &self.backing {
            Backing::Sim(sim) => sim.limited_client(calls::OPERATOR),
            Backing::Real(real) => real.client(calls::OPERATOR),
        };
        let clock = match &self.backing {
            Backing::Sim(sim) => sim.clock(),
            Backing::Real(_) => super::operator::wall_clock(),
        };
        let settings = self.settings.borrow().clone();
        let running = Running::start(client, settings, clock, &self.promises);
        let old = self.operator.replace(Some(running));
        assert!(old.is_none(), "two operators");
    }

    /// Ends the operator as SIGTERM does.
    pub async fn stop_operator(&self) {
        let running = self.operator.take();
        if let Some(running) = running {
            running.stop().await;
        }
    }

    /// Ends the operator as SIGKILL does.
    pub fn kill_operator(&self) {
        if let Some(running) = self.operator.take() {
            running.kill();
        }
    }

    /// A new process, with nothing in its memory.
    pub async fn restart_operator(&self) {
        self.kill_operator();
        self.start_operator().await;
    }

    /// What the operator said when it ended by itself.
    pub fn operator_ended(&self) -> bool {
        self.operator.borrow().as_ref().is_some_and(Running::has_ended)
    }

    /// Other settings; the operator is started anew with them.
    pub async fn with_settings(&self, change: impl FnOnce(&mut Settings)) {
        self.stop_operator().await;
        change(&mut self.settings.borrow_mut());
        self.start_operator().await;
    }

    // ---- steps

    /// Creates an object that must be accepted.
    pub async fn create(&self, object: Value) -> Value {
        let at = At::of(&object);
        self.try_create(object)
            .await
            .unwrap_or_else(|refusal| panic!("{at}: {refusal}"))
    }

    /// Creates an object, or gives the server's words.
    pub async fn try_create(&self, object: Value) -> Result<Value, String> {
        let path = At::of(&object).collection();
        answer(self.call("POST", &path, "application/json", Some(object)).await)
    }

    /// Changes an object by a merge patch that must be accepted.
    pub async fn patch(&self, at: &At, patch: Value) -> Value {
        self.try_patch(at, patch)
            .await
            .unwrap_or_else(|refusal| panic!("{at}: {refusal}"))
    }

    /// Changes an object by a merge patch, or gives the server's words.
    pub async fn try_patch(&self, at: &At, patch: Value) -> Result<Value, String> {
        answer(
            self.call("PATCH", &at.path(), "application/merge-patch+json", Some(patch))
                .await,
        )
    }

    /// Changes an object's status.
    pub async fn patch_status(&self, at: &At, patch: Value) -> Value {
        let place = format!("{}/status", at.path());
        let change = json!({"status": patch});
        answer(
            self.call("PATCH", &place, "application/merge-patch+json", Some(change))
                .await,
        )
        .unwrap_or_else(|refusal| panic!("{at}: {refusal}"))
    }

    /// Changes an object by a JSON patch.
    pub async fn edit(&self, at: &At, patch: Value) -> Value {
        answer(
            self.call("PATCH", &at.path(), "application/json-patch+json", Some(patch))
                .await,
        )
        .unwrap_or_else(|refusal| panic!("{at}: {refusal}"))
    }

    /// Deletes an object; one that is not there is no trouble.
    pub async fn delete(&self, at: &At) {
        let (code, body) = self.call("DELETE", &at.path(), "", None).await;
        assert!(code < 300 || code == 404, "{at}: {body}");
    }

    /// A namespace of this scenario, with these labels (`a=b c=d`). Gives its name.
    pub async fn namespace(&self, labels: &str) -> String {
        self.serial.set(self.serial.get() + 1);
        let name = match &self.backing {
            Backing::Sim(_) => format!("app-{}", self.serial.get()),
            Backing::Real(real) => format!("app-{}", real.next()),
        };
        self.create(super::made::namespace(&name, labels)).await;
        self.namespaces.borrow_mut().push(name.clone());
        name
    }

    /// Replaces labels of a namespace: `a=b` sets one, `a=` takes it away.
    pub async fn label(&self, namespace: &str, labels: &str) {
        let labels: serde_json::Map<String, Value> = labels
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| {
                let value = if value.is_empty() {
                    Value::Null
                } else {
                    value.into()
                };
                (key.to_owned(), value)
            })
            .collect();
        let at = At::cluster("Namespace", namespace);
        self.patch(&at, json!({"metadata": {"labels": labels}})).await;
    }

    /// How the pods of a workload behave from now on.
    pub fn behave(&self, namespace: &str, workload: &str, script: Script) {
        match &self.backing {
            Backing::Sim(sim) => sim.cluster.with(|state| {
                state.scripts.add_workload(namespace, workload, script);
            }),
            Backing::Real(real) => real.behave(namespace, workload, script),
        }
    }

    // ---- questions

    pub async fn get(&self, at: &At) -> Option<Value> {
        match self.call("GET", &at.path(), "", None).await {
            (200, object) => Some(object),
            (404, _) => None,
            (code, body) => panic!("{at}: {code} {body}"),
        }
    }

    pub async fn list(&self, kind: &str, selector: &str) -> Vec<Value> {
        let path = format!("{}?labelSelector={selector}", At::cluster(kind, "").collection());
        let (code, mut body) = self.call("GET", &path, "", None).await;
        assert_eq!(code, 200, "{path}: {body}");
        match body["items"].take() {
            Value::Array(items) => items,
            other => panic!("{path}: {other}"),
        }
    }

    /// A client of the tester.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether time is the machine's.
    pub fn is_real(&self) -> bool {
        matches!(self.backing, Backing::Real(_))
    }

    /// The raw conversation: method, path and body in, code and body out.
    pub async fn call(&self, method: &str, path: &str, content: &str, body: Option<Value>) -> (u16, Value) {
        if let Backing::Sim(sim) = &self.backing {
            sim.catch_up();
        }
        let mut request = Request::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let reply = self
            .client
            .send(request.body(Body::from(bytes)).unwrap())
            .await
            .unwrap();
        let code = reply.status().as_u16();
        let bytes = reply.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    // ---- time

    /// How long to wait for what should happen.
    fn patience(&self) -> Duration {
        match &self.backing {
            Backing::Sim(_) => Duration::from_mins(15),
            // A process must start, and those of others may be busy.
            Backing::Real(real) if real.injects => Duration::from_secs(90),
            Backing::Real(_) => Duration::from_secs(20),
        }
    }

    /// Who has waited for long looks more seldom.
    fn glance(&self, waited: Duration) -> Duration {
        match &self.backing {
            Backing::Sim(_) if waited > Duration::from_mins(5) => Duration::from_secs(5),
            Backing::Sim(_) => Duration::from_millis(200),
            Backing::Real(_) => Duration::from_millis(40),
        }
    }

    /// How long nothing must happen before we believe that nothing will.
    fn silence(&self) -> Duration {
        match &self.backing {
            Backing::Sim(_) => Duration::from_secs(20),
            Backing::Real(_) => Duration::from_millis(600),
        }
    }

    /// A grace period that is long enough to be seen and short enough to be waited for.
    pub fn grace(&self) -> u64 {
        match &self.backing {
            Backing::Sim(_) => 30,
            Backing::Real(real) if real.injects => 2,
            Backing::Real(_) => 3,
        }
    }

    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until `check` is content; its last complaint is what the test fails with.
    pub async fn until(&self, what: &str, check: impl AsyncFn(&World) -> Result<(), String>) {
        let begin = tokio::time::Instant::now();
        loop {
            let complaint = match check(self).await {
                Ok(()) => return,
                Err(complaint) => complaint,
            };
            assert!(
                begin.elapsed() <= self.patience(),
                "{what}: not after {:?}: {complaint}\n{}",
                begin.elapsed(),
                self.last_words().await
            );
            tokio::time::sleep(self.glance(begin.elapsed())).await;
            self.revive_operator().await;
        }
    }

    /// Waits until an object is there and `check` is content with it.
    pub async fn until_object(&self, at: &At, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        let found = RefCell::new(Value::Null);
        self.until(&format!("{at} {what}"), async |world| {
            let object = world.get(at).await.ok_or("not there")?;
            let content = check(&object);
            let complaint = brief(&object);
            found.replace(object);
            content.then_some(()).ok_or(complaint)
        })
        .await;
        found.into_inner()
    }

    pub async fn until_there(&self, at: &At) -> Value {
        self.until_object(at, "is there", |_| true).await
    }

    pub async fn until_gone(&self, at: &At) {
        self.until(&format!("{at} is gone"), async |world| {
            match world.get(at).await {
                None => Ok(()),
                Some(object) => Err(format!("there: {}", brief(&object))),
            }
        })
        .await;
    }

    /// Waits until a condition is as written: `Ready=True`, `InUse=False/NotReferencedByAnything`.
    pub async fn until_condition(&self, at: &At, wanted: &str) -> Value {
        self.until_object(at, wanted, |object| has_condition(object, wanted))
            .await
    }

    pub async fn until_state(&self, at: &At, state: &str) -> Value {
        self.until_object(at, &format!("state {state}"), |object| {
            object["status"]["state"] == state
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await
    }

    /// Waits until the operator has asked nothing for a while.
    pub async fn settle(&self) {
        let begin = tokio::time::Instant::now();
        loop {
            let mark = self.mark();
            tokio::time::sleep(self.silence()).await;
            let asked = self.calls(&mark);
            if calls::asked(&asked).is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < self.patience() * 4,
                "never quiet: {:#?}",
                calls::asked(&asked)
            );
        }
    }

    /// Waits until the operator has asked nothing for longer than it holds anything back; one that has died is started again.
    pub async fn rest(&self) {
        let begin = tokio::time::Instant::now();
        loop {
            let mark = self.mark();
            for _ in 0..70 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.revive_operator().await;
            }
            let asked = self.calls(&mark);
            if calls::asked(&asked).is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_hours(1),
                "never quiet: {:#?}",
                calls::asked(&asked)
            );
        }
    }

    /// As a Deployment would: a process that ended is started again.
    async fn revive_operator(&self) {
        if let Backing::Sim(sim) = &self.backing
            && (sim.bury(calls::OPERATOR) || self.operator_ended())
        {
            self.restart_operator().await;
        }
    }

    /// Every watch ends in time, and none can go on from where it was.
    pub async fn expire_watches(&self) {
        let Backing::Sim(sim) = &self.backing else {
            panic!("only the simulator forgets on demand");
        };
        for _ in 0..75 {
            sim.compact();
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        self.rest().await;
    }

    /// From the beginning of the world.
    #[allow(clippy::unused_self, reason = "it reads as every other step of a scenario")]
    pub fn mark_start(&self) -> Mark {
        Mark::Trace(0)
    }

    /// From now on.
    pub fn mark(&self) -> Mark {
        match &self.backing {
            Backing::Sim(sim) => sim.mark(),
            Backing::Real(real) => real.mark(),
        }
    }

    /// What the operator asked since then.
    pub fn calls(&self, mark: &Mark) -> Vec<Call> {
        match (&self.backing, mark) {
            (Backing::Sim(sim), Mark::Trace(from)) => sim.calls(*from),
            (Backing::Real(_), Mark::Audit(audit)) => {
                let entries = audit.entries().unwrap();
                entries.iter().filter_map(calls::of_entry).collect()
            }
            _ => panic!("a mark of another world"),
        }
    }

    /// The operator asks the server nothing because of `act`.
    pub async fn quiet(&self, what: &str, act: impl AsyncFnOnce(&World)) {
        self.settle().await;
        let mark = self.mark();
        act(self).await;
        tokio::time::sleep(self.silence()).await;
        let seen = self.calls(&mark);
        assert_eq!(calls::asked(&seen), [""; 0], "{what}");
    }

    /// How many writes `act` causes, one line each.
    pub async fn writes_of(&self, act: impl AsyncFnOnce(&World)) -> Vec<String> {
        self.settle().await;
        let mark = self.mark();
        act(self).await;
        self.settle().await;
        let seen = self.calls(&mark);
        calls::of_sort(&seen, Sort::Write)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    // ---- the end

    /// Takes away what a trial that failed has left.
    async fn sweep(&self) {
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                let at = At::of(&named(kind, object));
                self.delete(&at).await;
                self.until_gone(&at).await;
            }
        }
        let stays = |space: &&Value| space["status"]["phase"] == "Active";
        let name = |space: &Value| Some(space["metadata"]["name"].as_str()?.to_owned());
        let spaces = self.list("Namespace", "").await;
        let names = spaces.iter().filter(stays).filter_map(name);
        let left: Vec<String> = names.filter(|name| name.starts_with("app-")).collect();
        self.clear(&left).await;
    }

    /// Takes everything of the mesh away as a user would, and looks that nothing is left of it.
    pub async fn end(self) {
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                self.delete(&At::of(&named(kind, object))).await;
            }
        }
        for kind in MESH_KINDS {
            self.until(&format!("no {kind} is left"), async |world| {
                let left = world.list(kind, "").await;
                left.is_empty()
                    .then_some(())
                    .ok_or_else(|| left.iter().map(brief).collect::<Vec<_>>().join("\n"))
            })
            .await;
        }
        self.until("nothing that was installed is left", async |world| {
            let mut left = Vec::new();
            for kind in INSTALLED_KINDS {
                let found = world.list(kind, "managed-by=sail-operator").await;
                left.extend(
                    found
                        .into_iter()
                        .map(|object| At::of(&named(kind, object)).to_string()),
                );
            }
            left.is_empty().then_some(()).ok_or(left.join(", "))
        })
        .await;
        let namespaces = self.namespaces.take();
        self.clear(&namespaces).await;
        for namespace in &namespaces {
            self.delete(&At::cluster("Namespace", namespace)).await;
        }
        self.promises.check();
        assert!(!self.operator_ended(), "the operator ended by itself");
        self.stop_operator().await;
    }

    /// Workloads must not be there any more when the next scenario counts its own. Their namespaces take longer to go, and are
    /// not waited for: they ask for nothing any more.
    async fn clear(&self, namespaces: &[String]) {
        if !matches!(&self.backing, Backing::Real(real) if real.injects) {
            return;
        }
        for namespace in namespaces {
            self.label(namespace, "istio.io/rev= istio-injection=").await;
            for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
                let path = At::inside(kind, namespace, "").collection();
                self.call("DELETE", &path, "", None).await;
            }
        }
        for namespace in namespaces {
            let path = At::inside("Pod", namespace, "").collection();
            self.until(&format!("{namespace} is empty"), async |world| {
                let (_, list) = world.call("GET", &path, "", None).await;
                let left = list["items"].as_array().map_or(0, Vec::len);
                (left == 0).then_some(()).ok_or(format!("{left} pods"))
            })
            .await;
        }
    }

    /// What a reader of a failure wants to see.
    async fn last_words(&self) -> String {
        let mut words = Vec::new();
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                words.push(brief(&named(kind, object)));
            }
        }
        if let Backing::Sim(sim) = &self.backing {
            let calls = sim.calls(0);
            let from = calls.len().saturating_sub(12);
            words.extend(calls[from..].iter().map(|call| call.line.clone()));
        }
        words.push(format!("operator ended: {}", self.operator_ended()));
        words.extend(self.promises.broken());
        words.join("\n")
    }
}

fn answer((code, body): (u16, Value)) -> Result<Value, String> {
    if code < 300 {
        return Ok(body);
    }
    Err(format!("{code} {}", body["message"].as_str().unwrap_or_default()))
}

/// Items of a list do not say their kind.
fn named(kind: &str, mut object: Value) -> Value {
    object["kind"] = kind.into();
    object
}

/// `Type=Status` or `Type=Status/Reason`.
pub fn has_condition(object: &Value, wanted: &str) -> bool {
    let (kind, rest) = wanted.split_once('=').unwrap();
    let (status, reason) = rest.split_once('/').unwrap_or((rest, ""));
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| {
        one["type"] == kind && one["status"] == status && (reason.is_empty() || one["reason"] == reason)
    })
}

/// One line about an object: its state and conditions.
pub fn brief(object: &Value) -> String {
    let conditions: Vec<String> = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            format!(
                "{}={}/{} {}",
                text("type"),
                text("status"),
                text("reason"),
                text("message")
            )
        })
        .collect();
    format!(
        "{} {} gen {} seen {} state {} deleting {} [{}]",
        object["kind"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default(),
        object["metadata"]["generation"],
        object["status"]["observedGeneration"],
        object["status"]["state"],
        object["metadata"]["deletionTimestamp"],
        conditions.join("; ")
    )
}
