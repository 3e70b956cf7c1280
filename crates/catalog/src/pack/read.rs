//! Unpacks the files of one directory. Damaged blobs are errors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::{MAGIC, SEGMENT};
use crate::derive::Files;
use crate::error::CatalogError;

/// Maximum unpacked size of a directory in bytes, far above the size of any chart. Limits the allocations
/// that a damaged blob can cause.
const MAX_DIRECTORY_SIZE: usize = 64 << 20;

/// An open blob.
#[derive(Debug)]
pub struct Pack<'a> {
    index: Vec<IndexEntry<'a>>,
    groups: Vec<Block<'a>>,
    segments: Vec<Block<'a>>,
}

/// Position of a directory's recipe in its group.
#[derive(Debug)]
struct IndexEntry<'a> {
    directory: &'a str,
    group: usize,
    start: usize,
    length: usize,
}

/// Deflated bytes and their inflated size.
#[derive(Clone, Copy, Debug)]
struct Block<'a> {
    deflated: &'a [u8],
    inflated_size: usize,
}

impl Block<'_> {
    fn inflate(self) -> Result<Vec<u8>, CatalogError> {
        let bytes = decompress_to_vec_with_limit(self.deflated, self.inflated_size)
            .map_err(|_| damaged("a block does not inflate"))?;
        if bytes.len() == self.inflated_size {
            Ok(bytes)
        } else {
            Err(damaged("a block is too short"))
        }
    }
}

fn damaged(reason: &'static str) -> CatalogError {
    CatalogError::Pack(reason)
}

impl<'a> Pack<'a> {
    /// Opens a blob. Reads only the table of contents.
    pub fn open(bytes: &'a [u8]) -> Result<Self, CatalogError> {
        let mut reader = Reader(
            bytes
                .strip_prefix(MAGIC)
                .ok_or(damaged("the header is missing"))?,
        );
        let segments = reader.read_list(Reader::read_sizes)?;
        let groups = reader.read_list(Reader::read_sizes)?;
        let index = reader.read_list(Reader::read_entry)?;
        Ok(Self {
            index,
            groups: reader.read_blocks(&groups)?,
            segments: reader.read_blocks(&segments)?,
        })
    }

    /// Returns all directories in the order they were packed.
    pub fn directories(&self) -> impl Iterator<Item = &'a str> {
        self.index.iter().map(|entry| entry.directory)
    }

    /// Returns the files of one directory.
    pub fn files(&self, directory: &str) -> Result<Files, CatalogError> {
        let entry = self.index.iter().find(|entry| entry.directory == directory);
        let entry = entry.ok_or_else(|| CatalogError::NotPacked(directory.to_owned()))?;
        let found = self
            .groups
            .get(entry.group)
            .filter(|block| block.inflated_size <= MAX_DIRECTORY_SIZE);
        let recipes = found.ok_or(damaged("a group does not exist"))?.inflate()?;
        let recipe = recipes
            .get(entry.start..)
            .and_then(|rest| rest.get(..entry.length));
        self.assemble(Reader(recipe.ok_or(damaged("a recipe exceeds its group"))?))
    }

    fn assemble(&self, mut recipe: Reader<'_>) -> Result<Files, CatalogError> {
        let mut assembler = Assembler {
            segments: &self.segments,
            inflated: HashMap::new(),
            remaining: MAX_DIRECTORY_SIZE,
        };
        let count = recipe.read_number()?;
        let listing = String::from_utf8(assembler.read_text(&mut recipe)?)
            .map_err(|_| damaged("a path is not UTF-8"))?;
        let files = listing
            .lines()
            .map(|path| Ok((path.to_owned(), assembler.read_text(&mut recipe)?)));
        let files = files.collect::<Result<Files, CatalogError>>()?;
        if files.len() == count {
            Ok(files)
        } else {
            Err(damaged("the number of files does not match"))
        }
    }
}

/// Assembles texts from pool ranges. Inflates each segment at most once.
struct Assembler<'a> {
    segments: &'a [Block<'a>],
    inflated: HashMap<usize, Vec<u8>>,
    remaining: usize,
}

impl Assembler<'_> {
    fn read_text(&mut self, recipe: &mut Reader<'_>) -> Result<Vec<u8>, CatalogError> {
        let mut text = Vec::new();
        let mut end = 0_usize;
        for _ in 0..recipe.read_number()? {
            let forward = recipe.read_number()?;
            let start = end.wrapping_add((forward >> 1) ^ (forward & 1).wrapping_neg());
            let length = recipe.read_number()?;
            self.remaining = self
                .remaining
                .checked_sub(length)
                .ok_or(damaged("a chart is too large"))?;
            self.copy_range(start, length, &mut text)?;
            end = start.wrapping_add(length);
        }
        Ok(text)
    }

    fn copy_range(
        &mut self,
        mut start: usize,
        mut length: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), CatalogError> {
        while length > 0 {
            let segment = self.segment(start / SEGMENT)?;
            let rest = segment
                .get(start % SEGMENT..)
                .filter(|rest| !rest.is_empty())
                .ok_or(damaged("a range exceeds its segment"))?;
            let part = rest.get(..length.min(rest.len())).unwrap_or_default();
            text.extend_from_slice(part);
            start += part.len();
            length -= part.len();
        }
        Ok(())
    }

    fn segment(&mut self, number: usize) -> Result<&[u8], CatalogError> {
        let block = self
            .segments
            .get(number)
            .filter(|block| block.inflated_size <= SEGMENT)
            .ok_or(damaged("a segment does not exist"))?;
        let bytes = match self.inflated.entry(number) {
            Entry::Occupied(inflated) => inflated.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(block.inflate()?),
        };
        Ok(bytes)
    }
}

struct BlockSizes {
    deflated: usize,
    inflated: usize,
}

/// Reads numbers and bytes from the start of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], CatalogError> {
        let (head, tail) = self
            .0
            .split_at_checked(length)
            .ok_or(damaged("the data is truncated"))?;
        self.0 = tail;
        Ok(head)
    }

    fn read_number(&mut self) -> Result<usize, CatalogError> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let [byte] = self.take(1)? else { break };
            number |= usize::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged("a number is too long"))
    }

    fn read_sizes(&mut self) -> Result<BlockSizes, CatalogError> {
        Ok(BlockSizes {
            deflated: self.read_number()?,
            inflated: self.read_number()?,
        })
    }

    fn read_entry(&mut self) -> Result<IndexEntry<'a>, CatalogError> {
        let length = self.read_number()?;
        let directory =
            std::str::from_utf8(self.take(length)?).map_err(|_| damaged("a name is not UTF-8"))?;
        Ok(IndexEntry {
            directory,
            group: self.read_number()?,
            start: self.read_number()?,
            length: self.read_number()?,
        })
    }

    fn read_blocks(&mut self, sizes: &[BlockSizes]) -> Result<Vec<Block<'a>>, CatalogError> {
        sizes
            .iter()
            .map(|sizes| {
                Ok(Block {
                    deflated: self.take(sizes.deflated)?,
                    inflated_size: sizes.inflated,
                })
            })
            .collect()
    }

    /// Reads a count and this number of items. Each item takes at least one byte, so that an invalid count
    /// fails early.
    fn read_list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, CatalogError>,
    ) -> Result<Vec<T>, CatalogError> {
        let count = self.read_number()?;
        (0..count).map(|_| item(self)).collect()
    }
}
