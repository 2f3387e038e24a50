//! fsck, and what inspect shows.
