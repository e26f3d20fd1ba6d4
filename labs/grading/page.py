"""page.py - the page that plays the messages of a test that failed.

It is core/virtual/page.html, the page of `lockstep explain`, with the trace that the
harness has written in it.
"""

import json

from . import build

TEMPLATE = build.TOP / "core/virtual/page.html"


def write(trace, title, said):
    """trace.html beside trace.json. Returns its path."""
    page = trace.with_suffix(".html")
    data = {"title": title, "lead": [said],
            "panels": [{"name": "messages up to then",
                        "note": "Each rank has a row for what leaves it and one for "
                                "what comes in.",
                        "trace": json.loads(trace.read_text())}]}
    text = json.dumps(data).replace("<", "\\u003c")
    page.write_text(TEMPLATE.read_text().replace("{{DATA}}", text))
    return page
