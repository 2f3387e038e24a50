//! Errors of creating and opening an image.

use crate::expression::ExpressionError;
use std::io;

/// The reason why an image cannot be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The system reported an error.
    #[error("cannot {doing} {image}: {source}")]
    Io {
        /// The file.
        image: String,
        /// The failed action.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another program, another station or the kernel has it open.
    #[error("{image} is in use: {user}")]
    InUse {
        /// The file.
        image: String,
        /// Its user, and the way to end the use.
        user: String,
    },
    /// The file exists, and would be overwritten.
    #[error("{image} exists already, with {bytes} bytes")]
    Exists {
        /// The file.
        image: String,
        /// Its length.
        bytes: u64,
    },
    /// A field of the image is invalid.
    #[error("{image}: {field} is {found}, expected {expected}")]
    Field {
        /// The file.
        image: String,
        /// The field's name.
        field: String,
        /// Its value.
        found: String,
        /// A valid value.
        expected: String,
    },
    /// An option contradicts the image.
    #[error("{option}={asked} was asked for, but {image} was made with {option}={made}")]
    Contradicts {
        /// The file.
        image: String,
        /// The option.
        option: &'static str,
        /// The option's value.
        asked: String,
        /// The image's value.
        made: String,
    },
    /// The options of a new image are inconsistent.
    #[error(transparent)]
    Options(#[from] ExpressionError),
}

impl ImageError {
    /// Wraps an error of the system with the failed action.
    pub(crate) fn io(image: &str, doing: &'static str) -> impl FnOnce(io::Error) -> ImageError {
        let image = image.to_string();
        move |source| ImageError::Io { image, doing, source }
    }
}
