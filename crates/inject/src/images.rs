//! Image replacements: parses a replacement file into a table.
//!
//! A line is `IMAGE = REPLACEMENT`. Empty lines and lines starting with `#` are ignored. Of several lines
//! for one image the last one applies. Images are compared as text: tags and digests are not interpreted.

use std::collections::BTreeMap;

use crate::profile::{self, Profile};

/// Images of one release, in the format of a replacement file.
const RFC: &str = include_str!("images/rfc.txt");
const LATER: &str = include_str!("images/later.txt");

/// A table of images and their replacements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    replacements: BTreeMap<String, String>,
}

impl Default for Images {
    fn default() -> Self {
        Self::for_profile(&profile::RFC)
    }
}

/// An invalid line of a replacement file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ImageError {
    /// Line number, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// The line.
    pub source_line: String,
    /// Problem of the line.
    pub problem: ImageProblem,
}

/// A problem of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageProblem {
    /// The line contains only white space.
    #[error("a line of white space only: leave it empty")]
    Blank,
    /// A `#` is not the first character.
    #[error("a comment must begin in the first column")]
    Indented,
    /// There is no `=`.
    #[error("no `=`: want IMAGE = REPLACEMENT")]
    NoEquals,
    /// There is nothing before the `=`.
    #[error("no image before `=`")]
    NoImage,
    /// There is nothing after the `=`.
    #[error("no replacement after `=`")]
    NoReplacement,
    /// A side contains more than one word.
    #[error("more than one word: an image has no white space in it")]
    Words,
}

impl Images {
    /// Returns an empty table, with which all images have the tag `latest`.
    #[must_use]
    pub fn none() -> Self {
        Self {
            replacements: BTreeMap::new(),
        }
    }

    /// Returns the images of `profile` that this release contains.
    #[must_use]
    pub fn for_profile(profile: &Profile) -> Self {
        let table = if *profile == profile::LATER { LATER } else { RFC };
        Self::parse(table).unwrap_or_else(|_| Self::none())
    }

    /// Parses a replacement file; returns every invalid line.
    pub fn parse(text: &str) -> Result<Self, Vec<ImageError>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mut replacements, mut errors) = (BTreeMap::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Ok((image, by)) => drop(replacements.insert(image.to_owned(), by.to_owned())),
                Err((offset, problem)) => errors.push(image_error(number + 1, line, offset, problem)),
            }
        }
        if errors.is_empty() {
            Ok(Self { replacements })
        } else {
            Err(errors)
        }
    }

    /// Returns the replacement of `image`, or `image` itself if there is none.
    #[must_use]
    pub fn resolve<'a>(&'a self, image: &'a str) -> &'a str {
        self.replacements.get(image).map_or(image, String::as_str)
    }

    /// Adds the replacements of `other`, which have precedence.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.replacements.extend(other.replacements);
        self
    }

    /// Returns all images with their replacements, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.replacements
            .iter()
            .map(|(image, by)| (image.as_str(), by.as_str()))
    }
}

/// Parses a line into image and replacement. An error contains the byte offset in the line.
fn parse_line(line: &str) -> Result<(&str, &str), (usize, ImageProblem)> {
    let begin = line.len() - line.trim_start().len();
    if line.trim().is_empty() {
        return Err((0, ImageProblem::Blank));
    }
    if line.trim_start().starts_with('#') {
        return Err((begin, ImageProblem::Indented));
    }
    let (left, right) = line
        .split_once('=')
        .ok_or((line.trim_end().len(), ImageProblem::NoEquals))?;
    let image = single_word(left, 0)?.ok_or((left.len(), ImageProblem::NoImage))?;
    let by = single_word(right, left.len() + 1)?.ok_or((left.len() + 1, ImageProblem::NoReplacement))?;
    Ok((image, by))
}

/// Returns the only word of `side`, which starts at byte `offset` of its line; `None` if `side` is blank.
fn single_word(side: &str, offset: usize) -> Result<Option<&str>, (usize, ImageProblem)> {
    let mut words = side.split_whitespace();
    let first = words.next();
    match words.next() {
        None => Ok(first),
        Some(second) => {
            // Both are parts of `side`, so the distance of their starts is an offset in `side`.
            let at = second.as_ptr() as usize - side.as_ptr() as usize;
            Err((offset + at, ImageProblem::Words))
        }
    }
}

fn image_error(line: usize, source: &str, offset: usize, problem: ImageProblem) -> ImageError {
    let before = source.get(..offset).unwrap_or(source);
    ImageError {
        line,
        column: before.chars().count() + 1,
        source_line: source.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let images = Images::parse(text).unwrap();
        assert_eq!(images.iter().collect::<Vec<_>>(), expected, "{text:?}");
    }

    fn check_errors(text: &str, expected: &[&str]) {
        let errors = Images::parse(text).unwrap_err();
        let shown: Vec<_> = errors
            .iter()
            .map(|it| format!("{}:{} {it}", it.line, it.column))
            .collect();
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn valid_lines_are_parsed() {
        check("", &[]);
        check("# a = b\n\n", &[]);
        check("a=b", &[("a", "b")]);
        check("a = b\r\nc\t=\td\r\n", &[("a", "b"), ("c", "d")]);
        check("  a = b  \n", &[("a", "b")]);
        check("a:1=r/a:2@sha256:00ff\n", &[("a:1", "r/a:2@sha256:00ff")]);
        check("\u{feff}a = b\n", &[("a", "b")]);
        check("#a = b\na = c\n", &[("a", "c")]);
    }

    #[test]
    fn a_replacement_may_contain_an_equals_sign() {
        check("a = b=c\n", &[("a", "b=c")]);
    }

    #[test]
    fn the_last_line_of_an_image_applies() {
        check("a = b\na = c\n", &[("a", "c")]);
    }

    #[test]
    fn every_invalid_line_is_reported() {
        check_errors(" \n", &["1:1 a line of white space only: leave it empty"]);
        check_errors(
            "a = b\n\t# no\n",
            &["2:2 a comment must begin in the first column"],
        );
        check_errors("image\n", &["1:6 no `=`: want IMAGE = REPLACEMENT"]);
        check_errors("= b\n", &["1:1 no image before `=`"]);
        check_errors("a =\n", &["1:4 no replacement after `=`"]);
        check_errors(
            "a = b c\n",
            &["1:7 more than one word: an image has no white space in it"],
        );
        check_errors(
            "é a = b\n",
            &["1:3 more than one word: an image has no white space in it"],
        );
        check_errors(
            "a\n\nb\n",
            &[
                "1:2 no `=`: want IMAGE = REPLACEMENT",
                "3:2 no `=`: want IMAGE = REPLACEMENT",
            ],
        );
    }

    #[test]
    fn images_are_replaced_when_equal_as_text() {
        let images = Images::parse("a:1 = b\n").unwrap();
        assert_eq!(images.resolve("a:1"), "b");
        assert_eq!(images.resolve("a"), "a");
        assert_eq!(images.resolve("a:1@sha256:0"), "a:1@sha256:0");
    }

    #[test]
    fn a_file_overrides_the_images_of_the_release() {
        let (image, _) = Images::default()
            .iter()
            .map(|(image, by)| (image.to_owned(), by.to_owned()))
            .next()
            .unwrap();
        let mine = Images::parse(&format!("{image} = mine\n")).unwrap();
        assert_eq!(Images::default().with(mine).resolve(&image), "mine");
    }

    #[test]
    fn a_release_pins_both_images_of_each_profile() {
        for (images, tag) in [
            (Images::default(), "v0.7.0"),
            (Images::for_profile(&profile::LATER), "v1.23.1"),
        ] {
            for name in ["initializer", "service-mesh-proxy"] {
                let image = format!("ghcr.io/edgelesssys/contrast/{name}");
                assert_eq!(
                    images.resolve(&format!("{image}:latest")),
                    format!("{image}:{tag}")
                );
            }
        }
    }
}
