//! The hatchings of filled shapes.

/// The pattern over a filled shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hatching {
    /// Lines that rise.
    Rising,
    /// Lines that fall.
    Falling,
    /// Horizontal lines.
    Horizontal,
    /// Vertical lines.
    Vertical,
    /// Dots.
    Dots,
    /// Crossed lines.
    Crossed,
    /// A grid.
    Grid,
    /// Small squares.
    Squares,
    /// Waves.
    Waves,
    /// Steps.
    Steps,
    /// Small triangles.
    Triangles,
    /// Angles.
    Angles,
}

impl Hatching {
    /// All, in the order of use.
    pub const ALL: [Hatching; 12] = [
        Hatching::Rising,
        Hatching::Dots,
        Hatching::Horizontal,
        Hatching::Falling,
        Hatching::Vertical,
        Hatching::Crossed,
        Hatching::Grid,
        Hatching::Squares,
        Hatching::Waves,
        Hatching::Steps,
        Hatching::Triangles,
        Hatching::Angles,
    ];

    /// The outline of the pattern in a square of six pixels.
    pub(super) fn outline(self) -> &'static str {
        match self {
            Hatching::Rising => "M-1 1l2 -2M0 6l6 -6M5 7l2 -2",
            Hatching::Falling => "M-1 5l2 2M0 0l6 6M5 -1l2 2",
            Hatching::Horizontal => "M0 3h6",
            Hatching::Vertical => "M3 0v6",
            Hatching::Dots => "M1 1h1.6M4 4h1.6",
            Hatching::Crossed => "M0 6l6 -6M0 0l6 6",
            Hatching::Grid => "M0 3h6M3 0v6",
            Hatching::Squares => "M1.5 1.5h3v3h-3Z",
            Hatching::Waves => "M0 3l1.5 -2 3 4 1.5 -2",
            Hatching::Steps => "M0 4h3v-2h3",
            Hatching::Triangles => "M1.5 4.5l1.5 -3 1.5 3Z",
            Hatching::Angles => "M1 1v4h4",
        }
    }
}
