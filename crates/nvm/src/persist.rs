//! The methods of persistence, and which of them the processor has.

use crate::machine;

/// A method by which stored lines reach memory before a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Non-temporal stores, which pass the caches. Ranges that cover a line in part are stored plainly, and written back.
    NonTemporal,
    /// Plain stores; `clwb` writes lines back, and they may stay in the caches.
    WriteBack,
    /// Plain stores; `clflushopt` writes lines back and removes them from the caches.
    FlushOptimised,
    /// Plain stores; `clflush` does so one line after the other.
    Flush,
}

impl Method {
    /// All of them, the preferred one first.
    pub const ALL: [Method; 4] = [Method::NonTemporal, Method::WriteBack, Method::FlushOptimised, Method::Flush];

    /// The instruction's name.
    pub fn instruction(self) -> &'static str {
        match self {
            Method::NonTemporal => "non-temporal stores",
            Method::WriteBack => "clwb",
            Method::FlushOptimised => "clflushopt",
            Method::Flush => "clflush",
        }
    }
}

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
