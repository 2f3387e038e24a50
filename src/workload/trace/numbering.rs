//! Devices of a trace, numbered from 0 in order of appearance.

use super::fields::Reason;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The most devices of a trace. Each takes a few bytes of memory while the trace is read.
pub(super) const MOST_DEVICES: u32 = 1 << 20;

/// The numbers of the devices seen so far. A device's key is a number or bytes.
#[derive(Debug)]
pub(super) struct Numbering<K> {
    numbers: BTreeMap<K, u32>,
    last: Option<(K, u32)>,
}

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Numbering { numbers: BTreeMap::new(), last: None }
    }
}

impl<K: Ord + Clone> Numbering<K> {
    /// The number of `device`; a new one at its first appearance.
    #[inline]
    pub fn number<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, device: &Q) -> Result<u32, Reason>
    where
        K: Borrow<Q>,
    {
        match &self.last {
            Some((last, number)) if last.borrow() == device => Ok(*number),
            _ => self.look_up(device),
        }
    }

    fn look_up<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, device: &Q) -> Result<u32, Reason>
    where
        K: Borrow<Q>,
    {
        let number = match self.numbers.get(device) {
            Some(number) => *number,
            None => {
                let number = self.numbers.len() as u32;
                if number == MOST_DEVICES {
                    return Err("a trace may have 1,048,576 devices, and this is one more");
                }
                self.numbers.insert(device.to_owned(), number);
                number
            }
        };
        self.last = Some((device.to_owned(), number));
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbered_as_they_appear() {
        let mut numbering = Numbering::<Vec<u8>>::default();
        let numbers: Vec<u32> =
            ["web", "db", "web", "db", "mail"].iter().map(|name| numbering.number(name.as_bytes()).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 0, 1, 2]);
    }

    #[test]
    fn a_device_too_many_is_rejected_and_the_others_stay() {
        let mut numbering = Numbering::<u64>::default();
        for device in 0..u64::from(MOST_DEVICES) {
            assert_eq!(numbering.number(&device), Ok(device as u32));
        }
        assert!(numbering.number(&u64::MAX).is_err());
        assert_eq!(numbering.number(&7), Ok(7));
    }
}
