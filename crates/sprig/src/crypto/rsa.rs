//! RSA keys in PKCS #1 format. Only for offline use: the arithmetic is not constant-time, which cannot be
//! observed through a rendered manifest.

use num_bigint::BigUint;
use sha2::{Digest, Sha256};

use super::der::{self, Reader, SEQUENCE};
use super::drbg::Stream;
use super::error::CreateError;
use super::prime::prime;

/// Maximum size of a modulus in bits. Larger ones take too long.
const MAX_BITS: u64 = 16_384;
const MIN_BITS: u64 = 1_024;
const EXPONENT: u32 = 65_537;
/// Prefix of a SHA-256 digest in PKCS #1.
const SHA256_PREFIX: &[u8] = &[
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
    0x04, 0x20,
];

/// A private key with two primes.
#[derive(Clone, Debug)]
pub(super) struct RsaKey {
    modulus: BigUint,
    public: BigUint,
    private: BigUint,
    primes: [BigUint; 2],
}

impl RsaKey {
    /// Generates a key. Returns `None` only if the search for primes fails, which does not occur for
    /// supported sizes.
    pub(super) fn generate(bits: u32, stream: &mut Stream) -> Option<Self> {
        let one = BigUint::from(1_u8);
        let public = BigUint::from(EXPONENT);
        loop {
            let primes = [prime(bits / 2, stream)?, prime(bits / 2, stream)?];
            let [p, q] = &primes;
            let totient = (p - &one) * (q - &one);
            let Some(private) = public.modinv(&totient).filter(|_| p != q) else {
                continue;
            };
            return Some(Self {
                modulus: p * q,
                public,
                private,
                primes,
            });
        }
    }

    /// Parses `RSAPrivateKey`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let key = Self::read(bytes).ok_or("asn1: structure error: tags don't match or lengths are wrong")?;
        key.check()?;
        Ok(key)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut whole = Reader(bytes);
        let mut fields = whole.enter(SEQUENCE)?;
        let mut next = || fields.integer().map(BigUint::from_bytes_be);
        next()?;
        let (modulus, public, private) = (next()?, next()?, next()?);
        let primes = [next()?, next()?];
        whole.is_empty().then_some(Self {
            modulus,
            public,
            private,
            primes,
        })
    }

    fn check(&self) -> Result<(), &'static str> {
        let one = BigUint::from(1_u8);
        let [p, q] = &self.primes;
        if self.modulus.bits() > MAX_BITS {
            return Err("crypto/rsa: key too large");
        }
        if *p <= one || *q <= one || self.public <= one || self.private <= one {
            return Err("crypto/rsa: invalid prime or exponent value");
        }
        if p * q != self.modulus {
            return Err("crypto/rsa: invalid modulus");
        }
        if q.modinv(p).is_none() || !p.bit(0) || !q.bit(0) {
            return Err("crypto/rsa: p and q are not coprime");
        }
        for prime in [p, q] {
            let order = prime - &one;
            if &self.public * &self.private % &order != &one % &order {
                return Err("crypto/rsa: invalid exponents");
            }
        }
        Ok(())
    }

    /// Encodes `RSAPrivateKey`.
    pub(super) fn to_der(&self) -> Vec<u8> {
        let [p, q] = &self.primes;
        let (p_exponent, q_exponent, inverse) = self.crt_parameters();
        let numbers = [
            &self.modulus,
            &self.public,
            &self.private,
            p,
            q,
            &p_exponent,
            &q_exponent,
            &inverse,
        ];
        let numbers = numbers.map(|number| der::integer(&number.to_bytes_be()));
        der::sequence(&[vec![der::integer(&[])], numbers.to_vec()].concat())
    }

    /// Encodes `RSAPublicKey`.
    pub(super) fn public_der(&self) -> Vec<u8> {
        let numbers = [&self.modulus, &self.public];
        der::sequence(&numbers.map(|number| der::integer(&number.to_bytes_be())))
    }

    fn crt_parameters(&self) -> (BigUint, BigUint, BigUint) {
        let one = BigUint::from(1_u8);
        let [p, q] = &self.primes;
        (
            &self.private % (p - &one),
            &self.private % (q - &one),
            q.modinv(p).unwrap_or_default(),
        )
    }

    /// Signs `message` with RSASSA-PKCS1-v1_5 with SHA-256.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CreateError> {
        if self.modulus.bits() < MIN_BITS {
            return Err(CreateError::InsecureKey(self.modulus.bits()));
        }
        let size = self.modulus.bits().div_ceil(8) as usize;
        let digest = Sha256::digest(message);
        let padding = size - 3 - SHA256_PREFIX.len() - digest.len();
        let padded = [
            &[0, 1],
            vec![0xff; padding].as_slice(),
            &[0],
            SHA256_PREFIX,
            digest.as_slice(),
        ]
        .concat();
        let signature = self.power(&BigUint::from_bytes_be(&padded)).to_bytes_be();
        Ok([vec![0; size - signature.len()], signature].concat())
    }

    /// Raises `base` to the power of the private exponent with the Chinese remainder theorem.
    fn power(&self, base: &BigUint) -> BigUint {
        let [p, q] = &self.primes;
        let (p_exponent, q_exponent, inverse) = self.crt_parameters();
        let by_p = base.modpow(&p_exponent, p);
        let by_q = base.modpow(&q_exponent, q);
        let difference = (by_p + p - &by_q % p) % p;
        by_q + difference * inverse % p * q
    }
}
