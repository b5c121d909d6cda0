# SPDX-License-Identifier: ISC
"""The simulator on small sets of feeds: equal seeds give equal results, invariants hold, a trace is
read, invalid arguments are refused."""
import json, os, subprocess, sys, tempfile

SIMULATE = sys.argv[1]
HOUR, DAY = 3600, 86400


def run(*args, status=0):
    done = subprocess.run([SIMULATE, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == status, f"{args}: {done.returncode}: {done.stderr}"
    return done.stderr if status else done.stdout


def world(*args):
    """The results of a set of feeds by its name, without CPU times."""
    out = {}
    for w in json.loads(run("--json", *args)):
        for row in w["rules"]:
            del row["cpu_us"]
        out[w["world"]] = w
    return out


def the_same_seed_gives_the_same():
    small = ("--feeds", 60, "--days", 5)
    assert world(*small) == world(*small)
    assert world(*small, "--seed", 2) != world(*small)


def what_has_to_hold_holds():
    w = world("--feeds", 200, "--days", 10)["zipf"]
    rows = w["rules"]
    assert [r["rule"].split()[0] for r in rows] == ["every", "entry", "ours,",
                            "entry", "ours,", "ours,", "ours,", "every"], rows
    hourly, frequency, ours, as_hourly = rows[0], rows[1], rows[2], rows[4]
    assert abs(hourly["requests_per_feed_day"] - 24) < 0.1, hourly
    assert 25 * 60e3 < hourly["median_ms"] < 35 * 60e3 and hourly["p95_ms"] < 3600e3, hourly
    for r in rows:
        assert r["entries"] == hourly["entries"] > 100, r  # each entry is found once, with any rule
        assert 0 < r["new_share"] < 1 and 0 <= r["not_modified_share"] <= 1 - r["new_share"], r
        assert 0 < r["median_ms"] <= r["p95_ms"], r
    assert 0.9 < as_hourly["requests"] / hourly["requests"] < 1.1, as_hourly
    assert as_hourly["median_ms"] < hourly["median_ms"], as_hourly
    assert ours["new_share"] > 2 * \
        frequency["new_share"] and ours["median_ms"] < frequency["median_ms"], (ours, frequency)


def a_backlog_by_value_finds_more_at_first():
    said = run("--backlog", 24, "--feeds", 3000, "--days", 20)
    rows = {line[:28].strip(): [float(x.rstrip("%")) for x in line[28:].split()] for line in said.splitlines()[2:]}
    due, value, best = rows["by due time"], rows["by value"], rows["best possible"]
    assert all(v <= b + 0.1 for v, b in zip(value, best)) and all(a <= b for a, b in zip(value, value[1:])), said
    assert value[0] > 1.5 * due[0] and value[1] > 1.15 * due[1], said
    assert run("--backlog", 24, "--feeds", 3000, "--days", 20) == said
    assert "--backlog" in run("--backlog", 0, status=2)


def feed(dates):
    items = "".join(f"<item><title>{at}</title><guid>{at}</guid><pubDate>{stamp(at)}</pubDate></item>" for at in dates)
    return f"<rss version='2.0'><channel><title>t</title>{items}</channel></rss>"


def stamp(at):
    import email.utils
    return email.utils.formatdate(at, usegmt=True)


def a_trace_is_read():
    start = 1795392000
    with tempfile.TemporaryDirectory() as d:
        write = lambda name, text: open(os.path.join(d, name), "w").write(text)
        write("daily", feed(start + i * DAY + 9 * HOUR + i % 7 * 120 for i in range(60)))
        write("again", feed(start + i * DAY + 9 * HOUR + i % 7 * 120 for i in range(60)))  # a duplicate
        write("busy", feed(start + i * 1700 for i in range(90)))
        write("days", feed(start + i * DAY for i in range(60)))  # without a time of day
        write("short", feed(start + i * HOUR for i in range(5)))
        write("none", "no feed at all")
        w = world("--trace", d, "--feeds", 10, "--days", 20)["trace"]
        assert w["feeds"] == 2, w
        hourly, ours = w["rules"][0], w["rules"][2]
        assert ours["new_share"] > 0.3 and ours["median_ms"] < hourly["median_ms"] / 2, ours
        lines = run("--bench", "--trace", d, "--feeds", 10).splitlines()
        assert len(lines) == 7 and all(line.split()[-1] in ("ok", "short") for line in lines), lines
    with tempfile.TemporaryDirectory() as d:
        assert "no document" in run("--trace", d, status=1)
    assert "is not a readable folder" in run("--trace", "/nowhere/at/all", status=1)


def what_is_wrong_is_refused():
    for args in (
        ["--feeds"],
        ["--feeds", "0"],
        ["--feeds", "x"],
        ["--days", "400"],
        ["--trace"],
        ["--what"],
        ["feeds"]):
        said = run(*args, status=2)
        assert "unusable argument: " in said and "\nusage:" in said, args


CASES = [the_same_seed_gives_the_same, what_has_to_hold_holds,
    a_backlog_by_value_finds_more_at_first, a_trace_is_read, what_is_wrong_is_refused]
print(f"1..{len(CASES)}")
failed = 0
for n, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {n} - {case.__name__}")
    except Exception as e:
        failed += 1
        print(f"not ok {n} - {case.__name__}\n# " + f"{type(e).__name__}: {e}".replace("\n", "\n# "))
sys.exit(failed > 0)
