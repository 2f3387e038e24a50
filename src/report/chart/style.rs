//! The style of a series. Colour, dash and marker repeat after different numbers of series, so that no two of 280
//! series have the same style, and a colour that is used again has another dash, marker and hatching.

use super::hatching::Hatching;
use super::{Colour, Svg, paint::SERIES_COLOURS};

/// Dashes in pixels; `none` is a solid line.
const DASHES: [&str; 5] = ["none", "7 3", "2 2.5", "9 3 2 3", "14 4"];

/// A dash of a line, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dash(usize);

impl Dash {
    /// The value of `stroke-dasharray`.
    pub fn pattern(self) -> &'static str {
        DASHES[self.0]
    }
}

/// The shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    Circle,
    /// A filled square.
    Square,
    /// A filled triangle.
    Triangle,
    /// A filled diamond.
    Diamond,
    /// An empty circle.
    Ring,
    /// An empty square.
    Box,
    /// A diagonal cross.
    Cross,
}

const MARKERS: [Marker; 7] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Ring, Marker::Box, Marker::Cross];

/// Half the size of a marker, in pixels.
const HALF: f64 = 3.4;

impl Marker {
    /// Draws the marker at points, each with a text to show under the pointer.
    pub fn draw(self, svg: &mut Svg, colour: Colour, points: impl Iterator<Item = ((f64, f64), String)>) {
        let fill = match self {
            Marker::Ring | Marker::Box | Marker::Cross => Colour::Card,
            _ => colour,
        };
        svg.open_group(&format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.4\""));
        points.for_each(|(at, title)| svg.shape(&self.outline(at), "", &title));
        svg.close_group();
    }

    fn outline(self, (x, y): (f64, f64)) -> String {
        let h = HALF;
        match self {
            Marker::Circle | Marker::Ring => {
                format!("M{:.1} {y:.1}a{h} {h} 0 1 0 {} 0a{h} {h} 0 1 0 -{} 0Z", x - h, 2.0 * h, 2.0 * h)
            }
            Marker::Square | Marker::Box => {
                let side = 2.0 * h - 0.8;
                format!("M{:.1} {:.1}h{side}v{side}h-{side}Z", x - side / 2.0, y - side / 2.0)
            }
            Marker::Triangle => format!("M{x:.1} {:.1}l{} {}h-{}Z", y - h - 0.4, h + 0.4, 1.8 * h, 2.0 * h + 0.8),
            Marker::Diamond => {
                let d = h + 0.8;
                format!("M{x:.1} {:.1}l{d} {d}l-{d} {d}l-{d} -{d}Z", y - d)
            }
            Marker::Cross => {
                let d = 2.0 * h;
                format!("M{:.1} {:.1}l{d} {d}m0 -{d}l-{d} {d}", x - h, y - h)
            }
        }
    }
}

/// Colour, dash and marker of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesStyle {
    /// The colour.
    pub colour: Colour,
    /// The dash of its line.
    pub dash: Dash,
    /// The marker on its line.
    pub marker: Marker,
    /// The hatching of its bars; `None` is plain.
    pub hatching: Option<Hatching>,
}

impl SeriesStyle {
    /// The number of the series with the colour of this one, hatched.
    pub fn hatched(number: usize) -> usize {
        number % SERIES_COLOURS + SERIES_COLOURS
    }

    /// The style of the series with this number.
    pub fn of(number: usize) -> SeriesStyle {
        let round = number / SERIES_COLOURS;
        SeriesStyle {
            colour: Colour::Series(number % SERIES_COLOURS),
            dash: Dash(number % DASHES.len()),
            marker: MARKERS[number % MARKERS.len()],
            hatching: round.checked_sub(1).map(|round| Hatching::ALL[round % Hatching::ALL.len()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seventh path had the colour and the dash of the first.
    #[test]
    fn no_two_of_fifty_series_look_alike_and_twelve_differ_in_more_than_colour() {
        let styles: Vec<SeriesStyle> = (0..50).map(SeriesStyle::of).collect();
        for (number, style) in styles.iter().enumerate() {
            for (other_number, other) in styles[..number].iter().enumerate() {
                let (colour, dash, marker) =
                    (style.colour == other.colour, style.dash == other.dash, style.marker == other.marker);
                assert!(!(colour && dash && marker), "{number} and {other_number} look alike");
                if number < 12 && colour {
                    assert!(
                        !dash && !marker && style.hatching != other.hatching,
                        "{number} and {other_number} differ too little"
                    );
                }
            }
        }
    }
}
