// SPDX-License-Identifier: ISC
// Zoom, move and tooltips. The rows are drawn in ms; their viewBox selects the visible part.
"use strict";
const all = document.getElementById("all");
const rows = document.getElementById("rows"), busy = document.getElementById("busy");
const axis = document.getElementById("axis"), tip = document.getElementById("tip");
const left = rows.x.baseVal.value, across = rows.width.baseVal.value;
const whole = rows.viewBox.baseVal.width;
let from = 0, wide = whole;

function step(span) {
	const s = 10 ** Math.floor(Math.log10(span / 10));
	return span / s > 50 ? 5 * s : span / s > 20 ? 2 * s : s;
}

function make(name, attributes, text) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const k in attributes)
		e.setAttribute(k, attributes[k]);
	e.textContent = text;
	axis.append(e);
}

function show() {
	wide = Math.min(Math.max(wide, 1), whole);
	from = Math.min(Math.max(from, 0), whole - wide);
	for (const inner of [rows, busy])
		inner.setAttribute("viewBox", `${from} 0 ${wide} ${inner.viewBox.baseVal.height}`);
	for (const note of document.querySelectorAll("[data-ms]")) {
		const x = left + (note.dataset.ms - from) / wide * across;
		note.setAttribute("transform", `translate(${x})`);
		const inside = x < left + 450, text = note.querySelector("text");
		note.style.display = x < left || x > left + across ? "none" : "";
		text.setAttribute("x", inside ? 8 : -8);
		text.setAttribute("text-anchor", inside ? "start" : "end");
	}
	axis.replaceChildren();
	const s = step(wide), y = +axis.dataset.y, digits = Math.max(0, Math.ceil(-Math.log10(s / 1000)));
	for (let i = Math.ceil(from / s); i * s <= from + wide; i++) {
		const x = left + (i * s - from) / wide * across;
		make("path", {class: "tick", d: `M${x} ${y}v5`}, "");
		make("text", {class: "dim", x: x, y: y + 18, "text-anchor": "middle"},
			whole < 1000 ? `${+(i * s).toFixed(3)} ms` : `${(i * s / 1000).toFixed(digits)} s`);
	}
}

// The time under the pointer.
function at(event) {
	const box = all.getBoundingClientRect();
	return from + ((event.clientX - box.left) / box.width * all.viewBox.baseVal.width - left) / across * wide;
}

function zoom(factor, middle) {
	const now = Math.min(Math.max(wide * factor, 1), whole);
	from = middle - (middle - from) * now / wide;
	wide = now;
	show();
}

rows.addEventListener("wheel", e => {
	e.preventDefault();
	zoom(e.deltaY > 0 ? 1.25 : 0.8, at(e));
}, {passive: false});
let grabbed = null;
rows.addEventListener("pointerdown", e => {
	grabbed = at(e);
	rows.setPointerCapture(e.pointerId);
});
rows.addEventListener("pointerup", () => { grabbed = null; });
rows.addEventListener("dblclick", () => { from = 0; wide = whole; show(); });
rows.addEventListener("pointermove", e => {
	if (grabbed !== null) {
		from += grabbed - at(e);
		show();
	}
	const bar = document.elementFromPoint(e.clientX, e.clientY)?.closest("#rows g");
	tip.style.display = bar ? "block" : "none";
	if (bar) {
		tip.textContent = bar.querySelector("title, desc").textContent;
		tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
		tip.style.top = Math.min(e.clientY + 18, innerHeight - tip.offsetHeight - 8) + "px";
	}
});
rows.addEventListener("pointerleave", () => { tip.style.display = "none"; });
addEventListener("keydown", e => {
	const key = {"+": () => zoom(0.8, from + wide / 2), "-": () => zoom(1.25, from + wide / 2),
		"0": () => { from = 0; wide = whole; show(); },
		ArrowLeft: () => { from -= wide / 10; show(); },
		ArrowRight: () => { from += wide / 10; show(); }}[e.key];
	if (key && !e.ctrlKey && !e.metaKey)
		key();
});
// a <title> would show the browser's own tooltip beside ours
for (const t of rows.querySelectorAll("title")) {
	const d = document.createElementNS("http://www.w3.org/2000/svg", "desc");
	d.textContent = t.textContent;
	t.replaceWith(d);
}
show();
