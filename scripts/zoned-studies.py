"""The results of scripts/zoned-studies, and the tables of its page.

    zoned-studies.py results FOLDER FILE.json      from the guest's log, figures before and after each load, and runs
    zoned-studies.py tables FILE.json PAGE.md      between the marks of the page
"""

import json
import re
import sys
from pathlib import Path

SYSTEMS = {
    "f2fs": "f2fs on zones",
    "btrfs": "btrfs on zones",
    "dm-zoned": "ext4 on dm-zoned",
    "dm-zoned-journal": "ext4 on dm-zoned with the journal zone",
    "sfs": "sfs",
}
LOADS = {"varmail": "varmail", "rocksdb": "RocksDB, half updates", "ycsb": "RocksDB, YCSB A", "fio": "fio, random writes"}
WRITTEN = r"rocksdb\.bytes\.written COUNT : (\d+)"


def metrics(file):
    """Samples of a page of metrics: (name, labels, value)."""
    for line in Path(file).read_text().splitlines():
        found = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line)
        if found and not line.startswith("#"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
            yield found[1], labels, float(found[3])


def counted(file, namespaces):
    """Bytes that hosts wrote, bytes that media stored, and erases, of these namespaces (of all, if there is one)."""
    sums = {"host": 0.0, "media": 0.0, "erases": 0.0}
    names = {"flashpath_host_written_bytes": "host", "flashpath_media_written_bytes": "media"}
    for name, labels, value in metrics(file):
        if "namespace" in labels and int(labels["namespace"]) not in namespaces:
            continue
        if name in names:
            sums[names[name]] += value
        elif name == "flashpath_flash_operations_total" and "erase" in labels.values():
            sums["erases"] += value
    return sums


def of_load(load, said):
    """Bytes that the application wrote, and the p99 of what it waits for, in microseconds."""
    if load == "varmail":
        result = json.loads(said)[0]
        return result["bytes"]["written"], result["latency_ns"]["fsync"]["p99"] / 1000
    if load == "fio":
        job = json.loads(said[said.index("{"):said.rindex("}") + 1])["jobs"][0]
        return job["write"]["io_bytes"], job["sync"]["lat_ns"]["percentile"]["99.000000"] / 1000
    written = int(re.search(WRITTEN, said)[1])
    return written, float(re.search(r"rocksdb\.db\.write\.micros .*?P99 : ([\d.]+)", said)[1])


def results(folder, target):
    folder = Path(folder)
    log = (folder / "guest.log").read_text(errors="replace").replace("\r", "")
    said = {}
    for found in re.finditer(r"^said: (\S+) (\S+)\n(.*?)^end of said$", log, re.M | re.S):
        said[found[1], found[2]] = found[3]
    places = {}
    for line in (folder / "plan").read_text().split("\n"):
        if line:
            system, load, first, count = line.split()
            places[system, load] = range(int(first) + 1, int(first) + 1 + int(count))
    rows = []
    for (system, load), text in said.items():
        written, p99 = of_load(load, text)
        of = [counted(folder / "figures" / f"{system}.{load}.{when}", places.get((system, load), [1])) for when in ("before", "after")]
        host, media, erases = (of[1][what] - of[0][what] for what in ("host", "media", "erases"))
        rows.append({
            "system": system, "load": load, "application_bytes": written, "host_bytes": host, "media_bytes": media,
            "erased_blocks": erases, "write_amplification": media / written, "p99_us": p99,
        })
    for load in LOADS:
        file = folder / "figures" / f"sfs.{load}"
        if file.exists():
            run = json.loads(file.read_text())[0]
            media = sum(row["blocks"] for row in run["ledger"] if row["station"] in run["media"] and row["cause"] != "joined") * 4096
            # Of RocksDB, what was written to it: its compactions are calls, too.
            said = (folder / "figures" / f"sfs.{load}.said").read_text()
            written = sum(map(int, re.findall(WRITTEN, said))) or run["bytes"]["written"]
            rows.append({
                "system": "sfs", "load": load, "application_bytes": written, "host_bytes": media, "media_bytes": media,
                "erased_blocks": run["flash"]["erased_blocks"], "write_amplification": media / written,
                "p99_us": run["latency_ns"]["write" if load in ("rocksdb", "ycsb") else "fsync"]["p99"] / 1000,
            })
    cache = []
    for placement in ("on", "off"):
        run = json.loads((folder / "figures" / f"cache.{placement}").read_text())[0]
        cache.append({
            "placement": placement, "path": run["path"], "write_amplification": run["write_amplification"]["total"],
            "steady": run["write_amplification"]["steady"], "erased_blocks": run["flash"]["erased_blocks"],
            "p99_us": run["latency_ns"]["write"]["p99"] / 1000,
        })
    kernel = re.search(r"Linux (\d\S+)", log)
    made = {(row["system"], row["load"]) for row in rows}
    kept = json.loads(Path(target).read_text())["runs"] if Path(target).exists() else []
    rows += [row for row in kept if (row["system"], row["load"]) not in made]
    sizes = dict(line.split("=", 1) for line in (folder / "loads").read_text().splitlines()[:4])
    Path(target).write_text(json.dumps({"kernel": kernel and kernel[1], "loads": sizes, "runs": rows, "cache": cache}, indent=1) + "\n")


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def tables(source, page):
    found = json.loads(Path(source).read_text())
    lines = ["| load | file system | written by the application, MiB | written to the drive, MiB | write amplification | erased blocks | p99, µs |",
             "|---|---|---|---|---|---|---|"]
    for load, named in LOADS.items():
        for system, described in SYSTEMS.items():
            for row in found["runs"]:
                if (row["system"], row["load"]) == (system, load):
                    sizes = [number(row[what] / 2**20) for what in ("application_bytes", "media_bytes")]
                    lines.append(f"| {named} | {described} | {sizes[0]} | {sizes[1]} | {row['write_amplification']:.2f} "
                                 f"| {number(row['erased_blocks'])} | {number(row['p99_us'])} |")
    sizes = found["loads"]
    lines += ["", f"Linux {found['kernel']} in the guest; `{sizes['varmail']}`, {int(sizes['keys']):,} keys, {int(sizes['operations']):,} operations of YCSB, {sizes['writes']} of random writes."]
    placed = ["| placement | path | write amplification | in the steady state | erased blocks | p99 of a write, µs |", "|---|---|---|---|---|---|"]
    for row in found["cache"]:
        steady = "" if row["steady"] is None else f"{row['steady']:.2f}"
        placed.append(f"| {row['placement']} | `{row['path']}` | {row['write_amplification']:.2f} | {steady} "
                      f"| {number(row['erased_blocks'])} | {number(row['p99_us'])} |")
    text = Path(page).read_text()
    for mark, table in (("file systems", lines), ("cache", placed)):
        begin, end = f"<!-- {mark}: by scripts/zoned-studies -->", f"<!-- end of {mark} -->"
        at, until = text.index(begin) + len(begin), text.index(end)
        text = text[:at] + "\n" + "\n".join(table) + "\n" + text[until:]
    Path(page).write_text(text)


if __name__ == "__main__":
    {"results": results, "tables": tables}[sys.argv[1]](*sys.argv[2:])
