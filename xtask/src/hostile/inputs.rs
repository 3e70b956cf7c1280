//! Hostile arguments, files and devices.

use super::Hostile;
use super::cases::files;

/// Returns all cases.
pub(super) fn all() -> Vec<Hostile> {
    let mut cases = assignments();
    cases.extend(devices());
    cases.extend(generated());
    cases
}

/// Returns cases of `--set` with indexes that add many items.
fn assignments() -> Vec<Hostile> {
    let flags = |name: &str, flag: &str, count: usize, argument: &dyn Fn(usize) -> String| {
        let mut case = Hostile::new(name, files(&[]), &["@chart"], "items");
        for number in 0..count {
            case.arguments.extend([flag.to_owned(), argument(number)]);
        }
        case
    };
    vec![
        flags("400 × --set k[65536]", "--set", 400, &|number| {
            format!("k{number}[65536]=1")
        }),
        flags("400 × --set-string k[65536]", "--set-string", 400, &|number| {
            format!("k{number}[65536]=1")
        }),
        flags("400 × --set-json k[65536]", "--set-json", 400, &|number| {
            format!("k{number}[65536]=1")
        }),
        flags("400 × --set-literal k[65536]", "--set-literal", 400, &|number| {
            format!("k{number}[65536]=1")
        }),
        flags("one --set with 400 indexes", "--set", 1, &|_| {
            (0..400)
                .map(|number| format!("k{number}[65536]=1"))
                .collect::<Vec<_>>()
                .join(",")
        }),
        flags("nested indexes", "--set", 1, &|_| {
            format!("k{}=1", "[65536]".repeat(50))
        }),
        flags("items of one list", "--set", 20, &|number| {
            format!("k[{number}][65536]=1")
        }),
    ]
}

/// Returns cases with devices and pipes in place of files.
fn devices() -> Vec<Hostile> {
    let arguments =
        |name: &str, arguments: &[&str], expected| Hostile::new(name, files(&[]), arguments, expected);
    let line = |name: &str, bytes: usize| {
        let mut files = files(&[]);
        files.push((
            "more.yaml".into(),
            [b"a: ".as_slice(), &vec![b'x'; bytes], b": b: c\n"].concat(),
        ));
        Hostile::new(name, files, &["@chart", "-f", "@more.yaml"], "more.yaml")
    };
    let pipe = |name: &str, path: &'static str| {
        let mut files = files(&[]);
        files.retain(|(name, _)| name != path);
        Hostile {
            pipes: vec![path],
            ..Hostile::new(name, files, &["@chart"], "Error")
        }
    };
    vec![
        arguments("-f /dev/zero", &["@chart", "-f", "/dev/zero"], "larger than"),
        arguments(
            "--set-file of /dev/zero",
            &["@chart", "--set-file", "a=/dev/zero"],
            "larger than",
        ),
        arguments("/dev/zero as chart", &["/dev/zero"], "Error"),
        arguments(
            "--kubeconfig /dev/zero",
            &["@chart", "--kubeconfig", "/dev/zero"],
            "",
        )
        .accepted(),
        line("a line of 30 MB in -f", 30_000_000),
        line("a line of 100 MB in -f", 100_000_000),
        pipe("a pipe as Chart.yaml", "chart/Chart.yaml"),
        pipe("a pipe as values.yaml", "chart/values.yaml"),
        pipe("a pipe as a template", "chart/templates/t.yaml"),
        pipe("a pipe as a file", "chart/f"),
        pipe("a pipe as a subchart", "chart/charts/sub.tgz"),
    ]
}

/// Returns cases with input of `mainstay generate`.
fn generated() -> Vec<Hostile> {
    let case = |name: &str, text: Vec<u8>| {
        let case = Hostile::new(name, vec![("in.yaml".into(), text)], &["@in.yaml"], "");
        Hostile {
            command: &["generate"],
            ..case.or_accepted()
        }
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, image: b}]}\n";
    let item = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n  data: *d\n";
    let list = format!(
        "apiVersion: v1\nkind: List\nmetadata:\n  annotations: &d {{a: b}}\nitems:\n{}",
        item.repeat(100_000)
    );
    vec![
        case("generate: a List with one anchor, 7 MB", list.into_bytes()),
        case(
            "generate: an anchor of 1 MB in 1,000 items",
            format!(
                "apiVersion: v1\nkind: List\nmetadata:\n  annotations: &d {{a: {}}}\nitems:\n{}",
                "x".repeat(1 << 20),
                item.repeat(1_000)
            )
            .into_bytes(),
        ),
        case(
            "generate: a broken line of 30 MB",
            [b"a: ".as_slice(), &vec![b'x'; 30_000_000], b": b: c\n"].concat(),
        ),
        case("generate: nested 100,000 deep", b"[".repeat(100_000)),
        case(
            "generate: 20,000 documents",
            format!("---\n{pod}").repeat(20_000).into_bytes(),
        ),
    ]
}
