//! Query strings: parses text into decoded pairs.

use mainstay_gostd::url::path_unescape;

/// Decoded key-value pairs of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `a=b&c=d`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (decode(key), decode(value)))
                .collect(),
        )
    }

    /// Appends a pair.
    pub fn push(&mut self, key: &str, value: &str) {
        self.0.push((key.to_owned(), value.to_owned()));
    }

    /// Returns the first value of `key`, or an empty string.
    #[must_use]
    pub fn get(&self, key: &str) -> &str {
        self.find(key).unwrap_or("")
    }

    /// Returns the first value of `key`, or `None` if the query does not contain it.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns whether `key` is present and not one of the false values of Go's `strconv.ParseBool`.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.find(key)
            .is_some_and(|value| !matches!(value, "false" | "0" | "False" | "FALSE" | "f" | "F"))
    }
}

/// Decodes percent escapes like Go's `url.PathUnescape`; returns `None` if one is malformed.
pub(crate) fn decode_percent(text: &str) -> Option<String> {
    let decoded = path_unescape(text.as_bytes()).ok()?;
    Some(String::from_utf8_lossy(&decoded).into_owned())
}

/// Decodes percent escapes and `+`. Malformed escapes are kept; invalid UTF-8 becomes replacement characters.
pub(super) fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let mut ahead = bytes.clone();
                let digits = [ahead.next(), ahead.next()]
                    .map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)));
                if let [Some(high), Some(low)] = digits {
                    out.push((high * 16 + low) as u8);
                    bytes = ahead;
                } else {
                    out.push(b'%');
                }
            }
            plain => out.push(plain),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_pairs() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch=1&empty=&bare&x=%zz+y");
        assert_eq!(query.get("labelSelector"), "a=b,c");
        assert!(query.flag("watch"));
        assert!(query.flag("bare"));
        assert_eq!(query.find("empty"), Some(""));
        assert_eq!(query.find("none"), None);
        assert_eq!(query.get("x"), "%zz y");
    }
}
