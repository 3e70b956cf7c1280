//! The API itself: takes one request, gives one answer. A function of the state alone: no sockets, no time but the state's.

use bytes::Bytes;
use http::Method;

use crate::auth::{self, Impersonation, User};
use crate::context::{Context, FieldValidation, WebhookCall, WebhookReply};
use crate::state::State;
use crate::status::{Result, Status};
use crate::watch::Watch;

mod discovery;
mod patch;
mod query;
mod read;
mod reply;
mod review;
mod route;
mod scale;
mod subresource;
pub(crate) use subresource::bind;
mod token;
mod write;

pub use query::Query;
pub(crate) use query::decode_percent;
pub(crate) use read::LAG;
pub use reply::ApiResponse;
pub use route::{Route, parse_route};
pub(crate) use scale::selector_text;

/// A request, without its transport.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    /// Who calls, as faults and traces name it.
    pub client: String,
    /// Who calls, as authentication found it.
    pub user: User,
    /// Whom the caller wants to be.
    pub impersonation: Option<Impersonation>,
    /// Method.
    pub method: Method,
    /// Path.
    pub path: String,
    /// Query.
    pub query: Query,
    /// `Accept`.
    pub accept: String,
    /// `Content-Type`.
    pub content_type: String,
    /// `User-Agent`.
    pub user_agent: String,
    /// Body.
    pub body: Bytes,
    /// Answers from outside that earlier tries asked for.
    pub webhook_replies: Vec<(WebhookCall, WebhookReply)>,
}

/// What a request leads to.
#[derive(Debug)]
pub enum Outcome {
    /// A complete response.
    Response(ApiResponse),
    /// An answer that never ends by itself.
    Watch(Box<Watch>),
    /// Somebody outside must be asked; then the request is to be tried again.
    CallWebhook(WebhookCall),
}

/// Handles one request.
pub fn handle(state: &mut State, call: &ApiRequest) -> Outcome {
    let random = state.random.clone();
    let ips = touches_services(call).then(|| state.ips.savepoint());
    let mut context = context(call);
    let outcome = match dispatch(state, call, &mut context) {
        Ok(outcome) => outcome,
        Err(_) if context.pending.is_some() => Outcome::Response(ApiResponse::empty(500)),
        Err(status) => Outcome::Response(ApiResponse::from_status(&status)),
    };
    let refused =
        context.pending.is_some() || matches!(&outcome, Outcome::Response(answer) if answer.code >= 400);
    match ips {
        // What was handed out to a Service that was not stored is free again.
        Some(mark) if refused => state.ips.rollback(mark),
        Some(mark) => state.ips.commit(mark),
        None => {}
    }
    if let Some(question) = context.pending.take() {
        // The try is forgotten, chance included, so that the next one meets the same world.
        state.random = random;
        return Outcome::CallWebhook(question);
    }
    match outcome {
        Outcome::Response(answer) => Outcome::Response(answer.with_warnings(&context.warnings)),
        other => other,
    }
}

fn touches_services(call: &ApiRequest) -> bool {
    call.method != Method::GET && call.path.contains("/services")
}

fn dispatch(state: &mut State, call: &ApiRequest, context: &mut Context) -> Result<Outcome> {
    let route = parse_route(&call.path);
    let place = admit(state, call, &route, context)?;
    let Some(place) = place else {
        return Ok(Outcome::Response(discovery::answer(state, call, &route)));
    };
    let verb = place.verb(&call.method, &call.query);
    let Some(verb) = verb else {
        return Ok(Outcome::Response(ApiResponse::from_status(
            &Status::no_such_method(),
        )));
    };
    let Some(resource) = state
        .resources
        .find(&place.group, &place.version, &place.plural)
        .cloned()
    else {
        return Ok(Outcome::Response(unknown_resource(state, place)));
    };
    if resource.namespaced
        && place.namespace.is_empty()
        && !matches!(verb, crate::resource::Verb::List | crate::resource::Verb::Watch)
    {
        return Ok(Outcome::Response(ApiResponse::not_found()));
    }
    if !resource.namespaced && !place.namespace.is_empty() {
        return Ok(Outcome::Response(ApiResponse::not_found()));
    }
    if let crate::resource::Shape::Custom(custom) = &resource.shape
        && let Some(warning) = &custom.warning
    {
        context.warn(warning.as_str());
    }
    let request = Request {
        call,
        place,
        resource: &resource,
        verb,
    };
    if !place.subresource.is_empty() {
        return subresource::handle(state, &request, context).map(Outcome::Response);
    }
    if !resource.verbs.contains(verb) {
        return Ok(Outcome::Response(ApiResponse::from_status(
            &Status::no_such_method(),
        )));
    }
    request.handle(state, context)
}

/// Finds out in whose name the request goes on and whether that user may; gives the place it names, if it names one.
fn admit<'a>(
    state: &mut State,
    call: &ApiRequest,
    route: &'a Route,
    context: &mut Context,
) -> Result<Option<&'a route::ResourcePath>> {
    if call.impersonation.is_none() && call.user.is_master() {
        return Ok(route.resource_path());
    }
    let method = call.method.as_str().to_ascii_lowercase();
    let name = route.resource_path().map_or(String::new(), |place| {
        place.name_or_selected(&call.method, &call.query)
    });
    let attempt = match route.resource_path() {
        Some(place) => place.attempt(place.authorised_verb(&call.method, &call.query, &name), &name),
        None => auth::Attempt::on_path(&method, &call.path),
    };
    if let Some(wanted) = &call.impersonation {
        context.user = auth::impersonate(state, &call.user, wanted, &attempt)?;
    }
    auth::authorize(state, &context.user, &attempt)?;
    Ok(route.resource_path())
}

/// Builtin groups answer for themselves; everything else falls through to the last handler.
fn unknown_resource(state: &State, place: &route::ResourcePath) -> ApiResponse {
    let version = state.resources.version(&place.group, &place.version);
    let builtin = |resource: &std::sync::Arc<crate::resource::Resource>| {
        matches!(resource.shape, crate::resource::Shape::Builtin(_))
    };
    if version.is_some_and(|version| version.resources.iter().any(builtin)) {
        return ApiResponse::from_status(&Status::no_such_resource());
    }
    ApiResponse::not_found()
}

/// One request, understood.
struct Request<'a> {
    call: &'a ApiRequest,
    place: &'a route::ResourcePath,
    resource: &'a std::sync::Arc<crate::resource::Resource>,
    verb: crate::resource::Verb,
}

impl Request<'_> {
    fn handle(&self, state: &mut State, context: &mut Context) -> Result<Outcome> {
        use crate::resource::Verb;
        Ok(Outcome::Response(match self.verb {
            Verb::Get => read::get(state, self)?,
            Verb::List => read::list(state, self)?,
            Verb::Watch => return read::watch(state, self).map(|watch| Outcome::Watch(Box::new(watch))),
            Verb::Create if review::is_review(self.resource) => review::create(state, self, context)?,
            Verb::Create if self.resource.is("", "bindings") => {
                subresource::bind_by_body(state, self, context)?
            }
            Verb::Create => write::create(state, self, context)?,
            Verb::Update => write::update(state, self, context)?,
            Verb::Patch => patch::patch(state, self, context)?,
            Verb::Delete => write::delete(state, self, context)?,
            Verb::DeleteCollection => write::delete_collection(state, self, context)?,
        }))
    }

    fn target(&self) -> crate::write::Target<'_> {
        crate::write::Target {
            resource: self.resource,
            namespace: &self.place.namespace,
            name: &self.place.name,
        }
    }
}

/// A field manager's name has at most this many characters.
const MANAGER_LENGTH: usize = 128;

fn context(call: &ApiRequest) -> Context {
    let query = &call.query;
    let named = query.get("fieldManager");
    let manager = match named {
        "" => call
            .user_agent
            .split('/')
            .next()
            .unwrap_or("")
            .chars()
            .take(MANAGER_LENGTH)
            .collect(),
        named => named.to_owned(),
    };
    Context {
        user: call.user.clone(),
        dry_run: query.get("dryRun") == "All",
        manager,
        manager_named: !named.is_empty(),
        force: query.get("force") == "true",
        field_validation: match query.get("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        },
        options: options(query),
        webhook_replies: call.webhook_replies.clone(),
        ..Context::default()
    }
}

/// What a query asks of a write, as webhooks are shown it.
fn options(query: &Query) -> serde_json::Value {
    let mut options = serde_json::Map::new();
    if let Some(dry) = query.find("dryRun") {
        options.insert("dryRun".into(), vec![dry].into());
    }
    for key in ["fieldManager", "fieldValidation"] {
        if let Some(text) = query.find(key).filter(|text| !text.is_empty()) {
            options.insert(key.into(), text.into());
        }
    }
    options.into()
}

/// Reads a body as a JSON tree.
fn parse_body(body: &[u8], what: &str) -> Result<serde_json::Value> {
    serde_json::from_slice(body).map_err(|error| {
        let _ = error;
        Status::bad_request(format!("error decoding {what}: json parse error"))
    })
}
