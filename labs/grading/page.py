"""page.py - the page that plays the messages of a test that failed.

It is core/virtual/page.html, the page of `lockstep explain`, with the trace that the
test has written. If the ranks wait for each other, it draws their circle.
"""

import json
import re

from . import build

TEMPLATE = build.TOP / "core/virtual/page.html"


def circle(said):
    """The calls of a deadlock, from the message that names them: [rank, what it waits for,
    the other rank]."""
    found = re.findall(r"(\d+) (sends to|receives from) (\d+) \(message (\d+)\)", said)
    return [[int(rank), f"{what} {other} (message {number})", int(other)]
            for rank, what, other, number in found if "deadlock" in said]


def write(trace, title, said):
    """Write the page beside the trace, with the suffix .html. Return its path."""
    page = trace.with_suffix(".html")
    data = {"title": title, "lead": [said], "circle": circle(said),
            "panels": [{"name": "messages up to the failure",
                        "note": "Each rank has one row for what it sends and one for "
                                "what it receives.",
                        "trace": json.loads(trace.read_text())}]}
    text = json.dumps(data).replace("<", "\\u003c")
    page.write_text(TEMPLATE.read_text().replace("{{DATA}}", text))
    return page
