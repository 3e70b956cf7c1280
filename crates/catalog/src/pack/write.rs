//! Packs trees of files. Used when charts are fetched, not at run time.

use std::collections::{BTreeMap, HashMap};

use miniz_oxide::deflate::compress_to_vec;

use super::{MAGIC, SEGMENT};
use crate::derive::Files;

/// Highest compression level of deflate.
const LEVEL: u8 = 10;

/// Minimum length of a repetition in bytes. Deflate stores shorter repetitions in fewer bytes than a
/// reference takes.
const MIN_REPETITION_LEN: usize = 64;

/// Maximum number of earlier positions that are compared for the same two lines.
const MAX_CANDIDATES: usize = 24;

/// Packs the files of each directory. The first directories are the fastest to read.
#[must_use]
pub fn pack(tree: &[(String, Files)]) -> Vec<u8> {
    let mut pool = Pool::default();
    let recipes: Vec<(&str, Vec<u8>)> = tree
        .iter()
        .map(|(directory, files)| (directory.as_str(), write_recipe(files, &mut pool)))
        .collect();
    let (index, groups) = group_recipes(&recipes);
    let mut out = MAGIC.to_vec();
    let blocks: Vec<_> = groups.iter().map(Vec::as_slice).map(deflate_block).collect();
    let segments: Vec<_> = pool.bytes.chunks(SEGMENT).map(deflate_block).collect();
    write_sizes(&mut out, &segments);
    write_sizes(&mut out, &blocks);
    write_index(&mut out, &index);
    blocks
        .iter()
        .chain(&segments)
        .for_each(|(_, deflated)| out.extend_from_slice(deflated));
    out
}

fn deflate_block(plain: &[u8]) -> (usize, Vec<u8>) {
    (plain.len(), compress_to_vec(plain, LEVEL))
}

/// Position of a directory's recipe in its group.
struct IndexEntry<'a> {
    directory: &'a str,
    group: usize,
    start: usize,
    length: usize,
}

/// Groups the recipes of one chart in all versions, which are almost equal and compress well together.
fn group_recipes<'a>(recipes: &[(&'a str, Vec<u8>)]) -> (Vec<IndexEntry<'a>>, Vec<Vec<u8>>) {
    let mut groups: BTreeMap<&str, (usize, Vec<u8>)> = BTreeMap::new();
    let mut index = Vec::new();
    for (directory, recipe) in recipes {
        let next = groups.len();
        let (group, bytes) = groups
            .entry(directory.rsplit('/').next().unwrap_or_default())
            .or_insert((next, Vec::new()));
        index.push(IndexEntry {
            directory,
            group: *group,
            start: bytes.len(),
            length: recipe.len(),
        });
        bytes.extend_from_slice(recipe);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort();
    (index, groups.into_iter().map(|(_, bytes)| bytes).collect())
}

fn write_recipe(files: &Files, pool: &mut Pool) -> Vec<u8> {
    let listing: String = files.keys().flat_map(|path| [path, "\n"]).collect();
    let mut out = Vec::new();
    write_number(&mut out, files.len());
    write_ranges(&mut out, &pool.ranges(listing.as_bytes()));
    for bytes in files.values() {
        write_ranges(&mut out, &pool.ranges(bytes));
    }
    out
}

/// Writes ranges. Each is stored as the distance from the end of the previous range, which is usually
/// small, and its length.
fn write_ranges(out: &mut Vec<u8>, ranges: &[PoolRange]) {
    write_number(out, ranges.len());
    let mut end = 0_usize;
    for PoolRange { start, length } in ranges {
        let forward = start.wrapping_sub(end) as isize;
        write_number(out, ((forward << 1) ^ (forward >> (isize::BITS - 1))) as usize);
        write_number(out, *length);
        end = start + length;
    }
}

fn write_sizes(out: &mut Vec<u8>, blocks: &[(usize, Vec<u8>)]) {
    write_number(out, blocks.len());
    for (plain, deflated) in blocks {
        write_number(out, deflated.len());
        write_number(out, *plain);
    }
}

fn write_index(out: &mut Vec<u8>, index: &[IndexEntry<'_>]) {
    write_number(out, index.len());
    for entry in index {
        write_number(out, entry.directory.len());
        out.extend_from_slice(entry.directory.as_bytes());
        for number in [entry.group, entry.start, entry.length] {
            write_number(out, number);
        }
    }
}

fn write_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A byte range of the pool.
#[derive(Clone, Copy)]
struct PoolRange {
    start: usize,
    length: usize,
}

/// All lines so far without repetitions, in order.
#[derive(Default)]
struct Pool {
    bytes: Vec<u8>,
    /// Byte range of each line.
    lines: Vec<PoolRange>,
    /// Line numbers of each pair of adjacent lines.
    pairs: HashMap<(Vec<u8>, Vec<u8>), Vec<usize>>,
}

impl Pool {
    /// Returns the pool ranges of `text`; adds missing lines to the pool.
    fn ranges(&mut self, text: &[u8]) -> Vec<PoolRange> {
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let mut ranges: Vec<PoolRange> = Vec::new();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let rest = lines.get(at..).unwrap_or_default();
            let (range, taken) = self
                .longest_repetition(rest)
                .unwrap_or_else(|| (self.add(line), 1));
            at += taken;
            match ranges.last_mut() {
                Some(last) if last.start + last.length == range.start => last.length += range.length,
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// Returns the longest repetition at the start of `lines` and its number of lines.
    fn longest_repetition(&self, lines: &[&[u8]]) -> Option<(PoolRange, usize)> {
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
        let start = self.lines.get(start)?.start;
        (length >= MIN_REPETITION_LEN).then_some((PoolRange { start, length }, taken))
    }

    fn line(&self, range: PoolRange) -> &[u8] {
        self.bytes
            .get(range.start..range.start + range.length)
            .unwrap_or_default()
    }

    fn add(&mut self, line: &[u8]) -> PoolRange {
        let range = PoolRange {
            start: self.bytes.len(),
            length: line.len(),
        };
        if let Some(last) = self.lines.last() {
            let starts = self
                .pairs
                .entry((self.line(*last).to_vec(), line.to_vec()))
                .or_default();
            if starts.len() < MAX_CANDIDATES {
                starts.push(self.lines.len() - 1);
            }
        }
        self.bytes.extend_from_slice(line);
        self.lines.push(range);
        range
    }
}
