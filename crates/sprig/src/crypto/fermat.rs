//! Fermat's primality test to the base 2. Rejects nearly all composites at the cost of one modular power,
//! which consists of squarings in Montgomery form and doublings.

/// Whether 2^(n-1) ≡ 1 modulo n. n is the number in `bytes`; it must be odd, have `WORDS` words of 64 bits,
/// and have its highest bit set. Other numbers do not pass.
pub(super) fn passes_fermat_test<const WORDS: usize>(bytes: &[u8]) -> bool {
    let Some(modulus) = Modulus::<WORDS>::from_bytes(bytes) else {
        return false;
    };
    let one = modulus.one();
    let mut power = one;
    // Bits of the exponent n - 1: those of n from the highest one, with 0 instead of the last.
    for (place, word) in modulus.words.iter().enumerate().rev() {
        for bit in (0..64).rev() {
            power = modulus.square(&power);
            let is_last = place == 0 && bit == 0;
            if word >> bit & 1 == 1 && !is_last {
                power = modulus.double(&power);
            }
        }
    }
    power == one
}

/// A number with its lowest word first.
type Words<const N: usize> = [u64; N];

/// An odd modulus with its highest bit set.
struct Modulus<const N: usize> {
    words: Words<N>,
    /// -1/n modulo 2^64.
    inverse: u64,
}

impl<const N: usize> Modulus<N> {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; N];
        let (rest, chunks) = bytes.as_rchunks::<8>();
        for (word, chunk) in words.iter_mut().zip(chunks.iter().rev()) {
            *word = u64::from_be_bytes(*chunk);
        }
        let is_odd = words.first().is_some_and(|word| word & 1 == 1);
        let is_full = words.last().is_some_and(|word| word >> 63 == 1);
        let known = rest.is_empty() && chunks.len() == N && is_odd && is_full;
        let inverse = inverse(words.first().copied().unwrap_or(1)).wrapping_neg();
        known.then_some(Self { words, inverse })
    }

    /// Returns 1 in Montgomery form: 2^(64 N) - n.
    fn one(&self) -> Words<N> {
        subtract(&[0; N], &self.words).0
    }

    fn double(&self, value: &Words<N>) -> Words<N> {
        let mut carry = 0;
        let doubled = value.map(|word| {
            let doubled = word << 1 | carry;
            carry = word >> 63;
            doubled
        });
        self.reduce(doubled, carry)
    }

    /// Reduces a value below 2n by subtracting n if required. The highest word of the value is `carry`.
    fn reduce(&self, value: Words<N>, carry: u64) -> Words<N> {
        let (less, borrow) = subtract(&value, &self.words);
        if carry == 1 || !borrow { less } else { value }
    }

    /// Returns the Montgomery product of `value` with itself, computed word by word.
    fn square(&self, value: &Words<N>) -> Words<N> {
        let mut sum = [0; N];
        let mut top = 0;
        for word in value {
            let first = add_multiple(&mut sum, value, *word);
            let factor = sum.first().copied().unwrap_or(0).wrapping_mul(self.inverse);
            let carried = u128::from(top) + u128::from(first);
            top = add_multiple_and_shift(&mut sum, &self.words, factor, carried);
        }
        self.reduce(sum, top)
    }
}

/// Adds `factor` times `other` to `value` and shifts the result right by one word. `above` is the word above
/// the highest word of `value`. The lowest word of the sum is zero by the choice of the factor. Returns the
/// carry.
fn add_multiple_and_shift<const N: usize>(
    value: &mut Words<N>,
    other: &Words<N>,
    factor: u64,
    above: u128,
) -> u64 {
    let (Some((mut slot, rest)), Some((lowest, others))) = (value.split_first_mut(), other.split_first())
    else {
        return 0;
    };
    let mut carry = ((u128::from(*lowest) * u128::from(factor) + u128::from(*slot)) >> 64) as u64;
    for (word, other) in rest.iter_mut().zip(others) {
        let sum = u128::from(*other) * u128::from(factor) + u128::from(*word) + u128::from(carry);
        *slot = sum as u64;
        slot = word;
        carry = (sum >> 64) as u64;
    }
    let sum = above + u128::from(carry);
    *slot = sum as u64;
    (sum >> 64) as u64
}

/// Adds `factor` times `other` to `value`. Returns the carry.
fn add_multiple<const N: usize>(value: &mut Words<N>, other: &Words<N>, factor: u64) -> u64 {
    let mut carry = 0;
    for (word, other) in value.iter_mut().zip(other) {
        let sum = u128::from(*other) * u128::from(factor) + u128::from(*word) + u128::from(carry);
        *word = sum as u64;
        carry = (sum >> 64) as u64;
    }
    carry
}

/// Returns the difference modulo 2^(64 N), and whether it is negative.
fn subtract<const N: usize>(from: &Words<N>, less: &Words<N>) -> (Words<N>, bool) {
    let mut out = *from;
    let mut borrow = false;
    for (word, less) in out.iter_mut().zip(less) {
        let (first, under) = word.overflowing_sub(*less);
        let (second, again) = first.overflowing_sub(u64::from(borrow));
        *word = second;
        borrow = under || again;
    }
    (out, borrow)
}

/// Returns the inverse of `odd` modulo 2^64 with Newton's method, which doubles the number of correct bits
/// in every step.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)))
    })
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;

    #[test]
    fn primes_pass_and_composites_do_not() {
        let check = |below: u32, expected: bool| {
            let number: BigUint = (BigUint::from(1_u8) << 256) - below;
            assert_eq!(
                passes_fermat_test::<4>(&number.to_bytes_be()),
                expected,
                "2^256 - {below}"
            );
        };
        // These are the highest primes of 256 bits.
        check(189, true);
        check(357, true);
        for below in (1..189).chain(190..357) {
            check(below, false);
        }
    }

    #[test]
    fn result_equals_modular_exponentiation() {
        let mut number = BigUint::from(3_u8);
        for _ in 0..200 {
            number = (&number * &number + 0x9e37_79b9_u32) % (BigUint::from(1_u8) << 256);
            number.set_bit(255, true);
            number.set_bit(0, true);
            let power: BigUint = BigUint::from(2_u8).modpow(&(&number - 1_u8), &number);
            assert_eq!(
                passes_fermat_test::<4>(&number.to_bytes_be()),
                power == BigUint::from(1_u8)
            );
        }
    }

    #[test]
    fn numbers_of_other_sizes_do_not_pass() {
        assert!(!passes_fermat_test::<4>(&[0xff; 31]));
        assert!(!passes_fermat_test::<4>(&[0xff; 33]));
        assert!(!passes_fermat_test::<4>(&[0x7f; 32]));
        assert!(!passes_fermat_test::<4>(&[0xfe; 32]));
    }
}
