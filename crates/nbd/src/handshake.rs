//! The negotiation before the first request: the fixed newstyle handshake.

use crate::error::ConnectionError;
use crate::input::Input;
use crate::wire::{self, Fields, export_flag, handshake_flag, info, option, option_reply};
use flashpath::run::shared::SharedDevice;
use std::io::{Read, Write};

/// The name of the only export; clients that name none get it, too.
const EXPORT: &[u8] = b"";
/// The export's description, for clients that ask for it.
const DESCRIPTION: &[u8] = b"a path of Flashpath";
/// The metadata context for block status.
const ALLOCATION: &[u8] = b"base:allocation";
/// The ID of the context in replies.
pub const ALLOCATION_ID: u32 = 1;

/// The maximum length of an option, in bytes; longer ones end the connection.
const LONGEST_OPTION: u32 = 64 << 10;
/// The maximum number of options; a client that sends more is disconnected.
const MOST_OPTIONS: usize = 256;

/// The maximum length of a read or write, in bytes.
pub const LARGEST_PAYLOAD: u32 = 32 << 20;
/// The minimum and the preferred unit of a request, in bytes.
const BLOCK_SIZES: (u32, u32) = (1, 4096);

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// True if reads are answered in chunks.
    pub structured: bool,
    /// True if the client may ask for block status.
    pub allocation: bool,
}

/// A negotiation in progress.
struct Haggling<'a, R, W> {
    device: &'a SharedDevice,
    input: &'a mut Input<R>,
    output: &'a mut W,
    no_zeroes: bool,
    admit: &'a mut dyn FnMut() -> bool,
    agreement: Agreement,
}

/// Negotiates with a client; `None` if it aborts in good order. `admit` reserves a place for a client that asks to be
/// served; it runs before the client gets its answer.
pub fn shake_hands<R: Read, W: Write>(
    device: &SharedDevice,
    input: &mut Input<R>,
    output: &mut W,
    admit: &mut dyn FnMut() -> bool,
) -> Result<Option<Agreement>, ConnectionError> {
    let mut greeting = Vec::new();
    greeting.extend(wire::GREETING.to_be_bytes());
    greeting.extend(wire::HAVE_OPTIONS.to_be_bytes());
    let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    greeting.extend((flags as u16).to_be_bytes());
    output.write_all(&greeting)?;

    let answer = u32::from_be_bytes(input.array()?);
    if answer & !flags != 0 {
        return Err(ConnectionError::Protocol("it sets flags that were not offered"));
    }
    let no_zeroes = answer & handshake_flag::NO_ZEROES != 0;
    let mut haggling = Haggling { device, input, output, no_zeroes, admit, agreement: Agreement::default() };
    for _ in 0..MOST_OPTIONS {
        match haggling.option()? {
            Next::Option => {}
            Next::Requests => return Ok(Some(haggling.agreement)),
            Next::End => return Ok(None),
        }
    }
    Err(ConnectionError::Protocol("it haggles without end"))
}

/// The step after an option.
enum Next {
    Option,
    Requests,
    End,
}

impl<R: Read, W: Write> Haggling<'_, R, W> {
    fn option(&mut self) -> Result<Next, ConnectionError> {
        if u64::from_be_bytes(self.input.array()?) != wire::HAVE_OPTIONS {
            return Err(ConnectionError::Protocol("an option does not begin as one"));
        }
        let option = u32::from_be_bytes(self.input.array()?);
        let length = u32::from_be_bytes(self.input.array()?);
        if length > LONGEST_OPTION {
            self.reply(option, option_reply::TOO_BIG, b"no option is that long")?;
            return Err(ConnectionError::Protocol("an option is too long"));
        }
        self.input.wait_for(length as usize, true)?;
        let data = self.input.take(length as usize).to_vec();
        match option {
            option::EXPORT_NAME => return self.export_name(&data),
            option::ABORT => {
                // The client closes the connection; it need not read this.
                let _ = self.reply(option, option_reply::ACK, &[]);
                return Ok(Next::End);
            }
            option::GO => {
                if self.go(option, &data)? {
                    return Ok(Next::Requests);
                }
            }
            option::INFO => {
                self.go(option, &data)?;
            }
            option::LIST if data.is_empty() => {
                let mut entry = (EXPORT.len() as u32).to_be_bytes().to_vec();
                entry.extend(EXPORT);
                self.reply(option, option_reply::SERVER, &entry)?;
                self.reply(option, option_reply::ACK, &[])?;
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreement.structured = true;
                self.reply(option, option_reply::ACK, &[])?;
            }
            option::LIST | option::STRUCTURED_REPLY => self.refuse(option, "this option has no data")?,
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, &data)?,
            option::STARTTLS => self.reply(option, option_reply::POLICY, b"there is no TLS here")?,
            _ => self.reply(option, option_reply::UNSUPPORTED, b"this option is not known")?,
        }
        Ok(Next::Option)
    }

    /// Answers `EXPORT_NAME`, which has no error reply: the connection is closed instead.
    fn export_name(&mut self, name: &[u8]) -> Result<Next, ConnectionError> {
        if name != EXPORT {
            return Err(ConnectionError::Protocol("it asks for an export that is not there"));
        }
        if !(self.admit)() {
            return Err(ConnectionError::NoPlace);
        }
        let mut answer = self.device.size_bytes().to_be_bytes().to_vec();
        answer.extend(self.export_flags().to_be_bytes());
        if !self.no_zeroes {
            answer.extend([0; 124]);
        }
        self.output.write_all(&answer)?;
        Ok(Next::Requests)
    }

    /// Answers `GO` and `INFO` with the export's properties; true if there is such an export.
    fn go(&mut self, option: u32, data: &[u8]) -> Result<bool, ConnectionError> {
        let mut fields = Fields(data);
        let asked = (|| {
            let name = fields.text()?;
            let count = fields.u16()?;
            let wanted = (0..count).map(|_| fields.u16()).collect::<Option<Vec<u16>>>()?;
            fields.0.is_empty().then_some((name, wanted))
        })();
        let Some((name, wanted)) = asked else {
            self.refuse(option, "its data is not a name and a list of what is wanted")?;
            return Ok(false);
        };
        if name != EXPORT {
            self.reply(option, option_reply::UNKNOWN, b"the one export here has no name")?;
            return Ok(false);
        }
        if option == option::GO && !(self.admit)() {
            self.reply(option, option_reply::POLICY, b"as many clients as there may be are served already")?;
            return Ok(false);
        }
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend(self.device.size_bytes().to_be_bytes());
        export.extend(self.export_flags().to_be_bytes());
        self.reply(option, option_reply::INFO, &export)?;
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [BLOCK_SIZES.0, BLOCK_SIZES.1, LARGEST_PAYLOAD] {
            sizes.extend(size.to_be_bytes());
        }
        self.reply(option, option_reply::INFO, &sizes)?;
        for (kind, text) in [(info::NAME, EXPORT), (info::DESCRIPTION, DESCRIPTION)] {
            if wanted.contains(&kind) {
                self.reply(option, option_reply::INFO, &[&kind.to_be_bytes(), text].concat())?;
            }
        }
        self.reply(option, option_reply::ACK, &[])?;
        Ok(true)
    }

    fn contexts(&mut self, option: u32, data: &[u8]) -> Result<(), ConnectionError> {
        let is_set = option == option::SET_META_CONTEXT;
        if is_set {
            // A new request for contexts replaces the previous one, even if it fails.
            self.agreement.allocation = false;
        }
        if !self.agreement.structured {
            return self.refuse(option, "ask for structured replies before");
        }
        let mut fields = Fields(data);
        let asked = (|| {
            let name = fields.text()?;
            let count = fields.u32()?;
            let mut queries = Vec::new();
            for _ in 0..count {
                queries.push(fields.text()?);
            }
            fields.0.is_empty().then_some((name, queries))
        })();
        let Some((name, queries)) = asked else {
            return self.refuse(option, "its data is not a name and a list of contexts");
        };
        if name != EXPORT {
            return self.reply(option, option_reply::UNKNOWN, b"the one export here has no name");
        }
        let matches = queries.iter().any(|query| *query == ALLOCATION || (!is_set && *query == b"base:"));
        if matches || (!is_set && queries.is_empty()) {
            let id = if is_set { ALLOCATION_ID } else { 0 };
            self.reply(option, option_reply::META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION].concat())?;
            self.agreement.allocation |= is_set;
        }
        self.reply(option, option_reply::ACK, &[])
    }

    fn export_flags(&self) -> u16 {
        use export_flag as flag;
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN;
        if self.device.sharing().read_only {
            flags |= flag::READ_ONLY;
        } else {
            flags |= flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO;
        }
        if self.agreement.structured {
            flags |= flag::SEND_DF;
        }
        flags
    }

    fn refuse(&mut self, option: u32, why: &str) -> Result<(), ConnectionError> {
        self.reply(option, option_reply::INVALID, why.as_bytes())
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> Result<(), ConnectionError> {
        let mut reply = wire::OPTION_REPLY.to_be_bytes().to_vec();
        for field in [option, kind, data.len() as u32] {
            reply.extend(field.to_be_bytes());
        }
        reply.extend(data);
        Ok(self.output.write_all(&reply)?)
    }
}
