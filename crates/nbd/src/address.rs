//! Addresses that a server listens on.

use crate::error::ListenError;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An address to listen on. There is no authentication and no encryption, so only local addresses are accepted, unless the
/// user of the server allows others in so many words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket at this path.
    Unix(PathBuf),
    /// An address and a port; port 0 takes any free one.
    Tcp(SocketAddr),
}

impl Address {
    /// Parses `127.0.0.1:PORT`, `[::1]:PORT`, `localhost:PORT`, or the path of a socket; `./a:1` is a path.
    ///
    /// # Errors
    ///
    /// The address is not loopback, the port is invalid, or the text is empty.
    pub fn read(text: &str) -> Result<Address, ListenError> {
        let open = "it would be open to the network; write 127.0.0.1:PORT, and forward it through ssh";
        match Address::read_any(text)? {
            Address::Tcp(address) if !address.ip().is_loopback() => {
                Err(ListenError::Address { text: text.to_string(), why: open })
            }
            address => Ok(address),
        }
    }

    /// The same, for addresses that are open to the network, too.
    ///
    /// # Errors
    ///
    /// The port is invalid, or the text is empty.
    pub fn read_any(text: &str) -> Result<Address, ListenError> {
        let wrong = |why| Err(ListenError::Address { text: text.to_string(), why });
        if text.is_empty() {
            return wrong("write the name of a Unix socket, or 127.0.0.1:PORT");
        }
        if text.contains('/') {
            return Ok(Address::Unix(text.into()));
        }
        let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        match named.as_deref().unwrap_or(text).parse::<SocketAddr>() {
            Ok(address) => Ok(Address::Tcp(address)),
            Err(_) if looks_like_a_port(text) => {
                wrong("write 127.0.0.1:PORT or [::1]:PORT, with a port from 0 to 65535; ./NAME is a Unix socket")
            }
            Err(_) => Ok(Address::Unix(text.into())),
        }
    }
}

/// True if the text ends in a colon and digits: an address with a port was meant.
fn looks_like_a_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, port)| port.chars().all(|digit| digit.is_ascii_digit()))
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(formatter, "{}", path.display()),
            Address::Tcp(address) => write!(formatter, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_be_named() {
        for (text, expected) in [
            ("s.sock", Address::Unix("s.sock".into())),
            ("/run/s", Address::Unix("/run/s".into())),
            ("./a:1", Address::Unix("./a:1".into())),
            ("127.0.0.1:10809", Address::Tcp(([127, 0, 0, 1], 10809).into())),
            ("127.9.9.9:1", Address::Tcp(([127, 9, 9, 9], 1).into())),
            ("localhost:0", Address::Tcp(([127, 0, 0, 1], 0).into())),
            ("[::1]:5", Address::Tcp("[::1]:5".parse().unwrap())),
        ] {
            assert_eq!(Address::read(text).unwrap(), expected, "{text}");
        }
        for (text, said) in [
            ("0.0.0.0:10809", "open to the network"),
            ("192.168.1.1:10809", "open to the network"),
            ("[::]:1", "open to the network"),
            ("127.0.0.1:99999", "with a port"),
            ("example.org:10809", "127.0.0.1:PORT"),
            (":10809", "127.0.0.1:PORT"),
            ("", "write the name"),
        ] {
            let error = Address::read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(Address::read_any("0.0.0.0:4420").unwrap(), Address::Tcp(([0, 0, 0, 0], 4420).into()));
        assert!(Address::read_any("0.0.0.0:99999").is_err());
    }
}
