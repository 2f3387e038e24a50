//! The order of eviction: a list of slots, updated by each use.

use super::Policy;

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    /// Used since the hand passed.
    is_used: bool,
}

/// The slots in use, the next victim first.
pub(super) struct Order {
    policy: Policy,
    links: Vec<Link>,
    first: u32,
    last: u32,
}

impl Order {
    pub fn new(policy: Policy) -> Order {
        Order { policy, links: Vec::new(), first: NONE, last: NONE }
    }

    /// Adds a slot.
    pub fn add(&mut self, slot: u32) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, Link { before: NONE, after: NONE, is_used: false });
        }
        self.links[slot as usize] = Link { before: self.last, after: NONE, is_used: false };
        match self.last {
            NONE => self.first = slot,
            last => self.links[last as usize].after = slot,
        }
        self.last = slot;
    }

    /// Removes a slot.
    pub fn remove(&mut self, slot: u32) {
        let Link { before, after, .. } = self.links[slot as usize];
        match before {
            NONE => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.links[after as usize].before = before,
        }
    }

    /// Records a read or write of a slot's block.
    pub fn touch(&mut self, slot: u32) {
        match self.policy {
            Policy::Lru => {
                self.remove(slot);
                self.add(slot);
            }
            Policy::Fifo => {}
            Policy::Clock => self.links[slot as usize].is_used = true,
        }
    }

    /// The next victim.
    ///
    /// # Panics
    ///
    /// If no slot is in use.
    pub fn victim(&mut self) -> u32 {
        while self.links[self.first as usize].is_used {
            let spared = self.first;
            self.remove(spared);
            self.add(spared);
        }
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victims(policy: Policy) -> Vec<u32> {
        let mut order = Order::new(policy);
        (0..4).for_each(|slot| order.add(slot));
        order.touch(0);
        order.touch(2);
        let mut victims = Vec::new();
        for _ in 0..4 {
            victims.push(order.victim());
            order.remove(*victims.last().unwrap());
        }
        victims
    }

    #[test]
    fn each_policy_has_its_own_order() {
        assert_eq!(victims(Policy::Lru), [1, 3, 0, 2]);
        assert_eq!(victims(Policy::Fifo), [0, 1, 2, 3]);
        assert_eq!(victims(Policy::Clock), [1, 3, 0, 2]);
    }
}
