//! Tasks around the product.

fn main() {}
