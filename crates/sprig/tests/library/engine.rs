//! Calls functions, methods and fields through the template engine.

use mainstay_template::{Limits, Meter, TemplateSet, Value, execute};
use mainstay_testkit::Oracle;

use crate::support::{SeededHost, request};

const TEMPLATES: &[&str] = &[
    r#"{{ $v := semver "v1.2.3-rc.1+b5" }}{{ $v.Major }} {{ $v.Prerelease }} {{ $v.Original }} {{ $v }} {{ $v.Compare (semver "1.2.3") }}"#,
    r#"{{ (semver "1.2.3").IncMinor }} {{ (semver "1.2.3").Foo }}"#,
    r#"{{ (semver "1.2.3").IncMinor.Original }}"#,
    r#"{{ (semver "1.2.3").Equal 3 }}"#,
    r#"{{ semver "1.2.3" | toJson }} {{ kindOf (semver "1.2.3") }} {{ typeOf (semver "1.2.3") }}"#,
    r#"{{ semver "x" }}"#,
    r#"{{ semverCompare ">=1" "x" }}"#,
    r#"{{ if semverCompare ">=1.21-0" "v1.29.0" }}yes{{ end }}"#,
    r#"{{ semverCompare "1" nil }}"#,
    r#"{{ semverCompare 1 "1" }}"#,
    r#"{{ $t := toDate "2006-01-02" "2024-02-29" }}{{ $t }} {{ $t.Month }} {{ $t.Weekday }} {{ $t.Year }} {{ $t.AddDate 1 0 0 }}"#,
    r#"{{ (toDate "2006" "2021").Add 5 }} {{ (toDate "2006" "2021") | toJson }} {{ (toDate "2006" "2021").Format "Jan 2" }}"#,
    r#"{{ (toDate "2006" "2021").Foo }}"#,
    r#"{{ ((toDate "2006" "2021").Sub (toDate "2006" "2020")).Hours }}"#,
    r#"{{ (toDate "2006" "2021").Sub (toDate "2006" "2020") }}"#,
    r#"{{ typeOf (toDate "2006" "2021") }} {{ kindOf (toDate "2006" "2021") }} {{ typeOf (toDate "2006" "2021").Month }}"#,
    r#"{{ kindOf (toDate "2006" "2021").Month }} {{ printf "%d %v %s" (toDate "2006" "2021").Month (toDate "2006" "2021").Month (toDate "2006" "2021").Month }}"#,
    r#"{{ eq (toDate "2006" "2021").Month 1 }} {{ gt (toDate "2006" "2021").Month 3 }} {{ eq (toDate "2006" "2021").Month "x" }}"#,
    r#"{{ if (toDate "2006-01-02" "2021-05-02").Weekday }}yes{{ else }}Sunday{{ end }}"#,
    r#"{{ kindOf ((toDate "2006" "2021").Sub (toDate "2006" "2020")) }} {{ printf "%d %q %x %03d|%5s|" ((toDate "2006" "2021").Sub (toDate "2006" "2020")) (toDate "2006" "2021").Month (toDate "2006" "2021").Month (toDate "2006" "2021").Month (toDate "2006" "2021").Weekday }}"#,
    r#"{{ int (toDate "2006" "2021").Month }} {{ toString (toDate "2006" "2021").Weekday }}"#,
    r#"{{ (toDate "2006" "2021").Month | quote }} {{ (toDate "2006-01-02" "2021-05-06").Day | add 1 }}"#,
    r#"{{ toJson (toDate "2006" "2021").Month }} {{ lt (toDate "2006" "2021").YearDay 3 }}"#,
    r#"{{ (toDate "2006" "2021").Month.String | upper }}"#,
    r#"{{ dateModify "1h" "x" }}"#,
    r#"{{ toDate "2006" "2021" | dateModify "-1.5h" | date "2006-01-02 15:04" }}"#,
    r#"{{ toDate "2006" "2021" | unixEpoch }} {{ unixEpoch 5 }}"#,
    r#"{{ mustToDate "2006" "x" }}"#,
    r#"{{ duration 95 }} {{ duration "95" }} {{ int64 95 | duration }} {{ durationRound "2h10m5s" }}"#,
    r#"{{ htmlDateInZone (toDate "2006-01-02" "2021-05-06") "Asia/Tokyo" }}"#,
    r#"{{ dateInZone "15:04 MST" (toDate "2006-01-02" "2021-05-06") "America/New_York" }}"#,
    r#"{{ derivePassword -1 "long" "a" "b" "c" }}"#,
    r#"{{ derivePassword (int 1) "long" "a" "b" "c" }}"#,
    r#"{{ derivePassword 1 "pin" "a" "b" "c" }}"#,
    r#"{{ genCA "x" "1" }}"#,
    r#"{{ genSignedCert "x" nil nil 1 "x" }}"#,
    r#"{{ genSelfSignedCert "x" (list 1) nil 1 }}"#,
    r#"{{ $ca := genCAWithKey "x" 1 (genPrivateKey "ecdsa") }}{{ $ca.Cert | trunc 27 }} {{ $ca.Key | trunc 30 }} {{ typeOf $ca }} {{ kindOf $ca }}"#,
    r#"{{ $ca := genCAWithKey "x" 1 (genPrivateKey "ecdsa") }}{{ $ca.Foo }}"#,
    r#"{{ $k := genPrivateKey "ed25519" }}{{ $ca := genCAWithKey "x" 1 $k }}{{ (genSignedCertWithKey "y" (list "1.2.3.4") (list "a") 1 $ca $k).Cert | trunc 27 }}"#,
    r#"{{ regexFindAll "a." "abacad" -1 }} {{ regexSplit "," "a,b" -1 | join "+" }} {{ regexMatch "a(" "x" }}"#,
    r#"{{ "abc" | regexFind "b." }} {{ regexReplaceAll "(b)" "abc" "<$1>" }} {{ mustRegexFind "a(" "x" }}"#,
    r#"{{ regexFindAll "a" "b" -1 }} {{ len (regexFindAll "a" "b" -1) }} {{ regexFindAll "a" "b" -1 | toJson }} {{ regexSplit "a" "b" 0 | toJson }}"#,
    r#"{{ urlParse "http://a.b/c" }} {{ (urlParse "http://u@a.b:1/c").hostname }}"#,
    r#"{{ urlJoin (dict "scheme" "http" "host" "h" "path" "p") }} {{ urlJoin (dict "host" nil) }}"#,
    r"{{ urlParse 5 }}",
    r"{{ randInt 5 5 }}",
    r#"{{ randAlphaNum 5 | len }} {{ uuidv4 | len }} {{ randBytes 3 | len }} {{ randAlpha "x" }}"#,
    r#"{{ shuffle "aaa" }} {{ htpasswd "a:b" "c" }} {{ sha256sum "x" }} {{ adler32sum "x" }}"#,
];

#[test]
fn templates_return_what_go_returns() {
    let mut oracle = Oracle::start().unwrap();
    let mut wrong = Vec::new();
    for template in TEMPLATES {
        let response = oracle.query(&request(template)).unwrap();
        let theirs = if response.err.is_empty() {
            String::from_utf8(response.out).unwrap()
        } else {
            response.err
        };
        let ours = run(template);
        if ours != theirs {
            wrong.push(format!("{template}\n  go:   {theirs}\n  ours: {ours}"));
        }
    }
    println!(
        "differential templates with keys and dates: {} run, {} equal",
        TEMPLATES.len(),
        TEMPLATES.len() - wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn run(template: &str) -> String {
    let mut set = TemplateSet::new();
    set.add_functions(mainstay_sprig::functions());
    let done = set.parse("t", template).and_then(|()| {
        let mut meter = Meter::new(Limits::default());
        execute(&set, "t", Value::Nil, &mut meter, &mut SeededHost::new(1))
    });
    done.map_or_else(|error| error.to_string(), |out| String::from_utf8(out).unwrap())
}
