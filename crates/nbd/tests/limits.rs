//! Admission and disconnection by the server's limits. No test waits for a time to pass.

#[allow(dead_code, reason = "each test uses its part")]
#[path = "properties/script.rs"]
mod script;

use flashpath::device::conv::Conventional;
use flashpath::run::shared::{SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath_nbd::{Address, Limits, Listener, Server};
use script::{Step, option, request};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const NEVER: Duration = Duration::from_secs(3600);

/// A server and its socket.
struct House {
    server: Server,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl House {
    fn with(limits: Limits) -> House {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = Listener::bind(&Address::Unix(socket.clone())).unwrap();
        let device =
            SharedDevice::new(Box::new(Conventional::in_memory(16, 4096)), Sharing::default(), Box::new(|| Time::ZERO));
        let server =
            Server::start(listener, Arc::new(device.unwrap()), limits, Arc::new(|notice| panic!("{notice}"))).unwrap();
        House { server, socket, _folder: folder }
    }

    /// A client that was greeted and stays silent.
    fn silent(&self) -> UnixStream {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream
    }

    /// A client that asks to be served, and the type of the last option reply.
    fn asking(&self) -> (UnixStream, u32) {
        let mut stream = self.silent();
        stream.write_all(&[&3u32.to_be_bytes()[..], &option(7, &[0; 6])].concat()).unwrap();
        loop {
            let mut reply = [0; 20];
            stream.read_exact(&mut reply).unwrap();
            let field = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
            std::io::copy(&mut (&stream).take(u64::from(field(16))), &mut std::io::sink()).unwrap();
            if field(12) != 3 {
                return (stream, field(12));
            }
        }
    }
}

const ACK: u32 = 1;
const POLICY: u32 = 0x8000_0002;

fn is_served(stream: &mut UnixStream) -> bool {
    let read = Step { flags: 0, command: 0, offset: 0, length: 8, fill: 0 };
    stream.write_all(&request(&read, 1)).is_ok() && stream.read_exact(&mut [0; 24]).is_ok()
}

/// Asserts that the server has closed the connection.
fn sees_the_end(mut stream: UnixStream) {
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
}

#[test]
fn the_newcomer_that_came_first_goes_when_too_many_wait_and_those_that_are_served_stay() {
    let house = House::with(Limits { clients: 2, newcomers: 3, handshake: NEVER });
    let (mut served, told) = house.asking();
    assert_eq!(told, ACK);
    let mut silent: Vec<UnixStream> = (0..3).map(|_| house.silent()).collect();
    for _ in 0..20 {
        silent.push(house.silent());
        sees_the_end(silent.remove(0));
    }
    let (mut other, told) = house.asking();
    assert_eq!(told, ACK);
    assert!(is_served(&mut served) && is_served(&mut other));
    let traffic = house.server.traffic();
    assert_eq!((traffic().connected, traffic().accepted, traffic().turned_away), (2, 2, 21));
    house.server.stop();
    assert_eq!(traffic().connected, 0);
}

#[test]
fn a_client_beyond_the_limit_is_refused_and_may_connect_again() {
    let house = House::with(Limits { clients: 1, newcomers: 3, handshake: NEVER });
    let (first, told) = house.asking();
    assert_eq!(told, ACK);
    let (mut second, told) = house.asking();
    assert_eq!(told, POLICY);
    second.write_all(&option(6, &[0; 6])).unwrap();
    second.read_exact(&mut [0; 20]).unwrap();
    drop(first);
    while house.server.traffic()().connected > 0 {
        std::thread::yield_now();
    }
    assert_eq!(house.asking().1, ACK);
}

#[test]
fn a_handshake_that_takes_too_long_is_over() {
    let house = House::with(Limits { clients: 1, newcomers: 3, handshake: Duration::ZERO });
    let mut greeted = UnixStream::connect(&house.socket).unwrap();
    // A client with no time at all is not even greeted.
    assert!(matches!(greeted.read(&mut [0; 18]), Ok(0) | Err(_)));
    let house = House::with(Limits { clients: 1, newcomers: 3, handshake: Duration::from_millis(50) });
    sees_the_end(
        UnixStream::connect(&house.socket)
            .and_then(|stream| {
                // The end may come before or after the greeting.
                (&stream).read_exact(&mut [0; 18]).map(|()| stream.try_clone()).unwrap_or_else(|_| stream.try_clone())
            })
            .unwrap(),
    );
}

#[test]
fn a_server_that_is_dropped_takes_its_socket_and_its_clients_with_it() {
    let house = House::with(Limits::default());
    let (silent, (served, _)) = (house.silent(), house.asking());
    drop(house.server);
    assert!(!house.socket.exists());
    sees_the_end(silent);
    sees_the_end(served);
}
