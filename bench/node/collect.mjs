// SPDX-License-Identifier: ISC
// The whole job in Node: undici fetches (64 in flight), feedsmith parses, SQLite stores each entry once.
// usage: node collect.mjs URLFILE DATABASE; prints one JSON object. A second run sends the stored validators.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { Agent, request } from 'undici';
import { parseFeed } from 'feedsmith';
import sqlite from 'node-sqlite3-wasm';

const [urlFile, path] = process.argv.slice(2);
const urls = readFileSync(urlFile, 'utf8').split('\n').filter(Boolean);
const db = new sqlite.Database(path);
db.exec(`PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS feed (url TEXT PRIMARY KEY, etag TEXT, last_modified TEXT, title TEXT);
CREATE TABLE IF NOT EXISTS entry (feed TEXT, id TEXT, title TEXT, url TEXT, published TEXT, content TEXT,
	PRIMARY KEY (feed, id)) WITHOUT ROWID`);
const known = db.prepare('SELECT etag, last_modified FROM feed WHERE url = ?');
const putFeed = db.prepare('INSERT OR REPLACE INTO feed VALUES (?, ?, ?, ?)');
const putEntry = db.prepare('INSERT OR IGNORE INTO entry VALUES (?, ?, ?, ?, ?, ?)');
const agent = new Agent({ connections: 2, pipelining: 1, keepAliveTimeout: 1000 });
const sum = { done: 0, failed: 0, unchanged: 0, entries: 0, errors: {} };
let inBatch = 0;

const text = (v) =>
	(v === undefined || v === null ? null : typeof v === 'object' ? (v.value ?? JSON.stringify(v)) : String(v));

function keep(url, headers, parsed) {
	const { feed } = parsed;
	const list = feed.items ?? feed.entries ?? [];
	if (inBatch++ === 0)
		db.exec('BEGIN');
	for (const it of list) {
		const link = it.url ?? it.link ?? it.links?.[0]?.href;
		const id = text(it.guid) ?? text(it.id) ?? text(link) ?? text(it.title) ?? '';
		const content = text(
			it.content?.encoded ?? it.content_html ?? it.content ?? it.description ?? it.summary);
		putEntry.run([url, id, text(it.title), text(link),
			text(it.pubDate ?? it.published ?? it.date_published ?? it.dc?.date),
			content]);
		sum.entries++;
	}
	putFeed.run([url, headers.etag ?? null, headers['last-modified'] ?? null, text(feed.title)]);
	if (inBatch >= 100)
		flush();
}

function flush() {
	if (inBatch)
		db.exec('COMMIT');
	inBatch = 0;
}

async function visit(url) {
	const old = known.get([url]);
	const headers = { 'accept-encoding': 'gzip' };
	if (old?.etag)
		headers['if-none-match'] = old.etag;
	if (old?.last_modified)
		headers['if-modified-since'] = old.last_modified;
	const { statusCode, headers: got, body } = await request(url, { dispatcher: agent, headers });
	const raw = Buffer.from(await body.arrayBuffer());
	if (statusCode === 304) {
		sum.unchanged++;
		return;
	}
	if (statusCode !== 200)
		throw new Error(`status ${statusCode}`);
	const bytes = got['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
	keep(url, got, parseFeed(bytes.toString('utf8')));
}

const start = performance.now();
let next = 0;
async function worker() {
	while (next < urls.length) {
		const url = urls[next++];
		try {
			await visit(url);
		} catch (e) {
			sum.failed++;
			const why = String(e.message).slice(0, 60);
			sum.errors[why] = (sum.errors[why] ?? 0) + 1;
		}
		sum.done++;
	}
}
await Promise.all(Array.from({ length: 64 }, worker));
flush();
const use = process.resourceUsage();
known.finalize();
putFeed.finalize();
putEntry.finalize();
db.close();
await agent.destroy();
console.log(JSON.stringify({ ...sum, wall_s: (performance.now() - start) / 1000,
	cpu_s: (use.userCPUTime + use.systemCPUTime) / 1e6, rss_kb: use.maxRSS }));
