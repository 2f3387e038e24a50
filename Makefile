# On a Debian machine with a Rust toolchain, `make demo` and `make test` need only what `scripts/needs build` installs.

SHELL := /bin/bash
FLASHPATH := target/release/flashpath
SECONDS_OF_FUZZING ?= 300
VMA_SCALE ?= 1
SFS_SCALE ?= 1/16
ZNS_SCALE ?= 1
EXT_SCALE ?= 1
NVM_SCALE ?= 1/16
PLACEMENT_SCALE ?= 1/64
DRIVES_SCALE ?= 1/16
JOURNALS_SCALE ?= 1/64
FILE_SYSTEM ?= sfs
SEEDS ?= 100
SCHEDULES ?= 30000
PREEMPTIONS ?= 3
DAMAGE_SECONDS ?= 600
CAMPAIGN_SECONDS ?= 60

# The prefix of `make install`; the helper names for mount(8) and umount(8) are in SBIN.
PREFIX ?= /usr/local
SBIN ?= /sbin
FAILING_STORE_SECONDS ?= 120
BLOCK_DEVICE_SECONDS ?= 5
VOLUME_CASES ?= 2000
EXT_CALLS ?= 1000000
EXT_IMAGE_FILES ?= 40000

.PHONY: help demo test check bench bench-drives bench-paced results results-check fuzz crash build needs zoned-guest qemu-journal nvme-guest zoned-studies vhost-guest programs install \
    install-files package site site-tools container-steps demo-in-clean-root

help:
	@echo "make demo    run the sample trace on several paths: a table, and a page in demo/report.html"
	@echo "make test    all tests"
	@echo "make check   format, lints, import table"
	@echo "make bench   benchmarks, each figure beside its bound and its peer; docs/speed.json, and the pages that state its figures"
	@echo "make bench-drives  of these, drives of several sizes and numbers of planes beside a bare loop (ten minutes)"
	@echo "make bench-paced  sfs beside ext4 and btrfs on a drive at its own speed (one hour)"
	@echo "make results reproduce the papers' figures (docs/results.md, VMA_SCALE=$(VMA_SCALE), SFS_SCALE=$(SFS_SCALE), ZNS_SCALE=$(ZNS_SCALE), EXT_SCALE=$(EXT_SCALE), NVM_SCALE=$(NVM_SCALE), PLACEMENT_SCALE=$(PLACEMENT_SCALE), DRIVES_SCALE=$(DRIVES_SCALE), JOURNALS_SCALE=$(JOURNALS_SCALE)), and docs/theory.md"
	@echo "make results-check makes the stored figures again that need neither a capture, a recorded load nor real time, and fails if a number has moved (12 minutes)"
	@echo "make fuzz    fuzz every parser, SECONDS_OF_FUZZING=$(SECONDS_OF_FUZZING) each (needs a nightly toolchain)"
	@echo "make programs  run real programs on a mounted volume, FILE_SYSTEM=$(FILE_SYSTEM), each with a check of its own data"
	@echo "make crash   cut the power of every translation layer, dm-zoned, sfs and ext at random operations, SEEDS=$(SEEDS) times each;"
	@echo "             run gates and their users under a model checker, SCHEDULES=$(SCHEDULES) schedules each, and the slots of"
	@echo "             a journal in memory with up to PREEMPTIONS=$(PREEMPTIONS) preemptions;"
	@echo "             damage unclean sfs volumes and logs of ext, DAMAGE_SECONDS=$(DAMAGE_SECONDS) each;"
	@echo "             cut the power below zones over NVMe, SEEDS=$(SEEDS) times ten;"
	@echo "             kill servers under load and run hostile sessions, CAMPAIGN_SECONDS=$(CAMPAIGN_SECONDS) each;"
	@echo "             kill guests of a monitor and recoveries, and let guests write to committed memory, SEEDS=$(SEEDS) times ten each;"
	@echo "             compare sfs with tree over random calls, VOLUME_CASES=$(VOLUME_CASES) sequences;"
	@echo "             compare ext with the kernel's ext4 over random calls, EXT_CALLS=$(EXT_CALLS), and on trees of EXT_IMAGE_FILES=$(EXT_IMAGE_FILES) files;"
	@echo "             make random writes, fsyncs, punches and reads of a store fail, FAILING_STORE_SECONDS=$(FAILING_STORE_SECONDS) each;"
	@echo "             share every block device among threads, BLOCK_DEVICE_SECONDS=$(BLOCK_DEVICE_SECONDS) each"
	@echo "make qemu-journal  a stock kernel in QEMU on a held journal: guest killed, server restarted, server killed"
	@echo "make nvme-guest  a stock kernel in QEMU on served NVMe drives: tools, file systems, zones, and a server that is killed"
	@echo "make zoned-studies  f2fs, btrfs, dm-zoned and sfs side by side on one zoned drive, a cache with placement: docs/how-to/zoned-studies.md"
	@echo "make vhost-guest  a stock kernel in QEMU on served virtio disks, whose server is killed and ended"
	@echo "make package the .deb and the wheel in target/package, each installed and run in a clean root (needs root)"
	@echo "make demo-in-clean-root  the README's first commands in a clean root (needs root)"
	@echo "make site    the documentation in target/site/html, its links checked"
	@echo "make install install the program in PREFIX=$(PREFIX), with manual pages and completions, and its helper names for mount(8) and umount(8) in SBIN=$(SBIN)"

build:
	cargo build --release --locked

install: build install-files

# What `install` copies; the program is built already. Its lines and symbols, five sixths of it, stay behind.
install-files:
	install -D -s -m 755 $(FLASHPATH) $(DESTDIR)$(PREFIX)/bin/flashpath
	$(FLASHPATH) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(FLASHPATH) completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/flashpath
	$(FLASHPATH) completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_flashpath
	$(FLASHPATH) completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/flashpath.fish
	install -d $(DESTDIR)$(SBIN)
	ln -sf $(PREFIX)/bin/flashpath $(DESTDIR)$(SBIN)/mount.fuse.flashpath
	ln -sf $(PREFIX)/bin/flashpath $(DESTDIR)$(SBIN)/mount.fuse.sfs
	ln -sf $(PREFIX)/bin/flashpath $(DESTDIR)$(SBIN)/umount.fuse.sfs
	ln -sf $(PREFIX)/bin/flashpath $(DESTDIR)$(SBIN)/umount.fuse.flashpath

# Packages: a .deb and a wheel, each installed and run in a clean root. mmdebstrap makes the roots.
package: build
	@scripts/needs mmdebstrap dpkg-shlibdeps:dpkg-dev python3
	@scripts/tool cargo-deb 3.8.0
	@scripts/package

# The commands of the Containerfile in a clean root, since building it needs a container engine and an image.
container-steps:
	@scripts/needs mmdebstrap
	@scripts/container-steps

# The README's first commands in a clean root.
demo-in-clean-root:
	@scripts/needs mmdebstrap
	@scripts/demo-in-clean-root

site: build site-tools
	@scripts/site

site-tools:
	@scripts/needs python3
	@scripts/tool mdbook 0.5.4 --no-default-features --features search

# Programs for the tests: fio for its distributions, a browser for the report, the tools of the kernel's file systems
# for layouts and captures, NBD clients, and other users of disks.
needs:
	@scripts/needs fio chromium debugfs:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs \
	    nbdinfo:libnbd-bin nbdsh:python3-libnbd nbdkit qemu-img:qemu-utils git fusermount3:fuse3 setfattr:attr setfacl:acl python3 python3.ensurepip:python3-venv valgrind

# The program alone: the demo uses no other part, such as the Python package.
demo:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust from https://rustup.rs" >&2; exit 1; }
	@scripts/needs build
	@echo "the program is built first, in some four minutes on two idle cores the first time; the runs take less than a minute"
	cargo build --release --locked -p flashpath-cli
	@mkdir -p demo
	$(FLASHPATH) run traces/fb_varmail_ext4.csv.zst --fill --repeat 6 \
	    --on page:op=28%,buffer=8M,pace=4/nand:preset=enterprise-tlc,size=5G,suspend=both \
	    --on page:op=28%,buffer=8M,pace=4,streams=content/nand:preset=enterprise-tlc,size=5G,suspend=both \
	    --on page:op=60%,buffer=8M,pace=4/nand:preset=enterprise-tlc,size=6400M,suspend=both \
	    --report demo/report.html --json demo/result.json
	@echo "open demo/report.html in a browser; demo/result.json holds the numbers"

# Skipped tests are listed at the end, since they look like passed ones.
test: export SKIPPED_TESTS := $(CURDIR)/target/skipped-tests
test: needs check
	@mkdir -p target && rm -f "$$SKIPPED_TESTS"
	cargo test --workspace --locked
	cargo test -p flashpath --locked --features checked-gates --test checked_gates
	cargo test -p flashpath --locked --features checked-slots --lib ring_models
	scripts/instructions
	@if [ -s "$$SKIPPED_TESTS" ]; then cat "$$SKIPPED_TESTS"; else echo "no test was skipped"; fi

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	cargo test --workspace --locked --test imports --test words
	# The fuzz targets are a workspace of their own, which nothing here builds: their lock file is checked.
	cargo tree --locked --manifest-path fuzz/Cargo.toml >/dev/null
	cargo tree --locked --manifest-path examples/plugin/Cargo.toml >/dev/null
	cargo fmt --check --manifest-path examples/plugin/Cargo.toml

bench: needs build
	cargo bench --locked
	scripts/bench-sweep
	scripts/bench-serve
	@scripts/needs fio python3 cc:gcc pkg-config /usr/share/doc/libfuse3-dev/examples/passthrough_ll.c:libfuse3-dev mke2fs:e2fsprogs
	scripts/bench-mount

# The page-level layer beside the bare loop: a part of docs/speed.json.
bench-drives:
	cargo bench --locked --bench speed -- drives

# sfs beside the kernel's file systems on a drive at its own speed: an hour.
bench-paced: build
	@scripts/needs fio python3 mkfs.btrfs:btrfs-progs mkfs.ext4:e2fsprogs
	scripts/bench-paced

# Captured traces are kept: only changed experiments are captured again.
results-check: build
	$(FLASHPATH) reproduce --check docs/results.json --quiet
	$(FLASHPATH) reproduce --check docs/results/drives.json --quiet
	$(FLASHPATH) reproduce --check docs/results/journals.json --quiet

results: build
	@mkdir -p target/traces
	$(FLASHPATH) reproduce vma --scale $(VMA_SCALE) --traces target/traces --json target/traces/vma.json >/dev/null
	@cp -n traces/*.zst target/traces/
	$(FLASHPATH) reproduce sfs --scale $(SFS_SCALE) --traces target/traces --json target/traces/sfs.json >/dev/null
	$(FLASHPATH) reproduce zns-journal --scale $(ZNS_SCALE) --traces target/traces --json target/traces/zns-journal.json >/dev/null
	$(FLASHPATH) reproduce ext --scale $(EXT_SCALE) --traces target/traces --json target/traces/ext.json >/dev/null
	$(FLASHPATH) reproduce nvm --scale $(NVM_SCALE) --traces target/traces --json target/traces/nvm.json >/dev/null
	$(FLASHPATH) reproduce placement --scale $(PLACEMENT_SCALE) --traces target/traces --json target/traces/placement.json >/dev/null
	$(FLASHPATH) reproduce drives --scale $(DRIVES_SCALE) --json target/traces/drives.json >/dev/null
	@cp -n traces/*.fpcalls target/traces/
	$(FLASHPATH) reproduce journals --scale $(JOURNALS_SCALE) --traces target/traces --json target/traces/journals.json >/dev/null
	@mkdir -p docs/results
	$(FLASHPATH) reproduce --from target/traces/journals.json --json docs/results/journals.json --markdown docs/results/journals.md >/dev/null
	$(FLASHPATH) reproduce --from target/traces/drives.json --json docs/results/drives.json --markdown docs/results/drives.md >/dev/null
	$(FLASHPATH) reproduce --from target/traces/placement.json --json docs/results/placement.json --markdown docs/results/placement.md >/dev/null
	$(FLASHPATH) reproduce --from target/traces/vma.json --from target/traces/sfs.json --from target/traces/zns-journal.json \
	    --from target/traces/nvm.json --from target/traces/ext.json --json docs/results.json --markdown docs/results.md >/dev/null
	@scripts/theory

fuzz:
	@scripts/fuzz $(SECONDS_OF_FUZZING)

crash:
	CHECKED_SCHEDULES=$(SCHEDULES) cargo test -p flashpath --release --locked --features checked-gates --test checked_gates
	CHECKED_PREEMPTIONS=$(PREEMPTIONS) cargo test -p flashpath --release --locked --features checked-slots --lib ring_models
	POWER_CUT_SEEDS=$(SEEDS) SFS_DAMAGE_SECONDS=$(DAMAGE_SECONDS) cargo test --release --locked --test translation --test dm_zoned --test sfs --test served_cuts
	BLOCK_DEVICE_SECONDS=$(BLOCK_DEVICE_SECONDS) cargo test --release --locked --test block_devices
	FAILING_STORE_SECONDS=$(FAILING_STORE_SECONDS) cargo test --release --locked --test dm_zoned --test sfs failing_store
	VOLUME_CASES=$(VOLUME_CASES) cargo test --release --locked --test volumes random_calls
	NVM_CRASHES=$(SEEDS)0 cargo test --release --locked --lib nvm::crashes
	VMM_ROUNDS=$(SEEDS)0 cargo test --release --locked -p flashpath-vmm -- --nocapture
	EXT_CRASHES=$(SEEDS) EXT_DAMAGED=$(SEEDS) EXT_LOG_DAMAGE_SECONDS=$(DAMAGE_SECONDS) \
	    cargo test --release --locked --test ext -- crashes checking damaged_and_unclean journal_file killed_repairs log_damage unclean_damage
	EXT_CALLS=$(EXT_CALLS) EXT_IMAGE_FILES=$(EXT_IMAGE_FILES) cargo test --release --locked --test ext -- beside_the_kernel real_images
	NVME_POWER_CUTS=$(SEEDS)0 cargo test --release --locked -p flashpath-nvme --test power_cuts -- --nocapture
	SERVER_KILL_SECONDS=$(CAMPAIGN_SECONDS) NBD_HOSTILE_SECONDS=$(CAMPAIGN_SECONDS) NVME_HOSTILE_SECONDS=$(CAMPAIGN_SECONDS) \
	    cargo test --release --locked -p flashpath-cli --test program -- --nocapture killed_servers killed_nvme serve_vhost killed_files killed_mounts hostile_sessions hostile_nvme

# Real programs on a mounted volume, each with a check of its own data.
programs: build
	@scripts/needs fio git sqlite3 stress-ng prove:perl autoreconf:autoconf automake psql:postgresql
	@FILE_SYSTEM=$(FILE_SYSTEM) scripts/programs-on-mount

# The kernel's own zoned block devices, in a guest whose kernel has them.
qemu-journal: build
	@scripts/needs qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils busybox:busybox-static cpio mke2fs:e2fsprogs curl
	@FLASHPATH=$(FLASHPATH) scripts/qemu-journal

zoned-guest:
	@scripts/needs qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio dmsetup mke2fs:e2fsprogs
	@scripts/zoned-guest

# Served drives, attached by a stock kernel.
nvme-guest: build
	@scripts/needs qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio nvme:nvme-cli fio dmsetup blkzone:util-linux mke2fs:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs mkfs.f2fs:f2fs-tools
	@FLASHPATH=$(FLASHPATH) scripts/nvme-guest

# f2fs, btrfs, ext4 on dm-zoned, and sfs on one zoned drive; a cache with and without placement.
zoned-studies: build
	@scripts/needs qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio nvme:nvme-cli fio db_bench:rocksdb-tools mke2fs:e2fsprogs \
	    mkfs.btrfs:btrfs-progs mkfs.f2fs:f2fs-tools curl python3
	@FLASHPATH=$(FLASHPATH) scripts/zoned-studies

# Served virtio disks of a stock kernel.
vhost-guest: build
	@scripts/needs qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio fio blkdiscard:util-linux mke2fs:e2fsprogs
	@FLASHPATH=$(FLASHPATH) scripts/vhost-guest
