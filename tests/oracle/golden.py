"""What the scripts of this folder do with a file of numbers in tests/golden."""

import pathlib
import sys


def main(want, bound):
    """SCRIPT FILE [make]: writes the numbers, or fails if FILE has others."""
    path = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["make"]:
        path.write_text("".join(f"{x:.9g}\n" for x in want))
    have = [float(line) for line in path.read_text().split()]
    off = max(abs(x - y) for x, y in zip(want, have))
    print(f"{path.name}: largest difference {off:.2g}")
    if len(have) != len(want) or off > bound:
        sys.exit("it differs")
