#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Writes src/parse/charset/entity_table.h: HTML's named character references, sorted by name, from
Python's html.entities.

Run it by hand when HTML gains a name (it has not since 2011):
tools/gen_entities.py >src/parse/charset/entity_table.h
"""
import html.entities

names = {}
legacy = set()
for name, text in html.entities.html5.items():
    if name.endswith(";"):
        names[name[:-1]] = [ord(c) for c in text]
    else:
        legacy.add(name)
order = sorted(names, key=lambda n: n.encode())
first = {}
for i, n in enumerate(order):
    first.setdefault(n[0], i)

print("/* SPDX-License-Identifier: ISC */")
print("/* Written by tools/gen_entities.py: do not edit. Names, 0-terminated, in byte order;"
      " where each one starts; what it means. */")
print("#define ENTITY_N %d" % len(order))
print("#define ENTITY_LONGEST %d" % max(map(len, order)))
print("static const char NAMES[] =")
line = "\t\""
for n in order:
    if len(line) + len(n) > 112:
        print(line + "\"")
        line = "\t\""
    line += n + "\\0"
print(line + "\";")
print(
    "static const struct entity { uint16_t name; uint8_t len, legacy; uint32_t first, second; } ENTITIES[ENTITY_N] = {")
at = 0
line = "\t"
for n in order:
    cp = names[n] + [0]
    item = "{%d,%d,%d,%d,%d}, " % (at, len(n), n in legacy, cp[0], cp[1])
    if len(line) + len(item) > 118:
        print(line.rstrip())
        line = "\t"
    line += item
    at += len(n) + 1
print(line.rstrip())
print("};")
print("/* The first name by its first byte from 'A' on, and the end. */")
print("static const uint16_t BY_LETTER[] = {")
starts = []
nxt = len(order)
for c in range(ord("z"), ord("A") - 1, -1):
    nxt = first.get(chr(c), nxt)
    starts.append(nxt)
starts = starts[::-1] + [len(order)]
for i in range(0, len(starts), 16):
    print("\t" + " ".join("%d," % s for s in starts[i:i + 16]))
print("};")
