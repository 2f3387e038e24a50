//! The words of options: each is parsed by a table of words and values, and never compared by hand. The words of the
//! sources: names and doc comments use the field's nouns and verbs. The names that docs/papers.md states exist.

#[path = "words/papers.rs"]
mod papers;

use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// The maximum share of doc lines, in percent, that open with a question word, for each room. A room that is finished
/// has 1; a limit may only shrink.
const OPENERS: [(&str, u32); 22] = [
    ("src", 1),
    ("src/device", 1),
    ("src/expression", 1),
    ("src/fs", 1),
    ("src/layout", 1),
    ("src/report", 1),
    ("src/run", 1),
    ("src/task", 0),
    ("src/translation", 1),
    ("src/workload", 1),
    ("crates/cli", 1),
    ("crates/environment", 1),
    ("crates/fuse", 1),
    ("crates/instructions", 0),
    ("crates/kernel", 1),
    ("crates/nbd", 1),
    ("crates/nvm", 0),
    ("crates/nvme", 1),
    ("crates/python", 1),
    ("crates/reproduce", 1),
    ("crates/sweep", 1),
    ("tests", 1),
];

/// Words that open a clause in place of a noun: "what waits" for "dirty pages", "who commits" for "the thread that commits".
const PRONOUNS: [&str; 6] = ["what", "whatever", "who", "whoever", "whichever", "whom"];

/// The most of them in 10,000 words of the comments and help texts of each room. A limit may only shrink.
const NOUNLESS: [(&str, u32); 25] = [
    ("src", 19),
    ("src/device", 35),
    ("src/expression", 22),
    ("src/fs", 25),
    ("src/fs/ext", 8),
    ("src/layout", 4),
    ("src/report", 48),
    ("src/run", 70),
    ("src/run/shared", 5),
    ("src/task", 114),
    ("src/translation", 18),
    ("src/workload", 30),
    ("crates/cli", 59),
    ("crates/environment", 75),
    ("crates/fuse", 29),
    ("crates/instructions", 41),
    ("crates/kernel", 4),
    ("crates/nbd", 17),
    ("crates/nvm", 22),
    ("crates/nvme", 36),
    ("crates/python", 17),
    ("crates/reproduce", 38),
    ("crates/sweep", 48),
    ("crates/vmm", 5),
    ("tests", 64),
];

/// The shortfall at which a limit of [`NOUNLESS`] must be lowered.
const NOUNLESS_SLACK: u32 = 15;

/// Names that need a comment to be understood, and the number of their definitions that remain. It may only shrink.
const RIDDLES: [(&str, usize); 6] =
    [("Told", 0), ("Floor", 0), ("Standing", 0), ("Said", 0), ("Diligent", 0), ("lives_no_more", 0)];

/// The shortfall, in percent, at which a limit must be lowered.
const SLACK: f64 = 3.0;

/// The options whose text is compared with words.
#[derive(Default)]
struct Compared(Vec<String>);

/// The option's name in `settings.text("name")`.
fn option_of(expression: &syn::Expr) -> Option<String> {
    match expression {
        syn::Expr::MethodCall(call) if call.method == "text" => match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. })) => Some(name.value()),
            _ => None,
        },
        syn::Expr::Paren(inner) => option_of(&inner.expr),
        syn::Expr::Reference(inner) => option_of(&inner.expr),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Compared {
    fn visit_expr_match(&mut self, matched: &'ast syn::ExprMatch) {
        self.0.extend(option_of(&matched.expr));
        visit::visit_expr_match(self, matched);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if matches!(binary.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_)) {
            self.0.extend(option_of(&binary.left));
            self.0.extend(option_of(&binary.right));
        }
        visit::visit_expr_binary(self, binary);
    }
}

fn compared(text: &str) -> Vec<String> {
    let mut found = Compared::default();
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `grouping` was matched word by word with `_ => GroupingKind::None` at the end: a fifth word in the list of what the
/// option takes would have been accepted, shown in the report, and run as one group. So were eleven other options.
#[test]
fn no_option_is_matched_word_by_word() {
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    assert!(files.len() > 300, "the sources were found");
    for file in files {
        let found = compared(&fs::read_to_string(&file).unwrap());
        assert!(found.is_empty(), "{}: read {found:?} with Settings::choice", file.display());
    }
}

#[test]
fn a_match_on_words_is_seen() {
    let text = "fn f() { match s.text(\"a\") { _ => {} } if \"x\" == s.text(\"b\") {} match s.text() { _ => {} } }";
    assert_eq!(compared(text), ["a", "b"]);
}

/// True for a doc line that names no subject: it opens with a question word, or heads a column with "what it is".
fn is_opener(line: &str) -> bool {
    const WORDS: [&str; 8] = ["What", "Who", "Whose", "Whom", "Where", "Whether", "Which", "How"];
    line.contains("| what it is |")
        || line.split(|c: char| !c.is_alphanumeric()).next().is_some_and(|w| WORDS.contains(&w))
}

/// The numbers of doc lines in a source text, and of openers among them.
fn doc_lines(text: &str) -> (u32, u32) {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("/// ").or(line.strip_prefix("//! "))
    });
    lines.fold((0, 0), |(all, openers), line| (all + 1, openers + u32::from(is_opener(line))))
}

/// The sources of a room: those of a folder or, for `src`, the files beside the folders.
fn room(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    files.retain(|file| name != "src" || file.parent() == Some(&folder));
    assert!(!files.is_empty(), "{name} has no sources");
    files
}

/// One doc line in seven opened with What, Who, Where or Whether ("What of the DAT was made of what the log says."),
/// where "DAT entries rebuilt from the log." needs no second reading.
#[test]
fn doc_comments_open_with_a_noun_or_a_verb() {
    for (name, limit) in OPENERS {
        let texts = room(name).into_iter().map(|file| fs::read_to_string(file).unwrap());
        let (all, openers) = texts.map(|text| doc_lines(&text)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let share = f64::from(openers) * 100.0 / f64::from(all.max(1));
        assert!(
            share <= f64::from(limit),
            "{name}: {openers} of {all} doc lines open with a question word ({share:.1} %)"
        );
        let is_tight = limit == 1 || share + SLACK >= f64::from(limit);
        assert!(
            is_tight,
            "{name}: {share:.1} % of the doc lines open with a question word: lower the limit of {limit} %"
        );
    }
}

#[test]
fn an_opener_is_seen() {
    let text = "//! | file | what it is |\n/// Whether it is.\n/// A noun,\n/// what follows.\n// How\nfn f() {}";
    assert_eq!(doc_lines(text), (4, 2));
}

/// The comments and help texts in a source, without code between backticks.
fn prose(text: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        match line.strip_prefix("//") {
            Some(comment) => Some(comment.trim_start_matches(['/', '!']).to_string()),
            None => line.split_once("about: \"").map(|(_, help)| help.trim_end_matches("\",").to_string()),
        }
    };
    let lines = text.lines().filter_map(comment);
    lines
        .flat_map(|line| line.split('`').step_by(2).map(str::to_string).collect::<Vec<_>>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The numbers of words in a text, and of pronouns among them.
fn pronouns(text: &str) -> (u32, u32) {
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.fold((0, 0), |(all, pronouns), word| {
        (all + 1, pronouns + u32::from(PRONOUNS.contains(&word.to_lowercase().as_str())))
    })
}

/// "What is changed, or committed and not yet written home, stays" has no noun, and needs a second reading; "dirty blocks, and
/// committed blocks that are not home, stay" does not.
#[test]
fn clauses_of_comments_have_nouns() {
    let mut wrong = Vec::new();
    for (name, limit) in NOUNLESS {
        let texts = room(name).into_iter().map(|file| fs::read_to_string(file).unwrap());
        let counts = texts.map(|text| pronouns(&prose(&text)));
        let (all, found) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let share = (f64::from(found) * 10_000.0 / f64::from(all.max(1))).ceil() as u32;
        if share > limit {
            wrong.push(format!(
                "{name}: {share} of 10,000 words stand in place of a noun ({PRONOUNS:?}), and the limit is {limit}: name the thing"
            ));
        } else if share + NOUNLESS_SLACK < limit {
            wrong.push(format!("{name}: {share} of 10,000 words stand in place of a noun: lower the limit of {limit}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_pronoun_is_seen() {
    let text =
        "/// What waits. `who` is\n//! code: whoever\nfn what() {}\n    about: \"how, and who does\",\n // whatever";
    assert_eq!(pronouns(&prose(text)), (10, 4));
}

/// The names that `text` defines.
fn defined(tokens: TokenStream, names: &mut Vec<String>) {
    let mut is_name = false;
    for token in tokens {
        match token {
            TokenTree::Ident(word) if is_name => {
                names.push(word.to_string());
                is_name = false;
            }
            TokenTree::Ident(word) => {
                is_name = ["struct", "enum", "trait", "type", "fn"].contains(&word.to_string().as_str());
            }
            TokenTree::Group(group) => defined(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => is_name = false,
        }
    }
}

/// Three types were called `Told`, three `Floor`.
#[test]
fn no_name_is_a_riddle() {
    let mut names = Vec::new();
    for (name, _) in OPENERS {
        for file in room(name) {
            defined(fs::read_to_string(&file).unwrap().parse().unwrap(), &mut names);
        }
    }
    for (riddle, remaining) in RIDDLES {
        let found = names.iter().filter(|name| *name == riddle).count();
        assert_eq!(found, remaining, "definitions of {riddle}: the table may only shrink, with the definitions");
    }
}

#[test]
fn a_defined_name_is_seen() {
    let mut names = Vec::new();
    defined("pub struct A<T>(T); mod m { fn b() { let c = type_of(); } } impl A {}".parse().unwrap(), &mut names);
    assert_eq!(names, ["A", "b"]);
}
