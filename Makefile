# Two commands do everything on a Debian machine with a Rust toolchain: `make demo` and `make test`.

SHELL := /bin/bash
FLASHPATH := target/release/flashpath
SECONDS_OF_FUZZING ?= 300
SEEDS ?= 100

.PHONY: help demo test check bench results fuzz crash build needs

help:
	@echo "make demo    run the sample trace on several paths: a table here, a page in demo/report.html"
	@echo "make test    all tests"
	@echo "make check   format, lints, import table"
	@echo "make bench   the benchmarks, each figure beside its bound and its peer"
	@echo "make results write docs/results.md from the tests against theory and the benchmark"
	@echo "make fuzz    fuzz every parser, SECONDS_OF_FUZZING=$(SECONDS_OF_FUZZING) each (needs a nightly toolchain)"
	@echo "make crash   cut the power of every translation layer at any operation, SEEDS=$(SEEDS) times each"

build:
	cargo build --release --locked

# What the tests use beside Rust: fio to check its distributions, a browser to look at the report.
needs:
	@scripts/needs fio chromium

demo: build
	@mkdir -p demo
	$(FLASHPATH) run traces/fb_varmail_ext4.csv.zst --fill --repeat 4 \
	    --on page:op=7%/nand:size=4G,channels=4,dies=2 \
	    --on page:op=7%,streams=content/nand:size=4G,channels=4,dies=2 \
	    --on page:op=28%,streams=content/nand:size=4608M,channels=4,dies=2 \
	    --report demo/report.html --json demo/result.json
	@echo "open demo/report.html in a browser; demo/result.json holds the numbers"

test: needs check
	cargo test --workspace --locked

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	cargo test --locked --test imports

bench: needs
	cargo bench --locked

results:
	@scripts/results

fuzz:
	@scripts/fuzz $(SECONDS_OF_FUZZING)

crash:
	POWER_CUT_SEEDS=$(SEEDS) cargo test --release --locked --test translation
