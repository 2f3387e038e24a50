//! One connection, from its first byte to its last.

use crate::answers::{Completion, Form, terminate};
use crate::bytes::{array_at, u16_at, u32_at};
use crate::command::{Command, Failure, Place, Transfer};
use crate::controller::{Hangup, Portal};
use crate::error::ConnectionError;
use crate::input::{Arrived, Input};
use crate::output::{Output, Paced, Prompt, queue, send_all};
use crate::pdu::{
    COMMAND_HEADER, COMMON, Common, ConnectionRequest, Digests, Fatal, HEADER, HostData, IC_BYTES, fatal, kind,
};
use crate::session::{Executed, Session};
use crate::status::Status;
use crate::subsystem::Subsystem;
use crate::transfers::Transfers;
use flashpath::crc::crc32c;
use std::io::{Read, Write};
use std::sync::Arc;

/// Serves one connection at `portal` until its host leaves: reads units from `input`, writes units to `output`. `hangup` ends it from any
/// thread; `admit` reserves a place for its queue.
///
/// A reader that times out between two units ([`WouldBlock`](std::io::ErrorKind::WouldBlock)) is read again: events are sent, and
/// the host's keep alive time is looked at.
///
/// # Errors
///
/// The host left within a unit, broke the transport or was silent for too long, or its socket failed. The devices hold the
/// effect of all commands executed before.
pub fn serve_host<R: Read, W: Write + Send>(
    subsystem: &Arc<Subsystem>,
    input: R,
    output: W,
    portal: Portal,
    hangup: Hangup,
    admit: &mut dyn FnMut() -> bool,
) -> Result<(), ConnectionError> {
    let session = Session::new(subsystem, portal, hangup, admit);
    if !subsystem.is_paced() {
        return Connection::new(session, input, Prompt::new(output)).serve();
    }
    let queue = queue();
    std::thread::scope(|scope| {
        scope.spawn(|| send_all(&queue, || subsystem.now(), output));
        let ended = Connection::new(session, input, Paced::new(&queue)).serve();
        queue.close();
        ended
    })
}

/// The next step after a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Unit,
    End,
}

/// An error of a unit.
enum Ended {
    /// The host is told.
    Fatal(Fatal),
    /// It cannot be told.
    Lost(ConnectionError),
}

impl From<Fatal> for Ended {
    fn from(fatal: Fatal) -> Ended {
        Ended::Fatal(fatal)
    }
}

impl From<ConnectionError> for Ended {
    fn from(error: ConnectionError) -> Ended {
        Ended::Lost(error)
    }
}

struct Connection<'s, R, O> {
    session: Session<'s>,
    input: Input<R>,
    output: O,
    form: Form,
    /// True after the connection request.
    is_agreed: bool,
    transfers: Transfers,
    /// The header of the unit that is being received, for a termination request.
    header: [u8; IC_BYTES],
    header_length: usize,
}

impl<'s, R: Read, O: Output> Connection<'s, R, O> {
    fn new(session: Session<'s>, input: R, output: O) -> Connection<'s, R, O> {
        Connection {
            session,
            input: Input::new(input),
            output,
            form: Form { digests: Digests::default(), alignment: 4 },
            is_agreed: false,
            transfers: Transfers::new(),
            header: [0; IC_BYTES],
            header_length: 0,
        }
    }

    fn serve(&mut self) -> Result<(), ConnectionError> {
        let ended = loop {
            match self.unit() {
                Ok(Next::Unit) => {}
                Ok(Next::End) => break Ok(()),
                Err(Ended::Lost(error)) => break Err(error),
                Err(Ended::Fatal(fatal)) => {
                    let at_fault = &self.header[..self.header_length];
                    // A host that cannot be told has left.
                    let _ = terminate(&mut self.output, &fatal, at_fault, self.session.now());
                    break Err(ConnectionError::Transport(fatal.why));
                }
            }
        };
        // Commands that were executed are answered, even if garbage followed them; the first error is returned.
        let sent = self.output.before_waiting();
        ended.and(sent)
    }

    /// Serves the next unit.
    fn unit(&mut self) -> Result<Next, Ended> {
        self.header_length = 0;
        while !self.input.has(COMMON) {
            self.send_events()?;
            self.output.before_waiting()?;
            match self.input.wait_for_unit(COMMON)? {
                Arrived::All => {}
                Arrived::End => return Ok(Next::End),
                Arrived::Nothing if self.session.is_forsaken() => return Err(ConnectionError::Forsaken.into()),
                Arrived::Nothing => {}
            }
        }
        self.keep_header(COMMON);
        let common = Common::read(&array_at(&self.header, 0), self.form.digests)?;
        if common.kind == kind::H2C_TERM_REQ {
            self.wait(HEADER)?;
            let bytes = self.input.peek(HEADER);
            return Err(ConnectionError::Terminated(u16_at(bytes, 8), u32_at(bytes, 10)).into());
        }
        if (common.kind == kind::IC_REQ) == self.is_agreed {
            return Err(Fatal::sequence("a connection is agreed on first, and once").into());
        }
        match common.kind {
            kind::IC_REQ => self.agree(),
            kind::CAPSULE_CMD => self.capsule(&common),
            _ => self.host_data(&common),
        }
    }

    fn keep_header(&mut self, length: usize) {
        self.header[..length].copy_from_slice(self.input.peek(length));
        self.header_length = length;
    }

    /// Waits for bytes of the unit. What is answered is sent before.
    fn wait(&mut self, length: usize) -> Result<(), ConnectionError> {
        if !self.input.has(length) {
            self.output.before_waiting()?;
            self.input.wait(length)?;
        }
        Ok(())
    }

    fn agree(&mut self) -> Result<Next, Ended> {
        self.wait(IC_BYTES)?;
        self.keep_header(IC_BYTES);
        self.input.take(IC_BYTES);
        let request = ConnectionRequest::read(&self.header)?;
        self.output.room(IC_BYTES)?.copy_from_slice(&request.response());
        self.output.end(IC_BYTES, self.session.now())?;
        self.form = Form { digests: request.digests, alignment: request.alignment };
        self.is_agreed = true;
        Ok(Next::Unit)
    }

    /// Checks the digest behind a header that has arrived, if there is one.
    fn check_header(&mut self, length: usize) -> Result<(), Fatal> {
        self.keep_header(length);
        if !self.form.digests.header {
            return Ok(());
        }
        let digest = u32_at(self.input.peek(length + 4), length);
        if digest != crc32c(&self.header[..length]) {
            let why = "the digest of a header is wrong";
            return Err(Fatal { status: fatal::HEADER_DIGEST, information: digest, why });
        }
        Ok(())
    }

    fn capsule(&mut self, common: &Common) -> Result<Next, Ended> {
        self.wait(common.length)?;
        self.check_header(COMMAND_HEADER)?;
        let command = Command(array_at(&self.header, COMMON));
        let Connection { session, input, output, form, transfers, .. } = self;
        if transfers.count() >= usize::from(session.entries()) {
            return Err(Fatal::sequence("there are more commands than the queue has entries").into());
        }
        let unit = input.take(common.length);
        let data = &unit[common.data_offset..common.data_offset + common.data];
        let is_damaged =
            form.digests.data_bytes(data.len()) > 0 && u32_at(unit, common.data_offset + common.data) != crc32c(data);
        let planned = match session.plan(&command) {
            _ if is_damaged => Err(Status::TRANSPORT_ERROR),
            Ok(transfer) => command.place(transfer, data.len()).map(|place| (transfer, place)),
            Err(status) => Err(status),
        };
        let next = match planned {
            Err(status) => refuse(session, output, *form, &command, status.into())?,
            Ok((Transfer::None, _)) => execute(session, output, *form, &command, &[])?,
            Ok((Transfer::FromHost(length), Place::Capsule)) => {
                execute(session, output, *form, &command, &data[..length])?
            }
            Ok((Transfer::ToHost(length), _)) => answer_with_data(session, output, *form, &command, length)?,
            Ok((Transfer::FromHost(length), Place::Transport)) => {
                transfers.add(&command, length);
                Next::Unit
            }
        };
        self.ask_for_data()?;
        Ok(next)
    }

    /// Asks for the data of commands that can have it now.
    fn ask_for_data(&mut self) -> Result<(), ConnectionError> {
        while let Some((tag, command, length)) = self.transfers.begin_next() {
            self.form.ask(&mut self.output, command, tag, length, self.session.now())?;
        }
        self.input.expects_data = self.transfers.count() > 0;
        Ok(())
    }

    fn host_data(&mut self, common: &Common) -> Result<Next, Ended> {
        self.wait(common.data_offset)?;
        self.check_header(HEADER)?;
        let data = HostData::read(common, &array_at(&self.header, 0))?;
        let place = self.transfers.place(&data, common.data)?;
        self.input.take(common.data_offset);
        if !self.input.has(common.data) {
            self.output.before_waiting()?;
        }
        self.input.fill(place)?;
        if self.form.digests.data {
            let sum = crc32c(place);
            self.input.wait(4)?;
            if u32_at(self.input.take(4), 0) != sum {
                self.transfers.damage(data.tag);
            }
        }
        if !data.is_last {
            return Ok(Next::Unit);
        }
        let Connection { session, output, form, transfers, .. } = self;
        let next = match transfers.complete(data.tag) {
            None => return Err(Fatal::field(10, "there is no transfer with this tag").into()),
            Some(complete) if complete.is_damaged => {
                refuse(session, output, *form, &complete.command, Status::TRANSPORT_ERROR.into())?
            }
            Some(complete) => execute(session, output, *form, &complete.command, complete.data)?,
        };
        self.ask_for_data()?;
        Ok(next)
    }

    /// Completes the parked commands for which there are events.
    fn send_events(&mut self) -> Result<(), ConnectionError> {
        while let Some(event) = self.session.next_event() {
            let head = self.session.head();
            let completion = Completion { id: event.id, head, result: event.result, status: Status::SUCCESS };
            self.form.send(&mut self.output, &completion, self.session.now())?;
        }
        Ok(())
    }
}

/// Completes a command with a failure.
fn refuse(
    session: &mut Session<'_>,
    output: &mut impl Output,
    form: Form,
    command: &Command,
    failure: Failure,
) -> Result<Next, ConnectionError> {
    session.note_error(command, failure.status);
    let head = session.next_head();
    let completion = Completion { id: command.id(), head, result: failure.result.into(), status: failure.status };
    form.send(output, &completion, session.now())?;
    Ok(Next::Unit)
}

/// Executes a command without data for the host, and completes it.
fn execute(
    session: &mut Session<'_>,
    output: &mut impl Output,
    form: Form,
    command: &Command,
    data: &[u8],
) -> Result<Next, ConnectionError> {
    let (done, result, next) = match session.execute(command, data, &mut []) {
        Err(failure) => return refuse(session, output, form, command, failure),
        Ok(Executed::Parked) => return Ok(Next::Unit),
        Ok(Executed::Done(done, result)) => (done, result, Next::Unit),
        Ok(Executed::Last) => (session.now(), 0, Next::End),
    };
    let head = session.next_head();
    if let Some(id) = session.take_aborted() {
        let completion = Completion { id, head, result: 0, status: Status::ABORT_REQUESTED };
        form.send(output, &completion, done)?;
    }
    form.send(output, &Completion { id: command.id(), head, result, status: Status::SUCCESS }, done)?;
    Ok(next)
}

/// Executes a command with data for the host: it is read into its unit.
fn answer_with_data(
    session: &mut Session<'_>,
    output: &mut impl Output,
    form: Form,
    command: &Command,
    length: usize,
) -> Result<Next, ConnectionError> {
    let (offset, bytes) = form.data_unit(length);
    let whole = bytes + form.completion_bytes();
    let units = output.room(whole)?;
    match session.execute(command, &[], &mut units[offset..offset + length]) {
        Err(failure) => {
            return refuse(session, output, form, command, failure);
        }
        Ok(executed) => {
            let (done, result) = match executed {
                Executed::Done(done, result) => (done, result),
                Executed::Parked | Executed::Last => (session.now(), 0),
            };
            form.seal_data(units, command.id(), length);
            let head = session.next_head();
            let completion = Completion { id: command.id(), head, result, status: Status::SUCCESS };
            form.put_completion(&mut units[bytes..], &completion);
            output.end(whole, done)?;
        }
    }
    Ok(Next::Unit)
}
