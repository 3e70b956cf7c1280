//! What makes a release, and what does not.
