//! Maps of the stations at the end of a run, of a bounded number of cells.

use crate::device::Account;
use crate::device::UnitMap;
use crate::report::StationMap;

/// The most cells of a map.
const MOST_CELLS: usize = 1024;

/// The state of a cell whose units differ.
const MIXED: &str = "mixed";

/// The map of a station, if it has one.
pub fn station_map(name: &str, account: &Account) -> Option<StationMap> {
    let map = account.map.as_ref()?;
    let units = [map.written.len(), map.live.len(), map.erases.len(), map.states.len()].into_iter().max()?;
    let per_cell = units.div_ceil(MOST_CELLS).max(1);
    let share = |values: &[u32]| -> Vec<f64> {
        let cells = values.chunks(per_cell);
        cells.map(|cell| sum(cell) / (cell.len() as f64 * map.size.max(1) as f64)).collect()
    };
    Some(StationMap {
        station: name.to_string(),
        unit: map.unit.to_string(),
        units: units as u64,
        units_per_cell: per_cell as u64,
        written: share(&map.written),
        live: share(&map.live),
        erases_mean: map.erases.chunks(per_cell).map(|cell| sum(cell) / cell.len() as f64).collect(),
        erases_max: map.erases.chunks(per_cell).map(|cell| cell.iter().copied().max().unwrap_or(0)).collect(),
        states: states(map, per_cell),
    })
}

fn sum(values: &[u32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}

fn states(map: &UnitMap, per_cell: usize) -> Vec<String> {
    let state = |cell: &[&'static str]| if cell.iter().all(|state| *state == cell[0]) { cell[0] } else { MIXED };
    map.states.chunks(per_cell).map(|cell| state(cell).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_cell_if_there_are_many() {
        let units = 2500;
        let map = UnitMap {
            unit: "zone",
            size: 4,
            written: (0..units).map(|unit| unit % 5).collect(),
            live: Vec::new(),
            erases: (0..units).collect(),
            states: (0..units).map(|unit| if unit < 4 { "full" } else { "empty" }).collect(),
        };
        let account = Account { map: Some(map), ..Account::default() };
        let map = station_map("zns", &account).unwrap();
        assert_eq!((map.units, map.units_per_cell, map.written.len(), map.live.len()), (2500, 3, 834, 0));
        assert_eq!((map.written[0], map.written[1]), (0.25, (3.0 + 4.0 + 0.0) / 12.0));
        assert_eq!((map.erases_mean[1], map.erases_max[1], map.erases_max[833]), (4.0, 5, 2499));
        assert_eq!(map.states[..3], ["full", "mixed", "empty"]);
        assert!(station_map("cache", &Account::default()).is_none());
    }
}
