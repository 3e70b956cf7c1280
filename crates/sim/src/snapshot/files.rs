//! Reads objects from a file or directory, and writes a directory with one file per object.
//!
//! Names of objects are untrusted. Each name becomes a single encoded path segment, so that it cannot select
//! a path outside the directory. Written files may contain Secrets, so only their owner can read them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, FileType, OpenOptions};
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::chunks::{CHUNK_SIZE, read_list};
use super::text::{Convert, parse_each};
use super::{SnapshotError, value_to_yaml};
use crate::object::{self, Meta, Object};
use crate::resource::Resource;
use crate::state::State;
use crate::trace;

/// Maximum nesting of directories in a snapshot.
const MAX_DIRECTORY_DEPTH: usize = 16;
/// Maximum length of a path segment without its extension; file systems allow 255 bytes.
const MAX_SEGMENT_LEN: usize = 240;

/// Reads every `.yaml`, `.yml` and `.json` file of a directory (or one file), ordered by name.
///
/// Links to directories and special files in a directory are rejected, because they can lead out of the
/// directory, block or never end.
pub fn read_path(path: &Path) -> Result<Vec<Value>, SnapshotError> {
    read_path_each(path, &|object| object)
}

/// Reads objects like [`read_path`] and converts each object as soon as it is parsed.
pub fn read_path_each<T: Send>(path: &Path, convert: &Convert<'_, T>) -> Result<Vec<T>, SnapshotError> {
    let kind = fs::metadata(path).map_err(file_error(path))?.file_type();
    // A pipe, such as `<(kubectl get …)`, is allowed if the user names it. A device may never end.
    if kind.is_block_device() || kind.is_char_device() || kind.is_socket() {
        return Err(SnapshotError::SpecialFile { path: path.into() });
    }
    let mut files = Vec::new();
    if kind.is_dir() {
        list_files(path, 0, &mut files)?;
    } else {
        files.push(path.to_owned());
    }
    let mut objects = Vec::new();
    for file in files {
        objects.append(&mut read_file(&file, convert)?);
    }
    Ok(objects)
}

/// Reads a list in chunks, and any other file as a whole. A pipe can be read only once.
fn read_file<T: Send>(path: &Path, convert: &Convert<'_, T>) -> Result<Vec<T>, SnapshotError> {
    if fs::metadata(path).map_err(file_error(path))?.is_file() {
        let file = File::open(path).map_err(file_error(path))?;
        if let Some(objects) = read_list(BufReader::new(file), CHUNK_SIZE, convert) {
            return Ok(objects);
        }
    }
    let text = fs::read_to_string(path).map_err(file_error(path))?;
    parse_each(&text, convert).map_err(|source| SnapshotError::InFile {
        path: path.into(),
        source: Box::new(source),
    })
}

/// Appends the manifests below a directory, ordered by name.
fn list_files(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SnapshotError> {
    if depth > MAX_DIRECTORY_DEPTH {
        return Err(SnapshotError::TooDeep {
            path: directory.into(),
        });
    }
    let entries = fs::read_dir(directory).map_err(file_error(directory))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .map_err(file_error(directory))?;
    paths.sort();
    for path in paths {
        let own = fs::symlink_metadata(&path)
            .map_err(file_error(&path))?
            .file_type();
        if own.is_dir() {
            list_files(&path, depth + 1, files)?;
        } else if own.is_symlink() && fs::metadata(&path).is_ok_and(|target| target.is_dir()) {
            return Err(SnapshotError::DirectoryLink { path });
        } else if is_manifest(&path) {
            if !is_regular(&path, own)? {
                return Err(SnapshotError::SpecialFile { path });
            }
            files.push(path);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

/// Returns whether the path, or the file it links to, is a regular file.
fn is_regular(path: &Path, own: FileType) -> Result<bool, SnapshotError> {
    if own.is_symlink() {
        return Ok(fs::metadata(path).map_err(file_error(path))?.is_file());
    }
    Ok(own.is_file())
}

/// Checks that [`write_directory`] can write to `directory`, which must be empty or not exist.
pub fn check_dump_directory(directory: &Path) -> Result<(), SnapshotError> {
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(file_error(directory)(source)),
    };
    if entries.next().is_some() {
        return Err(SnapshotError::NotEmpty {
            path: directory.into(),
        });
    }
    Ok(())
}

/// Writes one file per object, `TABLE/NAMESPACE/NAME.yaml`, with `_` as the namespace of cluster-scoped
/// objects. Returns the number of files. The directory must be empty or not exist; no file is overwritten.
pub fn write_directory(state: &State, directory: &Path) -> Result<usize, SnapshotError> {
    check_dump_directory(directory)?;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
        .recursive(true)
        .create(directory)
        .map_err(file_error(directory))?;
    builder.recursive(false);
    let mut writer = DirectoryWriter {
        state,
        builder,
        directory,
        written: BTreeSet::new(),
    };
    let tables: Vec<Arc<Resource>> = state.resources.tables().cloned().collect();
    let mut count = 0;
    for resource in tables {
        for object in state.store.all(&resource.table) {
            writer.write(&resource, object)?;
            count += 1;
        }
    }
    Ok(count)
}

struct DirectoryWriter<'a> {
    state: &'a State,
    builder: DirBuilder,
    directory: &'a Path,
    /// Directories and files written so far, relative to the directory.
    written: BTreeSet<PathBuf>,
}

impl DirectoryWriter<'_> {
    fn write(&mut self, resource: &Resource, object: &Object) -> Result<(), SnapshotError> {
        let meta = object.meta();
        let namespace = match &*meta.namespace {
            "" => "_".to_owned(),
            namespace => encode_segment(namespace),
        };
        let mut path = PathBuf::from(encode_segment(&resource.table));
        self.create_directory(&path)?;
        path.push(namespace);
        self.create_directory(&path)?;
        let file = self.choose_file(resource, meta, &path);
        let text = value_to_yaml(&object.value())?;
        let target = self.directory.join(&file);
        create_file(&target, &text).map_err(file_error(&target))?;
        self.written.insert(file);
        Ok(())
    }

    /// Returns the file for an object. Colons in its name, such as in `system:…`, are replaced by `_`, unless
    /// another object has the resulting name.
    fn choose_file(&self, resource: &Resource, meta: &Meta, directory: &Path) -> PathBuf {
        let name = meta.name.replace(':', "_");
        let file = directory.join(format!("{}.yaml", encode_segment(&name)));
        let key = object::key(&meta.namespace, &name);
        let is_other = name != *meta.name && self.state.store.get(&resource.table, &key).is_some();
        if is_other || self.written.contains(&file) {
            return directory.join(format!("{}.yaml", encode_segment(&meta.name)));
        }
        file
    }

    /// Creates a directory, unless this writer has created it. Fails for any other existing path, because it
    /// may be a link.
    fn create_directory(&mut self, path: &Path) -> Result<(), SnapshotError> {
        if self.written.contains(path) {
            return Ok(());
        }
        let target = self.directory.join(path);
        self.builder.create(&target).map_err(file_error(&target))?;
        self.written.insert(path.to_owned());
        Ok(())
    }
}

fn create_file(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Encodes a name as a single path segment: special characters are percent-encoded, long names are truncated
/// and get a digest as suffix.
fn encode_segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        // A leading dot would hide the file, or denote the directory itself or its parent.
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0);
        if plain {
            segment.push(char::from(byte));
        } else {
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    if segment.is_empty() {
        return "%".to_owned();
    }
    if segment.len() > MAX_SEGMENT_LEN {
        segment.truncate(MAX_SEGMENT_LEN - 17);
        let _ = write!(segment, "-{:016x}", trace::digest(name.as_bytes()));
    }
    segment
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let path = path.to_owned();
    move |source| SnapshotError::File { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use serde_json::json;

    use super::*;
    use crate::Cluster;
    use crate::snapshot::load;

    fn config_map(namespace: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
    }

    fn write(objects: Vec<Value>, directory: &Path) -> Result<usize, SnapshotError> {
        let cluster = Cluster::default();
        cluster.with(|state| {
            load(state, objects);
            write_directory(state, directory)
        })
    }

    /// Returns all files below a directory without following links.
    fn files(directory: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                all.extend(files(&entry.path()));
            } else {
                all.push(entry.path());
            }
        }
        all
    }

    #[test]
    fn object_names_cannot_select_a_path_outside_the_directory() {
        let root = tempfile::tempdir().unwrap();
        let dump = root.path().join("dump");
        let absolute = root.path().join("absolute").display().to_string();
        let long = "x".repeat(300);
        let mut objects: Vec<Value> = [
            "../../../up",
            "..",
            ".",
            "",
            "a/b",
            "a\\b",
            "nul\0",
            &absolute,
            &long,
        ]
        .iter()
        .map(|name| config_map("default", name))
        .collect();
        objects.push(config_map("../../namespace", "a"));
        objects.push(config_map(&absolute, "a"));
        objects.push(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"},
            "spec": {
                "group": "../../group", "scope": "Namespaced",
                "names": {"plural": "../../../plural", "singular": "p", "kind": "P", "listKind": "PList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }));
        objects.push(
            json!({"apiVersion": "../../group/v1", "kind": "P", "metadata": {"name": "p", "namespace": "n"}}),
        );
        let written = write(objects, &dump).unwrap();
        let below = files(root.path());
        println!("harden dump: {written} objects with hostile names stay in the directory");
        assert_eq!(below.len(), written);
        assert!(below.iter().all(|file| file.starts_with(&dump)), "{below:?}");
        assert!(
            below
                .iter()
                .all(|file| file.strip_prefix(&dump).unwrap().components().count() == 3)
        );
    }

    #[test]
    fn dumps_are_readable_by_their_owner_only_and_distinct_names_stay_distinct() {
        let root = tempfile::tempdir().unwrap();
        let dump = root.path().join("dump");
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}});
        let maps = ["a:b", "a_b"].map(|name| config_map("default", name));
        write([vec![secret], maps.to_vec()].concat(), &dump).unwrap();
        let mode = |path: &str| fs::metadata(dump.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(""), 0o700);
        assert_eq!(mode("secrets/default"), 0o700);
        assert_eq!(mode("secrets/default/s.yaml"), 0o600);
        assert_eq!(mode("configmaps/default/a_b.yaml"), 0o600);
        assert_eq!(fs::read_dir(dump.join("configmaps/default")).unwrap().count(), 2);
        let count = |objects: &[Value]| {
            objects
                .iter()
                .filter(|object| object["kind"] == "ConfigMap")
                .count()
        };
        assert_eq!(count(&read_path(&dump).unwrap()), 2);
    }

    #[test]
    fn a_directory_with_files_is_not_written_to() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("mine.yaml"), "mine").unwrap();
        let error = write(Vec::new(), root.path()).unwrap_err();
        assert!(matches!(error, SnapshotError::NotEmpty { .. }), "{error}");
        assert_eq!(fs::read_to_string(root.path().join("mine.yaml")).unwrap(), "mine");
    }

    #[test]
    fn directory_links_and_special_files_are_rejected() {
        let root = tempfile::tempdir().unwrap();
        let (other, snapshot) = (root.path().join("other"), root.path().join("snapshot"));
        fs::create_dir_all(snapshot.join("nested")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("a.yaml"), config_map("default", "a").to_string()).unwrap();
        symlink(other.join("a.yaml"), snapshot.join("nested/a.yaml")).unwrap();
        assert_eq!(
            read_path(&snapshot).unwrap().len(),
            1,
            "links to files are followed"
        );
        symlink(&other, snapshot.join("nested/link")).unwrap();
        let error = read_path(&snapshot).unwrap_err();
        assert!(matches!(error, SnapshotError::DirectoryLink { .. }), "{error}");
        fs::remove_file(snapshot.join("nested/link")).unwrap();
        symlink("/dev/zero", snapshot.join("zero.yaml")).unwrap();
        let error = read_path(&snapshot).unwrap_err();
        assert!(matches!(error, SnapshotError::SpecialFile { .. }), "{error}");
        let error = read_path(Path::new("/dev/zero")).unwrap_err();
        assert!(matches!(error, SnapshotError::SpecialFile { .. }), "{error}");
        fs::remove_file(snapshot.join("zero.yaml")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(snapshot.join("socket.json")).unwrap();
        let error = read_path(&snapshot).unwrap_err();
        assert!(matches!(error, SnapshotError::SpecialFile { .. }), "{error}");
    }
}
