//! Packing: takes trees of files, gives the blob. Runs when charts are fetched, never at run time.

use std::collections::{BTreeMap, HashMap};

use miniz_oxide::deflate::compress_to_vec;

use super::{MAGIC, SEGMENT};
use crate::derive::Files;

/// Deflate's most thorough setting: packing happens once.
const LEVEL: u8 = 10;

/// A repetition shorter than this costs more as a reference than deflate makes of it.
const WORTH: usize = 64;

/// How many earlier places of the same two lines are tried.
const TRIES: usize = 24;

/// Packs the files of each directory. Directories that come first are read fastest.
#[must_use]
pub fn pack(tree: &[(String, Files)]) -> Vec<u8> {
    let mut pool = Pool::default();
    let recipes: Vec<(&str, Vec<u8>)> = tree
        .iter()
        .map(|(directory, files)| (directory.as_str(), recipe(files, &mut pool)))
        .collect();
    let (index, shelves) = shelve(&recipes);
    let mut out = MAGIC.to_vec();
    let blocks: Vec<_> = shelves.iter().map(Vec::as_slice).map(deflated).collect();
    let segments: Vec<_> = pool.bytes.chunks(SEGMENT).map(deflated).collect();
    put_sizes(&mut out, &segments);
    put_sizes(&mut out, &blocks);
    put_index(&mut out, &index);
    blocks
        .iter()
        .chain(&segments)
        .for_each(|(_, deflated)| out.extend_from_slice(deflated));
    out
}

fn deflated(plain: &[u8]) -> (usize, Vec<u8>) {
    (plain.len(), compress_to_vec(plain, LEVEL))
}

/// Where a directory's recipe is: on which shelf, and where there.
struct Spot<'a> {
    directory: &'a str,
    shelf: usize,
    start: usize,
    length: usize,
}

/// Recipes of one chart in all its versions go side by side: there deflate finds them to be nearly equal.
fn shelve<'a>(recipes: &[(&'a str, Vec<u8>)]) -> (Vec<Spot<'a>>, Vec<Vec<u8>>) {
    let mut shelves: BTreeMap<&str, (usize, Vec<u8>)> = BTreeMap::new();
    let mut index = Vec::new();
    for (directory, recipe) in recipes {
        let next = shelves.len();
        let (shelf, bytes) = shelves
            .entry(directory.rsplit('/').next().unwrap_or_default())
            .or_insert((next, Vec::new()));
        index.push(Spot {
            directory,
            shelf: *shelf,
            start: bytes.len(),
            length: recipe.len(),
        });
        bytes.extend_from_slice(recipe);
    }
    let mut shelves: Vec<_> = shelves.into_values().collect();
    shelves.sort();
    (index, shelves.into_iter().map(|(_, bytes)| bytes).collect())
}

fn recipe(files: &Files, pool: &mut Pool) -> Vec<u8> {
    let listing: String = files.keys().flat_map(|path| [path, "\n"]).collect();
    let mut out = Vec::new();
    put(&mut out, files.len());
    write_ranges(&mut out, &pool.ranges(listing.as_bytes()));
    for bytes in files.values() {
        write_ranges(&mut out, &pool.ranges(bytes));
    }
    out
}

/// Ranges follow one another closely, so each starts with its distance from the end of the one before.
fn write_ranges(out: &mut Vec<u8>, ranges: &[(usize, usize)]) {
    put(out, ranges.len());
    let mut end = 0_usize;
    for (start, length) in ranges {
        let forward = start.wrapping_sub(end) as isize;
        put(out, ((forward << 1) ^ (forward >> (isize::BITS - 1))) as usize);
        put(out, *length);
        end = start + length;
    }
}

fn put_sizes(out: &mut Vec<u8>, blocks: &[(usize, Vec<u8>)]) {
    put(out, blocks.len());
    for (plain, deflated) in blocks {
        put(out, deflated.len());
        put(out, *plain);
    }
}

fn put_index(out: &mut Vec<u8>, index: &[Spot<'_>]) {
    put(out, index.len());
    for spot in index {
        put(out, spot.directory.len());
        out.extend_from_slice(spot.directory.as_bytes());
        for number in [spot.shelf, spot.start, spot.length] {
            put(out, number);
        }
    }
}

fn put(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Every line seen so far that is not a repetition, in order.
#[derive(Default)]
struct Pool {
    bytes: Vec<u8>,
    /// Byte range of each line.
    lines: Vec<(usize, usize)>,
    /// Where each pair of adjacent lines begins.
    pairs: HashMap<(Vec<u8>, Vec<u8>), Vec<usize>>,
}

impl Pool {
    /// The ranges of the pool that make up `text`; what the pool lacks is added to it.
    fn ranges(&mut self, text: &[u8]) -> Vec<(usize, usize)> {
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let rest = lines.get(at..).unwrap_or_default();
            let (range, taken) = self.longest(rest).unwrap_or_else(|| (self.add(line), 1));
            at += taken;
            match ranges.last_mut() {
                Some(last) if last.0 + last.1 == range.0 => last.1 += range.1,
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// The longest repetition that `lines` begin with, and how many lines it covers.
    fn longest(&self, lines: &[&[u8]]) -> Option<((usize, usize), usize)> {
        let [first, second, ..] = lines else { return None };
        let starts = self.pairs.get(&(first.to_vec(), second.to_vec()))?;
        let count = |start: &usize| {
            let known = self.lines.get(*start..).unwrap_or_default();
            known
                .iter()
                .zip(lines)
                .take_while(|(range, line)| self.line(**range) == **line)
                .count()
        };
        let (start, taken) = starts
            .iter()
            .map(|start| (*start, count(start)))
            .max_by_key(|(start, taken)| (*taken, usize::MAX - start))?;
        let length: usize = lines.iter().take(taken).map(|line| line.len()).sum();
        let from = self.lines.get(start)?.0;
        (length >= WORTH).then_some(((from, length), taken))
    }

    fn line(&self, (start, length): (usize, usize)) -> &[u8] {
        self.bytes.get(start..start + length).unwrap_or_default()
    }

    fn add(&mut self, line: &[u8]) -> (usize, usize) {
        let range = (self.bytes.len(), line.len());
        if let Some(last) = self.lines.last() {
            let starts = self
                .pairs
                .entry((self.line(*last).to_vec(), line.to_vec()))
                .or_default();
            if starts.len() < TRIES {
                starts.push(self.lines.len() - 1);
            }
        }
        self.bytes.extend_from_slice(line);
        self.lines.push(range);
        range
    }
}
