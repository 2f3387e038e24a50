# %% [markdown]
# # A zone of its own for the journal
#
# **Question.** dm-zoned puts random writes into conventional zones, and moves them to sequential zones when these run out.
# A journal that shares them is moved as well, though it is overwritten soon. Does a journal zone, which is never reclaimed,
# save that work, and what does it cost to give up the space?
#
# **Run.** A mail server on ext4 as recorded (`traces/`), on dm-zoned with a shared and with an own journal zone, for several
# sizes of the conventional device.

# %%
import os
from pathlib import Path

import flashpath
import matplotlib.pyplot as plt

SMALL = os.environ.get("STUDY") == "small"
TRACE = Path(os.environ.get("FLASHPATH_TRACES", "../traces")) / "fb_varmail_ext4.csv.zst"
SIZES = "512M:1G" if SMALL else "384M:512M:768M:1G:2G"

runs = flashpath.sweep(
    flashpath.trace(TRACE),
    on=f"dm-zoned:journal-zone=off:on/conv:size={SIZES}+zns:size=4G,zone=32M",
    limit=60_000 if SMALL else None,
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
# **What one learns.** With a zone of its own, no block of the journal is ever reclaimed. But the zone is taken from the
# buffer that random writes of data need. Where the conventional device is small, this costs more reclaims of data than it
# saves of the journal; where it is large enough, the own zone wins. Look at both, and at your own sizes.

# %%
own = {size: found[switch, size] for switch, size in found if switch in (True, "on")}
assert all(journal == 0 for _, journal in own.values()), "a journal zone is not reclaimed"
