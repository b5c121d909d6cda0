# SPDX-License-Identifier: ISC
"""Real feeds: the parser returns all entries of each, with all that the document has for them.

usage: corpus_check.py PARSE_DUMP CORPUS...

CORPUS has documents in open/ and open-votes.tsv: the number of entries that several parsers found in
each. The maximum of the tolerant ones is taken for the truth: strict ones find none in a document
that is not well-formed. The parts of an entry are found in the document's bytes with regular
expressions: crude, but independent of any parser. Prints TAP; a missing corpus is skipped.
"""
import json
import os
import re
import subprocess
import sys

ENTRY = re.compile(rb"<(?:\w+:)?(item|entry)[\s>](.*?)</(?:\w+:)?\1\s*>", re.S | re.I)
TITLE = re.compile(rb"<title[^>]*>\s*(?:<!\[CDATA\[\s*)?[^<\s\]]", re.I)
TEXT = re.compile(
    rb"<(?:description|summary|content(?::encoded)?)[^>]*>\s*(?:<!\[CDATA\[\s*)?(?:&lt;p&gt;)?[^<\s\]&]", re.I)
LINK = re.compile(rb"<link[^>]*>\s*(?:<!\[CDATA\[\s*)?https?://[^<\s]|<link[^>]*href=[\"']https?://", re.I)
TOLERANT = ("sfeed", "libxml2-record", "feedsmith", "feedparser", "fast-xml")
# Fewer entries than one of them finds, and the reason.
FEWER = {
    "rome__ep1_v4a.xml": 17,  # the 18th is in sx:conflict: an outdated version of an entry
    "rome__v5.xml": 17,       # the same
}
DATE = re.compile(
    rb"<(?:pubDate|dc:date|published|updated|issued|modified)[^>]*>\s*(?:<!\[CDATA\[\s*)?\w[^<]{5,}", re.I)


def dated(raw):
    """True for a real date: generators write January 1 of the year 1 for none."""
    return any(b"0001" not in m[0] for m in DATE.finditer(raw))


def lacks(entry, raw):
    """The parts that the document has and the parsed entry lacks."""
    has_text = entry.get("title") or entry.get("content_html") or entry.get("content_text") or entry.get("summary")
    if (TITLE.search(raw) or TEXT.search(raw)) and not has_text:
        yield "title or text"
    if not entry.get("id"):
        yield "id"
    if LINK.search(raw) and not (
        entry.get("url") or entry.get("attachments") or entry.get("_feedwheel", {}).get("links")):
        yield "URL"
    if dated(raw) and not (entry.get("date_published") or entry.get("date_modified")):
        yield "date"


def most(row):
    """The most entries that a tolerant parser found; None: none of them was run."""
    found = [int(row[parser]) for parser in TOLERANT if row.get(parser)]
    return FEWER.get(row["file"], max(found, default=None))


def votes(path):
    with open(path, encoding="utf-8") as f:
        head = f.readline().rstrip("\n").split("\t")
        rows = (dict(zip(head, line.rstrip("\n").split("\t"))) for line in f)
        return {row["file"]: most(row) for row in rows}


def dumped(dump, paths):
    """The documents as JSON, a line each, or "! " and the error. Many at a time: starting the program takes longer than
    parsing most documents."""
    for i in range(0, len(paths), 100):
        some = paths[i:i + 100]
        said = subprocess.run([dump, "--lines", *some], stdout=subprocess.PIPE, check=True).stdout.split(b"\n")[:-1]
        if len(said) != len(some):
            raise RuntimeError(f"{len(said)} results for {len(some)} documents from {some[0]} on")
        yield from said


def check(said, folder, name, want):
    """The defects of the parsed document; none if it is right."""
    if said.startswith(b"!"):
        if want:
            yield f"refused: {said.decode(errors='replace')}"
        return
    items = json.loads(said)["items"]
    with open(os.path.join(folder, name), "rb") as f:
        document = f.read()
    if name.endswith(".json"):
        want = len(json.loads(document)["items"])
    if want is not None and len(items) != want:
        yield f"{len(items)} entries, not {want}"
    raw = [m[2] for m in ENTRY.finditer(document)]
    if len(raw) != len(items):
        raw = [b""] * len(items)
    missing = [f"{i}: no {what}" for i, (item, bytes_) in enumerate(zip(items, raw)) for what in lacks(item, bytes_)]
    if missing:
        yield "; ".join(missing[:3]) + (f" ... {len(missing)} in all" if len(missing) > 3 else "")


def main():
    dump, *corpora = sys.argv[1:]
    documents = []
    for corpus in corpora:
        folder = os.path.join(corpus, "open")
        if not os.path.isdir(folder):
            print(f"# no collection of feeds in {corpus}")
            continue
        want = votes(os.path.join(corpus, "open-votes.tsv"))
        documents += [(folder, name, want.get(name)) for name in sorted(os.listdir(folder))]
    failed = 0
    print(f"1..{len(documents)}" if documents else "1..0 # SKIP no collection of feeds here")
    answers = dumped(dump, [os.path.join(folder, name) for folder, name, _ in documents])
    for n, (said, (folder, name, want)) in enumerate(zip(answers, documents), 1):
        wrong = list(check(said, folder, name, want))
        for line in wrong:
            print("# " + line)
        failed += bool(wrong)
        print(f"{'not ' if wrong else ''}ok {n} - {name}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
