//! Reads an input into memory if it is short, or as a stream if it is long.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use mainstay_inject::Images;

use super::inputs::{Input, Source, reason};
use super::krm;
use crate::error::{CliError, Kind};

/// Maximum size of an input in memory.
const MAX_IN_MEMORY: u64 = 4 << 20;

/// Maximum size of a document, which is processed in memory.
pub(super) const MAX_DOCUMENT: usize = 64 << 20;

/// Returns the error for a document that exceeds the maximum size.
pub(super) fn too_long() -> io::Error {
    let message = format!("a document is longer than {} MiB", MAX_DOCUMENT >> 20);
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Buffered start of a pipe, which can be read only once. Contains the whole text unless the text is long.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) text: Vec<u8>,
    pub(super) ended: bool,
    rest: Rest,
}

/// Source of the text after the buffered start.
#[derive(Debug)]
enum Rest {
    Stdin,
    File(File),
}

impl Head {
    /// Reads the beginning of standard input.
    pub(super) fn from_stdin() -> io::Result<Self> {
        Self::read(Rest::Stdin)
    }

    /// Reads the beginning of a named pipe.
    pub(super) fn from_pipe(path: &Path) -> io::Result<Self> {
        Self::read(Rest::File(File::open(path)?))
    }

    fn read(rest: Rest) -> io::Result<Self> {
        let mut text = Vec::new();
        rest.reader().take(MAX_IN_MEMORY).read_to_end(&mut text)?;
        if krm::contains(&text, b"ResourceList") {
            // A list is one document and is read completely.
            let missing = (MAX_DOCUMENT + 1).saturating_sub(text.len()) as u64;
            rest.reader().take(missing).read_to_end(&mut text)?;
            if text.len() > MAX_DOCUMENT {
                return Err(too_long());
            }
            return Ok(Self {
                ended: true,
                text,
                rest,
            });
        }
        Ok(Self {
            ended: (text.len() as u64) < MAX_IN_MEMORY,
            text,
            rest,
        })
    }
}

impl Rest {
    fn reader(&self) -> Box<dyn Read + '_> {
        match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(file) => Box::new(file),
        }
    }
}

/// Contents of an input.
pub(super) enum Content<'a> {
    /// In memory.
    Short(Vec<u8>),
    /// Read in chunks.
    Long(Box<dyn Read + 'a>),
}

impl Content<'_> {
    /// Reads the whole content.
    pub(super) fn whole(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Short(text) => Ok(text),
            Self::Long(mut reader) => {
                let mut text = Vec::new();
                reader.read_to_end(&mut text)?;
                Ok(text)
            }
        }
    }
}

/// Opens an input.
pub(super) fn open(input: &Input) -> io::Result<Content<'_>> {
    let path = match &input.source {
        Source::Pipe(head) if head.ended => return Ok(Content::Short(head.text.clone())),
        Source::Pipe(head) => {
            return Ok(Content::Long(Box::new(
                head.text.as_slice().chain(head.rest.reader()),
            )));
        }
        Source::File { real, .. } => real,
    };
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > MAX_IN_MEMORY {
        return Ok(Content::Long(Box::new(file)));
    }
    let mut text = Vec::with_capacity(length as usize + 1);
    file.read_to_end(&mut text)?;
    Ok(Content::Short(text))
}

/// Reads a file of image replacements; the error names the first invalid line and counts the others.
pub(super) fn images(path: &Path) -> Result<Images, CliError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| {
        CliError::new(Kind::Io, format!("{name}: {}", reason(&error)))
            .hint("name a file with image replacements that exists and can be read")
    })?;
    Images::parse(&text).map_err(|errors| {
        let more = errors.len().saturating_sub(1);
        let Some(first) = errors.into_iter().next() else {
            return CliError::new(Kind::Io, name.clone());
        };
        let others = if more == 0 {
            String::new()
        } else {
            format!(" (and {more} more)")
        };
        let message = format!("invalid image line: {}{others}", first.problem);
        CliError::new(Kind::Usage, message).at(&name, first.line, first.column, first.source_line)
    })
}
