#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""fold.py OUT: what letters are without case and accents, and what belongs to words, as C tables."""
import sys
import unicodedata

LAST = 0x2FFFF


def plain(c):
	"""The one character that c is looked for as, or c."""
	folded = c.casefold() if len(c.casefold()) == 1 else c
	base = [x for x in unicodedata.normalize("NFD", folded) if unicodedata.category(x) != "Mn"]
	return base[0] if len(base) == 1 else folded


def in_word(c):
	return unicodedata.category(c)[0] in "LN" or unicodedata.category(c) in ("Mn", "Mc", "Co")


def main():
	folds, ranges = [], []
	for cp in range(0x80, LAST + 1):
		if 0xD800 <= cp < 0xE000:
			continue
		c = chr(cp)
		if plain(c) != c:
			folds.append((cp, ord(plain(c))))
		if not in_word(c):
			continue
		if ranges and ranges[-1][1] == cp - 1:
			ranges[-1][1] = cp
		else:
			ranges.append([cp, cp])
	with open(sys.argv[1], "w", encoding="ascii") as out:
		out.write("/* made by redis/fold.py */\n")
		out.write("static const uint32_t folds[][2] = {\n")
		out.writelines("\t{0x%x, 0x%x},\n" % f for f in folds)
		out.write("};\nstatic const uint32_t word_ranges[][2] = {\n")
		out.writelines("\t{0x%x, 0x%x},\n" % tuple(r) for r in ranges)
		out.write("};\n")


main()
