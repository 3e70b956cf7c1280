//! Reads: get, list with pagination, and watch.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ResourceRequest;
use super::response::ApiResponse;
use crate::field::{FieldErrors, Path};
use crate::object::Object;
use crate::representation::{self, Representation};
use crate::resource::Shape;
use crate::selector::Selector;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::table::{self, Include};
use crate::watch::{Watch, WatchOptions};

mod token;

use token::Token;

/// Minimum duration of a watch without a timeout; the real server chooses a random value up to twice as long.
const MIN_WATCH_SECONDS: i64 = 1800;

pub(super) fn representation_for(request: &ResourceRequest<'_>) -> Result<(Representation, Include)> {
    let Some(form) = Representation::accepted(&request.call.accept) else {
        let text = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor";
        return Err(Status::new(406, "NotAcceptable", text));
    };
    let include = Include::parse(request.call.query.get("includeObject"));
    let include = include.ok_or_else(|| Status::bad_request("unrecognized includeObject value"))?;
    Ok((form, include))
}

pub(super) fn get(state: &State, request: &ResourceRequest<'_>) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    let requested = parse_version(request, "resourceVersion")?;
    check_not_future(state, requested)?;
    let target = request.target();
    let key = target.key();
    let found = match stale_objects(state, request) {
        Some(past) => match past.get(key.as_str()) {
            Some(then) => then.clone(),
            None => state.store.get(&request.resource.table, &key).cloned(),
        },
        None => state.store.get(&request.resource.table, &key).cloned(),
    };
    let object = found.ok_or_else(|| target.not_found())?;
    Ok(ApiResponse::object(
        state,
        request.resource,
        &object,
        200,
        form,
        include,
    ))
}

/// Earlier states of changed objects by key; `None` if the object did not exist.
type PastObjects = std::collections::BTreeMap<Box<str>, Option<Arc<Object>>>;

/// Returns the earlier states of the objects that changed within the lag of a stale read; `None` if the
/// read is not stale.
fn stale_objects(state: &State, request: &ResourceRequest<'_>) -> Option<PastObjects> {
    let lag: u64 = request.call.query.get(LAG_PARAMETER).parse().ok()?;
    let then = state.store.version().saturating_sub(lag);
    state.store.changes_after(&request.resource.table, then)
}

/// Internal query parameter that contains the lag of a [`Fault::Stale`](crate::fault::Fault::Stale).
/// Clients do not send it.
pub(crate) const LAG_PARAMETER: &str = "\u{0}lag";

fn parse_version(request: &ResourceRequest<'_>, key: &str) -> Result<Option<u64>> {
    match request.call.query.get(key) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let detail = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
            let mut errors = FieldErrors::new();
            errors.invalid(&Path::new(key), text, detail);
            Status::invalid(Qualified { group: "", name: "" }, "", &errors)
        }),
    }
}

/// Rejects a resource version that is greater than the current one.
fn check_not_future(state: &State, requested: Option<u64>) -> Result<()> {
    let current = state.store.version();
    match requested.filter(|requested| *requested > current) {
        Some(requested) => Err(Status::timeout(
            &format!("Too large resource version: {requested}, current: {current}"),
            1,
        )
        .cause("ResourceVersionTooLarge", "Too large resource version", "")),
        None => Ok(()),
    }
}

struct ListOptions {
    selector: Selector,
    limit: usize,
    token: Option<Token>,
    exact: Option<u64>,
}

fn list_options(state: &State, request: &ResourceRequest<'_>) -> Result<ListOptions> {
    let query = &request.call.query;
    let selector = parse_selector(request)?;
    check_list_options(request)?;
    let limit: i64 = match query.get("limit") {
        "" => 0,
        text => text.parse().map_err(|_| invalid_number(text))?,
    };
    let token = match query.get("continue") {
        "" => None,
        text => Some(Token::decode(text)?),
    };
    let requested = parse_version(request, "resourceVersion").map_err(|_| invalid_list_version(request))?;
    if token.is_some() && requested.is_some_and(|requested| requested != 0) {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let exact = match query.get("resourceVersionMatch") {
        "Exact" => requested,
        "" if limit > 0 => requested.filter(|requested| *requested > 0),
        _ => None,
    };
    if token.is_none() {
        check_not_future(state, requested)?;
    }
    Ok(ListOptions {
        selector,
        limit: usize::try_from(limit).unwrap_or(0),
        token,
        exact,
    })
}

fn invalid_number(text: &str) -> Status {
    Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
}

fn check_list_options(request: &ResourceRequest<'_>) -> Result<()> {
    let query = &request.call.query;
    let mut errors = FieldErrors::new();
    let path = Path::new("resourceVersionMatch");
    let matching = query.get("resourceVersionMatch");
    if !matching.is_empty() {
        if query.get("resourceVersion").is_empty() {
            errors.forbidden(
                &path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        }
        if !query.get("continue").is_empty() {
            errors.forbidden(
                &path,
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.not_supported(&path, matching, &["Exact", "NotOlderThan", ""]);
        }
        if matching == "Exact" && query.get("resourceVersion") == "0" {
            errors.forbidden(
                &path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            );
        }
    }
    if query.find("sendInitialEvents").is_some() {
        errors.forbidden(
            &Path::new("sendInitialEvents"),
            "sendInitialEvents is forbidden for list",
        );
    }
    reject_options(&errors)
}

fn reject_options(errors: &FieldErrors) -> Result<()> {
    let kind = Qualified {
        group: "meta.k8s.io",
        name: "ListOptions",
    };
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(kind, "", errors))
    }
}

pub(super) fn parse_selector(request: &ResourceRequest<'_>) -> Result<Selector> {
    let query = &request.call.query;
    Selector::parse(
        request.resource,
        query.get("labelSelector"),
        query.get("fieldSelector"),
    )
}

/// One page of a list.
struct Page {
    objects: Vec<Arc<Object>>,
    version: u64,
    next: String,
    remaining: Option<u64>,
}

pub(super) fn list(state: &State, request: &ResourceRequest<'_>) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    let options = list_options(state, request)?;
    let page = read_page(state, request, &options)?;
    let meta = representation::list_meta(page.version, &page.next, page.remaining);
    Ok(match form {
        Representation::Whole => whole_list(request, &page, &meta),
        Representation::Metadata => {
            let items: Vec<Value> = page
                .objects
                .iter()
                .map(|object| representation::partial(object))
                .collect();
            // Go encodes a nil list as null.
            let items = if items.is_empty() {
                Value::Null
            } else {
                items.into()
            };
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": items});
            ApiResponse::json(200, &list)
        }
        Representation::Table => {
            let objects: Vec<&Object> = page.objects.iter().map(|object| &**object).collect();
            ApiResponse::json(
                200,
                &table::render(state, request.resource, &objects, &meta, true, include),
            )
        }
    })
}

fn whole_list(request: &ResourceRequest<'_>, page: &Page, meta: &Value) -> ApiResponse {
    let resource = request.resource;
    let (kind, api_version) = (json!(resource.list_kind()), json!(resource.api_version()));
    let mut out = format!("{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":{meta},\"items\":[")
        .into_bytes();
    out.reserve(page.objects.iter().map(|object| object.size() + 1).sum());
    let as_stored = matches!(resource.shape, Shape::Builtin(_)) && crate::convert::is_as_stored(resource);
    for (at, object) in page.objects.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if as_stored {
            object.write_item(&mut out);
        } else {
            representation::write_whole(resource, object, &mut out);
        }
    }
    out.extend_from_slice(b"]}");
    ApiResponse::bytes(200, "application/json", out.into())
}

fn read_page(state: &State, request: &ResourceRequest<'_>, options: &ListOptions) -> Result<Page> {
    let current = state.store.version();
    let version = match (&options.token, options.exact) {
        (Some(token), _) => token.version.unwrap_or(current),
        (None, Some(exact)) => exact,
        (None, None) => current,
    };
    let past = if version == current {
        stale_objects(state, request)
    } else {
        state.store.changes_after(&request.resource.table, version)
    };
    if past.is_none() && version != current {
        return Err(expired_status(options));
    }
    let after = options.token.as_ref().map(|token| token.after.as_str());
    let past = past.unwrap_or_default();
    let all = objects_at(state, request, &past, after);
    let mut matching = all.filter(|object| options.selector.matches(object));
    let limit = if options.limit == 0 {
        usize::MAX
    } else {
        options.limit
    };
    let objects: Vec<Arc<Object>> = matching.by_ref().take(limit).collect();
    let remaining = matching.count() as u64;
    let next = match objects.last().filter(|_| remaining > 0) {
        Some(last) => Token {
            version: Some(version),
            after: last.key(),
        }
        .encode(),
        None => String::new(),
    };
    Ok(Page {
        objects,
        version,
        next,
        remaining: options.selector.is_empty().then_some(remaining),
    })
}

/// Returns the objects of the request after the key `after`, with the earlier states in `past`.
fn objects_at<'a>(
    state: &'a State,
    request: &ResourceRequest<'_>,
    past: &'a PastObjects,
    after: Option<&str>,
) -> Box<dyn Iterator<Item = Arc<Object>> + 'a> {
    let namespace = &request.path.namespace;
    let present = state.store.range(&request.resource.table, namespace, after);
    if past.is_empty() {
        return Box::new(present.map(|(_, object)| Arc::clone(object)));
    }
    let prefix = if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}/")
    };
    let mut all: std::collections::BTreeMap<String, Arc<Object>> = present
        .filter(|(key, _)| !past.contains_key(*key))
        .map(|(key, object)| (key.to_owned(), Arc::clone(object)))
        .collect();
    for (key, then) in past {
        let selected = key.starts_with(&prefix) && after.is_none_or(|after| &**key > after);
        if let Some(then) = then.as_ref().filter(|_| selected) {
            all.insert(key.to_string(), Arc::clone(then));
        }
    }
    Box::new(all.into_values())
}

fn expired_status(options: &ListOptions) -> Status {
    let Some(token) = &options.token else {
        return Status::expired("The resourceVersion for the provided list is too old.");
    };
    let latest = Token {
        version: None,
        after: token.after.clone(),
    }
    .encode();
    let text = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the \
                continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with \
                the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the \
                first chunk was returned and now may show up in the list.";
    Status::expired(text).with_continue(&latest)
}

pub(super) fn watch(state: &State, request: &ResourceRequest<'_>) -> Result<Watch> {
    let (form, _) = representation_for(request)?;
    let query = &request.call.query;
    let selector = parse_selector(request)?;
    check_watch_options(request)?;
    let requested = parse_version(request, "resourceVersion").map_err(|_| invalid_watch_version(request))?;
    let requested = requested.unwrap_or(0);
    let send_initial = query
        .find("sendInitialEvents")
        .map(|_| query.flag("sendInitialEvents"));
    let bookmarks = query.flag("allowWatchBookmarks");
    let initial = send_initial.unwrap_or(requested == 0);
    let seconds = match query.get("timeoutSeconds") {
        "" => MIN_WATCH_SECONDS,
        text => text.parse().map_err(|_| invalid_number(text))?,
    };
    let seconds = if seconds == 0 { MIN_WATCH_SECONDS } else { seconds };
    let from = if requested == 0 {
        state.store.version()
    } else {
        requested
    };
    Ok(Watch::begin(
        state,
        WatchOptions {
            resource: Arc::clone(request.resource),
            namespace: request.path.namespace.clone(),
            selector,
            form,
            bookmarks,
            initial,
            bookmark_initial_end: send_initial == Some(true) && bookmarks,
            from,
            deadline: state.now().plus_seconds(seconds),
            fault: None,
            client: request.call.client.clone(),
        },
    ))
}

fn invalid_list_version(request: &ResourceRequest<'_>) -> Status {
    Status::bad_request(format!(
        "invalid resource version: {}",
        invalid_version_text(request)
    ))
}

/// Returns the status for an invalid version in a watch, which differs from that of a list.
fn invalid_watch_version(request: &ResourceRequest<'_>) -> Status {
    Status::unknown(invalid_version_text(request))
}

fn invalid_version_text(request: &ResourceRequest<'_>) -> String {
    let text = request.call.query.get("resourceVersion");
    let detail = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
    let mut errors = FieldErrors::new();
    errors.invalid(&Path::new("resourceVersion"), text, detail);
    errors.aggregate()
}

fn check_watch_options(request: &ResourceRequest<'_>) -> Result<()> {
    let query = &request.call.query;
    let mut errors = FieldErrors::new();
    let path = Path::new("resourceVersionMatch");
    let matching = query.get("resourceVersionMatch");
    let initial = query.find("sendInitialEvents").is_some();
    if initial && matching != "NotOlderThan" {
        errors.forbidden(
            &path,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    }
    if !matching.is_empty() {
        if !initial {
            errors.forbidden(
                &path,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if matching != "NotOlderThan" {
            errors.not_supported(&path, matching, &["NotOlderThan"]);
        }
        if !query.get("continue").is_empty() {
            errors.forbidden(
                &path,
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
    }
    reject_options(&errors)
}
