# SPDX-License-Identifier: ISC
"""Feeds as sites publish them: each yields all its entries, with what the document has.

usage: corpus_check.py PARSE_DUMP CORPUS...

CORPUS holds documents in open/ and open-votes.tsv, the number of entries that several parsers found in each. The most that a tolerant
one found is taken for the truth: strict ones find none in a document that is not well-formed. What an entry has is
looked for in the document's bytes with regular expressions: crude, and independent of any parser. Prints TAP; a
collection that is not there is skipped.
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
TOLERANT = ("sfeed", "libxml2-rec", "feedsmith", "feedparser", "fast-xml")
# Fewer than one of them finds, and why.
FEWER = {
    "rome__ep1_v4a.xml": 17,  # the 18th stands in sx:conflict: a version of an entry that lost against another
    "rome__v5.xml": 17,       # the same
}
DATE = re.compile(
    rb"<(?:pubDate|dc:date|published|updated|issued|modified)[^>]*>\s*(?:<!\[CDATA\[\s*)?\w[^<]{5,}", re.I)


def dated(raw):
    """A date that is one: generators write the first of January of the year 1 for none."""
    return any(b"0001" not in m[0] for m in DATE.finditer(raw))


def lacks(entry, raw):
    """What the entry has not, although the document has it."""
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
    """The most entries that a tolerant parser found; None when none of them was asked."""
    found = [int(row[parser]) for parser in TOLERANT if row.get(parser)]
    return FEWER.get(row["file"], max(found, default=None))


def votes(path):
    with open(path, encoding="utf-8") as f:
        head = f.readline().rstrip("\n").split("\t")
        rows = (dict(zip(head, line.rstrip("\n").split("\t"))) for line in f)
        return {row["file"]: most(row) for row in rows}


def dumped(dump, paths):
    """The documents as JSON, a line each; "! " and why not. Many at a time: starting the program takes longer than most documents."""
    for i in range(0, len(paths), 100):
        some = paths[i:i + 100]
        said = subprocess.run([dump, "--lines", *some], stdout=subprocess.PIPE, check=True).stdout.split(b"\n")[:-1]
        if len(said) != len(some):
            raise RuntimeError(f"{len(said)} answers for {len(some)} documents from {some[0]} on")
        yield from said


def check(said, folder, name, want):
    """Why the document is not read as it should be; nothing when it is."""
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
