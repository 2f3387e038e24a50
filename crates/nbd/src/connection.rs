//! One client, from its first byte to its last.

use crate::error::ConnectionError;
use crate::handshake::{Agreement, shake_hands};
use crate::input::Input;
use crate::paced::{Paced, queue, send_all};
use crate::replies::Prompt;
use crate::transmission;
use flashpath::run::shared::SharedDevice;
use std::io::{Read, Write};

/// Serves one client until it leaves: reads requests from `input`, writes replies to `output`.
///
/// A reader that times out between two requests ([`WouldBlock`](std::io::ErrorKind::WouldBlock)) is read again; within
/// a request, or before the first, a timeout ends the connection.
///
/// # Errors
///
/// The client left within a request or the handshake, violated the protocol, or its socket failed. The device holds the
/// effect of all requests served before.
pub fn serve_client<R: Read, W: Write + Send>(
    device: &SharedDevice,
    input: R,
    mut output: W,
) -> Result<(), ConnectionError> {
    let mut input = Input::new(input);
    match shake_hands(device, &mut input, &mut output, &mut || true)? {
        Some(agreement) => serve_requests(device, agreement, &mut input, output),
        None => Ok(()),
    }
}

/// Serves a client after the handshake.
pub(crate) fn serve_requests<R: Read, W: Write + Send>(
    device: &SharedDevice,
    agreement: Agreement,
    input: &mut Input<R>,
    output: W,
) -> Result<(), ConnectionError> {
    if !device.sharing().paced {
        return transmission::serve(device, agreement, input, &mut Prompt::new(output));
    }
    let queue = queue();
    std::thread::scope(|scope| {
        scope.spawn(|| send_all(&queue, device, output));
        let ended = transmission::serve(device, agreement, input, &mut Paced::new(&queue));
        queue.close();
        ended
    })
}
