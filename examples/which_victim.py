# %% [markdown]
# # Which victim policy for my trace?
#
# **Question.** Greedy is best under uniform writes. Real writes have hot and cold pages. Which policy copies least for a
# given trace, and does it still matter if journal and data are kept apart?
#
# **Run.** The trace in `TRACE` (here: a mail server on ext4) on a full drive, with each victim policy, without and with
# streams by content. To try your own trace, set `TRACE`, and a size a little larger than its addresses.

# %%
import os
from pathlib import Path

import flashpath
import matplotlib.pyplot as plt

SMALL = os.environ.get("STUDY") == "small"
SAMPLE = Path(os.environ.get("FLASHPATH_TRACES", "../traces")) / "fb_varmail_ext4.csv.zst"
TRACE = os.environ.get("TRACE", str(SAMPLE))
SIZE, REPEAT = os.environ.get("SIZE", "4G"), 2 if SMALL else 6

POLICIES = ["greedy", "cost-benefit", "d-choices", "random", "fifo"]
runs = flashpath.sweep(
    flashpath.trace(TRACE),
    on=f"page:op=7%,streams=none:content,victim={':'.join(POLICIES)}/nand:size={SIZE},channels=4,dies=2,timing=off",
    fill=True,
    repeat=REPEAT,
)
rows = runs.rows()
for row in rows:
    print(f"{row['page.streams']:8} {row['page.victim']:13} write amplification {row['write_amplification.total']:.3f}")

# %%
total = {(row["page.streams"], row["page.victim"]): row["write_amplification.total"] for row in rows}
figure, axes = plt.subplots(figsize=(6, 3.6))
for offset, (streams, label) in enumerate([("none", "together"), ("content", "journal apart")]):
    places = [place + 0.4 * offset - 0.2 for place in range(len(POLICIES))]
    axes.bar(places, [total[streams, policy] for policy in POLICIES], 0.4, label=label)
axes.set(ylabel="write amplification", xticks=range(len(POLICIES)), xticklabels=POLICIES)
axes.axhline(1, color="grey", linewidth=0.8)
axes.legend()
figure.tight_layout()
figure.savefig("which_victim.svg")

# %% [markdown]
# **What one learns.** Data that does not change is most of the drive. `fifo` and `random` copy it again and again, and
# `d-choices` as often as it draws no better block. `cost-benefit` also waits until the journal in a young block is dead.
# With the journal apart, its blocks are empty when they are collected, and `greedy` and `cost-benefit` are near 1: of the
# policies that find such a block, each will do. Streams do not help a policy that takes blocks without a look at them.

# %%
best = min(total, key=total.__getitem__)
print(f"best: streams={best[0]}, victim={best[1]}: {total[best]:.3f}")
assert total["none", "fifo"] > total["none", "greedy"]
assert total["content", "greedy"] <= total["none", "greedy"]
