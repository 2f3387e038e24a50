//! Messages of a well-behaved client.

/// A request and its payload.
#[derive(Clone, Debug)]
pub struct Step {
    pub flags: u16,
    pub command: u16,
    pub offset: u64,
    pub length: u32,
    pub fill: u8,
}

/// A handshake option.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The handshake before the first request.
pub fn handshake(structured: bool) -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend(option(3, &[]));
    if structured {
        bytes.extend(option(8, &[]));
        let mut contexts = 0u32.to_be_bytes().to_vec();
        contexts.extend(1u32.to_be_bytes());
        contexts.extend(15u32.to_be_bytes());
        contexts.extend(b"base:allocation");
        bytes.extend(option(9, &contexts));
        bytes.extend(option(10, &contexts));
    }
    bytes.extend(option(6, &[0, 0, 0, 0, 0, 2, 0, 1, 0, 3]));
    bytes.extend(option(7, &[0, 0, 0, 0, 0, 0]));
    bytes
}

/// The bytes of a request; its number is its cookie.
pub fn request(step: &Step, number: u64) -> Vec<u8> {
    let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
    bytes.extend(step.flags.to_be_bytes());
    bytes.extend(step.command.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend(step.offset.to_be_bytes());
    bytes.extend(step.length.to_be_bytes());
    if step.command == 1 {
        bytes.extend(std::iter::repeat_n(step.fill, step.length as usize));
    }
    bytes
}
