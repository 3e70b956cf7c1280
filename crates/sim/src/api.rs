//! Handling of API requests. It depends on the state only and uses neither sockets nor the system clock.

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
mod response;
mod review;
mod route;
mod scale;
mod subresource;
pub(crate) use subresource::bind;
mod token;
mod write;

pub use query::Query;
pub(crate) use query::decode_percent;
pub(crate) use read::LAG_PARAMETER;
pub use response::ApiResponse;
pub use route::{Route, parse_route};
pub(crate) use scale::selector_text;

/// A request, independent of its transport.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    /// Name of the client in fault rules and traces.
    pub client: String,
    /// The authenticated user.
    pub user: User,
    /// The user to impersonate.
    pub impersonation: Option<Impersonation>,
    /// HTTP method.
    pub method: Method,
    /// Path of the URL, without the query.
    pub path: String,
    /// Parsed query of the URL.
    pub query: Query,
    /// Value of the `Accept` header, or empty.
    pub accept: String,
    /// Value of the `Content-Type` header, or empty.
    pub content_type: String,
    /// Value of the `User-Agent` header, or empty.
    pub user_agent: String,
    /// Request body.
    pub body: Bytes,
    /// Replies to the webhook calls of earlier attempts.
    pub webhook_replies: Vec<(WebhookCall, WebhookReply)>,
}

/// Result of a request.
#[derive(Debug)]
pub enum Outcome {
    /// A complete response.
    Response(ApiResponse),
    /// A watch stream.
    Watch(Box<Watch>),
    /// A webhook must be called before the request is retried.
    CallWebhook(WebhookCall),
}

/// Handles one request.
pub fn handle(state: &mut State, call: &ApiRequest) -> Outcome {
    let random = state.random.clone();
    let savepoint = modifies_services(call).then(|| state.ips.savepoint());
    let mut context = request_context(call);
    let outcome = match dispatch(state, call, &mut context) {
        Ok(outcome) => outcome,
        Err(_) if context.pending.is_some() => Outcome::Response(ApiResponse::empty(500)),
        Err(status) => Outcome::Response(ApiResponse::from_status(&status)),
    };
    let rejected =
        context.pending.is_some() || matches!(&outcome, Outcome::Response(response) if response.code >= 400);
    match savepoint {
        // Releases addresses that were allocated for a Service that was not stored.
        Some(savepoint) if rejected => state.ips.rollback(savepoint),
        Some(savepoint) => state.ips.commit(savepoint),
        None => {}
    }
    if let Some(call) = context.pending.take() {
        // Restores the random number generator, so that the retry produces the same values.
        state.random = random;
        return Outcome::CallWebhook(call);
    }
    match outcome {
        Outcome::Response(response) => Outcome::Response(response.with_warnings(&context.warnings)),
        other => other,
    }
}

fn modifies_services(call: &ApiRequest) -> bool {
    call.method != Method::GET && call.path.contains("/services")
}

fn dispatch(state: &mut State, call: &ApiRequest, context: &mut Context) -> Result<Outcome> {
    let route = parse_route(&call.path);
    let path = authorize_request(state, call, &route, context)?;
    let Some(path) = path else {
        return Ok(Outcome::Response(discovery::respond(state, call, &route)));
    };
    let verb = path.verb(&call.method, &call.query);
    let Some(verb) = verb else {
        return Ok(Outcome::Response(ApiResponse::from_status(
            &Status::no_such_method(),
        )));
    };
    let Some(resource) = state
        .resources
        .find(&path.group, &path.version, &path.plural)
        .cloned()
    else {
        return Ok(Outcome::Response(unknown_resource_response(state, path)));
    };
    if resource.namespaced
        && path.namespace.is_empty()
        && !matches!(verb, crate::resource::Verb::List | crate::resource::Verb::Watch)
    {
        return Ok(Outcome::Response(ApiResponse::not_found()));
    }
    if !resource.namespaced && !path.namespace.is_empty() {
        return Ok(Outcome::Response(ApiResponse::not_found()));
    }
    if let crate::resource::Shape::Custom(custom) = &resource.shape
        && let Some(warning) = &custom.warning
    {
        context.warn(warning.as_str());
    }
    if resource.is("", "endpoints") {
        context.warn(ENDPOINTS_DEPRECATED);
    }
    let request = ResourceRequest {
        call,
        path,
        resource: &resource,
        verb,
    };
    if !path.subresource.is_empty() {
        return subresource::handle(state, &request, context).map(Outcome::Response);
    }
    if !resource.verbs.contains(verb) {
        return Ok(Outcome::Response(ApiResponse::from_status(
            &Status::no_such_method(),
        )));
    }
    request.handle(state, context)
}

/// Authorizes the request, after impersonation if requested. Returns the resource path if the route has one.
fn authorize_request<'a>(
    state: &mut State,
    call: &ApiRequest,
    route: &'a Route,
    context: &mut Context,
) -> Result<Option<&'a route::ResourcePath>> {
    if call.impersonation.is_none() && call.user.is_master() {
        return Ok(route.resource_path());
    }
    let method = call.method.as_str().to_ascii_lowercase();
    let name = route.resource_path().map_or(String::new(), |path| {
        path.name_or_selected(&call.method, &call.query)
    });
    let attributes = match route.resource_path() {
        Some(path) => path.attributes(path.authorization_verb(&call.method, &call.query, &name), &name),
        None => auth::Attributes::for_path(&method, &call.path),
    };
    if let Some(impersonation) = &call.impersonation {
        context.user = auth::impersonate(state, &call.user, impersonation, &attributes)?;
    }
    auth::authorize(state, &context.user, &attributes)?;
    Ok(route.resource_path())
}

/// Returns the response for a resource that is not served: a `NotFound` status if the version has built-in
/// resources, otherwise the generic 404.
fn unknown_resource_response(state: &State, path: &route::ResourcePath) -> ApiResponse {
    let version = state.resources.version(&path.group, &path.version);
    let builtin = |resource: &std::sync::Arc<crate::resource::Resource>| {
        matches!(resource.shape, crate::resource::Shape::Builtin(_))
    };
    if version.is_some_and(|version| version.resources.iter().any(builtin)) {
        return ApiResponse::from_status(&Status::no_such_resource());
    }
    ApiResponse::not_found()
}

/// A request for a served resource.
struct ResourceRequest<'a> {
    call: &'a ApiRequest,
    path: &'a route::ResourcePath,
    resource: &'a std::sync::Arc<crate::resource::Resource>,
    verb: crate::resource::Verb,
}

impl ResourceRequest<'_> {
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
            namespace: &self.path.namespace,
            name: &self.path.name,
        }
    }
}

/// Warning about requests for Endpoints.
const ENDPOINTS_DEPRECATED: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

/// Maximum length of a field manager's name.
const MAX_MANAGER_LEN: usize = 128;

fn request_context(call: &ApiRequest) -> Context {
    let query = &call.query;
    let named = query.get("fieldManager");
    let manager = match named {
        "" => call
            .user_agent
            .split('/')
            .next()
            .unwrap_or("")
            .chars()
            .take(MAX_MANAGER_LEN)
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
        options: write_options(query),
        webhook_replies: call.webhook_replies.clone(),
        ..Context::default()
    }
}

/// Returns the write options in the query, as shown to webhooks.
fn write_options(query: &Query) -> serde_json::Value {
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

/// Parses a body as JSON. `what` names the expected kind in the error.
fn parse_body(body: &[u8], what: &str) -> Result<serde_json::Value> {
    // The real server's text does not depend on the error either.
    serde_json::from_slice(body)
        .map_err(|_| Status::bad_request(format!("error decoding {what}: json parse error")))
}
