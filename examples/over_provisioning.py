# %% [markdown]
# # How much over-provisioning?
#
# **Question.** A drive keeps spare pages so that garbage collection finds blocks with few valid pages. How much does each
# percent of spare space save, and when does more of it no longer pay?
#
# **Run.** Random writes on a full drive, with greedy victims, for six shares of spare space and some seeds.

# %%
import math
import os

import flashpath
import matplotlib.pyplot as plt

SMALL = os.environ.get("STUDY") == "small"
SIZE, WRITES, SEEDS = ("256M", "3x", 1) if SMALL else ("1G", "8x", 5)

runs = flashpath.sweep(
    f"uniform:writes={WRITES}",
    on=f"page:op=7%:10%:14%:20%:28%:40%/nand:size={SIZE},timing=off",
    seed=range(1, SEEDS + 1),
    fill=True,
    precondition="2x",
)
means = runs.means().rows()

# %% [markdown]
# **Theory.** If victims are taken in the order of their age, the valid share u of a victim under uniform writes solves
# u = exp(-(1 - u) (1 + s)), with s the effective spare share (Desnoyers, SYSTOR '12), and the write amplification is
# 1 / (1 - u). Greedy is a little better. The effective share is less than `op`: open and reserved blocks are not spare.


# %%
def theory(spare: float) -> float:
    """The write amplification of victims in the order of their age."""
    valid = 0.5
    for _ in range(10_000):
        valid = math.exp(-(1 - valid) * (1 + spare))
    return 1 / (1 - valid)


spare = [row["flash.effective_overprovisioning"] for row in means]
measured = [row["write_amplification.total"] for row in means]
for row, share, total in zip(means, spare, measured):
    print(f"op {row['page.op']:4.0%}: effective {share:5.1%}, write amplification {total:.3f}, theory {theory(share):.3f}")

# %%
figure, axes = plt.subplots(figsize=(6, 3.6))
errors = [row.get("write_amplification.total.ci95") or 0 for row in means]
axes.errorbar([100 * share for share in spare], measured, errors, fmt="o", capsize=3, label="greedy, simulated")
grid = [min(spare) + (max(spare) - min(spare)) * step / 50 for step in range(51)]
axes.plot([100 * share for share in grid], [theory(share) for share in grid], label="oldest first, theory")
axes.set(xlabel="effective over-provisioning (%)", ylabel="write amplification", ylim=(1, None))
axes.legend()
figure.tight_layout()
figure.savefig("over_provisioning.svg")

# %% [markdown]
# **What one learns.** The first percents save most. Life is proportional to 1 / write amplification, and the raw flash costs
# 1 + op: the product shows what a gigabyte written costs in flash.

# %%
costs = [(1 + row["page.op"]) * total for row, total in zip(means, measured)]
for row, cost in zip(means, costs):
    print(f"op {row['page.op']:4.0%}: flash worn for each byte written, times the flash bought: {cost:.2f}")
assert all(later < earlier for earlier, later in zip(measured, measured[1:])), "more spare space copies less"
assert all(total <= 1.1 * theory(share) for share, total in zip(spare, measured)), "greedy is not worse than the theory"
