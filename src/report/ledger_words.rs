//! Words for the causes, origins and contents of a ledger, and the order in which they are shown.

use super::number;

/// The one that wrote for an origin: `segment cleaning`.
pub fn writer(origin: &str) -> String {
    match origin {
        "host-write" => "the host".to_string(),
        other => number::visible(&other.replace('-', " ")),
    }
}

/// The rank of a name among known ones; unknown names come last.
pub fn order(names: &[&str], name: &str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or(names.len())
}

/// The rank of a content in the order of display; unknown names come last.
pub fn order_of_content(content: &str) -> usize {
    order(&crate::label::Content::ALL.map(|c| c.name()), content)
}

/// The label of a cause and a content: `copied journal`. A merge programs a page without data for one that is missing.
pub fn phrase(cause: &str, content: &str) -> String {
    if (cause, content) == ("merge", "mapping") {
        return "fillers of merges".to_string();
    }
    if (cause, content) == ("padding", "mapping") {
        return "padding of pages of flash".to_string();
    }
    format!("{} {}", verb(cause), number::visible(content))
}

/// The verb of a cause: `copied`.
pub fn verb(cause: &str) -> String {
    let verb = match cause {
        "host-write" => "host",
        "journal-commit" => "committed",
        "checkpoint" => "checkpointed",
        "segment-cleaning" => "cleaned",
        "reclaim" => "reclaimed",
        "merge" => "merged",
        "garbage-collection" => "copied",
        "wear-levelling" => "levelled",
        "refresh" => "refreshed",
        "scrub" => "scrubbed",
        "bad-block" => "moved from bad blocks:",
        "mapping" => "updated",
        "fold" => "folded",
        other => other,
    };
    number::visible(verb)
}
