//! Chart archives in the format of `helm package`, and invalid ones.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Returns a gzipped tar of these entries.
pub fn tgz(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, bytes) in entries {
        tar.extend_from_slice(&header(name, bytes.len()));
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&tar).unwrap();
    gzip.finish().unwrap()
}

fn header(name: &str, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Returns the files of a minimal chart to which the operator's edits apply.
pub fn chart(name: &str, version: &str) -> Vec<(String, Vec<u8>)> {
    const OWNER: &str =
        "    install.operator.istio.io/owning-resource: {{ .Values.ownerName | default \"unknown\" }}\n";
    let image = format!("hub: docker.io/istio\nINDENTtag: {version}\n");
    let values = match name {
        "ztunnel" => format!(
            "_internal_defaults_do_not_set:\n  {}",
            image.replace("INDENT", "  ")
        ),
        _ => format!(
            "_internal_defaults_do_not_set:\n  global:\n    {}",
            image.replace("INDENT", "    ")
        ),
    };
    let mut files = vec![
        (
            "Chart.yaml".to_owned(),
            format!("apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: {version}\n"),
        ),
        ("values.yaml".to_owned(), values),
        (
            "templates/a.yaml".to_owned(),
            format!("metadata:\n  labels:\n{OWNER}    app: {name}\n"),
        ),
        (
            "templates/zzz_profile.yaml".to_owned(),
            "{{- $x := 1 }}\n".to_owned(),
        ),
        ("files/profile-demo.yaml".to_owned(), "a: b\n".to_owned()),
    ];
    let more: &[(&str, &str)] = match name {
        "base" => &[
            (
                "templates/crds.yaml",
                "{{ .Files.Get \"files/crd-all.gen.yaml\" }}\n",
            ),
            ("files/crd-all.gen.yaml", "kind: CustomResourceDefinition\n"),
        ],
        "istiod" => &[
            ("templates/revision-tags-mwc.yaml", "mwc\n"),
            ("templates/revision-tags-svc.yaml", "svc\n"),
        ],
        "cni" => &[("templates/clusterrole.yaml", "rules:\n- apiGroups: [\"\"]\n")],
        _ => &[],
    };
    files.extend(
        more.iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
    );
    if name == "base" {
        files.retain(|(path, _)| path != "templates/a.yaml");
    }
    files
        .into_iter()
        .map(|(path, text)| (format!("{name}/{path}"), text.into_bytes()))
        .collect()
}
