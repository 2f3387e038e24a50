//! A method that the processor has, or the error that it has not.

use crate::machine;
use crate::method::Method;

/// The processor lacks the instruction of a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this processor has no {}: it has {present}", method.instruction())]
pub struct Unsupported {
    /// The method.
    pub method: Method,
    /// The methods that it has.
    pub present: String,
}

/// A method that this processor has: the proof that its instructions can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persist {
    method: Method,
    way: machine::Way,
}

impl Persist {
    /// This method, if the processor has it.
    ///
    /// # Errors
    ///
    /// If it lacks the instruction; the error names those that it has.
    pub fn by(method: Method) -> Result<Persist, Unsupported> {
        match machine::way(method) {
            Some(way) => Ok(Persist { method, way }),
            None => {
                let present = Method::ALL.into_iter().filter(|method| machine::way(*method).is_some());
                let present = present.map(Method::instruction).collect::<Vec<_>>().join(", ");
                Err(Unsupported { method, present })
            }
        }
    }

    /// The preferred method of this processor: non-temporal stores.
    pub fn preferred() -> Persist {
        Persist::by(Method::NonTemporal).expect("every processor stores in some way")
    }

    /// The method.
    pub fn method(self) -> Method {
        self.method
    }

    /// The instructions that it executes, for reports: `AVX-512 non-temporal stores`.
    pub fn instructions(self) -> &'static str {
        self.way.instructions()
    }

    /// True if a fence brings stores to memory. False on processors whose instructions are not known here: there, stores
    /// may be in the caches when power fails.
    pub fn reaches_memory(self) -> bool {
        machine::REACHES_MEMORY
    }

    pub(crate) fn way(self) -> machine::Way {
        self.way
    }
}
