//! nftables over netlink: writes tables, chains and rules in one transaction.
//!
//! No external tool is required. The numbers are those of `linux/netfilter/nf_tables.h`.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// A transaction on one table.
#[derive(Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    count: u32,
    table: &'static str,
}

/// Hook of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hook {
    /// Incoming packets, before routing.
    Prerouting,
    /// Packets of local processes.
    Output,
    /// Outgoing packets, after routing.
    Postrouting,
}

/// Part of a rule: one or more encoded expressions.
#[derive(Clone, Debug)]
pub(super) struct Part(Vec<u8>);

const IPV4: u8 = 2;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;

impl Batch {
    /// Starts a transaction that replaces the table by an empty one.
    pub(super) fn for_table(table: &'static str) -> Self {
        let mut batch = Self {
            bytes: Vec::new(),
            count: 0,
            table,
        };
        batch.frame(BATCH_BEGIN, REQUEST, 0, &[]);
        // The table is created first, so that deleting it succeeds.
        for kind in [NEW_TABLE, DELETE_TABLE, NEW_TABLE] {
            batch.push(kind, 0, &attribute(1, &text(table)));
        }
        batch
    }

    /// Adds a chain for address translation.
    pub(super) fn chain(&mut self, name: &str, hook: Hook) {
        let (number, priority) = match hook {
            Hook::Prerouting => (0, -100_i32),
            Hook::Output => (3, -100),
            Hook::Postrouting => (4, 100),
        };
        let place = [
            attribute(1, &u32::to_be_bytes(number)),
            attribute(2, &priority.to_be_bytes()),
        ];
        let body = [
            attribute(1, &text(self.table)),
            attribute(3, &text(name)),
            nested(4, &place.concat()),
            attribute(5, &u32::to_be_bytes(1)),
            attribute(7, &text("nat")),
        ];
        self.push(NEW_CHAIN, 0, &body.concat());
    }

    /// Appends a rule to a chain.
    pub(super) fn rule(&mut self, chain: &str, parts: &[Part]) {
        let expressions: Vec<u8> = parts.iter().flat_map(|part| part.0.iter().copied()).collect();
        let body = [
            attribute(1, &text(self.table)),
            attribute(2, &text(chain)),
            nested(4, &expressions),
        ];
        self.push(NEW_RULE, APPEND, &body.concat());
    }

    fn push(&mut self, kind: u16, more: u16, body: &[u8]) {
        self.frame(
            SUBSYSTEM << 8 | kind,
            REQUEST | CREATE | ACKNOWLEDGE | more,
            0,
            body,
        );
        self.count += 1;
    }

    /// Adds a message. Its sequence number is its index, so that an error can be attributed to it.
    fn frame(&mut self, kind: u16, flags: u16, resource: u16, body: &[u8]) {
        let is_border = kind == BATCH_BEGIN || kind == BATCH_END;
        let (family, resource) = if is_border {
            (0, SUBSYSTEM)
        } else {
            (IPV4, resource)
        };
        let length = u32::try_from(HEADER + 4 + body.len()).unwrap_or(u32::MAX);
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(self.count.to_ne_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Commits the transaction in the network namespace of the calling thread.
    pub(super) fn commit(mut self) -> io::Result<()> {
        let expected = self.count;
        self.frame(BATCH_END, REQUEST, 0, &[]);
        let kernel = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkNetFilter,
        )?;
        setsockopt(&kernel, sockopt::ReceiveTimeout, &TimeVal::seconds(5))?;
        // The buffer must hold one reply per message. Setting it requires root; the default limit suffices
        // for other users.
        let _ = setsockopt(&kernel, sockopt::RcvBufForce, &(8 << 20));
        let _ = setsockopt(&kernel, sockopt::SndBufForce, &(8 << 20));
        bind(kernel.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        send(kernel.as_raw_fd(), &self.bytes, MsgFlags::empty())?;
        let (mut replies, mut buffer) = (0, vec![0; 1 << 16]);
        while replies < expected {
            let length = recv(kernel.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            replies += count_replies(buffer.get(..length).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Length of a message header: length, type, flags, sequence number, sender.
const HEADER: usize = 16;

/// Returns the number of acknowledged messages, or the first error.
fn count_replies(mut bytes: &[u8]) -> io::Result<u32> {
    let mut taken = 0;
    while let Some((kind, number, code, rest)) = reply(bytes) {
        if kind == ERROR && code != 0 {
            let reason = io::Error::from_raw_os_error(-code);
            return Err(io::Error::new(
                reason.kind(),
                format!("the packet filter rejects message {number}: {reason}"),
            ));
        }
        taken += u32::from(kind == ERROR);
        bytes = rest;
    }
    Ok(taken)
}

/// Returns type, sequence number and error code of the first reply, and the remaining bytes.
fn reply(bytes: &[u8]) -> Option<(u16, u32, i32, &[u8])> {
    let four = |at: usize| bytes.get(at..at + 4)?.try_into().ok();
    let length = u32::from_ne_bytes(four(0)?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let number = u32::from_ne_bytes(four(8)?);
    let code = i32::from_ne_bytes(four(HEADER)?);
    let rest = bytes
        .get(length.max(HEADER).next_multiple_of(4)..)
        .unwrap_or_default();
    Some((kind, number, code, rest))
}

fn attribute(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + data.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn nested(kind: u16, inner: &[u8]) -> Vec<u8> {
    attribute(kind | 0x8000, inner)
}

fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Registers that pass values between expressions.
const REGISTER_1: [u8; 4] = 1_u32.to_be_bytes();
const REGISTER_2: [u8; 4] = 2_u32.to_be_bytes();
const VERDICT: [u8; 4] = 0_u32.to_be_bytes();

fn expression(name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let body = [attribute(1, &text(name)), nested(2, &attributes.concat())];
    nested(1, &body.concat())
}

fn meta(key: u32) -> Vec<u8> {
    expression(
        "meta",
        &[attribute(1, &REGISTER_1), attribute(2, &key.to_be_bytes())],
    )
}

fn payload(base: u32, offset: u32, length: u32) -> Vec<u8> {
    let numbers = [base, offset, length];
    let mut attributes = vec![attribute(1, &REGISTER_1)];
    attributes.extend(
        (2..)
            .zip(numbers)
            .map(|(kind, number)| attribute(kind, &number.to_be_bytes())),
    );
    expression("payload", &attributes)
}

fn compare(value: &[u8], equal: bool) -> Vec<u8> {
    let operation = u32::from(!equal).to_be_bytes();
    let value = nested(3, &attribute(1, value));
    expression(
        "cmp",
        &[attribute(1, &REGISTER_1), attribute(2, &operation), value],
    )
}

fn load(register: [u8; 4], value: &[u8]) -> Vec<u8> {
    expression(
        "immediate",
        &[attribute(1, &register), nested(2, &attribute(1, value))],
    )
}

impl Part {
    /// Matches TCP packets.
    pub(super) fn tcp() -> Self {
        Self([meta(16), compare(&[6], true)].concat())
    }

    /// Matches packets of processes of this user if `equal`, otherwise those of all other users.
    pub(super) fn user(user: u32, equal: bool) -> Self {
        Self([meta(10), compare(&user.to_ne_bytes(), equal)].concat())
    }

    /// Matches packets that leave through the loopback interface.
    pub(super) fn to_loopback() -> Self {
        let mut name = b"lo".to_vec();
        name.resize(16, 0);
        Self([meta(7), compare(&name, true)].concat())
    }

    /// Matches this destination port if `equal`, otherwise all other ports.
    pub(super) fn port(port: u16, equal: bool) -> Self {
        Self([payload(2, 2, 2), compare(&port.to_be_bytes(), equal)].concat())
    }

    /// Matches the source address.
    pub(super) fn from(address: Ipv4Addr) -> Self {
        Self([payload(1, 12, 4), compare(&address.octets(), true)].concat())
    }

    /// Matches this destination address if `equal`, otherwise all other addresses.
    pub(super) fn to(address: Ipv4Addr, equal: bool) -> Self {
        Self([payload(1, 16, 4), compare(&address.octets(), equal)].concat())
    }

    /// Matches one of `times` packets.
    pub(super) fn one_in(times: u32) -> Self {
        let draw = [
            attribute(1, &REGISTER_1),
            attribute(2, &times.to_be_bytes()),
            attribute(3, &u32::to_be_bytes(1)),
        ];
        Self([expression("numgen", &draw), compare(&0_u32.to_ne_bytes(), true)].concat())
    }

    /// Matches packets whose destination was translated.
    pub(super) fn translated() -> Self {
        let status = expression("ct", &[attribute(1, &REGISTER_1), attribute(2, &REGISTER_2)]);
        let masked = [
            attribute(1, &REGISTER_1),
            attribute(2, &REGISTER_1),
            attribute(3, &u32::to_be_bytes(4)),
            nested(4, &attribute(1, &32_u32.to_ne_bytes())),
            nested(5, &attribute(1, &0_u32.to_ne_bytes())),
        ];
        let is_set = compare(&0_u32.to_ne_bytes(), false);
        Self([status, expression("bitwise", &masked), is_set].concat())
    }

    /// Accepts the packet.
    pub(super) fn accept() -> Self {
        let verdict = nested(2, &attribute(1, &u32::to_be_bytes(1)));
        let body = [attribute(1, &VERDICT), nested(2, &verdict)];
        Self(expression("immediate", &body))
    }

    /// Redirects the packet to a local port.
    pub(super) fn redirect(port: u16) -> Self {
        let there = expression("redir", &[attribute(1, &REGISTER_1)]);
        Self([load(REGISTER_1, &port.to_be_bytes()), there].concat())
    }

    /// Translates the destination address and port.
    pub(super) fn translate(address: Ipv4Addr, port: u16) -> Self {
        let there = [
            attribute(1, &u32::to_be_bytes(1)),
            attribute(2, &u32::to_be_bytes(u32::from(IPV4))),
            attribute(3, &REGISTER_1),
            attribute(5, &REGISTER_2),
        ];
        let parts = [
            load(REGISTER_1, &address.octets()),
            load(REGISTER_2, &port.to_be_bytes()),
            expression("nat", &there),
        ];
        Self(parts.concat())
    }

    /// Masquerades the source address, so that replies are sent back through this host.
    pub(super) fn masquerade() -> Self {
        Self(expression("masq", &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_to_four() {
        assert_eq!(attribute(7, &[1]), [5, 0, 7, 0, 1, 0, 0, 0]);
        assert_eq!(attribute(7, &[1, 2, 3, 4]).len(), 8);
    }

    #[test]
    fn every_message_starts_with_its_length() {
        let mut batch = Batch::for_table("t");
        batch.chain("c", Hook::Output);
        batch.rule("c", &[Part::tcp(), Part::accept()]);
        let (mut bytes, mut messages) = (batch.bytes.as_slice(), 0);
        while !bytes.is_empty() {
            let length = u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize;
            bytes = &bytes[length.next_multiple_of(4)..];
            messages += 1;
        }
        assert_eq!(messages, 6, "begin, three for the table, a chain, a rule");
    }

    #[test]
    fn errors_name_the_rejected_message() {
        let mut reply = Vec::new();
        reply.extend(36_u32.to_ne_bytes());
        reply.extend(ERROR.to_ne_bytes());
        reply.extend(0_u16.to_ne_bytes());
        reply.extend(4_u32.to_ne_bytes());
        reply.extend([0; 4]);
        reply.extend((-1_i32).to_ne_bytes());
        reply.resize(36, 0);
        let error = count_replies(&reply).unwrap_err().to_string();
        assert!(
            error.starts_with("the packet filter rejects message 4: "),
            "{error}"
        );
    }

    #[test]
    fn a_truncated_reply_is_ignored() {
        assert_eq!(count_replies(&[1, 2, 3]).unwrap(), 0);
    }
}
