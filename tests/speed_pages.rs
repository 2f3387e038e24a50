//! The figures of the pages are those of `docs/speed.json`.

#[path = "../benches/speed/figures.rs"]
#[allow(dead_code, missing_docs, reason = "the benchmark writes what this reads")]
mod figures;
#[path = "../benches/speed/pages.rs"]
mod pages;

#[test]
fn the_pages_state_the_figures_that_were_measured() {
    for (page, made) in pages::pages(env!("CARGO_MANIFEST_DIR").as_ref()) {
        let stored = std::fs::read_to_string(&page).unwrap();
        assert!(stored == made, "{}: run `cargo bench --bench speed -- pages`", page.display());
    }
}
