//! DER tags and object identifiers of client certificates.

pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
/// Context-specific tag of the version of a certificate.
pub(crate) const EXPLICIT_VERSION: u8 = 0xA0;

pub(crate) const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
pub(crate) const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0A];
