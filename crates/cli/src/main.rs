//! The program `flashpath`.

fn main() {}
