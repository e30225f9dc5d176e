//! Errors of the journal.

/// What failed, what is lost and what is not, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal was closed.
    #[error("the journal is closed; nothing was written; open it again")]
    Closed,
}
