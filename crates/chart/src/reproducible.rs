//! Renders charts whose objects must not depend on random values or on the time.
//!
//! A controller renders a chart again and again. Objects that differ between two renders would be written
//! each time, and a secret that a constant source generates would be the same in every cluster. Therefore,
//! a chart that uses random bytes or the time is rendered with two hosts, and rejected if the objects differ.

use mainstay_template::{Failure, Host, Value};

use crate::identity::ObjectIdentity;

/// Error: two renders of a chart differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{object} differs between two renders, because the chart uses random values or the current time; use a chart without them"
)]
pub struct NotReproducible {
    /// First object that differs.
    pub object: String,
}

/// Returns the objects of a chart. If a template uses random bytes or the time of `hosts[0]`, calls `render`
/// again with `hosts[1]` and fails if the results differ.
pub fn render_reproducible<T, E>(
    hosts: [&mut dyn Host; 2],
    identify: impl Fn(&T) -> ObjectIdentity,
    mut render: impl FnMut(&mut dyn Host) -> Result<Vec<T>, E>,
) -> Result<Vec<T>, E>
where
    T: PartialEq,
    E: From<NotReproducible>,
{
    let [first, second] = hosts;
    let mut recording = RecordingHost {
        host: first,
        is_used: false,
    };
    let objects = render(&mut recording)?;
    if recording.is_used {
        let again = render(second)?;
        if let Some(object) = first_difference(&objects, &again, identify) {
            return Err(NotReproducible { object }.into());
        }
    }
    Ok(objects)
}

fn first_difference<T: PartialEq>(
    first: &[T],
    second: &[T],
    identify: impl Fn(&T) -> ObjectIdentity,
) -> Option<String> {
    let mut pairs = first.iter().zip(second);
    match pairs.find(|(first, second)| first != second) {
        Some((object, _)) => Some(identify(object).to_string()),
        None if first.len() == second.len() => None,
        None => Some("the number of objects".to_owned()),
    }
}

/// A host that records whether random bytes or the time of another one were used.
struct RecordingHost<'a> {
    host: &'a mut dyn Host,
    is_used: bool,
}

impl Host for RecordingHost<'_> {
    fn entropy(&mut self, buffer: &mut [u8]) {
        self.is_used = true;
        self.host.entropy(buffer);
    }

    fn now(&mut self) -> i128 {
        self.is_used = true;
        self.host.now()
    }

    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, Failure> {
        self.host.lookup(api_version, kind, namespace, name)
    }
}

/// A host with a fixed time and a fixed sequence of bytes, for [`render_reproducible`] in pure code: the
/// same input always has the same result.
#[derive(Clone, Debug)]
pub struct FixedHost {
    now: i128,
    state: u64,
}

/// Nanoseconds from 1970 to 2030.
const LATER: i128 = 1_893_456_000_000_000_000;

impl FixedHost {
    /// Returns two hosts with different times and bytes.
    #[must_use]
    pub fn pair() -> [Self; 2] {
        [Self { now: 0, state: 1 }, Self { now: LATER, state: 2 }]
    }
}

impl Host for FixedHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            *byte = self.next_byte();
        }
    }

    fn now(&mut self) -> i128 {
        self.now
    }
}

impl FixedHost {
    /// Advances the generator `SplitMix64` and returns a byte of its output.
    fn next_byte(&mut self) -> u8 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let [byte, ..] = (mixed ^ (mixed >> 31)).to_be_bytes();
        byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(render: impl Fn(&mut dyn Host) -> Vec<String>) -> Result<Vec<String>, NotReproducible> {
        let [mut first, mut second] = FixedHost::pair();
        let identify = |object: &String| ObjectIdentity {
            kind: "Secret".into(),
            name: object.chars().take(1).collect(),
            ..ObjectIdentity::default()
        };
        render_reproducible([&mut first, &mut second], identify, |host| Ok(render(host)))
    }

    fn random(host: &mut dyn Host) -> String {
        let mut bytes = [0; 4];
        host.entropy(&mut bytes);
        format!("b{bytes:?}")
    }

    #[test]
    fn a_result_that_depends_on_random_bytes_or_time_is_rejected() {
        let message = "Secret b differs between two renders, because the chart uses random values or the current time; use a chart without them";
        let error = check(|host| vec!["a".into(), random(host)]).unwrap_err();
        assert_eq!(error.to_string(), message);
        let error = check(|host| vec!["a".into(), format!("b{}", host.now())]).unwrap_err();
        assert_eq!(error.to_string(), message);
        let error = check(|host| vec!["a".into(); usize::from(host.now() == 0)]).unwrap_err();
        assert_eq!(error.object, "the number of objects");
    }

    #[test]
    fn unused_random_values_are_accepted() {
        let objects = check(|host| {
            let text = random(host);
            vec![text.chars().take(1).collect()]
        });
        assert_eq!(objects.unwrap(), ["b"]);
    }
}
