#!/usr/bin/env python3
"""Makes the notebook of each study from its script: cells begin with `# %%`, text cells with `# %% [markdown]`.

notebooks.py          write the notebooks beside the scripts, without outputs
notebooks.py --check  fail if one differs from its script
notebooks.py --pages DIR  write the studies as Markdown pages
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
STUDIES = ["journal_zone", "sfs_or_ext4", "over_provisioning", "which_victim", "journal_modes"]


def cells(script: str) -> list[tuple[str, str]]:
    """The cells of a script, each with its kind: `markdown` or `code`."""
    parts = re.split(r"^# %%(?: \[(markdown)\])?\n", script, flags=re.MULTILINE)
    assert not parts[0].strip(), "a script begins with a cell"
    found = []
    for kind, text in zip(parts[1::2], parts[2::2]):
        text = text.strip("\n")
        if kind == "markdown":
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
        found.append((kind or "code", text))
    return found


def notebook(script: str) -> str:
    """The notebook of a script, as text. The same script gives the same notebook."""
    made = []
    for number, (kind, text) in enumerate(cells(script)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def page(script: str, name: str) -> str:
    """A script as a page of Markdown."""
    text = "\n\n".join(f"```python\n{text}\n```" if kind == "code" else text for kind, text in cells(script))
    return f"{text}\n\nThe same as a script: [{name}.py]({name}.py), and as a notebook: [{name}.ipynb]({name}.ipynb).\n"


def main(arguments: list[str]) -> int:
    differ = []
    for name in STUDIES:
        script = (HERE / f"{name}.py").read_text(encoding="utf-8")
        file = HERE / f"{name}.ipynb"
        if arguments[:1] == ["--pages"]:
            (pathlib.Path(arguments[1]) / f"{name}.md").write_text(page(script, name), encoding="utf-8")
        elif arguments == ["--check"]:
            if not file.exists() or file.read_text(encoding="utf-8") != notebook(script):
                differ.append(file.name)
        else:
            file.write_text(notebook(script), encoding="utf-8")
    if differ:
        print(f"not those of their scripts: {', '.join(differ)}: run examples/notebooks.py", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
