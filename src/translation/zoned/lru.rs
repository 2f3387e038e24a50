//! Zones in the order of their last use.

use super::media::ZoneId;

const END: u32 = u32::MAX;

/// A list of zones, the least recently used first. Every operation takes constant time; a zone is in the list at most
/// once.
#[derive(Debug)]
pub struct LeastRecentlyUsed {
    /// The neighbours of each zone; the zone itself twice if it is not in the list.
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
}

impl LeastRecentlyUsed {
    /// An empty list for zones below `zones`.
    pub fn new(zones: u32) -> LeastRecentlyUsed {
        LeastRecentlyUsed { links: (0..zones).map(|zone| (zone, zone)).collect(), first: END, last: END }
    }

    /// True if the zone is in the list.
    #[inline]
    pub fn contains(&self, zone: ZoneId) -> bool {
        self.links[zone.index()] != (zone.0, zone.0)
    }

    /// Moves a zone to the end, or adds it there.
    #[inline]
    pub fn use_now(&mut self, zone: ZoneId) {
        if self.last == zone.0 {
            return;
        }
        self.remove(zone);
        self.links[zone.index()] = (self.last, END);
        match self.last {
            END => self.first = zone.0,
            last => self.links[last as usize].1 = zone.0,
        }
        self.last = zone.0;
    }

    /// Removes a zone, if it is in the list.
    #[inline]
    pub fn remove(&mut self, zone: ZoneId) {
        if !self.contains(zone) {
            return;
        }
        let (before, after) = std::mem::replace(&mut self.links[zone.index()], (zone.0, zone.0));
        match before {
            END => self.first = after,
            before => self.links[before as usize].1 = after,
        }
        match after {
            END => self.last = before,
            after => self.links[after as usize].0 = before,
        }
    }

    /// The zones, the least recently used first.
    pub fn iter(&self) -> impl Iterator<Item = ZoneId> + '_ {
        std::iter::successors((self.first != END).then_some(ZoneId(self.first)), |zone| {
            let next = self.links[zone.index()].1;
            (next != END).then_some(ZoneId(next))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_last_use() {
        let mut list = LeastRecentlyUsed::new(6);
        for zone in [3, 1, 3, 0, 5, 1] {
            list.use_now(ZoneId(zone));
        }
        list.remove(ZoneId(0));
        list.remove(ZoneId(4));
        assert_eq!(list.iter().map(|zone| zone.0).collect::<Vec<_>>(), [3, 5, 1]);
        assert!(list.contains(ZoneId(5)) && !list.contains(ZoneId(0)));
        for zone in [1, 3, 5] {
            list.remove(ZoneId(zone));
        }
        assert_eq!(list.iter().count(), 0);
    }
}
