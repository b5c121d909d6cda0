/* SPDX-License-Identifier: ISC */
// The page's script, a module: none of its names is a name of the window. Without it links and
// forms do the same, page by page.

const $ = (selector, from) => (from || document).querySelector(selector);
const river = $('#river'), column = $('#column'), csrf = document.body.dataset.csrf;

function say(words, ms) {
	const status = $('#status');
	if (!status)
		return;
	status.textContent = words;
	clearTimeout(say.timer);
	if (ms)
		say.timer = setTimeout(() => { status.textContent = ''; }, ms);
}

async function load(address) {
	const response = await fetch(address, {credentials: 'same-origin'});
	if (response.status === 401) {
		location.reload(); // the session has ended: the server shows the login
		throw new Error('logged out');
	}
	if (!response.ok)
		throw new Error('status ' + response.status);
	return response.text();
}

// ---- changes: sent in batches, again after a failure, and when the page is left

const changes = new Map(); // "read 12" -> value; the last one counts
let sending = null;

function change(what, id, value) {
	const key = what + ' ' + id;
	changes.delete(key);
	changes.set(key, value);
	clearTimeout(change.timer);
	change.timer = setTimeout(send, 250);
}

// Changes of one kind and value, as one request.
function batches(entries) {
	const found = new Map();
	for (const [key, value] of entries) {
		const [what, id] = key.split(' '), name = what + ' ' + value;
		if (!found.has(name))
			found.set(name, {path: what, body: new URLSearchParams({csrf, part: '1', [what]: value})});
		found.get(name).body.append('id', id);
	}
	return [...found.values()];
}

async function send() {
	if (sending || !changes.size)
		return sending;
	const sent = [...changes];
	sending = (async () => {
		try {
			for (const {path, body} of batches(sent)) {
				const response = await fetch(path, {method: 'POST', body, keepalive: true});
				if (response.status === 401 || response.status === 403)
					return location.reload();
				if (!response.ok)
					throw new Error('status ' + response.status);
			}
			for (const [key, value] of sent) {
				if (changes.get(key) === value)
					changes.delete(key);
			}
			send.wait = 0;
			say('');
			refreshColumn();
		} catch (e) {
			send.wait = Math.min((send.wait || 1000) * 2, 60000);
			const n = changes.size;
			say(n + (n === 1 ? ' change waits' : ' changes wait') + ' for the server');
			setTimeout(send, send.wait);
		}
	})();
	await sending;
	sending = null;
	if (changes.size && !send.wait)
		setTimeout(send, 0);
	return null;
}

// Send all before the page is left, so that the next one shows it; but do not wait long.
async function settle() {
	const late = new Promise(done => setTimeout(done, 1000));
	for (let i = 0; i < 3 && changes.size && !send.wait; i++)
		await Promise.race([send(), late]);
}

const isPlain = e => !e.ctrlKey && !e.metaKey && !e.shiftKey && !e.altKey && e.button === 0;

document.addEventListener('click', async e => {
	const link = e.target.closest('a[href]');
	if (!changes.size || !link || link.target || link.getAttribute('href')[0] === '#' || !isPlain(e) ||
		e.defaultPrevented)
		return;
	e.preventDefault();
	await settle();
	location.href = link.href;
});
addEventListener('pagehide', () => {
	for (const {path, body} of batches(changes))
		navigator.sendBeacon(path, body);
});
addEventListener('beforeunload', e => {
	if (changes.size && send.wait)
		e.preventDefault();
});
addEventListener('online', () => send());

// ---- the column

const opened = new Set(JSON.parse(localStorage.getItem('folders') || '[]'));

async function fillFolder(details) {
	const later = $('.later a', details);
	if (later)
		$('ul', details).innerHTML = await load(later.href);
}

function openFolders() {
	for (const details of column.querySelectorAll('details')) {
		if (opened.has(details.dataset.folder))
			details.open = true;
	}
}

async function refreshColumn() {
	const here = new URLSearchParams(location.search);
	here.set('part', 'column');
	if (!location.pathname.endsWith('/') || isColumnInUse())
		return;
	try {
		const text = await load('./?' + here);
		if (isColumnInUse())
			return;
		const scroll = column.scrollTop, search = $('[type=search]', column).value;
		column.innerHTML = text;
		$('[type=search]', column).value = search;
		openFolders();
		column.scrollTop = scroll;
		count();
	} catch (e) {
		// the next refresh may succeed
	}
}

// Then it stays as it is: a link that goes while it is pressed is not followed.
function isColumnInUse() {
	return column.contains(document.activeElement) || $(':active', column);
}

// The number of unread entries, in the title.
function count() {
	const n = $('[data-key=u] .n', column);
	const name = document.title.replace(/^\([\d,]+\) /, '');
	document.title = n ? '(' + n.firstChild.data + ') ' + name : name;
}

if (column) {
	column.addEventListener('toggle', e => {
		const {folder} = e.target.dataset;
		if (folder === undefined)
			return;
		if (e.target.open)
			opened.add(folder);
		else
			opened.delete(folder);
		localStorage.setItem('folders', JSON.stringify([...opened]));
		if (e.target.open)
			fillFolder(e.target).catch(() => say('The folder cannot be read now', 4000));
	}, true);
	openFolders();
	count();
	setInterval(() => { if (!document.hidden) refreshColumn(); }, 120000);
	if (localStorage.getItem('no-column'))
		document.documentElement.classList.add('no-column');
}

// ---- the river

const contents = new Map(); // entry -> promise of its HTML
let current = null;

const idOf = row => row.dataset.id;

function contentOf(row) {
	const id = idOf(row);
	if (!contents.has(id)) {
		contents.set(id, load('entry?part=1&id=' + id));
		contents.get(id).catch(() => contents.delete(id));
		if (contents.size > 30)
			contents.delete(contents.keys().next().value);
	}
	return contents.get(id);
}

function setRead(row, read) {
	if (row.classList.contains('unread') !== read)
		return;
	row.classList.toggle('unread', !read);
	const state = $('.state', row);
	if (read && state)
		state.remove();
	else if (!read && !state)
		$('h2', row).insertAdjacentHTML('beforeend', '<span class="vh state"> unread</span>');
	const keep = $('.keep', row);
	if (keep)
		keep.setAttribute('aria-pressed', !read);
	change('read', idOf(row), read ? '1' : '0');
}

function setStar(row) {
	const on = $('.star', row).getAttribute('aria-pressed') !== 'true';
	for (const button of row.querySelectorAll('.star'))
		button.setAttribute('aria-pressed', on);
	change('star', idOf(row), on ? '1' : '0');
}

// The server says which labels the entry has then.
async function setLabel(row, form, button) {
	const body = new URLSearchParams(new FormData(form)), piece = document.createElement('template');
	body.set('part', '1');
	if (button.name)
		body.set(button.name, button.value);
	try {
		const response = await fetch(button.getAttribute('formaction') || 'label', {method: 'POST', body});
		piece.innerHTML = await response.text();
		if (!response.ok)
			return say(piece.content.textContent.trim(), 6000);
		contents.delete(idOf(row));
		if ($('.labels', row)) // it is still open
			$('.labels', row).replaceWith(piece.content);
		if (row === current)
			$('.title', row).focus({preventScroll: true});
		say('');
		return refreshColumn();
	} catch (e) {
		return say('The label cannot be stored now', 4000);
	}
}

function select(row, scroll) {
	if (current)
		current.classList.remove('current');
	current = row;
	row.classList.add('current');
	$('.title', row).focus({preventScroll: true});
	if (scroll)
		row.scrollIntoView({block: scroll});
}

function close(row) {
	row.classList.remove('open');
	$('.title', row).setAttribute('aria-expanded', 'false');
	const body = $('.body', row);
	if (body)
		body.remove(); // its sounds and players end
}

// When this person last scrolled.
let scrolled = 0;
for (const what of ['wheel', 'touchmove', 'pointerdown'])
	addEventListener(what, () => { scrolled = performance.now(); }, {passive: true});

// The row starts at the top, and again when what is above and in it has its size.
function toTop(row, since) {
	if (row === current && row.classList.contains('open') && scrolled < since)
		row.scrollIntoView({block: 'start'});
}

async function open(row) {
	const since = performance.now(), before = $('.row.open', river);
	if (before && before !== row)
		close(before);
	row.classList.add('open');
	$('.title', row).setAttribute('aria-expanded', 'true');
	const body = document.createElement('div');
	body.className = 'body';
	body.innerHTML = '<p class="loading">Loading\u2026</p>';
	$('article', row).append(body);
	select(row, 'start');
	setRead(row, true);
	try {
		body.innerHTML = await contentOf(row);
		dates(body);
		toTop(row, since);
		requestAnimationFrame(() => requestAnimationFrame(() => toTop(row, since)));
		const star = $('.tools .star', body);
		star.setAttribute('aria-pressed', $('.line .star', row).getAttribute('aria-pressed'));
		const next = beside(row, 1);
		if (next)
			contentOf(next).catch(() => {});
	} catch (e) {
		body.innerHTML = '<p class="loading trouble">The entry cannot be loaded now.</p>';
		contents.delete(idOf(row));
	}
}

function toggle(row) {
	if (row.classList.contains('open')) {
		close(row);
		select(row, 'nearest');
	} else {
		open(row);
	}
}

// The row after or before another; rows come in lists of a page each.
function beside(row, by) {
	const [next, first] = by > 0 ? ['nextElementSibling', 'firstElementChild'] :
		['previousElementSibling', 'lastElementChild'];
	return row[next] || (row.parentElement[next] ? row.parentElement[next][first] : null);
}

function neighbour(by) {
	if (!current)
		return by > 0 ? $('.row', river) : null;
	return beside(current, by);
}

async function step(by, opens) {
	let row = neighbour(by);
	if (!row && by > 0) {
		await more();
		row = neighbour(by);
	}
	if (!row)
		return say(by > 0 ? 'This is the last entry' : 'This is the first entry', 1500);
	if (opens)
		return open(row);
	const shown = $('.row.open', river);
	if (shown)
		close(shown);
	return select(row, 'nearest');
}

// The next page: rows, and a link to the page after it.
let loading = null;
function more() {
	const older = $('.older a');
	if (!older || loading)
		return loading || Promise.resolve();
	loading = load(older.href + '&part=1').then(html => {
		const piece = document.createElement('template');
		piece.innerHTML = html;
		const next = $('.older', piece.content);
		older.parentElement.remove();
		if (next)
			river.after(next);
		dates(piece.content);
		river.append(...piece.content.querySelectorAll('.rows'));
		if (next)
			watch.observe(next);
	}).catch(() => say('Older entries cannot be loaded now', 4000)).finally(() => { loading = null; });
	return loading;
}
const watch = new IntersectionObserver(seen => {
	if (seen.some(s => s.isIntersecting))
		more();
}, {rootMargin: '1500px'});

// The whole date of each time, as this person writes dates.
let calendar = null;
function dates(from) {
	calendar = calendar || new Intl.DateTimeFormat(undefined, {dateStyle: 'full', timeStyle: 'short'});
	for (const time of from.querySelectorAll('time')) {
		const whole = calendar.format(new Date(time.dateTime));
		time.title = whole;
		if (time.className === 'whole')
			time.textContent = whole;
	}
}

function play(link) {
	const frame = document.createElement('iframe');
	frame.src = link.dataset.player;
	frame.title = link.textContent;
	frame.allow = 'autoplay; fullscreen; picture-in-picture';
	frame.allowFullscreen = true;
	frame.referrerPolicy = 'strict-origin-when-cross-origin'; // YouTube refuses to play without
	link.replaceWith(frame);
}

function clicked(e) {
	const plain = isPlain(e);
	const player = e.target.closest('a.player');
	if (player && plain) {
		e.preventDefault();
		return play(player);
	}
	const row = e.target.closest('.row');
	if (!row)
		return null;
	if (e.target.closest('.star')) {
		e.preventDefault();
		return setStar(row);
	}
	if (e.target.closest('.keep')) {
		e.preventDefault();
		return setRead(row, row.classList.contains('unread'));
	}
	if (!e.target.closest('.line') || !plain || getSelection().toString())
		return null;
	e.preventDefault();
	return toggle(row);
}

if (river) {
	river.addEventListener('click', clicked);
	river.addEventListener('focusin', e => {
		const row = e.target.closest('.row');
		if (row && row !== current && e.target.classList.contains('title'))
			select(row);
	});
} else {
	document.addEventListener('click', e => {
		const player = e.target.closest('a.player');
		if (player) {
			e.preventDefault();
			play(player);
		}
	});
}
// What the first paint does not need.
requestAnimationFrame(() => setTimeout(() => {
	dates(document);
	if (river && $('.older'))
		watch.observe($('.older'));
}));

// ---- the first entries: the page is loaded again when its feeds have been visited

const waiting = $('[data-waiting]');

async function waitForEntries() {
	const here = new URLSearchParams(location.search);
	here.set('part', 'waiting');
	for (let pause = 1000, waited = 0; waited < 300000; waited += pause, pause = Math.min(2 * pause, 10000)) {
		await new Promise(done => setTimeout(done, pause));
		if (document.hidden)
			await new Promise(done => document.addEventListener('visibilitychange', done, {once: true}));
		const late = await load('./?' + here).catch(() => 'waiting'); // the server may be back later
		if (!late && !column.contains(document.activeElement))
			return location.reload();
	}
	waiting.textContent = 'The first entries have not come yet. Load this page again later.';
	return null;
}
if (waiting)
	waitForEntries();

// What the last form did, for a while.
if ($('#status') && $('#status').textContent)
	say($('#status').textContent, 8000);

// ---- questions

// Ask before a form is sent: data-ask on its button.
async function ask(words, button) {
	const dialog = document.createElement('dialog');
	dialog.innerHTML = '<h2></h2><form method="dialog"><button value="">Cancel</button>' +
		'<button class="main" value="yes"></button></form>';
	$('h2', dialog).textContent = words;
	$('.main', dialog).textContent = button;
	document.body.append(dialog);
	dialog.showModal();
	$('.main', dialog).focus();
	await new Promise(done => dialog.addEventListener('close', done));
	dialog.remove();
	return dialog.returnValue === 'yes';
}

document.addEventListener('submit', async e => {
	const button = e.submitter, row = button && button.closest('.labels') && button.closest('.row');
	if (row) {
		e.preventDefault();
		setLabel(row, e.target, button);
		return;
	}
	if (!button || button.dataset.ask === undefined || e.target.dataset.sure)
		return;
	e.preventDefault();
	if (!await ask(button.dataset.ask, button.textContent.trim()))
		return;
	await settle();
	e.target.dataset.sure = '1';
	e.target.requestSubmit(button);
});

// ---- keys

function places() {
	return [...column.querySelectorAll('.views a, .tree a')].filter(a => a.offsetParent && !a.closest('.later'));
}

function place(by) {
	const all = places(), at = all.findIndex(a => a.hasAttribute('aria-current'));
	let i = at + by;
	while (all[i] && !$('.n', all[i]) && by)
		i += by;
	if (all[i])
		go(all[i].href);
	else
		say('No more feeds with unread entries', 1500);
}

async function go(href) {
	await settle();
	location.href = href;
}

// The list of all keys, from their table.
function showKeys() {
	const dialog = document.createElement('dialog'), list = document.createElement('dl');
	dialog.id = 'keys';
	dialog.innerHTML = '<h2 id="keys-title">Keys</h2><form method="dialog"><button>Close</button></form>';
	dialog.setAttribute('aria-labelledby', 'keys-title');
	for (const [names, words] of [...RIVER_KEYS, ...PAGE_KEYS]) {
		const row = document.createElement('div');
		row.innerHTML = '<dt></dt><dd></dd>';
		$('dt', row).innerHTML = names.map(() => '<kbd></kbd>').join(' ');
		row.querySelectorAll('kbd').forEach((kbd, i) => { kbd.textContent = names[i]; });
		$('dd', row).textContent = words;
		list.append(row);
	}
	$('h2', dialog).after(list);
	dialog.addEventListener('close', () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}

function showColumn() {
	if (matchMedia('(max-width: 52rem)').matches) {
		location.hash = location.hash === '#column' ? '#main' : '#column';
		return;
	}
	const off = document.documentElement.classList.toggle('no-column');
	if (off)
		localStorage.setItem('no-column', '1');
	else
		localStorage.removeItem('no-column');
}

function escape() {
	const shown = river && $('.row.open', river);
	if (location.hash === '#column')
		location.hash = '#main';
	else if (shown)
		toggle(shown);
}

// False: the browser scrolls.
function space(e) {
	const shown = $('.row.open', river);
	return shown && !e.shiftKey && !e.target.closest('button, a:not(.title), summary, audio, video') &&
		shown.getBoundingClientRect().bottom <= innerHeight + 4 ? step(1, true) : false;
}

async function openLabels(row) {
	if (!row.classList.contains('open'))
		await open(row);
	if ($('.loading', row)) // j has just opened it
		await contentOf(row).catch(() => {});
	const form = $('.labels details', row);
	if (form) {
		form.open = true;
		$('[name=add]', form).focus();
	}
}

async function openOriginal(row) {
	const link = $('.original', row) || $('.original', Object.assign(document.createElement('template'),
		{innerHTML: await contentOf(row)}).content);
	if (link)
		window.open(link.href, '_blank', 'noopener,noreferrer');
	else
		say('This entry has no address', 1500);
	setRead(row, true);
}

function search() {
	if (!column.offsetParent)
		showColumn();
	$('[type=search]', column).select();
}

const onRow = act => () => current && act(current);
// What is pressed, its words, what it does. A false result leaves the key to the browser.
const RIVER_KEYS = [
	[['j'], 'open the next entry', () => step(1, true)],
	[['k'], 'open the previous entry', () => step(-1, true)],
	[['n'], 'go to the next entry without opening it', () => step(1, false)],
	[['p'], 'go to the previous entry without opening it', () => step(-1, false)],
	[['o', 'Enter'], 'open or close', onRow(toggle)],
	[['Space'], 'scroll; at the end, open the next entry', space],
	[['m'], 'mark as read or unread', onRow(row => setRead(row, row.classList.contains('unread')))],
	[['s'], 'star, or remove the star', onRow(setStar)],
	[['l'], 'add a label', onRow(openLabels)],
	[['v'], 'open the original in a new tab', onRow(openOriginal)],
	[['A'], 'mark all as read', () => { const b = $('#mark-all button'); if (b) b.click(); }],
];
const PAGE_KEYS = [
	[['r'], 'refresh', () => go(location.pathname + location.search.replace(/[?&]from=\d+/, ''))],
	[['/'], 'search', search],
	[['J'], 'next feed or folder with unread entries', () => place(1)],
	[['K'], 'previous feed or folder with unread entries', () => place(-1)],
	[['g u'], 'unread entries', () => go('./?view=unread')],
	[['g a'], 'all entries', () => go('./?view=all')],
	[['g s'], 'starred entries', () => go('./?view=starred')],
	[['g f'], 'feeds', () => go('./feeds')],
	[['u'], 'show or hide the column', showColumn],
	[['?'], 'show these keys', showKeys],
	[['Esc'], 'close', escape],
];
const ACTS = new Map([...(river ? RIVER_KEYS : []), ...PAGE_KEYS].flatMap(
	([names, , act]) => names.map(name => [name, act])));
const KEY_NAMES = {' ': 'Space', Escape: 'Esc'};

// An entry on a page of its own becomes read when it is shown.
document.querySelectorAll('.alone .mark').forEach(mark => {
	change('read', mark.value, '1');
	mark.remove();
});

let prefix = 0; // when g was pressed
document.addEventListener('keydown', e => {
	const {target} = e, key = KEY_NAMES[e.key] || e.key;
	if (!column || e.ctrlKey || e.metaKey || e.altKey || e.isComposing || $('dialog[open]'))
		return;
	if (target.closest('input, select, textarea, [contenteditable]')) {
		const form = target.closest('.labels details');
		if (key === 'Esc')
			target.blur();
		if (key === 'Esc' && form)
			form.open = false;
		return;
	}
	if (key === 'Enter' && target.closest('a, button, summary'))
		return; // a click does it
	const act = (Date.now() - prefix < 1500 && ACTS.get('g ' + key)) || ACTS.get(key);
	prefix = key === 'g' ? Date.now() : 0;
	if (act && act(e) !== false)
		e.preventDefault();
});
