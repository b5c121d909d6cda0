#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""openapi.json and generators: a TypeScript client made from it has the type of every response, and
works."""
import glob
import json
import os
import shutil
import subprocess

from http_server import http_server
from harness import BUILD, ROOT, Skip, case, equal, holds, origin, run, samples, sanitized

TOOLS = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"]
NPM = os.path.join(BUILD, "tests", "system", "npm") # kept from run to run
WAIT_S = 300

CLIENT = """
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

declare const process: { argv: string[] };
const client = createClient<paths>({ baseUrl: process.argv[2] });
const result: Record<string, unknown> = {};

const added = await client.POST("/v1/feeds", { body: { url: "https://typed.example/", folder: "typed" } });
if (!added.data || Array.isArray(added.data)) throw new Error("one feed was added");
const id: number = added.data.id;
// @ts-expect-error there is no such member
result.nothing = added.data.nothing;
const changed = await client.PATCH("/v1/feeds/{id}",
	{ params: { path: { id } }, body: { title: "Typed", interval_ms: 3600000 } });
result.title = changed.data?.title;
// @ts-expect-error it is interval_ms
export const wrong: components["schemas"]["FeedChange"] = { interval: 3600000 };
const pushed = await client.POST("/v1/feeds/{id}/entries", {
	params: { path: { id }, header: { "Idempotency-Key": "typed" } },
	body: '{"id":"a","title":"typed words","tags":["t"],"authors":[{"name":"Ann"}]}\\n',
	bodySerializer: body => body,
	headers: { "Content-Type": "application/x-ndjson" },
});
result.stored = pushed.data?.new;
const found = await client.GET("/v1/entries",
	{ params: { query: { feed: [String(id)], q: "typed", order: "stored", limit: 10 } } });
if (!found.data || !("items" in found.data)) throw new Error("a JSON Feed");
const entry: components["schemas"]["Entry"] | undefined = found.data.items[0];
result.found = found.data.items.map(e => e.title);
result.author = entry?.authors?.[0]?.name;
result.tags = entry?.tags;
result.incomplete = found.data.incomplete ?? false;
const one = await client.GET("/v1/entries/{id}", { params: { path: { id: entry!._store.entry } } });
result.one = one.data?._store.feed === id;
const missing = await client.GET("/v1/feeds/{id}", { params: { path: { id: 4711 } } });
result.code = missing.error?.code;
const removed = await client.DELETE("/v1/feeds/{id}", { params: { path: { id } } });
result.removed = removed.response.status;
console.log(JSON.stringify(result));
"""

READS = [ # operation, status, path
    ("listFeeds", 200, "/v1/feeds?limit=1000"),
    ("getFeed", 200, "/v1/feeds/1?visits=10"),
    ("listTimings", 200, "/v1/timings?limit=1000"),
    ("listEntries", 200, "/v1/entries?limit=1000"),
    ("listEntries", 200, "/v1/entries?limit=1000&content=raw"),
    ("getEntry", 200, "/v1/entries/1"),
    ("getRing", 200, "/v1/ring"),
    ("getHealth", 200, "/healthz"),
    ("getReadiness", 200, "/readyz"),
    ("getFeed", 404, "/v1/feeds/471100"),
    ("listEntries", 400, "/v1/entries?limit=0"),
    ("listFeeds", 400, "/v1/feeds?status=odd")]


def tool(*command, cwd=NPM):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=WAIT_S, check=False)


def tools():
    """Install the generator and the compiler from npm's registry, unless they are there."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("node or npm is not installed")
    os.makedirs(NPM, exist_ok=True)
    done = os.path.join(NPM, "installed")
    if os.path.exists(done):
        with open(done, encoding="ascii") as f:
            if f.read() == " ".join(TOOLS):
                return
    with open(os.path.join(NPM, "package.json"), "w", encoding="ascii") as f:
        f.write('{"type":"module","private":true}\n')
    r = tool(
        "npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1",
        "--fetch-timeout=60000", *TOOLS)
    if r.returncode:
        output = [l for l in r.stderr.splitlines() if " code E" in l] or [r.stderr.strip() or "no reason given"]
        raise Skip("npm cannot install %s: %s" % (" ".join(TOOLS), output[0]))
    with open(done, "w", encoding="ascii") as f:
        f.write(" ".join(TOOLS))


def all_kinds(base):
    """Documents with all members of entries."""
    docs = samples(base)
    for kind in "atom", "rss", "json", "rdf", "podcast", "media", "itunes", "module":
        for f in glob.glob(os.path.join(ROOT, "tests", "cases", kind + "*")):
            if f.endswith((".xml", ".json")) and not f.endswith(".expect.json"):
                shutil.copy(f, docs)
    return docs


def answers(d):
    """A program with each real response as a constant of its described type: a member that is not
    described does not compile."""
    text = ['import type { components, operations } from "./api";\n']
    seen = {"members": set(), "extras": set()}
    for i, (operation, status, path) in enumerate(READS):
        while path:
            got, headers, response = d.request("GET", path)
            equal(got, status, response)
            text.append('const a%d_%d: operations["%s"]["responses"][%d]["content"]["%s"] = %s;\n' % (
                i, len(text), operation, status, headers["Content-Type"], json.dumps(response)))
            for e in response.get("items", []):
                seen["members"] |= set(e)
                seen["extras"] |= set(e.get("_feedwheel", {}))
            path = response.get("next_url")
    status, _, lines = d.request("GET", "/v1/entries?limit=50&format=ndjson")
    equal(status, 200)
    text += ['const l%d: components["schemas"]["Entry"] = %s;\n' % (i, l) for i, l in enumerate(lines.splitlines())]
    wrong = json.dumps({**json.loads(lines.splitlines()[0]), "undescribed": 1})
    text.append('// @ts-expect-error a member that is not described\n')
    text.append('const wrong: components["schemas"]["Entry"] = %s;\n' % wrong)
    return "".join(text) + "export {};\n", seen


@case("a TypeScript client of openapi.json compiles with every real response, and adds, pushes, finds, removes")
def typescript(base):
    if sanitized():
        raise Skip("the work is TypeScript's compiler's: a sanitizer finds nothing")
    tools()
    work = os.path.join(base, "ts")
    os.mkdir(work)
    os.symlink(os.path.join(NPM, "node_modules"), os.path.join(work, "node_modules"))
    bin_path = os.path.join(NPM, "node_modules", ".bin")
    with origin(base, all_kinds(base)) as o, http_server(base, conf="host_concurrency = 64\n") as d:
        d.feedwheel.run("import", o.url_file)
        d.feedwheel.run_once()
        with open(os.path.join(work, "openapi.json"), "w", encoding="utf-8") as f:
            json.dump(d.request("GET", "/openapi.json")[2], f)
        text, seen = answers(d)
        members = {
            "authors", "tags", "attachments", "image", "_feedwheel", "_store", "summary", "content_html",
            "content_text"}
        holds(seen["members"] >= members, seen)
        holds(seen["extras"] >= {"itunes", "media", "links", "comments", "publisher"}, seen)
        for name, source in ("answers.ts", text), ("client.ts", CLIENT), ("package.json", '{"type":"module"}'):
            with open(os.path.join(work, name), "w", encoding="utf-8") as f:
                f.write(source)
        r = tool(os.path.join(bin_path, "openapi-typescript"), "openapi.json", "--output", "api.d.ts", cwd=work)
        equal(r.returncode, 0, r.stdout + r.stderr)
        r = tool(
            os.path.join(bin_path, "tsc"),
            "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--lib", "es2022,dom,dom.iterable",
            "--module", "esnext", "--moduleResolution", "bundler", "--outDir", "out", "client.ts", "answers.ts",
            cwd=work)
        equal(r.returncode, 0, r.stdout[:3000] + r.stderr)
        with open(os.path.join(work, "out", "package.json"), "w", encoding="ascii") as f:
            f.write('{"type":"module"}')
        r = tool("node", "out/client.js", "http://127.0.0.1:%d" % d.port, cwd=work)
        equal(r.returncode, 0, r.stdout + r.stderr)
        equal(json.loads(r.stdout), {
            "title": "Typed", "stored": 1, "found": ["typed words"], "author": "Ann", "tags": ["t"],
            "incomplete": False, "one": True, "code": "not_found", "removed": 204})


run()
