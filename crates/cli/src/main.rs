//! The `mainstay` command.

fn main() {}
