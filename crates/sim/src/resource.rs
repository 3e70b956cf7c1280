//! The served resources, found by path or kind. Builtin resources come from a table (`resource/builtin.txt`);
//! custom ones are added and removed at run time.

use std::sync::Arc;

use crate::crd::Custom;
use crate::schema::{Schema, TypeId};
use crate::status::Qualified;

mod parse;

/// One served resource: a (group, version, plural).
#[derive(Clone, Debug)]
pub struct Resource {
    /// API group, empty for core.
    pub group: Box<str>,
    /// Served version.
    pub version: Box<str>,
    /// Plural name, as in paths.
    pub plural: Box<str>,
    /// Kind of the objects, such as `Deployment`.
    pub kind: Box<str>,
    /// Singular name, such as `deployment`.
    pub singular: Box<str>,
    /// Whether objects of the resource are namespaced.
    pub namespaced: bool,
    /// Short names for `kubectl`.
    pub short_names: Vec<Box<str>>,
    /// Categories for `kubectl get all`.
    pub categories: Vec<Box<str>>,
    /// Supported verbs.
    pub verbs: Verbs,
    /// Deviations from the usual behavior of writes.
    pub traits: Traits,
    /// Served subresources.
    pub subresources: Vec<Subresource>,
    /// Name of the table that stores the objects; all versions share it.
    pub table: Arc<str>,
    /// `apiVersion` of stored objects.
    pub stored_as: Box<str>,
    /// Definition of the fields of objects.
    pub shape: Shape,
}

/// Source of the definition of the fields of a kind.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A struct in the table of Go types; `None` if the table does not contain the kind.
    Builtin(Option<TypeId>),
    /// A `CustomResourceDefinition`.
    Custom(Arc<Custom>),
}

/// A path below an object, such as `status` or `scale`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Name of the subresource.
    pub name: Box<str>,
    /// Group of the returned kind; empty if it is the group of the resource.
    pub group: Box<str>,
    /// Version of the returned kind; empty if it is the version of the resource.
    pub version: Box<str>,
    /// Returned kind.
    pub kind: Box<str>,
    /// Supported verbs.
    pub verbs: Verbs,
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbs(u8);

/// A verb. The variants are in the order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// `POST`.
    Create,
    /// `DELETE` of one object.
    Delete,
    /// `DELETE` of a collection.
    DeleteCollection,
    /// `GET` of one object.
    Get,
    /// `GET` of a collection.
    List,
    /// `PATCH`.
    Patch,
    /// `PUT`.
    Update,
    /// `GET` of a collection with `watch=true`.
    Watch,
}

impl Verb {
    /// All verbs, in the order of discovery.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// Returns the name of the verb in discovery and RBAC.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Create => 'c',
            Self::Delete => 'd',
            Self::DeleteCollection => 'D',
            Self::Get => 'g',
            Self::List => 'l',
            Self::Patch => 'p',
            Self::Update => 'u',
            Self::Watch => 'w',
        }
    }
}

impl Verbs {
    /// Parses verbs from their letters, which `resource/builtin.txt` lists.
    #[must_use]
    pub fn parse(letters: &str) -> Self {
        let bits = Verb::ALL
            .iter()
            .filter(|verb| letters.contains(verb.letter()))
            .map(|verb| 1 << *verb as u8);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Returns the set of all verbs.
    #[must_use]
    pub fn all() -> Self {
        Self(u8::MAX)
    }

    /// Returns whether `verb` is in the set.
    #[must_use]
    pub fn contains(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u8) != 0
    }

    /// Returns the names of the verbs, in the order of discovery.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        Verb::ALL
            .iter()
            .filter(|verb| self.contains(**verb))
            .map(|verb| verb.name())
            .collect()
    }
}

/// Deviations of a resource from the usual behavior of writes. In the API server, they are part of its
/// strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent yes/no facts per kind")]
pub struct Traits {
    /// Whether a completed deletion returns the object instead of a Status.
    pub returns_deleted: bool,
    /// Whether an update of a missing object creates it.
    pub upsert: bool,
    /// Whether an update requires a resourceVersion.
    pub versioned_updates: bool,
    /// Whether objects have a `metadata.generation`.
    pub generation: bool,
    /// Whether dependents are orphaned if the delete options do not specify a policy.
    pub orphans: bool,
    /// Whether objects are excluded from garbage collection.
    pub uncollected: bool,
}

impl Resource {
    /// Returns `apps/v1`, or `v1` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns whether `text` equals [`Resource::api_version`].
    #[must_use]
    pub fn has_api_version(&self, text: &str) -> bool {
        match text.split_once('/') {
            Some((group, version)) => group == &*self.group && version == &*self.version,
            None => self.group.is_empty() && text == &*self.version,
        }
    }

    /// Returns plural and group, as in error messages.
    #[must_use]
    pub fn qualified(&self) -> Qualified<'_> {
        Qualified {
            group: &self.group,
            name: &self.plural,
        }
    }

    /// Returns kind and group, as in errors about invalid objects.
    #[must_use]
    pub fn qualified_kind(&self) -> Qualified<'_> {
        Qualified {
            group: &self.group,
            name: &self.kind,
        }
    }

    /// Returns the kind of lists of this resource.
    #[must_use]
    pub fn list_kind(&self) -> String {
        match &self.shape {
            Shape::Custom(custom) if !custom.list_kind.is_empty() => custom.list_kind.clone(),
            _ => format!("{}List", self.kind),
        }
    }

    /// Returns the subresource `name`.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| &*sub.name == name)
    }

    /// Returns whether this is the resource `plural` of `group`, in any version.
    #[must_use]
    pub fn is(&self, group: &str, plural: &str) -> bool {
        &*self.group == group && &*self.plural == plural
    }
}

/// All served resources.
#[derive(Clone, Debug)]
pub struct Resources {
    groups: Vec<Group>,
}

/// An API group with its versions, preferred version first.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the group, empty for core.
    pub name: Box<str>,
    /// Versions of the group.
    pub versions: Vec<Version>,
}

/// One version of a group.
#[derive(Clone, Debug)]
pub struct Version {
    /// Name of the version.
    pub name: Box<str>,
    /// Resources of the version, in the order of discovery.
    pub resources: Vec<Arc<Resource>>,
}

impl Resources {
    /// Returns the resources that Kubernetes 1.36 serves by default.
    #[must_use]
    pub fn builtin(schema: &Schema) -> Self {
        let mut all = Self { groups: Vec::new() };
        for resource in parse::builtin(schema) {
            all.add(resource);
        }
        all
    }

    /// Adds a resource, or replaces the one of the same name.
    pub fn add(&mut self, resource: Resource) {
        let group = self.group_entry(&resource.group.clone());
        let known = group
            .versions
            .iter()
            .position(|version| version.name == resource.version);
        let at = known.unwrap_or(group.versions.len());
        if known.is_none() {
            let name = resource.version.clone();
            group.versions.push(Version {
                name,
                resources: Vec::new(),
            });
        }
        let version = group.versions.get_mut(at);
        let Some(version) = version else { return };
        match version
            .resources
            .iter_mut()
            .find(|have| have.plural == resource.plural)
        {
            Some(have) => *have = Arc::new(resource),
            None => version.resources.push(Arc::new(resource)),
        }
        if version
            .resources
            .iter()
            .any(|one| matches!(one.shape, Shape::Custom(_)))
        {
            version.resources.sort_by(|a, b| a.plural.cmp(&b.plural));
            group.versions.sort_by(|a, b| {
                crate::crd::version_priority(&b.name).cmp(&crate::crd::version_priority(&a.name))
            });
        }
    }

    /// Removes all versions of a resource, and the groups and versions that are empty then.
    pub fn remove(&mut self, group: &str, plural: &str) {
        for entry in self.groups.iter_mut().filter(|entry| &*entry.name == group) {
            for version in &mut entry.versions {
                version.resources.retain(|resource| &*resource.plural != plural);
            }
            entry.versions.retain(|version| !version.resources.is_empty());
        }
        self.groups.retain(|entry| !entry.versions.is_empty());
    }

    /// Returns the resource `plural` of a group version.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let version = self.version(group, version)?;
        version
            .resources
            .iter()
            .find(|resource| &*resource.plural == plural)
    }

    /// Returns the resource of a kind, if it supports at least one verb.
    #[must_use]
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = split_api_version(api_version);
        let version = self.version(group, version)?;
        version
            .resources
            .iter()
            .find(|resource| &*resource.kind == kind && !resource.verbs.names().is_empty())
    }

    /// Returns a resource in its preferred version.
    #[must_use]
    pub fn preferred(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        let group = self.groups.iter().find(|entry| &*entry.name == group)?;
        group
            .versions
            .iter()
            .flat_map(|version| &version.resources)
            .find(|resource| &*resource.plural == plural)
    }

    /// Returns a version of a group.
    #[must_use]
    pub fn version(&self, group: &str, version: &str) -> Option<&Version> {
        let group = self.groups.iter().find(|entry| &*entry.name == group)?;
        group.versions.iter().find(|entry| &*entry.name == version)
    }

    /// Returns all groups, core first.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Iterates over all resources, in the order of discovery.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups
            .iter()
            .flat_map(|group| &group.versions)
            .flat_map(|version| &version.resources)
    }

    /// Iterates over one resource per table, in the stored version.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.iter().filter(|resource| {
            resource.verbs.contains(Verb::List) && *resource.stored_as == *resource.api_version()
        })
    }

    fn group_entry(&mut self, name: &str) -> &mut Group {
        let known = self.groups.iter().position(|group| &*group.name == name);
        let at = known.unwrap_or(self.groups.len());
        if known.is_none() {
            self.groups.push(Group {
                name: name.into(),
                versions: Vec::new(),
            });
        }
        #[allow(clippy::indexing_slicing, reason = "`at` was found or pushed above")]
        &mut self.groups[at]
    }
}

/// Returns `apps/v1` for `apps` and `v1`, and `v1` for an empty group and `v1`.
#[must_use]
pub fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// Returns `apps` and `v1` for `apps/v1`, and an empty group and `v1` for `v1`.
#[must_use]
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
