/* The picture's own script: zoom, search, tooltips, keys. Drawn anew for each view from the tree in the metadata. */
(function () {
'use strict';
const svg = document.currentScript && document.currentScript.ownerSVGElement || document.documentElement;
const SVG = 'http://www.w3.org/2000/svg', XHTML = 'http://www.w3.org/1999/xhtml';
const PAD = 10, ELEMENT_PX = 6, GAP = 0.5, TOUCH = 0.05;
const KINDS = {u: 'unknown', k: 'kernel', n: 'native', r: 'runtime', m: 'managed', i: 'inlined', d: 'idle', t: 'thread', a: ''};
const find = (name) => svg.querySelector('.' + name);
const data = find('profcpu-data'), set = data.dataset, frames = find('frames'), details = find('details');
const num = (key) => Number(set[key]);
const fh = num('frameHeight'), fs = num('fontSize'), cell = num('cell'), bottom = num('bottom');
const inverted = set.inverted === '1', diff = set.diff === '1', kinds = set.kinds === '1' && !diff;
const sign = set.negate === '1' ? -1 : 1, unit = num('unit'), whole = num('whole');

/* The tree, by column, in the order of drawing. */
const n = num('frames');
const start = new Float64Array(n), total = new Float64Array(n), label = new Uint32Array(n);
const parent = new Int32Array(n), depth = new Uint32Array(n), end = new Uint32Array(n);
const dself = diff ? new Float64Array(n) : null, dtotal = diff ? new Float64Array(n) : null;
let names = [], letters = '', colors = [], wide = [];

/* See svg_data.h. */
function reader(text) {
	let at = 0;
	const next = function () {
		let x = 0, times = 1, c;
		do {
			c = text.charCodeAt(at++) - 63;
			x += (c & 31) * times;
			times *= 32;
		} while (c & 32);
		return x;
	};
	next.signed = function () {
		const x = next();
		return x % 2 ? -(x - 1) / 2 : x / 2;
	};
	return next;
}

function decode() {
	const parts = data.children, lines = parts[0].textContent.split('\n');
	lines.pop();
	letters = lines.map((line) => line[0]).join('');
	names = lines.map((line) => line.slice(1));
	wide = names.map((name) => /[^\x20-\x7e]/.test(name));
	let next = reader(parts[1].textContent);
	colors = names.map(() => {
		const c = next();
		return kinds ? 'c' + c : '#' + c.toString(16).padStart(6, '0');
	});
	next = reader(parts[2].textContent);
	const ends = [0];
	for (let i = 0, node = -1; i < n; i++) {
		const head = next();
		for (let up = Math.floor(head / 4); up > 0; up--) {
			end[node] = i;
			node = parent[node];
		}
		const d = node < 0 ? 0 : depth[node] + 1;
		start[i] = ends[d] + (head & 1 ? next() * unit : 0);
		label[i] = next();
		total[i] = head & 2 ? total[node] : next() * unit;
		if (diff) {
			dself[i] = next.signed();
			dtotal[i] = next.signed();
		}
		parent[i] = node;
		depth[i] = d;
		ends[d] = start[i] + total[i];
		ends[d + 1] = start[i];
		end[i] = n;
		node = i;
	}
	/* Nodes that were still open end with the last one: set above. */
}

