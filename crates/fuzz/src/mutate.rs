//! Deterministic mutations of stored inputs.

/// Bytes that are syntax in YAML, JSON, templates or tar headers.
const SYNTAX: &[u8] = b"\0\t\n\r \"#%&'()*+,-./0:;<=>?@[\\]^_`{|}~\x7f\x80\xc2\xe2\xef\xff";

/// Generates mutated inputs from a seed.
pub(crate) struct Mutator<'a> {
    inputs: &'a [Vec<u8>],
    state: u64,
    max_len: usize,
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(inputs: &'a [Vec<u8>], seed: u64, max_len: usize) -> Self {
        Self {
            inputs,
            state: seed,
            max_len,
        }
    }

    /// Returns a stored input after one to eight mutations.
    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick_input();
        for _ in 0..=self.below(8) {
            self.mutate(&mut input);
        }
        input.truncate(self.max_len);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(64) + 1);
        match self.below(7) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.syntax_byte(),
            2 => input.insert(at, self.syntax_byte()),
            3 => drop(input.drain(at..end)),
            4 => {
                let copy = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, copy);
            }
            5 => {
                let other = self.pick_input();
                let from = self.below(other.len() + 1);
                let until = from + self.below((other.len() - from).min(256) + 1);
                input.splice(at..end, other[from..until].iter().copied());
            }
            _ => input.truncate(at),
        }
    }

    fn pick_input(&mut self) -> Vec<u8> {
        let at = self.below(self.inputs.len());
        self.inputs.get(at).cloned().unwrap_or_default()
    }

    fn syntax_byte(&mut self) -> u8 {
        SYNTAX[self.below(SYNTAX.len())]
    }

    /// Returns a number less than `bound`, or zero if `bound` is zero.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % (bound.max(1) as u64)) as usize
    }

    /// Returns the next number of the splitmix64 sequence.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
