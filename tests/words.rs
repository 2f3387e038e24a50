//! The words of options: each is read by a table of words and values, and never compared with by hand.

use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

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
