"""rule.py - run a rule about the sources, or the rule's own test.

A rule is a function judge(tree) that returns a list of complaints.
"""

import pathlib
import sys
import tempfile


def self_test(judge, cases):
    """The exit status of a rule's own test. A case is a pair: {file: text} of a
    tree, and whether the rule must complain about it."""
    status = 0
    for files, mistake in cases:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for name, text in files.items():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text(text)
            found = judge(tree)
        if bool(found) != mistake:
            print(f"{files}: expected {mistake}, got {found}")
            status = 1
    return status


def main(judge, cases, well):
    """The exit status of `RULE.py [TREE]` or `RULE.py --self-test`. Prints `well` if
    there is no complaint."""
    if sys.argv[1:] == ["--self-test"]:
        return self_test(judge, cases)
    complaints = judge(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or well)
    return 1 if complaints else 0
