//! What if the answer is lost? Classes, and which tool has which.

mod class;

pub use class::Class;
