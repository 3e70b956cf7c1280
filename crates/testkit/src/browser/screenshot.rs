//! Parses screenshots: PNG as written by browsers (eight bits, with or without alpha, not interlaced).

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// Maximum size of a screenshot in bytes of pixel data.
const MAX_SIZE: u64 = 400_000_000;

/// Errors of parsing a screenshot.
#[derive(Debug, thiserror::Error)]
pub enum ScreenshotError {
    /// The data is not a PNG.
    #[error("not a PNG")]
    NotPng,
    /// The PNG has an unsupported format.
    #[error("unsupported PNG format")]
    UnsupportedFormat,
    /// The data is truncated or cannot be decompressed.
    #[error("corrupt PNG")]
    Corrupt,
}

/// A screenshot.
#[derive(Clone, Debug)]
pub struct Screenshot {
    /// Bytes of the PNG.
    pub png: Vec<u8>,
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Screenshot {
    /// Parses a PNG.
    pub fn read(png: Vec<u8>) -> Result<Self, ScreenshotError> {
        let mut rest = png
            .strip_prefix(b"\x89PNG\r\n\x1a\n")
            .ok_or(ScreenshotError::NotPng)?;
        let (mut head, mut packed) = (None, Vec::new());
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let (kind, tail) = tail.split_first_chunk::<4>().ok_or(ScreenshotError::Corrupt)?;
            let (data, tail) = tail.split_at_checked(length).ok_or(ScreenshotError::Corrupt)?;
            match kind {
                b"IHDR" => head = Some(header(data)?),
                b"IDAT" => packed.extend_from_slice(data),
                _ => {}
            }
            rest = tail.get(4..).ok_or(ScreenshotError::Corrupt)?;
        }
        let (width, height, channels) = head.ok_or(ScreenshotError::Corrupt)?;
        let mut raw = Vec::new();
        let mut unpacked = ZlibDecoder::new(packed.as_slice()).take(MAX_SIZE);
        unpacked
            .read_to_end(&mut raw)
            .map_err(|_| ScreenshotError::Corrupt)?;
        let bytes = unfilter(&raw, width * channels, height, channels)?;
        Ok(Self {
            png,
            width,
            height,
            channels,
            bytes,
        })
    }

    /// Returns red, green and blue of a pixel, or `None` if it is outside of the screenshot.
    #[must_use]
    pub fn colour(&self, x: usize, y: usize) -> Option<[u8; 3]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let at = (y * self.width + x) * self.channels;
        self.bytes.get(at..)?.first_chunk::<3>().copied()
    }
}

fn header(data: &[u8]) -> Result<(usize, usize, usize), ScreenshotError> {
    let (width, rest) = data.split_first_chunk::<4>().ok_or(ScreenshotError::Corrupt)?;
    let (height, rest) = rest.split_first_chunk::<4>().ok_or(ScreenshotError::Corrupt)?;
    let channels = match rest {
        [8, 2, 0, 0, 0] => 3,
        [8, 6, 0, 0, 0] => 4,
        _ => return Err(ScreenshotError::UnsupportedFormat),
    };
    let size = |bytes: &[u8; 4]| u32::from_be_bytes(*bytes) as usize;
    Ok((size(width), size(height), channels))
}

/// Reverses the filters of the rows.
fn unfilter(raw: &[u8], row: usize, height: usize, step: usize) -> Result<Vec<u8>, ScreenshotError> {
    let mut above = vec![0; row];
    let mut out = Vec::with_capacity(row * height);
    for line in raw.chunks(row + 1).take(height) {
        let (filter, line) = line.split_first().ok_or(ScreenshotError::Corrupt)?;
        if line.len() != row {
            return Err(ScreenshotError::Corrupt);
        }
        let mut now: Vec<u8> = Vec::with_capacity(row);
        for (index, (byte, up)) in line.iter().zip(&above).enumerate() {
            let before = |all: &[u8]| index.checked_sub(step).and_then(|at| all.get(at).copied());
            let (left, upper_left) = (before(&now).unwrap_or(0), before(&above).unwrap_or(0));
            let guess = match filter {
                0 => 0,
                1 => left,
                2 => *up,
                3 => u8::midpoint(left, *up),
                4 => nearest(left, *up, upper_left),
                _ => return Err(ScreenshotError::Corrupt),
            };
            now.push(byte.wrapping_add(guess));
        }
        out.extend_from_slice(&now);
        above = now;
    }
    if out.len() == row * height {
        Ok(out)
    } else {
        Err(ScreenshotError::Corrupt)
    }
}

/// Computes the Paeth predictor: the neighbor nearest to left + up − upper left.
fn nearest(left: u8, up: u8, upper_left: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(upper_left);
    let far = |from: u8| (guess - i16::from(from)).abs();
    if far(left) <= far(up) && far(left) <= far(upper_left) {
        left
    } else if far(up) <= far(upper_left) {
        up
    } else {
        upper_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_decoded_from_their_neighbors() {
        let raw = [
            1, 10, 20, 30, 5, 5, 5, // left
            2, 1, 1, 1, 1, 1, 1, // up
            3, 0, 0, 0, 10, 10, 10, // middle
            4, 0, 0, 0, 0, 0, 0, // nearest
        ];
        let bytes = unfilter(&raw, 6, 4, 3).unwrap();
        assert_eq!(
            bytes,
            [
                10, 20, 30, 15, 25, 35, 11, 21, 31, 16, 26, 36, 5, 10, 15, 20, 28, 35, 5, 10, 15, 20, 28, 35
            ]
        );
    }

    #[test]
    fn other_data_is_rejected() {
        assert!(matches!(
            Screenshot::read(b"GIF89a".to_vec()),
            Err(ScreenshotError::NotPng)
        ));
        let short = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0".to_vec();
        assert!(matches!(Screenshot::read(short), Err(ScreenshotError::Corrupt)));
        assert!(unfilter(&[9, 0, 0, 0], 3, 1, 3).is_err());
        assert!(unfilter(&[0, 0], 3, 1, 3).is_err());
    }
}
