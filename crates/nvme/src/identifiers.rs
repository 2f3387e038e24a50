//! Placement identifiers: a reclaim group and a handle in one number.
//!
//! ```text
//!     15              16-RGIF          0
//!     | reclaim group | handle          |     RGIF: the bits that number the groups
//! ```

use flashpath::device::PlacementAccount;

/// The shape of a drive's placement, which does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    groups: u32,
    handles: u32,
}

impl Shape {
    /// That of a device with this placement.
    pub fn of(placement: &PlacementAccount) -> Shape {
        Shape { groups: placement.groups, handles: placement.handles.len() as u32 }
    }

    /// Reclaim groups.
    pub fn groups(self) -> u32 {
        self.groups
    }

    /// Handles.
    pub fn handles(self) -> u32 {
        self.handles
    }

    /// The handle of an identifier of this number.
    pub fn handle_of(self, number: u32) -> u16 {
        (number % self.handles) as u16
    }

    /// The bits of an identifier that number the group.
    pub fn group_bits(self) -> u32 {
        u32::BITS - (self.groups - 1).leading_zeros()
    }

    /// The number, in the device, of an identifier of the host.
    pub fn number(self, identifier: u16) -> Option<u8> {
        let shift = 16 - self.group_bits();
        let (group, handle) = (u32::from(identifier) >> shift, u32::from(identifier) & ((1 << shift) - 1));
        (group < self.groups && handle < self.handles).then(|| (group * self.handles + handle) as u8)
    }

    /// The identifier of this number, for the host.
    pub fn identifier(self, number: u32) -> u16 {
        (((number / self.handles) << (16 - self.group_bits())) | (number % self.handles)) as u16
    }

    /// The number of identifiers.
    pub fn identifiers(self) -> u32 {
        self.groups * self.handles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identifier_has_one_number_and_others_have_none() {
        for (groups, handles) in [(1, 1), (1, 8), (1, 128), (2, 3), (3, 5), (4, 32)] {
            let shape = Shape { groups, handles };
            let valid: Vec<u16> = (0..=u16::MAX).filter(|identifier| shape.number(*identifier).is_some()).collect();
            assert_eq!(valid.len() as u32, groups * handles);
            for number in 0..groups * handles {
                assert_eq!(shape.number(shape.identifier(number)), Some(number as u8));
            }
        }
        assert_eq!(Shape { groups: 4, handles: 2 }.identifier(7), 3 << 14 | 1);
    }
}
