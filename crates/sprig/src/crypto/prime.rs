//! Search for large primes on all cores. The result depends only on the stream: it is the first prime after
//! a random start, regardless of the thread that finds it.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crypto_bigint::{Encoding, RandomBits, RandomMod, U256, U1024, U2048, UnsignedWithMontyForm};
use crypto_primes::hazmat::{SetBits, SieveFactory, SmallFactorsSieveFactory};
use crypto_primes::{Flavor, is_prime};
use num_bigint::BigUint;

use super::drbg::Stream;
use super::fermat::passes_fermat_test;

/// Maximum number of threads of one search.
const MAX_THREADS: usize = 8;

/// Generates a prime of exactly `bits` bits with the two highest bits set, so that a product of two primes
/// has exactly twice the number of bits. Supports the sizes of the keys that templates can create.
pub(super) fn prime(bits: u32, stream: &mut Stream) -> Option<BigUint> {
    match bits {
        256 => search::<U256, 4>(bits, stream),
        1_024 => search::<U1024, 16>(bits, stream),
        2_048 => search::<U2048, 32>(bits, stream),
        _ => None,
    }
}

/// Searches for a prime of type `T`, which has `WORDS` words of 64 bits.
fn search<T, const WORDS: usize>(bits: u32, stream: &mut Stream) -> Option<BigUint>
where
    T: UnsignedWithMontyForm + RandomBits + RandomMod + Encoding + Send + Sync,
{
    let mut factory = SmallFactorsSieveFactory::<T>::new(Flavor::Any, bits, SetBits::TwoMsb).ok()?;
    loop {
        let sieve = factory.make_sieve(stream, None).ok()??;
        let accepts = |candidate: &T| {
            let bytes = candidate.to_be_bytes();
            passes_fermat_test::<WORDS>(bytes.as_ref()) && is_prime(Flavor::Any, candidate)
        };
        // The sieve ends only if the start is close to the highest number of this size.
        if let Some(prime) = first_accepted(&sieve, &accepts) {
            return Some(BigUint::from_bytes_be(prime.to_be_bytes().as_ref()));
        }
    }
}

/// Returns the first item of `items` that `accepts` returns true for. Threads test items concurrently, each
/// claiming the next item.
fn first_accepted<I>(items: &I, accepts: &(impl Fn(&I::Item) -> bool + Sync)) -> Option<I::Item>
where
    I: Iterator + Clone + Sync,
    I::Item: Send,
{
    let claims = Claims {
        next: AtomicUsize::new(0),
        first: AtomicUsize::new(usize::MAX),
    };
    let work = || claims.work(items.clone(), accepts);
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS);
    let found = thread::scope(|scope| {
        // If no other thread can be started, this thread does all the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut found = vec![work()];
        found.extend(others.into_iter().filter_map(|other| other.join().ok()));
        found
    });
    let first = found.into_iter().flatten().min_by_key(|(index, _)| *index);
    first.map(|(_, item)| item)
}

/// Shared state that distributes items over threads.
struct Claims {
    /// Index of the next unclaimed item.
    next: AtomicUsize,
    /// Index of the first accepted item so far.
    first: AtomicUsize,
}

impl Claims {
    /// Claims and tests items until every item before the first accepted one is claimed.
    fn work<I: Iterator>(&self, items: I, accepts: &impl Fn(&I::Item) -> bool) -> Option<(usize, I::Item)> {
        let mut items = items.enumerate();
        loop {
            let claimed = self.next.fetch_add(1, Ordering::Relaxed);
            if claimed > self.first.load(Ordering::Relaxed) {
                return None;
            }
            let (index, item) = items.find(|(index, _)| *index == claimed)?;
            if accepts(&item) {
                self.first.fetch_min(index, Ordering::Relaxed);
                return Some((index, item));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_template::{Host, NoHost};

    use super::*;

    #[test]
    fn the_first_accepted_item_is_returned() {
        for first in [0, 1, 7, 999] {
            assert_eq!(first_accepted(&(0..1_000), &|item| *item >= first), Some(first));
        }
        assert_eq!(first_accepted(&(0..1_000), &|_| false), None);
    }

    /// A host whose entropy repeats one byte.
    struct Repeating(u8);

    impl Host for Repeating {
        fn entropy(&mut self, buffer: &mut [u8]) {
            buffer.fill(self.0);
        }

        fn now(&mut self) -> i128 {
            NoHost.now()
        }
    }

    #[test]
    fn stream_determines_the_prime() {
        for bits in [256, 1_024] {
            let generate = |byte| prime(bits, &mut Stream::new(&mut Repeating(byte))).unwrap();
            let found = generate(7);
            assert_eq!(found, generate(7));
            assert_ne!(found, generate(8));
            assert_eq!(found.bits(), u64::from(bits));
            assert!(found.bit(u64::from(bits) - 2) && found.bit(0));
        }
    }
}
