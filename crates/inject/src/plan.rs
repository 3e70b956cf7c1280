//! Plans the edits of a pod spec. Independent of its text.

use crate::item::Item;
use crate::profile::{INITIALIZER, INITIALIZER_IMAGE, SERVICE_MESH, SERVICE_MESH_IMAGE};
use crate::request::{InjectionRequest, MeshAnnotations};
use crate::{Options, Profile};

/// An edit of a pod spec. Edits are applied in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PodEdit {
    /// Removes all items with `name` from `list`.
    Remove { list: &'static str, name: &'static str },
    /// Appends `mount` to the `volumeMounts` of every item of `lists` without a mount of that name.
    Mount {
        lists: &'static [&'static str],
        mount: Item,
    },
    /// Inserts `item` into `list`.
    Insert {
        list: &'static str,
        item: Item,
        end: End,
    },
    /// Appends `item` to `list`, unless an item of that name exists.
    InsertIfAbsent { list: &'static str, item: Item },
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

const INIT_CONTAINERS: &str = "initContainers";

/// Returns the edits that inject what is requested.
pub(crate) fn plan(request: &InjectionRequest, options: &Options) -> Vec<PodEdit> {
    let profile = options.profile;
    let mut edits = Vec::new();
    if request.initializer {
        edits.push(PodEdit::Remove {
            list: INIT_CONTAINERS,
            name: INITIALIZER,
        });
    }
    if request.mesh.is_some() {
        edits.push(PodEdit::Remove {
            list: INIT_CONTAINERS,
            name: SERVICE_MESH,
        });
    }
    if request.initializer {
        edits.push(mount_edit(profile));
        let item = initializer_container(request, options);
        edits.push(PodEdit::Insert {
            list: INIT_CONTAINERS,
            item,
            end: End::First,
        });
    }
    if let Some(mesh) = &request.mesh {
        let item = service_mesh_container(mesh, options);
        edits.push(PodEdit::Insert {
            list: INIT_CONTAINERS,
            item,
            end: End::Last,
        });
    }
    if !edits.is_empty() {
        edits.push(PodEdit::InsertIfAbsent {
            list: "volumes",
            item: shared_volume(profile),
        });
    }
    edits
}

fn mount_edit(profile: &Profile) -> PodEdit {
    let lists: &[&str] = if profile.mount_in_init_containers {
        &["containers", INIT_CONTAINERS]
    } else {
        &["containers"]
    };
    PodEdit::Mount {
        lists,
        mount: volume_mount(profile, profile.mount_read_only),
    }
}

fn volume_mount(profile: &Profile, read_only: bool) -> Item {
    let mut entries = vec![
        ("name", Item::text(profile.volume)),
        ("mountPath", Item::text(profile.mount_path)),
    ];
    if read_only {
        entries.push(("readOnly", Item::Bool(true)));
    }
    Item::Map(entries)
}

fn shared_volume(profile: &Profile) -> Item {
    let medium = profile.volume_medium.map(|medium| ("medium", Item::text(medium)));
    Item::Map(vec![
        ("name", Item::text(profile.volume)),
        ("emptyDir", Item::Map(medium.into_iter().collect())),
    ])
}

fn initializer_container(request: &InjectionRequest, options: &Options) -> Item {
    let profile = options.profile;
    let namespace = options.coordinator_namespace.as_deref().unwrap_or("default");
    let host = profile.coordinator_host.replace("{namespace}", namespace);
    let mut env = vec![env_var("COORDINATOR_HOST", &host)];
    if profile.extended && request.mesh.is_none() {
        env.push(env_var("CONTRAST_SERVICE_MESH_DISABLED", "true"));
    }
    let mut entries = vec![
        ("name", Item::text(INITIALIZER)),
        ("image", Item::text(options.images.resolve(INITIALIZER_IMAGE))),
        ("env", Item::List(env)),
    ];
    if profile.extended {
        entries.push(("resources", memory_resources("300Mi", true)));
        entries.push(("securityContext", Item::Map(vec![net_admin_capability()])));
    } else {
        entries.push(("resources", memory_resources("50Mi", false)));
    }
    entries.push(("volumeMounts", Item::List(vec![volume_mount(profile, false)])));
    Item::Map(entries)
}

fn service_mesh_container(mesh: &MeshAnnotations, options: &Options) -> Item {
    let profile = options.profile;
    let mut entries = vec![
        ("name", Item::text(SERVICE_MESH)),
        ("image", Item::text(options.images.resolve(SERVICE_MESH_IMAGE))),
        ("restartPolicy", Item::text("Always")),
    ];
    if profile.extended {
        entries.push(("args", Item::List(vec![Item::text("-l"), Item::text("debug")])));
    }
    let env = mesh_env_vars(mesh, profile.env_prefix);
    if !env.is_empty() {
        entries.push(("env", Item::List(env)));
    }
    if let Some(port) = mesh
        .admin_port
        .trim()
        .parse()
        .ok()
        .filter(|_| !mesh.admin_port.is_empty())
    {
        let port = vec![
            ("name", Item::text("contrast-admin")),
            ("containerPort", Item::Int(port)),
        ];
        entries.push(("ports", Item::List(vec![Item::Map(port)])));
    }
    if profile.extended {
        entries.push(("resources", memory_resources("500Mi", true)));
    }
    let privileged = ("privileged", Item::Bool(true));
    entries.push((
        "securityContext",
        Item::Map(vec![privileged, net_admin_capability()]),
    ));
    if profile.extended {
        entries.push(("startupProbe", startup_probe()));
    }
    entries.push(("volumeMounts", Item::List(vec![volume_mount(profile, false)])));
    Item::Map(entries)
}

/// Returns variables for the annotations with a value, in a fixed order.
fn mesh_env_vars(mesh: &MeshAnnotations, prefix: &str) -> Vec<Item> {
    [
        ("ADMIN_PORT", &mesh.admin_port),
        ("INGRESS_PROXY_CONFIG", &mesh.ingress),
        ("EGRESS_PROXY_CONFIG", &mesh.egress),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| env_var(&format!("{prefix}{name}"), value))
    .collect()
}

fn env_var(name: &str, value: &str) -> Item {
    Item::Map(vec![("name", Item::text(name)), ("value", Item::text(value))])
}

fn memory_resources(size: &str, limited: bool) -> Item {
    let quantity = || Item::Map(vec![("memory", Item::text(size))]);
    let mut entries = vec![("requests", quantity())];
    if limited {
        entries.push(("limits", quantity()));
    }
    Item::Map(entries)
}

fn net_admin_capability() -> (&'static str, Item) {
    let add = Item::List(vec![Item::text("NET_ADMIN")]);
    ("capabilities", Item::Map(vec![("add", add)]))
}

fn startup_probe() -> Item {
    let command = ["test", "-f", "/ready"].map(Item::text);
    Item::Map(vec![
        ("exec", Item::Map(vec![("command", Item::List(command.to_vec()))])),
        ("initialDelaySeconds", Item::Int(1)),
        ("periodSeconds", Item::Int(5)),
        ("failureThreshold", Item::Int(5)),
    ])
}
