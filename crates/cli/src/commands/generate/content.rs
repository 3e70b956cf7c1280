//! The text of an input: takes where it is, gives it whole if it is short, and as a stream if it is long.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use mainstay_inject::Images;

use super::inputs::{Input, Source, reason};
use super::krm;
use crate::error::{CliError, Kind};

/// Up to this size a text is held in memory.
const SHORT: u64 = 4 << 20;

/// What was read of standard input so far: all of it, unless it is long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) text: Vec<u8>,
    pub(super) ended: bool,
}

impl Head {
    /// Begins to read standard input.
    pub(super) fn read() -> io::Result<Self> {
        let mut text = Vec::new();
        io::stdin().lock().take(SHORT).read_to_end(&mut text)?;
        if krm::holds(&text, b"ResourceList") {
            // A list is one document: it is read whole however long it is.
            io::stdin().lock().read_to_end(&mut text)?;
            return Ok(Self { ended: true, text });
        }
        Ok(Self {
            ended: (text.len() as u64) < SHORT,
            text,
        })
    }
}

/// A text.
pub(super) enum Content {
    /// In memory.
    Short(Vec<u8>),
    /// To be read piece by piece.
    Long(Box<dyn Read>),
}

impl Content {
    /// The whole of it, however long.
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
pub(super) fn open(input: &Input) -> io::Result<Content> {
    let path = match &input.source {
        Source::Stdin(head) if head.ended => return Ok(Content::Short(head.text.clone())),
        Source::Stdin(head) => {
            return Ok(Content::Long(Box::new(
                io::Cursor::new(head.text.clone()).chain(io::stdin()),
            )));
        }
        Source::File { real, .. } => real,
    };
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > SHORT {
        return Ok(Content::Long(Box::new(file)));
    }
    let mut text = Vec::with_capacity(length as usize + 1);
    file.read_to_end(&mut text)?;
    Ok(Content::Short(text))
}

/// Reads a file of image replacements; its first bad line is the error, the others are counted.
pub(super) fn images(path: &Path) -> Result<Images, CliError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| CliError::new(Kind::Io, format!("{name}: {}", reason(&error))))?;
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
