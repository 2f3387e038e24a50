# %% [markdown]
# # A zone of its own for the journal
#
# **Question.** dm-zoned puts random writes into conventional zones, and moves them to sequential zones when these run out.
# A journal that shares them is moved as well, though it is overwritten soon. Does a journal zone, which is never reclaimed,
# save that work, and what does it cost to give up the space?
#
# **Run.** Random writes in a file on `ext`, which journals data as well (`data=journal`), on dm-zoned with a shared and
# with an own journal zone, for several sizes of the conventional device.

# %%
import os

import flashpath
import matplotlib.pyplot as plt

SMALL = os.environ.get("STUDY") == "small"
WORK = f"rnd_write:file=256M,writes={'256M' if SMALL else '1G'}"
SIZES = "384M:512M" if SMALL else "320M:384M:448M:512M:576M"

runs = flashpath.sweep(
    WORK, on=f"ext:data=journal,journal-size=64M/dm-zoned:journal-zone=off:on/conv:size={SIZES}+zns:size=2G,zone=32M"
)
rows = runs.rows()

# %% [markdown]
# The columns `ledger.STATION.CAUSE.ORIGIN.CONTENT` are blocks. Those with the cause `reclaim` are what dm-zoned wrote again.


# %%
def reclaimed(row: dict, content: str = "") -> float:
    """Blocks that dm-zoned reclaimed, of this content or of all, in MiB."""
    parts = [
        value
        for name, value in row.items()
        if name.startswith("ledger.dm-zoned.reclaim.") and name.endswith(content) and value is not None
    ]
    return sum(parts) * 4096 / 2**20


found = {}
for row in rows:
    key = (row["dm-zoned.journal-zone"], row["conv.size"])
    found[key] = (reclaimed(row), reclaimed(row, ".journal"))
    own = "own zone" if key[0] in (True, "on") else "shared"
    print(f"{own:8}, {key[1] / 2**30:5.3f} GiB conventional: reclaimed {found[key][0]:8.0f} MiB, of the journal {found[key][1]:7.0f}")

# %%
sizes = sorted({size for _, size in found})
figure, axes = plt.subplots(figsize=(6, 3.6))
for switch in sorted({switch for switch, _ in found}, key=str):
    label = "own zone" if switch in (True, "on") else "shared"
    axes.plot([size / 2**30 for size in sizes], [found[switch, size][0] for size in sizes], "o-", label=label)
axes.set(xlabel="conventional device (GiB)", ylabel="reclaimed (MiB)")
axes.set_yscale("symlog")
axes.legend()
figure.tight_layout()
figure.savefig("journal_zone.svg")

# %% [markdown]
# **What one learns.** With zones of its own, the journal is not reclaimed. But the zones are taken from the buffer that
# random writes of data need. Where the conventional device is small, this costs more reclaims of data than it saves of the
# journal; where the data fits beside the journal, the own zone wins. Look at both, and at your own sizes: with the sample
# trace, whose journal has metadata alone, sharing is the better choice on most of them.

# %%
own = {size: found[switch, size] for switch, size in found if switch in (True, "on")}
largest = max(sizes)
assert own[largest][1] == 0, "a journal zone is not reclaimed"
assert own[largest][0] <= next(found[switch, size][0] for switch, size in found if size == largest)
