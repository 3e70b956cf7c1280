//! Which image stands for which: takes the name an injected container is written with, gives the image to run.

/// Image replacements. The default is what this release was built with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    replacements: Vec<(String, String)>,
}

impl Images {
    /// The image to write for `image`; itself if nothing replaces it.
    #[must_use]
    pub fn resolve<'a>(&'a self, image: &'a str) -> &'a str {
        let last = self.replacements.iter().rev().find(|(from, _)| from == image);
        last.map_or(image, |(_, to)| to)
    }
}
