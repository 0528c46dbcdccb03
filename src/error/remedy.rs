//! What the caller may allow to make an error go away.

use std::fmt::{self, Display};

/// What the caller may allow to make an error go away: [`Error::remedy`](crate::Error::remedy).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Raise this limit: [`LoadOptions::limits`](crate::LoadOptions::limits).
    RaiseLimit(&'static str),
    /// Accept a departure from the standard: set this field of [`Compatibility`](crate::Compatibility).
    Allow(&'static str),
    /// Allow links that lead into a folder:
    /// [`LoadOptions::external_root`](crate::LoadOptions::external_root).
    ExternalRoot,
    /// Accept files with more than one hard link: [`LoadOptions::hard_links`](crate::LoadOptions::hard_links).
    HardLinks,
    /// Load the model by its path, or supply the content of its other files:
    /// [`LoadOptions::external_data`](crate::LoadOptions::external_data).
    ExternalData,
}

/// Says what to call, for users of the library.
impl Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::RaiseLimit(limit) => write!(f, "Limits::{limit}, which LoadOptions::limits can raise"),
            Remedy::Allow(field) => write!(f, "Compatibility::{field} accepts it"),
            Remedy::ExternalRoot => f.write_str("LoadOptions::external_root allows links into a folder"),
            Remedy::HardLinks => f.write_str("LoadOptions::hard_links accepts it"),
            Remedy::ExternalData => f.write_str("use Model::load, or LoadOptions::external_data"),
        }
    }
}
