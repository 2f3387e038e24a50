//! `--metrics`: the figures as a Prometheus page over HTTP/1.1.
//!
//! There is one page, no state and no request body: a client has a few seconds and KiB for its request. The number of
//! clients is limited; one more disconnects the oldest.

use super::metrics_page::{DriveFigures, page};
use crate::failure::Failure;
use crate::resident::cannot;
use flashpath_nbd::{Address, Entrance, Listener, Notices, Socket, Traffic, WaitingRoom, guarded};
use flashpath_nvme::Drive;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The longest request, in bytes.
const LONGEST_REQUEST: usize = 8 << 10;
/// The time that a client has for its request, and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at once.
const MOST_CLIENTS: usize = 8;
/// Counts the clients of the export, by the name of its figures; `None` if it does not count them.
pub type CountClients = Box<dyn Fn() -> Option<(&'static str, Traffic)> + Send + Sync>;

/// The source of the figures.
struct Source {
    drives: Vec<Drive>,
    clients: CountClients,
}

/// The server of the page. Dropping it stops the server.
pub struct Metrics {
    listener: Arc<Listener>,
    clients: Arc<WaitingRoom>,
    accepting: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Serves the clients of `listener`. `notices` hears what the user is to know at once.
    pub fn start(
        listener: Listener,
        drives: Vec<Drive>,
        clients: CountClients,
        notices: Notices,
    ) -> Result<Metrics, Failure> {
        let listener = Arc::new(listener);
        let accepts = Arc::clone(&listener);
        let source = Arc::new(Source { drives, clients });
        let clients = WaitingRoom::new(MOST_CLIENTS);
        let room = Arc::clone(&clients);
        let accepting = Builder::new()
            .name("metrics".into())
            .spawn(move || guarded(&notices, || accept(&accepts, &room, &source, &notices)))
            .map_err(|error| cannot("start a thread", error))?;
        Ok(Metrics { listener, clients, accepting: Some(accepting) })
    }

    /// The URL of the page.
    pub fn place(address: &Address) -> String {
        match address {
            Address::Unix(path) => format!("http://localhost/metrics (curl --unix-socket {})", path.display()),
            Address::Tcp(address) => format!("http://{address}/metrics"),
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.listener.close();
        // The thread may wait for a free place.
        self.clients.clear();
        // The thread ends with its listener; a panic is ignored.
        let _ = self.accepting.take().map(JoinHandle::join);
        self.clients.clear();
        self.clients.wait_until_empty();
    }
}

fn accept(listener: &Listener, clients: &Arc<WaitingRoom>, source: &Arc<Source>, notices: &Notices) {
    let mut entrance = Entrance::new(listener, notices);
    while let Some(socket) = entrance.next_client() {
        let ((place, _), source) = (clients.enter(&socket), Arc::clone(source));
        // If no thread can be started, the client is disconnected.
        let _ = Builder::new().name("metrics-client".into()).spawn(move || {
            // Errors of the client's connection are ignored.
            let _ = serve(&socket, &source);
            socket.close();
            drop(place);
        });
    }
}

fn serve(socket: &Socket, source: &Source) -> io::Result<()> {
    socket.set_patience(PATIENCE)?;
    let until = Instant::now() + PATIENCE;
    let mut socket = socket.clone();
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !has_end(&request) {
        let count = socket.read(&mut piece)?;
        if count == 0 || request.len() + count > LONGEST_REQUEST || Instant::now() > until {
            return socket.write_all(&answer("400 Bad Request", "incomplete request\n"));
        }
        request.extend_from_slice(&piece[..count]);
    }
    let answer = respond(&request, || {
        let figures = source.drives.iter().map(DriveFigures::of).collect::<Result<Vec<_>, _>>();
        figures.map(|figures| page(&figures, (source.clients)())).map_err(|error| error.to_string())
    });
    socket.write_all(&answer)
}

fn has_end(request: &[u8]) -> bool {
    request.windows(4).any(|window| window == b"\r\n\r\n") || request.windows(2).any(|window| window == b"\n\n")
}

/// The answer to a request of any bytes.
fn respond(request: &[u8], page: impl FnOnce() -> Result<String, String>) -> Vec<u8> {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [method, target, version] if version.starts_with("HTTP/1.") => {
            let path = target.split('?').next().unwrap_or_default();
            match (method, path) {
                ("GET" | "HEAD", "/metrics") => match page() {
                    Ok(page) if method == "GET" => answer("200 OK", &page),
                    Ok(page) => head("200 OK", page.len()),
                    Err(error) => answer("500 Internal Server Error", &format!("{error}\n")),
                },
                ("GET" | "HEAD", _) => answer("404 Not Found", "the page is /metrics\n"),
                _ => answer("405 Method Not Allowed", "use GET\n"),
            }
        }
        _ => answer("400 Bad Request", "not HTTP/1.1\n"),
    }
}

fn head(status: &str, length: usize) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes()
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    let mut answer = head(status, body.len());
    answer.extend(body.bytes());
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_the_page_succeed() {
        for (request, status) in [
            (&b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"[..], "200"),
            (b"GET /metrics?name=x HTTP/1.0\n\n", "200"),
            (b"HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
            (b"GET / HTTP/1.1\r\n\r\n", "404"),
            (b"GET /../metrics HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"\xff\xfe\0\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (b"", "400"),
        ] {
            let answer = String::from_utf8(respond(request, || Ok("the page".to_string()))).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
            let is_page = status == "200" && !request.starts_with(b"HEAD");
            assert_eq!(answer.ends_with("\r\n\r\nthe page"), is_page, "{answer}");
        }
    }

    #[test]
    fn an_unavailable_page_is_a_server_error() {
        let answer = respond(b"GET /metrics HTTP/1.1\r\n\r\n", || Err("broken".to_string()));
        assert!(answer.starts_with(b"HTTP/1.1 500 ") && answer.ends_with(b"broken\n"));
    }
}
