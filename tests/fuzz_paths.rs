//! No text panics the parsers of paths and generators, and every accepted text can be written out and parsed again.
//!
//! Valid expressions are damaged at random, by a generator with a fixed seed. The same checks serve the coverage-guided
//! fuzzer in `fuzz/`.

use flashpath::random::Random;
use properties::{GENERATORS, NO_PATHS, PATHS, check_generator, check_path};

#[path = "properties/expressions.rs"]
mod properties;

const ROUNDS: u64 = 40_000;
const WRONG: [&str; 28] = [
    "",
    " ",
    "\t",
    "\n",
    "\0",
    "/",
    "+",
    ":",
    ",",
    "=",
    "%",
    ".",
    "-1",
    "0",
    "1",
    "1e9",
    "1e-9",
    "NaN",
    "inf",
    "-0%",
    "+5",
    "18446744073709551615",
    "18446744073709551616",
    "1P",
    "0.1K",
    "é",
    "\u{3000}",
    "🦀",
];

/// The tokens of an expression: words and separators.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = vec![String::new()];
    for character in text.chars() {
        if "/+:,= ".contains(character) {
            tokens.extend([character.to_string(), String::new()]);
        } else if let Some(last) = tokens.last_mut() {
            last.push(character);
        }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}

fn pick<'t, T>(random: &mut Random, from: &'t [T]) -> &'t T {
    &from[random.below(from.len() as u64) as usize]
}

/// One to three changes: tokens are swapped, removed, repeated, or replaced by others of the language or by invalid
/// ones.
fn mutate(tokens: &mut Vec<String>, random: &mut Random, others: &[String]) {
    for _ in 0..=random.below(3) {
        let at = random.below(tokens.len() as u64 + 1) as usize;
        let end = (at + 1 + random.below(4) as usize).min(tokens.len());
        match random.below(8) {
            0 if end > at => tokens.swap(at, end - 1),
            1 => drop(tokens.drain(at..end)),
            2 => {
                let part = tokens[at..end].to_vec();
                tokens.splice(at..at, part);
            }
            3 | 4 if end > at => tokens[at] = pick(random, others).clone(),
            5 => tokens.insert(at, pick(random, others).clone()),
            6 if end > at => tokens[at] = pick(random, &WRONG).to_string(),
            _ => tokens.insert(at, pick(random, &WRONG).to_string()),
        }
    }
}

/// Damages `texts`; returns how many of the damaged ones `check` accepts.
fn damage(texts: &[&str], purpose: &str, check: impl Fn(&str, &mut Random) -> bool) -> u64 {
    let others: Vec<String> = texts.iter().flat_map(|text| tokens(text)).collect();
    let mut random = Random::new(1, purpose);
    let mut taken = 0;
    for _ in 0..ROUNDS {
        let mut tokens = tokens(pick::<&str>(&mut random, texts));
        mutate(&mut tokens, &mut random, &others);
        taken += u64::from(check(&tokens.concat(), &mut random));
    }
    taken
}

#[test]
fn damaged_paths_are_refused_where_they_are_wrong_or_mean_the_same_written_out() {
    let taken = damage(&PATHS, "fuzz paths", |text, _| check_path(text));
    // If nearly all or none were rejected, only one half would have been tested.
    assert!((ROUNDS / 40..ROUNDS * 39 / 40).contains(&taken), "{taken}");
}

#[test]
fn damaged_generators_are_refused_where_they_are_wrong_or_stay_on_the_device() {
    let taken = damage(&GENERATORS, "fuzz generators", |text, random| {
        let device_bytes = random.bits() >> random.below(64);
        check_generator(text, device_bytes)
    });
    assert!((ROUNDS / 40..ROUNDS * 39 / 40).contains(&taken), "{taken}");
}

#[test]
fn the_expressions_are_valid_before_they_are_damaged() {
    for text in PATHS {
        assert!(check_path(text), "{text}");
    }
    for text in NO_PATHS {
        assert!(!check_path(text), "{text}");
    }
    for text in GENERATORS {
        assert!(check_generator(text, 1 << 30), "{text}");
    }
}
