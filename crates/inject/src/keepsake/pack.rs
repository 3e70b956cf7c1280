//! Bytes made short: takes bytes, gives bits, and back. A byte is itself, or so many of those that stood so far before it,
//! where a table of the usual words counts as what stood first. The bits for given bytes are fixed for ever: another run,
//! or a later release, must write the same.

use std::collections::HashMap;

use super::{Reader, Writer};

/// What such a container is made of, the likeliest last. Never changes: kept texts refer to it by distance.
const USUAL: &[u8] = b"readOnly: true, \"readOnly\": true, emptyDir: {}, args: [\"-l\", \"debug\"], \"args\": command: \"command\": \
limits: {memory: 100Mi}, \"limits\": {\"memory\": \"100Mi\"}, startupProbe: \"startupProbe\": imagePullPolicy: IfNotPresent, \
\"imagePullPolicy\": \"Always\", ports: [{name: contrast-admin, containerPort: 9901}], \"ports\": [{\"name\": \"http\", \"containerPort\": 8080}], \
contrast-secrets mountPath: /contrast EDG_ADMIN_PORT EDG_EGRESS_PROXY_CONFIG CONTRAST_INGRESS_PROXY_CONFIG \
{name: contrast-service-mesh, image: \"ghcr.io/edgelesssys/contrast/service-mesh-proxy:latest\", restartPolicy: Always, \
env: [{name: EDG_INGRESS_PROXY_CONFIG, value: \"##\"}], securityContext: {privileged: true, capabilities: {add: [NET_ADMIN]}}, \
volumeMounts: [{name: contrast-tls-certs, mountPath: /tls-config}]}, \
{name: contrast-initializer, image: \"ghcr.io/edgelesssys/contrast/initializer:latest\", \
env: [{name: COORDINATOR_HOST, value: coordinator}], resources: {requests: {memory: 50Mi}}, \
{\"name\": \"contrast-service-mesh\", \"restartPolicy\": \"Always\", \"env\": [{\"name\": \"EDG_INGRESS_PROXY_CONFIG\", \"value\": \"\"}], \
\"securityContext\": {\"privileged\": true, \"capabilities\": {\"add\": [\"NET_ADMIN\"]}}, \
\n      {\n        \"name\": \"contrast-initializer\",\n        \"image\": \"ghcr.io/edgelesssys/contrast/initializer:v0\",\n        \"env\": [\n          {\n            \
\"name\": \"COORDINATOR_HOST\",\n            \"value\": \"coordinator\"\n          }\n        ],\n        \"resources\": {\n          \
{\"name\": \"contrast-initializer\", \"image\": \"ghcr.io/edgelesssys/contrast/initializer:v0.7.0\", \
\"env\": [{\"name\": \"COORDINATOR_HOST\", \"value\": \"coordinator\"}], \"resources\": {\"requests\": {\"memory\": \"50Mi\"}}, \
\"volumeMounts\": [{\"name\": \"contrast-tls-certs\", \"mountPath\": \"/tls-config\"}]}, ";

/// A distance takes this many bits, from 1.
const DISTANCE: u32 = 12;
/// A length takes this many bits, from [`SHORTEST`].
const LENGTH: u32 = 5;
/// Fewer bytes than this are shorter as themselves.
const SHORTEST: usize = 3;
const LONGEST: usize = SHORTEST + (1 << LENGTH) - 1;
const FARTHEST: usize = 1 << DISTANCE;
/// How many earlier places are looked at for the longest match.
const LOOKS: usize = 32;

pub(super) fn pack(bytes: &[u8], out: &mut Writer) {
    let all = [USUAL, bytes].concat();
    let mut seen: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut noted = 0;
    let mut at = USUAL.len();
    while let Some(byte) = all.get(at) {
        while noted < at {
            if let Some(start) = all.get(noted..noted + SHORTEST) {
                seen.entry(start).or_default().push(noted);
            }
            noted += 1;
        }
        let (from, length) = longest(&all, at, &seen);
        if length < SHORTEST {
            out.number(0, 1);
            out.number(u32::from(*byte), 8);
            at += 1;
        } else {
            out.number(1, 1);
            out.number(small(at - from - 1), DISTANCE);
            out.number(small(length - SHORTEST), LENGTH);
            at += length;
        }
    }
}

/// Where the longest run like the one at `at` starts before it, and its length; the latest of equals.
fn longest(all: &[u8], at: usize, seen: &HashMap<&[u8], Vec<usize>>) -> (usize, usize) {
    let places = all.get(at..at + SHORTEST).and_then(|start| seen.get(start));
    let near = places.into_iter().flatten().rev().take(LOOKS);
    let mut best = (0, 0);
    for from in near.filter(|from| at - **from <= FARTHEST) {
        let earlier = all.get(*from..).unwrap_or_default();
        let later = all.get(at..).unwrap_or_default();
        let pairs = earlier.iter().zip(later).take(LONGEST);
        let length = pairs.take_while(|(earlier, later)| earlier == later).count();
        if length > best.1 {
            best = (*from, length);
        }
    }
    best
}

/// A number that was bounded by its maker.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// The `length` bytes that `bits` tell; `None` if they tell something else.
pub(super) fn unpack(bits: &mut Reader<'_>, length: usize) -> Option<Vec<u8>> {
    let end = USUAL.len() + length;
    let mut all = USUAL.to_vec();
    while all.len() < end {
        if bits.number(1)? == 0 {
            all.push(u8::try_from(bits.number(8)?).ok()?);
            continue;
        }
        let distance = usize::try_from(bits.number(DISTANCE)?).ok()? + 1;
        let count = usize::try_from(bits.number(LENGTH)?).ok()? + SHORTEST;
        let from = all.len().checked_sub(distance)?;
        for index in from..from + count {
            // What was just written may be part of it.
            let byte = *all.get(index)?;
            all.push(byte);
        }
    }
    (all.len() == end).then(|| all.split_off(USUAL.len()))
}
