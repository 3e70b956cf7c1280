//! Random bytes for key generation, derived from 32 bytes of the host's entropy with SHA-256 over seed and
//! counter. The search for primes therefore also terminates if the host's entropy repeats.

use std::convert::Infallible;

use mainstay_template::Host;
use rand_core::{TryCryptoRng, TryRng};
use sha2::{Digest, Sha256};

/// A deterministic stream of random bytes.
pub(super) struct Stream {
    seed: [u8; 32],
    counter: u64,
}

impl Stream {
    pub(super) fn new(host: &mut dyn Host) -> Self {
        let mut seed = [0; 32];
        host.entropy(&mut seed);
        Self { seed, counter: 0 }
    }

    /// Returns the next `N` bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    pub(super) fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(32) {
            let block = Sha256::new()
                .chain_update(self.seed)
                .chain_update(self.counter.to_be_bytes())
                .finalize();
            self.counter += 1;
            chunk.iter_mut().zip(block).for_each(|(out, byte)| *out = byte);
        }
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_be_bytes(self.bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_be_bytes(self.bytes()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for Stream {}
