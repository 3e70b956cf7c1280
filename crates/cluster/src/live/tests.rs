//! What is remembered and what is forgotten.
