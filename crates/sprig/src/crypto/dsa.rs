//! DSA keys in Sprig's format with a prime of 2048 bits and an order of 256 bits. They cannot sign
//! certificates, as in Go.

use crypto_bigint::BoxedUint;
use crypto_primes::{Flavor, is_prime};
use num_bigint::BigUint;

use super::der::{self, Reader, SEQUENCE};
use super::drbg::Stream;
use super::prime::prime;

const PRIME_BITS: u32 = 2_048;
const ORDER_BITS: u32 = 256;
/// Maximum number of attempts with one subgroup order. Another order is generated after that.
const MAX_ATTEMPTS: u32 = 4 * PRIME_BITS;

/// A private key: the numbers p, q, g, y and x.
#[derive(Clone, Debug)]
pub(super) struct DsaKey([BigUint; 5]);

impl DsaKey {
    /// Generates a key and its parameters.
    pub(super) fn generate(stream: &mut Stream) -> Option<Self> {
        let (p, q) = parameters(stream)?;
        let one = BigUint::from(1_u8);
        let cofactor = (&p - &one) / &q;
        let mut powers = (2_u32..1_000).map(|base| BigUint::from(base).modpow(&cofactor, &p));
        let generator = powers.find(|power| *power != one)?;
        let secret = BigUint::from_bytes_be(&stream.bytes::<40>()) % (&q - &one) + &one;
        let public = generator.modpow(&secret, &p);
        Some(Self([p, q, generator, public, secret]))
    }

    /// Parses the format of [`DsaKey::to_der`].
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader(bytes).enter(SEQUENCE)?;
        let mut next = || fields.integer().map(BigUint::from_bytes_be);
        next()?;
        Some(Self([next()?, next()?, next()?, next()?, next()?]))
    }

    /// Encodes a version and the five numbers.
    pub(super) fn to_der(&self) -> Vec<u8> {
        let numbers = self.0.iter().map(|number| der::integer(&number.to_bytes_be()));
        der::sequence(
            &std::iter::once(der::integer(&[]))
                .chain(numbers)
                .collect::<Vec<_>>(),
        )
    }
}

/// Generates primes p and q such that q divides p - 1.
fn parameters(stream: &mut Stream) -> Option<(BigUint, BigUint)> {
    loop {
        let q = prime(ORDER_BITS, stream)?;
        let step = &q << 1;
        for _ in 0..MAX_ATTEMPTS {
            let mut bytes = [0; PRIME_BITS as usize / 8];
            stream.fill(&mut bytes);
            let mut start = BigUint::from_bytes_be(&bytes);
            start.set_bit(u64::from(PRIME_BITS) - 1, true);
            let p: BigUint = &start - &start % &step + 1_u8;
            if p.bits() == u64::from(PRIME_BITS) && is_probable_prime(&p) {
                return Some((p, q));
            }
        }
    }
}

/// Tests a candidate. Small divisors are tested first: they exclude nine of ten candidates at a fraction of
/// the cost.
fn is_probable_prime(number: &BigUint) -> bool {
    let divisible = (3_u32..2_000)
        .step_by(2)
        .any(|divisor| (number % divisor) == BigUint::ZERO);
    !divisible
        && BoxedUint::from_be_slice(&number.to_bytes_be(), PRIME_BITS)
            .is_ok_and(|candidate| is_prime(Flavor::Any, &candidate))
}
