//! Table of the function overloads, and overload resolution.
//!
//! A row consists of a name, the argument types and the result type. A leading dot marks a member
//! function; its first argument type is the type of the target. Types are written as letters: b bool, i
//! int, u uint, d double, s string, y bytes, t time, p duration, n null, * any, l(…) list, m(…) map, o(…)
//! optional, T type, A B type parameters, Q quantity, I ip, C cidr, L url, V semver, F format.

use std::rc::Rc;
use std::sync::OnceLock;

use super::types::Type;

const TABLE: &str = "
_?_:_ bAA A
_&&_ bb b
_||_ bb b
!_ b b
-_ i i
-_ d d
_==_ AA b
_!=_ AA b
_<_ ii b
_<_ uu b
_<_ dd b
_<_ iu b
_<_ id b
_<_ ui b
_<_ ud b
_<_ di b
_<_ du b
_<_ bb b
_<_ ss b
_<_ yy b
_<_ tt b
_<_ pp b
_+_ ii i
_+_ uu u
_+_ dd d
_+_ ss s
_+_ yy y
_+_ l(A)l(A) l(A)
_+_ tp t
_+_ pt t
_+_ pp p
_-_ ii i
_-_ uu u
_-_ dd d
_-_ tt p
_-_ tp t
_-_ pp p
_*_ ii i
_*_ uu u
_*_ dd d
_/_ ii i
_/_ uu u
_/_ dd d
_%_ ii i
_%_ uu u
@in Al(A) b
@in Am(A,B) b
_[_] l(A)i A
_[_] m(A,B)A B
_[?_] l(A)i o(A)
_[?_] m(A,B)A o(B)
_[?_] o(l(A))i o(A)
_[?_] o(m(A,B))A o(B)
size s i
size y i
size l(A) i
size m(A,B) i
.size s i
.size y i
.size l(A) i
.size m(A,B) i
.contains ss b
.startsWith ss b
.endsWith ss b
.matches ss b
matches ss b
int * i
uint * u
double * d
string * s
bytes * y
bool * b
dyn A *
type A T
duration * p
timestamp * t
.getFullYear t i
.getFullYear ts i
.getMonth t i
.getMonth ts i
.getDate t i
.getDate ts i
.getDayOfMonth t i
.getDayOfMonth ts i
.getDayOfWeek t i
.getDayOfWeek ts i
.getDayOfYear t i
.getDayOfYear ts i
.getHours t i
.getHours ts i
.getHours p i
.getMinutes t i
.getMinutes ts i
.getMinutes p i
.getSeconds t i
.getSeconds ts i
.getSeconds p i
.getMilliseconds t i
.getMilliseconds ts i
.getMilliseconds p i
.charAt si s
.indexOf ss i
.indexOf ssi i
.lastIndexOf ss i
.lastIndexOf ssi i
.lowerAscii s s
.upperAscii s s
.replace sss s
.replace sssi s
.split ss l(s)
.split ssi l(s)
.substring si s
.substring sii s
.trim s s
.join l(s) s
.join l(s)s s
.format sl(*) s
strings.quote s s
.find ss s
.findAll ss l(s)
.findAll ssi l(s)
.isSorted l(A) b
.sum l(A) A
.min l(A) A
.max l(A) A
.indexOf l(A)A i
.lastIndexOf l(A)A i
.slice l(A)ii l(A)
.flatten l(*) l(*)
.flatten l(*)i l(*)
.distinct l(A) l(A)
.reverse l(A) l(A)
.sort l(A) l(A)
.first l(A) o(A)
.last l(A) o(A)
lists.range i l(i)
sets.contains l(A)l(A) b
sets.equivalent l(A)l(A) b
sets.intersects l(A)l(A) b
optional.of A o(A)
optional.ofNonZeroValue A o(A)
optional.none  o(*)
.hasValue o(A) b
.value o(A) A
.or o(A)o(A) o(A)
.orValue o(A)A A
isURL s b
url s L
.getScheme L s
.getHost L s
.getHostname L s
.getPort L s
.getEscapedPath L s
.getQuery L m(s,l(s))
isQuantity s b
quantity s Q
.sign Q i
.isInteger Q b
.asInteger Q i
.asApproximateFloat Q d
.isGreaterThan QQ b
.isLessThan QQ b
.compareTo QQ i
.add QQ Q
.add Qi Q
.sub QQ Q
.sub Qi Q
isIP s b
ip s I
ip.isCanonical s b
.family I i
.isUnspecified I b
.isLoopback I b
.isLinkLocalMulticast I b
.isLinkLocalUnicast I b
.isGlobalUnicast I b
isCIDR s b
cidr s C
.containsIP Cs b
.containsIP CI b
.containsCIDR Cs b
.containsCIDR CC b
.ip C I
.masked C C
.prefixLength C i
isSemver s b
isSemver sb b
semver s V
semver sb V
.major V i
.minor V i
.patch V i
.isGreaterThan VV b
.isLessThan VV b
.compareTo VV i
format.named s o(F)
.validate Fs o(l(s))
format.dns1123Label  F
format.dns1123Subdomain  F
format.dns1035Label  F
format.qualifiedName  F
format.dns1123LabelPrefix  F
format.dns1123SubdomainPrefix  F
format.dns1035LabelPrefix  F
format.labelValue  F
format.uri  F
format.uuid  F
format.byte  F
format.date  F
format.datetime  F
";

/// A row of the table.
#[derive(Debug)]
struct Row {
    name: &'static str,
    member: bool,
    arguments: Vec<&'static str>,
    result: &'static str,
}

fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| TABLE.lines().filter_map(parse_row).collect())
}

fn parse_row(line: &'static str) -> Option<Row> {
    let mut parts = line.split(' ');
    let name = parts.next().filter(|name| !name.is_empty())?;
    let (arguments, result) = (parts.next()?, parts.next()?);
    let member = name.starts_with('.');
    Some(Row {
        name: name.trim_start_matches('.'),
        member,
        arguments: split_types(arguments),
        result,
    })
}

/// Splits a list of types, such as `l(A)i` into `l(A)` and `i`.
fn split_types(text: &'static str) -> Vec<&'static str> {
    let (mut all, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                start = at + 1;
                continue;
            }
            _ => {}
        }
        let opens = text.get(at + 1..).is_some_and(|rest| rest.starts_with('('));
        if depth == 0 && !opens {
            all.extend(text.get(start..=at));
            start = at + 1;
        }
    }
    all
}

/// Returns whether a function of this name exists.
pub(super) fn is_function(name: &str) -> bool {
    rows().iter().any(|row| row.name == row_name(name))
}

/// Returns the name of the rows of a function. All comparison operators share their rows.
fn row_name(name: &str) -> &str {
    match name {
        "_<=_" | "_>_" | "_>=_" => "_<_",
        other => other,
    }
}

/// Returns the result type of a call, or `None` if no overload matches.
pub(super) fn resolve<'t>(name: &str, member: bool, arguments: &[Type<'t>]) -> Option<Type<'t>> {
    let name = row_name(name);
    let candidates = rows()
        .iter()
        .filter(|row| row.name == name && row.member == member && row.arguments.len() == arguments.len());
    let mut results = candidates.filter_map(|row| result_type(row, arguments));
    let first = results.next()?;
    // Several rows match only if the type of an argument is dynamic.
    if results.any(|other| other.name() != first.name()) {
        return Some(Type::Dyn);
    }
    Some(first)
}

/// Types of the type parameters A and B.
type TypeParameters<'t> = [Option<Type<'t>>; 2];

fn result_type<'t>(row: &Row, arguments: &[Type<'t>]) -> Option<Type<'t>> {
    let mut parameters: TypeParameters<'t> = [None, None];
    for (expected, given) in row.arguments.iter().zip(arguments) {
        if !unify(expected, given, &mut parameters) {
            return None;
        }
    }
    Some(build_type(row.result, &parameters))
}

/// Returns the type arguments, such as `A` and `B` of `m(A,B)`.
fn type_arguments(kind: &'static str) -> Vec<&'static str> {
    let inner = kind.get(2..kind.len().saturating_sub(1)).unwrap_or("");
    split_types(inner)
}

fn parameter_index(letter: &str) -> usize {
    usize::from(letter == "B")
}

/// Returns whether a value of type `given` can be passed as `expected`, and determines the type parameters.
fn unify<'t>(expected: &'static str, given: &Type<'t>, parameters: &mut TypeParameters<'t>) -> bool {
    if expected == "A" || expected == "B" {
        let Some(slot) = parameters.get_mut(parameter_index(expected)) else {
            return false;
        };
        return if let Some(known) = slot {
            let fits = known.is_assignable(given);
            if matches!(known, Type::Null | Type::Dyn) {
                *slot = Some(given.clone());
            }
            fits
        } else {
            *slot = Some(given.clone());
            true
        };
    }
    let parts = type_arguments(expected);
    match (expected.chars().next(), given) {
        (_, Type::Dyn) => true,
        (Some('l'), Type::List(item)) | (Some('o'), Type::Optional(item)) => {
            parts.first().is_none_or(|part| unify(part, item, parameters))
        }
        (Some('m'), Type::Map(key, value)) => {
            parts.first().is_none_or(|part| unify(part, key, parameters))
                && parts.get(1).is_none_or(|part| unify(part, value, parameters))
        }
        (Some('l' | 'm' | 'o') | None, _) => false,
        (Some(_), given) => {
            build_type(expected, parameters).is_assignable(given) && !matches!(given, Type::Null)
        }
    }
}

/// Returns the type in letters with its type parameters replaced.
fn build_type<'t>(letters: &'static str, parameters: &TypeParameters<'t>) -> Type<'t> {
    let parts = type_arguments(letters);
    let part = |at: usize| {
        Rc::new(
            parts
                .get(at)
                .map_or(Type::Dyn, |part| build_type(part, parameters)),
        )
    };
    match letters.chars().next() {
        Some('b') => Type::Bool,
        Some('i') => Type::Int,
        Some('u') => Type::Uint,
        Some('d') => Type::Double,
        Some('s') => Type::Text,
        Some('y') => Type::Bytes,
        Some('t') => Type::Time,
        Some('p') => Type::Duration,
        Some('n') => Type::Null,
        Some('T') => Type::Kind,
        Some('l') => Type::List(part(0)),
        Some('o') => Type::Optional(part(0)),
        Some('m') => Type::Map(part(0), part(1)),
        Some('Q') => Type::Library("kubernetes.Quantity"),
        Some('I') => Type::Library("net.IP"),
        Some('C') => Type::Library("net.CIDR"),
        Some('L') => Type::Library("kubernetes.URL"),
        Some('V') => Type::Library("kubernetes.Semver"),
        Some('F') => Type::Library("kubernetes.NamedFormat"),
        Some('A' | 'B') => parameters
            .get(parameter_index(letters))
            .cloned()
            .flatten()
            .unwrap_or(Type::Dyn),
        _ => Type::Dyn,
    }
}
