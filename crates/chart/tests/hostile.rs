//! Tests hostile archives: each fails with a clear message, quickly and with little memory. Messages equal
//! Helm's if Helm has the same rule; stricter rules are marked in the table.
// Tests may panic, run the real Helm and access files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_chart::{ChartError, Dialect, load_archive};
use mainstay_testkit::peer;

const CHART: &[u8] = b"apiVersion: v2\nname: app\nversion: 1.0.0\n";

/// Builder of tar archives that may have invalid headers.
#[derive(Default)]
struct Tar(Vec<u8>);

/// A header and its defects.
struct Header<'a> {
    name: &'a [u8],
    kind: u8,
    size: u64,
    /// Bytes to write into the size field instead of `size`.
    raw_size: Option<&'a [u8]>,
    invalid_checksum: bool,
}

impl<'a> Header<'a> {
    fn file(name: &'a [u8], size: u64) -> Self {
        Self {
            name,
            kind: b'0',
            size,
            raw_size: None,
            invalid_checksum: false,
        }
    }

    fn bytes(&self) -> [u8; 512] {
        let mut block = [0; 512];
        let length = self.name.len().min(100);
        block[..length].copy_from_slice(&self.name[..length]);
        block[100..108].copy_from_slice(b"0000644\0");
        block[108..116].copy_from_slice(b"0000000\0");
        block[116..124].copy_from_slice(b"0000000\0");
        block[124..136].copy_from_slice(format!("{:011o}\0", self.size).as_bytes());
        if let Some(raw) = self.raw_size {
            block[124..124 + raw.len()].copy_from_slice(raw);
        }
        block[136..148].copy_from_slice(b"00000000000\0");
        block[148..156].copy_from_slice(b"        ");
        block[156] = self.kind;
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 =
            block.iter().map(|byte| u32::from(*byte)).sum::<u32>() + u32::from(self.invalid_checksum);
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }
}

impl Tar {
    fn chart() -> Self {
        Self::default().file("app/Chart.yaml", CHART)
    }

    fn header(mut self, header: &Header<'_>) -> Self {
        self.0.extend_from_slice(&header.bytes());
        self
    }

    fn content(mut self, data: &[u8]) -> Self {
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, data: &[u8]) -> Self {
        self.entry(name.as_bytes(), b'0', data)
    }

    fn entry(self, name: &[u8], kind: u8, data: &[u8]) -> Self {
        self.header(&Header {
            kind,
            ..Header::file(name, data.len() as u64)
        })
        .content(data)
    }

    /// Adds an extended header with `records` for the next entry.
    fn pax(self, records: &[u8]) -> Self {
        self.entry(b"pax", b'x', records)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        gzip(&self.0)
    }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

fn pax_record(key: &str, value: &str) -> Vec<u8> {
    let body = format!(" {key}={value}\n");
    let mut length = body.len() + 1;
    while format!("{length}{body}").len() != length {
        length = format!("{length}{body}").len();
    }
    format!("{length}{body}").into_bytes()
}

/// Expected result of loading an archive.
enum Expect {
    /// The archive loads.
    Loads,
    /// Loading fails with Helm's message.
    Fails(&'static str),
    /// Loading fails with a message of this crate. Helm accepts the archive or fails with another error.
    Stricter(&'static str),
}
use Expect::{Fails, Loads, Stricter};

struct Case(&'static str, Vec<u8>, Expect);

const HEADER: &str = "archive/tar: invalid tar header";
const PARENT: &str = "chart illegally references parent directory";
const LARGE: &str = "decompressed chart is larger than the maximum size 104857600";
const BOMB: &str = "chart archive expands to more than 250 times its size";

fn cases() -> Vec<Case> {
    let mut cases = broken_streams();
    cases.extend(unusual_names());
    cases.extend(unusual_kinds());
    cases.extend(unusual_sizes());
    cases.extend(extended_headers());
    cases.extend(bombs());
    cases.extend(nesting());
    cases
}

fn broken_streams() -> Vec<Case> {
    let good = Tar::chart().end();
    let zero_then_more = {
        let mut tar = Tar::default();
        tar.0.resize(512, 0);
        tar.file("app/Chart.yaml", CHART).end()
    };
    vec![
        Case("nothing", Vec::new(), Stricter("EOF")),
        Case(
            "text",
            b"hello, this is no archive".to_vec(),
            Stricter("gzip: invalid header"),
        ),
        Case("five bytes", good[..5].to_vec(), Fails("unexpected EOF")),
        Case(
            "half a stream",
            good[..good.len() / 2].to_vec(),
            Fails("unexpected EOF"),
        ),
        Case("an empty stream", gzip(b""), Fails("no files in chart archive")),
        Case(
            "only an end marker",
            Tar::default().end(),
            Fails("no files in chart archive"),
        ),
        Case("no tar", gzip(&[b'x'; 2048]), Fails(HEADER)),
        Case(
            "half a header",
            gzip(&Header::file(b"app/Chart.yaml", 5).bytes()[..300]),
            Fails("unexpected EOF"),
        ),
        Case("a zero block in between", zero_then_more, Fails(HEADER)),
        Case(
            "no content",
            gzip(&Header::file(b"app/Chart.yaml", 5).bytes()),
            Fails("unexpected EOF"),
        ),
        Case(
            "bytes after the end",
            [good.as_slice(), b"garbage"].concat(),
            Loads,
        ),
    ]
}

fn unusual_names() -> Vec<Case> {
    let named = |name: &str| Tar::chart().file(name, b"x: 1\n").end();
    vec![
        Case(
            "absolute",
            named("app//etc/passwd"),
            Fails("chart illegally contains absolute paths"),
        ),
        Case(
            "`..` beyond the chart",
            named("app/../../etc/passwd"),
            Fails(PARENT),
        ),
        Case("`..` within the chart", named("app/a/../b"), Loads),
        Case("the parent itself", named("app/.."), Fails(PARENT)),
        Case(
            "a name that starts with two dots",
            named("app/..x"),
            Fails(PARENT),
        ),
        Case(
            "no directory",
            named("app"),
            Fails("chart illegally contains content outside the base directory: \"app\""),
        ),
        Case(
            "the directory as a file",
            named("app/."),
            Fails("chart illegally contains content outside the base directory: \"app/.\""),
        ),
        Case(
            "Chart.yaml as a directory",
            named("Chart.yaml/x"),
            Fails("chart yaml not in base directory"),
        ),
        Case(
            "a drive",
            named("app/c:/x"),
            Fails("chart contains illegally named files"),
        ),
        Case(
            "a drive with backslashes",
            named("app\\c:\\x"),
            Fails("chart contains illegally named files"),
        ),
        Case(
            "path traversal with backslashes",
            named("app\\..\\..\\x"),
            Fails(PARENT),
        ),
        Case("backslashes", named("app\\templates\\x.yaml"), Loads),
        Case(
            "the same name twice",
            Tar::chart().file("app/Chart.yaml", CHART).end(),
            Loads,
        ),
        Case(
            "not text",
            Tar::chart().entry(b"app/\xff\xfe", b'0', b"x").end(),
            Stricter("chart archive has a file name that is not UTF-8: \"app/\u{fffd}\u{fffd}\""),
        ),
    ]
}

fn unusual_kinds() -> Vec<Case> {
    let kind = |kind: u8| Tar::chart().entry(b"app/templates/x.yaml", kind, b"").end();
    let link_with_content = Tar::chart()
        .header(&Header {
            kind: b'2',
            ..Header::file(b"app/link", 10)
        })
        .content(b"0123456789")
        .end();
    vec![
        // Nothing is written to disk: a link or a device becomes an empty file.
        Case("a hard link", kind(b'1'), Loads),
        Case("a symbolic link", kind(b'2'), Loads),
        Case("a character device", kind(b'3'), Loads),
        Case("a block device", kind(b'4'), Loads),
        Case("a directory", kind(b'5'), Loads),
        Case("a pipe", kind(b'6'), Loads),
        Case("a link with content", link_with_content, Fails(LARGE)),
        Case(
            "holes",
            kind(b'S'),
            Stricter("archive/tar: sparse files are not supported"),
        ),
        Case("an unknown kind", kind(b'Z'), Loads),
    ]
}

fn unusual_sizes() -> Vec<Case> {
    let sized = |header: Header<'_>| Tar::chart().header(&header).content(b"x").end();
    let raw = |raw: &'static [u8]| Header {
        raw_size: Some(raw),
        ..Header::file(b"app/x", 1)
    };
    vec![
        Case(
            "eight gibibytes",
            sized(Header::file(b"app/x", 0o77_777_777_777)),
            Fails(LARGE),
        ),
        Case(
            "two to the 62",
            sized(raw(b"\x80\0\0\0\x40\0\0\0\0\0\0\0")),
            Fails(LARGE),
        ),
        Case(
            "a negative size",
            sized(raw(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
            Fails(HEADER),
        ),
        Case(
            "a size past 64 bits",
            sized(raw(b"\x80\x01\0\0\0\0\0\0\0\0\0\0")),
            Fails(HEADER),
        ),
        Case("no number", sized(raw(b"9zzzzzzzzzz\0")), Fails(HEADER)),
        Case(
            "a wrong sum",
            sized(Header {
                invalid_checksum: true,
                ..Header::file(b"app/x", 1)
            }),
            Fails(HEADER),
        ),
        Case(
            "six mebibytes",
            sized(Header::file(b"app/x", 6 << 20)),
            Fails("decompressed chart file \"app/x\" is larger than the maximum file size 5242880"),
        ),
        Case(
            "more than the archive contains",
            sized(Header::file(b"app/x", 1 << 20)),
            Fails("unexpected EOF"),
        ),
    ]
}

fn extended_headers() -> Vec<Case> {
    let pax = |records: &[u8]| Tar::chart().pax(records).file("app/x", b"x").end();
    let long_name = |name: &[u8]| {
        Tar::chart()
            .entry(b"././@LongLink", b'L', name)
            .file("app/x", b"x")
            .end()
    };
    let many: Vec<u8> = {
        let headers = (0..1000).fold(Tar::default(), |tar, _| tar.pax(&pax_record("comment", "x")));
        let member = gzip(&headers.0);
        std::iter::repeat_n(member, 200).flatten().collect()
    };
    vec![
        Case("a path", pax(&pax_record("path", "app/y")), Loads),
        Case(
            "path traversal",
            pax(&pax_record("path", "app/../../y")),
            Fails(PARENT),
        ),
        Case(
            "a long name with `..`",
            long_name(b"app/../../y\0"),
            Fails(PARENT),
        ),
        Case(
            "a huge size",
            pax(&pax_record("size", "99999999999")),
            Fails(LARGE),
        ),
        Case("a negative size", pax(&pax_record("size", "-5")), Fails(HEADER)),
        Case("no record", pax(b"nonsense"), Fails(HEADER)),
        Case("a record past the end", pax(b"99 path=app/x\n"), Fails(HEADER)),
        Case(
            "a zero in a path",
            pax(&pax_record("path", "app/\0x")),
            Fails(HEADER),
        ),
        Case(
            "holes",
            pax(&pax_record("GNU.sparse.major", "1")),
            Stricter("archive/tar: sparse files are not supported"),
        ),
        Case(
            "two mebibytes",
            pax(&vec![b'x'; 2 << 20]),
            Fails("archive/tar: header field too long"),
        ),
        Case(
            "a name of 5000 bytes",
            pax(&pax_record("path", &format!("app/{}", "x".repeat(5000)))),
            Stricter("chart archive has a file name longer than 4096 bytes"),
        ),
        Case(
            "200,000 of them",
            many,
            Stricter("chart archive has more than 20000 entries"),
        ),
    ]
}

fn bombs() -> Vec<Case> {
    // The archive is one compressed member that is repeated. gzip treats the members as one stream.
    let repeated = |data: &[u8], times: usize| -> Vec<u8> {
        let member = gzip(&Tar::default().file("app/x", data).0);
        std::iter::once(gzip(&Tar::chart().0))
            .chain(std::iter::repeat_n(member, times))
            .flatten()
            .collect()
    };
    let bomb = repeated(&vec![0; 5 << 20], 18);
    // A block of noise that is repeated within the window stays below the ratio limit.
    let noise: Vec<u8> = (0_u32..4096)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let noise: Vec<u8> = noise.iter().copied().cycle().take((5 << 20) - 1).collect();
    let heavy = repeated(&noise, 22);
    let million: Vec<u8> = {
        let mut state = 1_u64;
        let headers = (0..2000).fold(Tar::default(), |tar, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            tar.file(&format!("app/{state}/{}", state.rotate_left(17)), b"")
        });
        std::iter::repeat_n(gzip(&headers.0), 500).flatten().collect()
    };
    let nested = Tar::chart().file("app/charts/bomb.tgz", &bomb).end();
    vec![
        Case("ninety mebibytes of zeros", bomb, Stricter(BOMB)),
        Case("more than a hundred mebibytes", heavy, Fails(LARGE)),
        Case(
            "a million files",
            million,
            Stricter("chart archive has more than 20000 entries"),
        ),
        Case(
            "a bomb in a chart",
            nested,
            Stricter(
                "error unpacking subchart bomb.tgz in app: chart archive expands to more than 250 times its size",
            ),
        ),
    ]
}

fn nesting() -> Vec<Case> {
    let deep = |levels: usize| {
        let mut tar = Tar::chart();
        let mut path = String::from("app");
        for _ in 0..levels {
            path.push_str("/charts/a");
            tar = tar
                .pax(&pax_record("path", &format!("{path}/Chart.yaml")))
                .file("app/x", CHART);
        }
        tar.end()
    };
    let inside = (0..40).fold(Tar::chart().end(), |inner, _| {
        Tar::chart().file("app/charts/a.tgz", &inner).end()
    });
    let aliases = (1..30).fold(String::from("a0: &a0 [x]\n"), |mut text, at| {
        let before = at - 1;
        writeln!(
            text,
            "a{at}: &a{at} [*a{before}, *a{before}, *a{before}, *a{before}]"
        )
        .expect("memory");
        text
    });
    let values = |text: &str| Tar::chart().file("app/values.yaml", text.as_bytes()).end();
    vec![
        Case("thirty charts deep", deep(30), Loads),
        Case(
            "forty charts deep",
            deep(40),
            Stricter("charts are nested more deeply than 32 levels"),
        ),
        Case(
            "forty archives deep",
            inside,
            Stricter("charts are nested more deeply than 32 levels"),
        ),
        Case(
            "a YAML bomb",
            values(&aliases),
            Stricter("yaml: document contains excessive aliasing"),
        ),
        Case(
            "deep YAML",
            values(&"[".repeat(100_000)),
            Stricter("levels of nesting"),
        ),
        Case(
            "broken YAML",
            values("a: [\n"),
            Stricter("yaml: line 1: did not find expected node content"),
        ),
    ]
}

/// Joins the error chain as the command line does.
fn message(error: &ChartError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        write!(text, ": {error}").expect("memory");
        source = error.source();
    }
    text
}

#[test]
fn hostile_archives_fail_with_a_clear_message() {
    let mut count = 0;
    for Case(name, bytes, expect) in cases() {
        count += 1;
        let result = load_archive(&bytes, Dialect::Helm4)
            .map(drop)
            .map_err(|error| message(&error));
        match (expect, &result) {
            (Loads, Ok(())) => {}
            (Fails(text), Err(message)) => assert_eq!(message, text, "{name}"),
            (Stricter(text), Err(message)) => assert!(message.contains(text), "{name}: {message}"),
            (_, result) => panic!("{name}: {result:?}"),
        }
    }
    assert!(count >= 60, "{count} archives");
    if let Some(peak) = peak_kib() {
        assert!(
            peak < 256 << 10,
            "peak of {peak} KiB, including the creation of the archives"
        );
    }
}

/// Returns the peak memory of this process, if the system reports it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Compares with Helm 3, which prints the cause. Helm 4 does not.
#[test]
fn helm_fails_with_the_same_messages() {
    let helm = peer("helm3").expect("helm");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("app.tgz");
    for Case(name, bytes, expect) in cases() {
        let expected = match expect {
            Stricter(_) => continue,
            Loads => "",
            Fails(text) => text,
        };
        std::fs::write(&path, &bytes).expect("a file");
        let output = Command::new(&helm)
            .args(["template", "r"])
            .arg(&path)
            .output()
            .expect("helm runs");
        let helm_message = String::from_utf8_lossy(&output.stderr);
        let helm_message = helm_message.trim().strip_prefix("Error: ").unwrap_or_default();
        // Helm 4 has a different message for one of its two checks, and this crate has only that message.
        let helm_message = helm_message.replace("maximum file size 104857600", "maximum size 104857600");
        assert_eq!(helm_message, expected, "{name}");
    }
}
