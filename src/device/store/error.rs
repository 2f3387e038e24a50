//! Why an image cannot be made or opened.

use crate::expression::ExpressionError;
use std::io;

/// Why an image cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The system refused.
    #[error("cannot {doing} {image}: {source}")]
    Io {
        /// The file.
        image: String,
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Another has it open.
    #[error("{image} is in use: another program, or another station of this path, has it open")]
    InUse {
        /// The file.
        image: String,
    },
    /// There is something already, which making an image would destroy.
    #[error("{image} is there already, with {bytes} bytes")]
    Exists {
        /// The file.
        image: String,
        /// Its length.
        bytes: u64,
    },
    /// A field of it cannot be.
    #[error("{image}: {field} is {found}, expected {expected}")]
    Field {
        /// The file.
        image: String,
        /// The field's name.
        field: String,
        /// What stands there.
        found: String,
        /// What could.
        expected: String,
    },
    /// An option says other than the image.
    #[error("{option}={asked} was asked for, but {image} was made with {option}={made}")]
    Contradicts {
        /// The file.
        image: String,
        /// The option.
        option: &'static str,
        /// Its value.
        asked: String,
        /// The image's.
        made: String,
    },
    /// The options for a new image do not go together.
    #[error(transparent)]
    Options(#[from] ExpressionError),
}

impl ImageError {
    /// Turns what the system says into an error that says what was being done.
    pub(crate) fn io(image: &str, doing: &'static str) -> impl FnOnce(io::Error) -> ImageError {
        let image = image.to_string();
        move |source| ImageError::Io { image, doing, source }
    }
}
