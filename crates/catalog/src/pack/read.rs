//! Unpacking: takes the blob, gives the files of one directory. Whatever the bytes are, the end is files or an error.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::{MAGIC, SEGMENT};
use crate::derive::Files;
use crate::error::CatalogError;

/// No chart comes near; a damaged blob must not make us reserve more.
const MAX_FOLDER: usize = 64 << 20;

/// An opened blob. Opening reads only its table of contents.
#[derive(Debug)]
pub struct Pack<'a> {
    index: Vec<Spot<'a>>,
    shelves: Vec<Block<'a>>,
    segments: Vec<Block<'a>>,
}

/// Where the recipe of a directory is.
#[derive(Debug)]
struct Spot<'a> {
    directory: &'a str,
    shelf: usize,
    start: usize,
    length: usize,
}

/// Deflated bytes, and how many they become.
#[derive(Clone, Copy, Debug)]
struct Block<'a> {
    deflated: &'a [u8],
    plain: usize,
}

impl Block<'_> {
    fn inflate(self) -> Result<Vec<u8>, CatalogError> {
        let bytes = decompress_to_vec_with_limit(self.deflated, self.plain)
            .map_err(|_| damaged("a block does not inflate"))?;
        if bytes.len() == self.plain {
            Ok(bytes)
        } else {
            Err(damaged("a block is short"))
        }
    }
}

fn damaged(what: &'static str) -> CatalogError {
    CatalogError::Pack(what)
}

impl<'a> Pack<'a> {
    /// Reads the table of contents.
    pub fn open(bytes: &'a [u8]) -> Result<Self, CatalogError> {
        let mut reader = Reader(
            bytes
                .strip_prefix(MAGIC)
                .ok_or(damaged("it does not begin as such"))?,
        );
        let segments = reader.list(Reader::sizes)?;
        let shelves = reader.list(Reader::sizes)?;
        let index = reader.list(Reader::spot)?;
        Ok(Self {
            index,
            shelves: reader.blocks(&shelves)?,
            segments: reader.blocks(&segments)?,
        })
    }

    /// Every directory there is, in the order they were packed.
    pub fn directories(&self) -> impl Iterator<Item = &'a str> {
        self.index.iter().map(|spot| spot.directory)
    }

    /// The files of one directory.
    pub fn files(&self, directory: &str) -> Result<Files, CatalogError> {
        let spot = self.index.iter().find(|spot| spot.directory == directory);
        let spot = spot.ok_or_else(|| CatalogError::NotPacked(directory.to_owned()))?;
        let found = self
            .shelves
            .get(spot.shelf)
            .filter(|block| block.plain <= MAX_FOLDER);
        let recipes = found.ok_or(damaged("there is no such shelf"))?.inflate()?;
        let recipe = recipes.get(spot.start..).and_then(|rest| rest.get(..spot.length));
        self.cook(Reader(recipe.ok_or(damaged("a recipe leaves its shelf"))?))
    }

    fn cook(&self, mut recipe: Reader<'_>) -> Result<Files, CatalogError> {
        let mut pipeline = Pipeline {
            segments: &self.segments,
            inflated: HashMap::new(),
            left: MAX_FOLDER,
        };
        let count = recipe.number()?;
        let listing =
            String::from_utf8(pipeline.text(&mut recipe)?).map_err(|_| damaged("a path is no text"))?;
        let files = listing
            .lines()
            .map(|path| Ok((path.to_owned(), pipeline.text(&mut recipe)?)));
        let files = files.collect::<Result<Files, CatalogError>>()?;
        if files.len() == count {
            Ok(files)
        } else {
            Err(damaged("the number of files is another"))
        }
    }
}

/// Makes texts from a recipe, inflating each segment at most once.
struct Pipeline<'a> {
    segments: &'a [Block<'a>],
    inflated: HashMap<usize, Vec<u8>>,
    left: usize,
}

impl Pipeline<'_> {
    fn text(&mut self, recipe: &mut Reader<'_>) -> Result<Vec<u8>, CatalogError> {
        let mut text = Vec::new();
        let mut end = 0_usize;
        for _ in 0..recipe.number()? {
            let forward = recipe.number()?;
            let start = end.wrapping_add((forward >> 1) ^ (forward & 1).wrapping_neg());
            let length = recipe.number()?;
            self.left = self
                .left
                .checked_sub(length)
                .ok_or(damaged("a chart is too long"))?;
            self.copy(start, length, &mut text)?;
            end = start.wrapping_add(length);
        }
        Ok(text)
    }

    fn copy(&mut self, mut start: usize, mut length: usize, text: &mut Vec<u8>) -> Result<(), CatalogError> {
        while length > 0 {
            let segment = self.segment(start / SEGMENT)?;
            let rest = segment
                .get(start % SEGMENT..)
                .filter(|rest| !rest.is_empty())
                .ok_or(damaged("a range leaves its segment"))?;
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
            .filter(|block| block.plain <= SEGMENT)
            .ok_or(damaged("there is no such segment"))?;
        let bytes = match self.inflated.entry(number) {
            Entry::Occupied(inflated) => inflated.into_mut(),
            Entry::Vacant(place) => place.insert(block.inflate()?),
        };
        Ok(bytes)
    }
}

/// Bytes not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], CatalogError> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(damaged("it ends early"))?;
        self.0 = tail;
        Ok(head)
    }

    fn number(&mut self) -> Result<usize, CatalogError> {
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

    fn sizes(&mut self) -> Result<(usize, usize), CatalogError> {
        Ok((self.number()?, self.number()?))
    }

    fn spot(&mut self) -> Result<Spot<'a>, CatalogError> {
        let length = self.number()?;
        let directory = std::str::from_utf8(self.take(length)?).map_err(|_| damaged("a name is no text"))?;
        Ok(Spot {
            directory,
            shelf: self.number()?,
            start: self.number()?,
            length: self.number()?,
        })
    }

    fn blocks(&mut self, sizes: &[(usize, usize)]) -> Result<Vec<Block<'a>>, CatalogError> {
        sizes
            .iter()
            .map(|(length, plain)| {
                Ok(Block {
                    deflated: self.take(*length)?,
                    plain: *plain,
                })
            })
            .collect()
    }

    /// A count, then as many items; each takes at least a byte, so a false count ends soon.
    fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, CatalogError>,
    ) -> Result<Vec<T>, CatalogError> {
        let count = self.number()?;
        (0..count).map(|_| item(self)).collect()
    }
}
