//! The state of each erase block, zone or segment of a station, in the order of their addresses.

/// What is known of the units of a station. A list is empty if the station does not know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitMap {
    /// What a unit is: `erase block`, `zone`, `segment`.
    pub unit: &'static str,
    /// Pages or blocks of a unit, as `written` and `live` count them.
    pub size: u64,
    /// What is written of each.
    pub written: Vec<u32>,
    /// What is live in each.
    pub live: Vec<u32>,
    /// The number of erases of each since it was new.
    pub erases: Vec<u32>,
    /// The state of each.
    pub states: Vec<&'static str>,
}
