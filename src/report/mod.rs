//! What a person or a program gets to see: a table on a terminal, one JSON object per line in a pipe. Both from one value.
//!
//! Only this folder writes to standard output.

mod escape;
mod out;
mod record;
mod table;

pub use escape::escape;
pub use out::{Form, Out};
pub use record::{entry_line, next_step, show, told};
pub use table::executions;
