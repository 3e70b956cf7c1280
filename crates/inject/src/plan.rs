//! Plans the edits of a pod spec. Does not depend on text.

use crate::ask::{Ask, Mesh};
use crate::item::Item;
use crate::profile::{INITIALIZER, INITIALIZER_IMAGE, SERVICE_MESH, SERVICE_MESH_IMAGE};
use crate::{Options, Profile};

/// One edit of a pod spec. They apply in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PodEdit {
    /// Items called `name` leave `list`.
    Drop { list: &'static str, name: &'static str },
    /// Every item of `lists` gets `mount` at the end of its `volumeMounts`, unless it has one of that name.
    Mount {
        lists: &'static [&'static str],
        mount: Item,
    },
    /// `item` joins `list`.
    Put {
        list: &'static str,
        item: Item,
        end: End,
    },
    /// `item` joins `list` at its end, unless one of that name is there.
    Share { list: &'static str, item: Item },
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

const INIT: &str = "initContainers";

/// The edits that give `ask`.
pub(crate) fn plan(ask: &Ask, options: &Options) -> Vec<PodEdit> {
    let profile = options.profile;
    let mut edits = Vec::new();
    if ask.initializer {
        edits.push(PodEdit::Drop {
            list: INIT,
            name: INITIALIZER,
        });
    }
    if ask.mesh.is_some() {
        edits.push(PodEdit::Drop {
            list: INIT,
            name: SERVICE_MESH,
        });
    }
    if ask.initializer {
        edits.push(mount_everywhere(profile));
        let item = initializer(ask, options);
        edits.push(PodEdit::Put {
            list: INIT,
            item,
            end: End::First,
        });
    }
    if let Some(mesh) = &ask.mesh {
        let item = service_mesh(mesh, options);
        edits.push(PodEdit::Put {
            list: INIT,
            item,
            end: End::Last,
        });
    }
    if !edits.is_empty() {
        edits.push(PodEdit::Share {
            list: "volumes",
            item: volume(profile),
        });
    }
    edits
}

fn mount_everywhere(profile: &Profile) -> PodEdit {
    let lists: &[&str] = if profile.mount_in_init_containers {
        &["containers", INIT]
    } else {
        &["containers"]
    };
    PodEdit::Mount {
        lists,
        mount: mount(profile, profile.mount_read_only),
    }
}

fn mount(profile: &Profile, read_only: bool) -> Item {
    let mut entries = vec![
        ("name", Item::text(profile.volume)),
        ("mountPath", Item::text(profile.mount_path)),
    ];
    if read_only {
        entries.push(("readOnly", Item::Bool(true)));
    }
    Item::Map(entries)
}

fn volume(profile: &Profile) -> Item {
    let medium = profile.volume_medium.map(|medium| ("medium", Item::text(medium)));
    Item::Map(vec![
        ("name", Item::text(profile.volume)),
        ("emptyDir", Item::Map(medium.into_iter().collect())),
    ])
}

fn initializer(ask: &Ask, options: &Options) -> Item {
    let profile = options.profile;
    let namespace = options.coordinator_namespace.as_deref().unwrap_or("default");
    let host = profile.coordinator_host.replace("{namespace}", namespace);
    let mut env = vec![variable("COORDINATOR_HOST", &host)];
    if profile.extended && ask.mesh.is_none() {
        env.push(variable("CONTRAST_SERVICE_MESH_DISABLED", "true"));
    }
    let mut entries = vec![
        ("name", Item::text(INITIALIZER)),
        ("image", Item::text(options.images.resolve(INITIALIZER_IMAGE))),
        ("env", Item::List(env)),
    ];
    if profile.extended {
        entries.push(("resources", memory("300Mi", true)));
        entries.push(("securityContext", Item::Map(vec![net_admin()])));
    } else {
        entries.push(("resources", memory("50Mi", false)));
    }
    entries.push(("volumeMounts", Item::List(vec![mount(profile, false)])));
    Item::Map(entries)
}

fn service_mesh(mesh: &Mesh, options: &Options) -> Item {
    let profile = options.profile;
    let mut entries = vec![
        ("name", Item::text(SERVICE_MESH)),
        ("image", Item::text(options.images.resolve(SERVICE_MESH_IMAGE))),
        ("restartPolicy", Item::text("Always")),
    ];
    if profile.extended {
        entries.push(("args", Item::List(vec![Item::text("-l"), Item::text("debug")])));
    }
    let env = mesh_env(mesh, profile.env_prefix);
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
        entries.push(("resources", memory("500Mi", true)));
    }
    let privileged = ("privileged", Item::Bool(true));
    entries.push(("securityContext", Item::Map(vec![privileged, net_admin()])));
    if profile.extended {
        entries.push(("startupProbe", ready_probe()));
    }
    entries.push(("volumeMounts", Item::List(vec![mount(profile, false)])));
    Item::Map(entries)
}

/// Only what was given, in this order.
fn mesh_env(mesh: &Mesh, prefix: &str) -> Vec<Item> {
    [
        ("ADMIN_PORT", &mesh.admin_port),
        ("INGRESS_PROXY_CONFIG", &mesh.ingress),
        ("EGRESS_PROXY_CONFIG", &mesh.egress),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| variable(&format!("{prefix}{name}"), value))
    .collect()
}

fn variable(name: &str, value: &str) -> Item {
    Item::Map(vec![("name", Item::text(name)), ("value", Item::text(value))])
}

fn memory(size: &str, limited: bool) -> Item {
    let share = || Item::Map(vec![("memory", Item::text(size))]);
    let mut entries = vec![("requests", share())];
    if limited {
        entries.push(("limits", share()));
    }
    Item::Map(entries)
}

fn net_admin() -> (&'static str, Item) {
    let add = Item::List(vec![Item::text("NET_ADMIN")]);
    ("capabilities", Item::Map(vec![("add", add)]))
}

fn ready_probe() -> Item {
    let command = ["test", "-f", "/ready"].map(Item::text);
    Item::Map(vec![
        ("exec", Item::Map(vec![("command", Item::List(command.to_vec()))])),
        ("initialDelaySeconds", Item::Int(1)),
        ("periodSeconds", Item::Int(5)),
        ("failureThreshold", Item::Int(5)),
    ])
}
