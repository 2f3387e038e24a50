# %% [markdown]
# # SFS against ext4 on a FAST drive
#
# **Question.** Cheap drives map whole blocks, with a few log blocks for updates (FAST). Random writes make them merge. A
# log-structured file system writes segments in order: does its cleaning cost less than the merges that it saves?
#
# **Run.** Skewed random writes in a file, with an fsync after every 256, on `ext` (in place, as ext4) and on `sfs`, for
# several levels of utilization: a file that is never overwritten fills the volume up to the level. The drive is the same.

# %%
import json
import os
import shutil
import subprocess

import flashpath
import matplotlib.pyplot as plt

SMALL = os.environ.get("STUDY") == "small"
SIZE, WRITES = ("256M", "128M") if SMALL else ("1G", "2G")
FILE = 128 if SMALL else 512
# The file of the workload alone takes more than half of the volume.
LEVELS = [0.6, 0.8] if SMALL else [0.6, 0.7, 0.8, 0.9]

rows = []
for level in LEVELS:
    results = flashpath.run(
        f"zipf:writes={WRITES},theta=1",
        on={"ext": f"ext/fast/nand:size={SIZE}", "sfs": f"sfs/fast/nand:size={SIZE}"},
        size=f"{FILE}M",
        utilization=level,
        fsync_every=256,
    )
    for name, result in zip(["ext", "sfs"], results):
        rows.append((level, name, result.write_amplification.total, result.throughput_mib_s))
        print(f"{level:.0%} full, {name}: write amplification {rows[-1][2]:.2f}, {rows[-1][3]:.1f} MiB/s")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
for name in ["ext", "sfs"]:
    of_name = [row for row in rows if row[1] == name]
    left.plot([100 * row[0] for row in of_name], [row[2] for row in of_name], "o-", label=name)
    right.plot([100 * row[0] for row in of_name], [row[3] for row in of_name], "o-", label=name)
left.set(xlabel="utilization (%)", ylabel="write amplification", ylim=(0, None))
right.set(xlabel="utilization (%)", ylabel="MiB/s, simulated", ylim=(0, None))
left.legend()
figure.tight_layout()
figure.savefig("sfs_or_ext4.svg")

# %% [markdown]
# **The kernel's ext4** can be put on the same drive, on a machine where this is allowed: it needs root, loop devices and
# the program `flashpath`. It is measured in real time, so only its counts compare; and nothing else fills its volume, which
# up to 80 % made no difference to `ext`.

# %%
program = shutil.which(os.environ.get("FLASHPATH_PROGRAM", "flashpath"))
reasons = [
    reason
    for reason, holds in [
        ("it needs root", os.geteuid() != 0),
        ("there is no loop device", not os.path.exists("/dev/loop-control")),
        ("there is no FUSE", not os.path.exists("/dev/fuse")),
        ("there is no mkfs.ext4", shutil.which("mkfs.ext4") is None and not os.path.exists("/sbin/mkfs.ext4")),
        ("the program flashpath is not on the PATH", program is None),
    ]
    if holds
]
if reasons:
    print(f"skipped: ext4 of the kernel: {'; '.join(reasons)}")
else:
    command = [program, "run", f"zipf:writes={WRITES},theta=1", "--size", f"{FILE}M", "--fsync-every", "256"]
    ran = subprocess.run(
        [*command, "--on", f"kernel-ext4/fast/nand:size={SIZE}", "--json", "-", "--quiet"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    kernel = json.loads(ran.stdout)[0]
    print(f"ext4 of the kernel: write amplification {kernel['write_amplification']['total']:.2f}")

# %% [markdown]
# **What one learns.** FAST answers random updates with full merges, which write a whole block for a few pages, or for pages
# that were never written (`filler_pages`). `sfs` writes whole segments, into blocks that it has discarded: the drive copies
# next to nothing. The price is metadata at checkpoints, and cleaning, which rises with utilization. In a nearly full volume
# `ext` has less room to scatter the file, and its merges write fewer filler pages. A write amplification below 1 is possible:
# pages that are overwritten in memory before a sync are never written.

# %%
total = {(level, name): value for level, name, value, _ in rows}
assert all(total[level, "sfs"] < total[level, "ext"] for level in LEVELS)
