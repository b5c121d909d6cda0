#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Writes src/parse/charset/table.h: the upper halves of the WHATWG Encoding Standard's single-byte
encodings.

Python's codecs have the same tables, except for three rules of the standard: an unassigned byte 80 to
9F of windows-* is the C1 control with that number, KOI8-U has Belarusian letters, windows-1255 has a
second holam. usage: gen_charset.py > src/parse/charset/table.h
"""
NAMES = [
    "windows-1252", "ibm866", *("iso-8859-%d" % n for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    "koi8-r", "koi8-u", "macintosh", "windows-874", *
    ("windows-%d" % n for n in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)),
    "x-mac-cyrillic"]
CODEC = {"ibm866": "cp866", "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic"}
OTHER = {"koi8-u": {0xae: 0x45e, 0xbe: 0x40e}, "windows-1255": {0xca: 0x5ba}}


def point(name, byte):
    try:
        there = ord(bytes([byte]).decode(CODEC.get(name, name.replace("windows-", "cp"))))
    except UnicodeDecodeError:
        there = byte if name.startswith("windows-") and byte < 0xa0 else 0xfffd
    return OTHER.get(name, {}).get(byte, there)


def main():
    print(
        "/* SPDX-License-Identifier: ISC */\n"
        "/* Made by tools/gen_charset.py: the characters of the bytes 80 to FF; 0xfffd: none. */\n"
        "#ifndef FW_PARSE_CHARSET_TABLE_H\n#define FW_PARSE_CHARSET_TABLE_H\n\n#include <stdint.h>\n\n"
        "static const struct { const char *name; uint16_t point[128]; } SINGLE[] = {")
    for name in NAMES:
        points = ["%#x" % point(name, b) for b in range(128, 256)]
        print('\t{"%s", {' % name)
        for i in range(0, 128, 16):
            print("\t\t" + ", ".join(points[i:i + 16]) + ",")
        print("\t}},")
    print("};\n\n#endif")


main()
