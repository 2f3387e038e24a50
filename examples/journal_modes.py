# %% [markdown]
# # Journal modes and lifetime
#
# **Question.** ext4 can journal metadata alone (`ordered`, `writeback`), or data as well (`journal`). What does each mode
# write to flash, and how long does the drive live? What changes if the journal is in memory that does not lose it?
#
# **Run.** A mail server on `ext`, which has the modes of ext4, on a page-level drive.

# %%
import os

import flashpath
import matplotlib.pyplot as plt

SMALL = os.environ.get("STUDY") == "small"
WORK = "varmail:files=300,loops=1500" if SMALL else "varmail:files=1000,loops=60000"
DRIVE = "page:op=14%/nand:size=256M" if SMALL else "page:op=14%/nand:size=512M"

PATHS = {
    "writeback": f"ext:data=writeback/{DRIVE}",
    "ordered": f"ext:data=ordered/{DRIVE}",
    "journal": f"ext:data=journal/{DRIVE}",
    "journal in memory": f"ext:data=journal,journal=nvm/{DRIVE}+nvm:size=64M",
}
results = dict(zip(PATHS, flashpath.run(WORK, on=PATHS)))

# %% [markdown]
# The ledger has the flash pages by content. The last station of the path is the flash.


# %%
def programmed(result: flashpath.Result) -> dict[str, float]:
    """Flash pages by content, in MiB."""
    pages: dict[str, float] = {}
    for row in result.ledger:
        if row.station == "nand":
            pages[row.content] = pages.get(row.content, 0) + row.blocks * 4096 / 2**20
    return pages


contents = ["data", "metadata", "journal"]
flash = {mode: programmed(result) for mode, result in results.items()}
for mode, result in results.items():
    written = result.workload.written_blocks * 4096 / 2**20
    shares = ", ".join(f"{content} {flash[mode].get(content, 0):.1f}" for content in contents)
    print(f"{mode:18} {written:.1f} MiB written by programs; MiB on flash: {shares}")

# %%
figure, axes = plt.subplots(figsize=(6, 3.6))
bottom = [0.0] * len(PATHS)
for content in contents:
    heights = [flash[mode].get(content, 0) for mode in PATHS]
    axes.bar(list(PATHS), heights, 0.6, bottom, label=content)
    bottom = [low + height for low, height in zip(bottom, heights)]
axes.set(ylabel="written to flash (MiB)")
axes.legend()
figure.tight_layout()
figure.savefig("journal_modes.svg")

# %% [markdown]
# **What one learns.** A mail server syncs each message, so even `ordered` writes nearly as much journal as data. `journal`
# writes all data to the journal, and later in place what has not been deleted or overwritten meanwhile. A journal in memory
# takes the journal off the flash, and keeps this advantage: the mode with the strongest promise then wears the drive least.
# As long as erases follow the pages programmed, the life of the drive is longer by the same factor.

# %%
wear = {mode: sum(pages.values()) for mode, pages in flash.items()}
for mode in PATHS:
    print(f"{mode:18} life relative to ordered: {wear['ordered'] / wear[mode]:.2f}")
assert wear["journal"] > wear["ordered"] >= wear["writeback"] > wear["journal in memory"]
