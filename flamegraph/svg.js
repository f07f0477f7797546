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
const fh = num('frameHeight'), fs = num('fontSize'), cell = num('cell'), top = num('top'), bottom = num('bottom');
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

/* State. */
let zoom = 0, current = 0, pattern = '', ignoreCase = false, hits = null, width = 0, height = 0, inView = [];
const baseHeight = Number(svg.getAttribute('height'));
const weightOf = (i) => i === 0 ? whole : total[i];

function element(parentNode, name, attributes, text) {
	const e = document.createElementNS(SVG, name);
	for (const key in attributes)
		e.setAttribute(key, attributes[key]);
	if (text !== undefined)
		e.textContent = text;
	parentNode.appendChild(e);
	return e;
}

/* Wide characters take two columns, as in svg_text.c. */
function columns(c) {
	const x = c.codePointAt(0);
	return x >= 0x1100 && (x <= 0x115f || x >= 0x2e80 && x <= 0xa4cf || x >= 0xac00 && x <= 0xd7a3 ||
		x >= 0xf900 && x <= 0xfaff || x >= 0xfe30 && x <= 0xfe6f || x >= 0xff00 && x <= 0xff60 ||
		x >= 0xffe0 && x <= 0xffe6 || x >= 0x1f300 && x <= 0x1f64f || x >= 0x1f900 && x <= 0x1f9ff ||
		x >= 0x20000) ? 2 : 1;
}

function fit(l, cells) {
	const name = names[l];
	if (cells < 3)
		return '';
	if (!wide[l])
		return name.length <= cells ? name : name.slice(0, cells - 2) + '..';
	let used = 0, out = '';
	for (const c of name)
		used += columns(c);
	if (used <= cells)
		return name;
	used = 0;
	for (const c of name) {
		used += columns(c);
		if (used > cells - 2)
			break;
		out += c;
	}
	return out + '..';
}

function deltaColor(i) {
	const delta = sign * dself[i], rest = delta ? Math.floor(210 * (1 - Math.min(1, Math.abs(delta) / num('maxDelta')))) : 255;
	const hex = (delta > 0 ? 0xff0000 + rest * 257 : rest * 65792 + 255);
	return '#' + hex.toString(16).padStart(6, '0');
}

/* Whether letters on this colour must be light. */
function deep(color) {
	const c = parseInt(color.slice(1), 16);
	return 3 * (c >> 16) + 6 * (c >> 8 & 255) + (c & 255) < 1100;
}

const colorOf = (i) => hits && hits[label[i]] ? 'hit' : diff ? deltaColor(i) : colors[label[i]];

function paint(e, color) {
	if (color[0] === '#') {
		e.setAttribute('fill', color);
		e.removeAttribute('class');
	} else {
		e.setAttribute('class', color);
	}
}

/* Elements are kept and used again. */
const above = element(frames, 'g', {class: 'above'}), slivers = element(frames, 'g', {}), boxes = element(frames, 'g', {});
const pool = [], abovePool = [];

function box(pool, where, index) {
	if (index < pool.length) {
		pool[index].g.style.display = '';
		return pool[index];
	}
	const g = element(where, 'g', {}), rect = element(g, 'rect', {height: fh - 1}), text = element(g, 'text', {});
	text.appendChild(document.createTextNode(''));
	pool.push({g: g, rect: rect, text: text, words: text.firstChild});
	return pool[index];
}

function hideRest(pool, from) {
	for (let k = from; k < pool.length && pool[k].g.style.display !== 'none'; k++)
		pool[k].g.style.display = 'none';
}

const yOf = (d) => inverted ? top + d * fh : height - bottom - (d + 1) * fh;
const round = (x) => Math.round(x * 100) / 100;

function put(b, i, x, w, y) {
	paint(b.rect, colorOf(i));
	b.rect.setAttribute('x', round(x));
	b.rect.setAttribute('y', y);
	b.rect.setAttribute('width', round(w - GAP));
	b.text.setAttribute('class', diff && deep(b.rect.getAttribute('fill')) ? 'light' : '');
	b.words.data = fit(label[i], Math.floor((w - 6) / cell));
	b.text.setAttribute('x', round(x + 3));
	b.text.setAttribute('y', round(y + fh / 2 - 0.5 + fs * 0.35));
}

/* The zoomed frame's subtree as far as it is wide enough, and the deepest level of it. */
function visible() {
	const k = (width - 2 * PAD) / weightOf(zoom), stop = end[zoom];
	const least = Math.max(num('minWidth') / k, num('minShare') * weightOf(zoom));
	let deepest = 0;
	inView = [];
	for (let i = zoom; i < stop;) {
		if (total[i] < least && i !== zoom) {
			i = end[i];
			continue;
		}
		inView.push(i);
		if (depth[i] > deepest)
			deepest = depth[i];
		i++;
	}
	return {k: k, deepest: deepest};
}

function draw() {
	if (set.fluid === '1' && svg === document.documentElement)
		width = Math.max(400, window.innerWidth);
	else
		width = Number(svg.getAttribute('width'));
	const view = visible(), byColor = new Map(), runs = [];
	const flush = function (run) {
		if (!run)
			return;
		const w = run.end - run.x, v = round(w > 2 ? w - GAP : w);
		const piece = 'M' + round(run.x) + ' ' + run.y + 'h' + v + 'v' + (fh - 1) + 'h-' + v + 'z';
		const pieces = byColor.get(run.color);
		if (pieces)
			pieces.push(piece);
		else
			byColor.set(run.color, [piece]);
	};
	resize(Math.max(baseHeight, (view.deepest + 1) * fh + top + bottom));
	let used = 0;
	for (const i of inView) {
		const x = PAD + (start[i] - start[zoom]) * view.k, w = weightOf(i) * view.k, y = yOf(depth[i]);
		if (w >= ELEMENT_PX) {
			put(box(pool, boxes, used++), i, x, w, y);
			continue;
		}
		/* Neighbours within a pixel are one sliver, in the colour of a hit or of the widest. */
		const color = colorOf(i), last = runs[depth[i]];
		if (last && x - last.end < TOUCH && x + w - last.x <= 1) {
			if (color === 'hit' || last.color !== 'hit' && w > last.best) {
				last.color = color;
				last.best = w;
			}
			last.end = x + w;
			continue;
		}
		flush(last);
		runs[depth[i]] = {x: x, end: x + w, best: w, color: color, y: y};
	}
	runs.forEach(flush);
	hideRest(pool, used);
	slivers.textContent = '';
	for (const [color, pieces] of byColor)
		paint(element(slivers, 'path', {d: pieces.join('')}), color);
	used = 0;
	for (let i = parent[zoom]; i >= 0; i = parent[i])
		put(box(abovePool, above, used++), i, PAD, width - 2 * PAD, yOf(depth[i]));
	hideRest(abovePool, used);
	ring(focusRing, current, keysUsed);
	ring(hoverRing, -1, false);
}

/* Numbers as the reader likes them. */
function decimals(x, digits) {
	const parts = x.toFixed(digits).split('.');
	parts[0] = parts[0].replace(/\d(?=(\d{3})+$)/g, '$&,');
	return parts.join('.');
}
const percent = (x) => decimals(100 * x, 2) + '%';

function amount(weight) {
	const x = weight * num('factor'), a = Math.abs(x);
	if (set.ns !== '1')
		return decimals(x, 0) + ' ' + set.countname;
	return a >= 1e9 ? (x / 1e9).toFixed(3) + ' s' : a >= 1e6 ? (x / 1e6).toFixed(1) + ' ms' :
		a >= 1e3 ? (x / 1e3).toFixed(1) + ' us' : x.toFixed(0) + ' ns';
}

function selfOf(i) {
	let left = total[i];
	for (let c = i + 1; c < end[i]; c = end[c])
		left -= total[c];
	return left;
}

const signed = (share) => (share > 0 ? '+' : '') + percent(share);

/* name, then what is known of it, by line. */
function describe(i) {
	const own = selfOf(i), w = weightOf(i);
	const lines = [amount(w) + ', ' + percent(w / whole) + (zoom ? ' of all, ' + percent(Math.min(1, w / weightOf(zoom))) + ' of the zoomed' : '')];
	const kind = kinds ? KINDS[letters[label[i]]] : '';
	lines.push((own > 0 ? 'itself ' + amount(own) + ', ' + percent(own / whole) : 'itself nothing') + (kind ? ' \u00b7 ' + kind : ''));
	if (diff)
		lines.push('change ' + signed(sign * dtotal[i] / whole) + ', itself ' + signed(sign * dself[i] / whole));
	return lines;
}

function sentence(i) {
	const w = weightOf(i);
	return set.nametype + ' ' + names[label[i]] + ' (' + amount(w) + ', ' + percent(w / whole) +
		(zoom ? '; ' + percent(Math.min(1, w / weightOf(zoom))) + ' of the zoomed' : '') +
		(diff ? '; ' + signed(sign * dself[i] / whole) : '') + ')';
}

/* Where a frame is now; null where it is not drawn. */
function place(i) {
	const k = (width - 2 * PAD) / weightOf(zoom);
	if (i < zoom)
		return end[i] > zoom ? {x: PAD, w: width - 2 * PAD, y: yOf(depth[i])} : null;
	if (i >= end[zoom])
		return null;
	return {x: PAD + (start[i] - start[zoom]) * k, w: weightOf(i) * k, y: yOf(depth[i])};
}

/* The frame at a point, or -1: down from the root. */
function frameAt(x, y) {
	const d = Math.floor(inverted ? (y - top) / fh : (height - bottom - y) / fh);
	if (d < 0 || x < PAD || x >= width - PAD)
		return -1;
	if (d < depth[zoom]) {
		let i = zoom;
		while (depth[i] > d)
			i = parent[i];
		return i;
	}
	const at = start[zoom] + (x - PAD) * weightOf(zoom) / (width - 2 * PAD);
	let i = zoom;
	while (depth[i] < d) {
		let c = i + 1;
		while (c < end[i] && at >= start[c] + total[c])
			c = end[c];
		if (c >= end[i] || at < start[c])
			return -1;
		i = c;
	}
	return i;
}

const hoverRing = element(svg, 'rect', {class: 'ring', height: fh - 1});
const focusRing = element(svg, 'rect', {class: 'ring focus', height: fh - 1, rx: 2});
let keysUsed = false;

function ring(rect, i, show) {
	const p = i >= 0 && show ? place(i) : null;
	rect.style.display = p ? 'block' : 'none';
	if (!p)
		return;
	rect.setAttribute('x', round(p.x));
	rect.setAttribute('y', p.y);
	rect.setAttribute('width', Math.max(1, round(p.w - GAP)));
}

/* The box beside the pointer. */
const tip = element(svg, 'g', {class: 'tip'}), tipBack = element(tip, 'rect', {rx: 5});

function wrap(text, cells) {
	const lines = [];
	for (let at = 0; at < text.length && lines.length < 6; at += cells)
		lines.push(text.slice(at, at + cells));
	if (text.length > 6 * cells)
		lines[5] = lines[5].slice(0, cells - 2) + '..';
	return lines;
}

function showTip(i, x, y) {
	const cells = Math.max(20, Math.min(90, Math.floor((width - 60) / cell)));
	const name = wrap(names[label[i]] || ' ', cells), lines = name.concat(describe(i));
	while (tip.childNodes.length > 1)
		tip.removeChild(tip.lastChild);
	lines.forEach((line, k) => element(tip, 'text', {x: 9, y: (k + 1) * fs * 1.4 + 2, class: k < name.length ? '' : 'quiet'}, line));
	tip.style.display = 'block';
	const w = Math.max(...Array.from(tip.querySelectorAll('text'), (t) => t.getComputedTextLength())) + 18;
	const h = lines.length * fs * 1.4 + 12, bottomEdge = viewBottom();
	tipBack.setAttribute('width', round(w));
	tipBack.setAttribute('height', round(h));
	const left = Math.max(4, Math.min(x + 14, width - w - 4));
	const above = y + 18 + h > bottomEdge ? y - h - 10 : y + 18;
	tip.setAttribute('transform', 'translate(' + round(left) + ' ' + round(Math.max(2, above)) + ')');
}

function hideTip() {
	tip.style.display = 'none';
	ring(hoverRing, -1, false);
	details.textContent = keysUsed ? sentence(current) : '';
}

/* From the window to the picture. */
function point(event) {
	const m = svg.getScreenCTM().inverse();
	return {x: event.clientX * m.a + event.clientY * m.c + m.e, y: event.clientX * m.b + event.clientY * m.d + m.f};
}
const viewBottom = () => point({clientX: 0, clientY: window.innerHeight}).y;

/* Search. */
function search(text) {
	pattern = text;
	hits = null;
	input.classList.remove('bad');
	if (text) {
		let test;
		try {
			test = new RegExp(text, ignoreCase ? 'i' : '');
		} catch (e) {
			input.classList.add('bad');
			matched.textContent = 'not a regular expression';
			return;
		}
		hits = new Uint8Array(names.length);
		for (let l = 0; l < names.length; l++)
			hits[l] = letters[l] !== 'a' && test.test(names[l]) ? 1 : 0;
	}
	showMatched();
}

/* Weight of all matched frames below i, each part once. */
function matchedWeight(i) {
	let sum = 0;
	for (let k = i, stop = end[i]; k < stop;) {
		if (hits[label[k]]) {
			sum += total[k];
			k = end[k];
		} else {
			k++;
		}
	}
	return sum;
}

function showMatched() {
	if (!hits) {
		matched.textContent = '';
		return;
	}
	let text = 'Matched: ' + decimals(100 * matchedWeight(0) / whole, 1) + '%';
	if (zoom) {
		let inside = matchedWeight(zoom);
		for (let i = zoom; i >= 0; i = parent[i])
			if (hits[label[i]])
				inside = total[zoom];
		text += ' (' + decimals(100 * inside / total[zoom], 1) + '% of the zoomed)';
	}
	matched.textContent = text + (num('cut') > 1 ? ' or more' : '');
	matched.title = num('cut') > 1 ? 'A large profile: the lightest frames are not in this file and cannot match.' : '';
}

/* The state in the address: s, i (ignore case), and x (weight to the left), y (depth) of the zoomed frame. */
function remember(push) {
	const q = new URLSearchParams();
	if (zoom) {
		q.set('x', start[zoom]);
		q.set('y', depth[zoom]);
	}
	if (pattern)
		q.set('s', pattern);
	if (ignoreCase)
		q.set('i', '1');
	const hash = '#' + q.toString();
	if (hash === (location.hash || '#'))
		return;
	try {
		history[push ? 'pushState' : 'replaceState'](null, '', hash);
	} catch (e) {
		/* Where pictures may not touch the address, they do without. */
	}
}

function recall() {
	const q = new URLSearchParams(location.hash.slice(1));
	const x = Number(q.get('x')), y = Number(q.get('y'));
	zoom = 0;
	if (q.has('x') && y > 0) {
		let i = 0;
		while (i < n && !(start[i] === x && depth[i] === y))
			i = start[i] + total[i] <= x || depth[i] >= y ? end[i] : i + 1;
		zoom = i < n ? i : 0;
	}
	current = zoom;
	ignoreCase = q.get('i') === '1';
	caseButton.setAttribute('aria-pressed', ignoreCase);
	input.value = q.get('s') || '';
	search(input.value);
	reset.hidden = !zoom;
	draw();
}

function zoomTo(i) {
	const before = place(i);
	if (i === zoom)
		return;
	zoom = current = i;
	reset.hidden = !zoom;
	const old = height;
	draw();
	/* Frames stay on the screen where they were. */
	if (!inverted && before && height !== old)
		window.scrollBy(0, height - old);
	showMatched();
	remember(true);
	hideTip();
}

/* The tools. */
const header = find('header'), legend = find('legend'), title = find('title');
const tools = element(header, 'foreignObject', {y: Math.max(2, fs * 1.6 - 15), height: 30, class: 'ui'});
const html = (where, name, attributes) => {
	const e = document.createElementNS(XHTML, name);
	for (const key in attributes)
		e.setAttribute(key, attributes[key]);
	where.appendChild(e);
	return e;
};
const bar = html(tools, 'div', {class: 'tools ui', role: 'toolbar', 'aria-label': 'Flame graph'});
const matched = html(bar, 'span', {class: 'matched', role: 'status'});
const reset = html(bar, 'button', {type: 'button', class: 'reset', title: 'Show everything again (Esc)'});
reset.textContent = 'Reset zoom';
reset.hidden = true;
const input = html(bar, 'input', {type: 'search', class: 'search', placeholder: 'Search: regular expression', 'aria-label': 'Search frames by regular expression (Ctrl-F or /)', spellcheck: 'false', autocomplete: 'off'});
const caseButton = html(bar, 'button', {type: 'button', class: 'ignorecase', title: 'Ignore upper and lower case', 'aria-pressed': 'false', 'aria-label': 'Ignore case'});
caseButton.textContent = 'aA';
const headBack = document.createElementNS(SVG, 'rect');
headBack.setAttribute('class', 'headback');
header.insertBefore(headBack, header.firstChild);

function resize(h) {
	height = h;
	svg.setAttribute('width', width);
	/* At least as high as the window: what lies below the picture has its background and room for tips. */
	const room = svg === document.documentElement ? Math.max(height, window.innerHeight) : height;
	svg.setAttribute('height', room);
	svg.setAttribute('viewBox', '0 0 ' + width + ' ' + room);
	details.setAttribute('y', height - fs);
	if (legend)
		legend.setAttribute('x', width - PAD);
	const left = PAD + title.getComputedTextLength() + 20;
	tools.setAttribute('x', left);
	tools.setAttribute('width', Math.max(100, width - left - PAD));
	headBack.setAttribute('width', width);
	headBack.setAttribute('height', top - 3);
	follow();
}

/* The header stays in sight. */
function follow() {
	const y = svg === document.documentElement ? window.scrollY : 0;
	header.setAttribute('transform', 'translate(0 ' + y + ')');
	headBack.style.display = y ? '' : 'none';
}

function research(push) {
	search(input.value);
	draw();
	remember(push);
}

/* Keys. */
function neighbour(i, step) {
	/* The next frame of the same depth that is drawn. */
	let best = -1;
	for (const k of inView) {
		if (depth[k] !== depth[i] || k === i)
			continue;
		if (step > 0 && k > i)
			return k;
		if (step < 0 && k < i)
			best = k;
	}
	return best;
}

function heaviestChild(i) {
	let best = -1;
	if (i < zoom) {
		for (best = zoom; parent[best] !== i; best = parent[best])
			;
		return best;
	}
	for (let c = i + 1; c < end[i]; c = end[c])
		if (best < 0 || total[c] > total[best])
			best = c;
	return best;
}

function nextHit(step) {
	const all = inView.filter((i) => hits && hits[label[i]]);
	if (!all.length)
		return -1;
	if (step > 0)
		return all.find((i) => i > current) ?? all[0];
	return all.reverse().find((i) => i < current) ?? all[0];
}

function focusOn(i) {
	if (i < 0)
		return;
	keysUsed = true;
	current = i;
	ring(focusRing, i, true);
	details.textContent = sentence(i);
	frames.setAttribute('aria-label', sentence(i));
	const p = place(i);
	if (p) {
		const b = focusRing.getBoundingClientRect(), head = svg === document.documentElement ? top : 0;
		if (b.top < head)
			window.scrollBy(0, b.top - head - fh);
		else if (b.bottom > window.innerHeight)
			window.scrollBy(0, b.bottom - window.innerHeight + 2 * fh);
	}
}

function escape() {
	if (zoom)
		zoomTo(0);
	else if (pattern) {
		input.value = '';
		research(false);
	}
	focusOn(current);
}

const up = () => inverted ? parent[current] : heaviestChild(current);
const down = () => inverted ? heaviestChild(current) : parent[current];
const frameKeys = {
	ArrowUp: () => focusOn(up()),
	ArrowDown: () => focusOn(down()),
	ArrowLeft: () => focusOn(neighbour(current, -1)),
	ArrowRight: () => focusOn(neighbour(current, 1)),
	Home: () => focusOn(zoom),
	Enter: () => { zoomTo(current); focusOn(current); },
	' ': () => { zoomTo(current); focusOn(current); },
	Backspace: () => { if (zoom) { zoomTo(parent[zoom]); focusOn(current); } },
	n: () => focusOn(nextHit(1)),
	N: () => focusOn(nextHit(-1)),
};

function onKey(event) {
	const typing = event.target === input, button = event.target.localName === 'button';
	if ((event.key === 'f' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !typing)) {
		input.focus();
		input.select();
	} else if (event.key === 'Escape') {
		if (typing && input.value) {
			input.value = '';
			research(false);
		} else {
			frames.focus();
			escape();
		}
	} else if (typing && event.key === 'Enter') {
		clearTimeout(timer);
		research(false);
		frames.focus();
		focusOn(nextHit(1));
	} else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey &&
		   frameKeys[event.key] && !(button && (event.key === 'Enter' || event.key === ' '))) {
		if (document.activeElement !== frames)
			frames.focus();
		frameKeys[event.key]();
	} else {
		return;
	}
	event.preventDefault();
}

let timer = 0;
function listen() {
	frames.addEventListener('click', (event) => {
		const p = point(event), i = frameAt(p.x, p.y);
		keysUsed = false;
		if (i >= 0)
			zoomTo(i);
	});
	svg.addEventListener('pointermove', (event) => {
		const p = point(event), i = header.contains(event.target) ? -1 : frameAt(p.x, p.y);
		const box = i >= 0 ? place(i) : null;
		if (!box || !frames.contains(event.target)) {
			hideTip();
			return;
		}
		ring(hoverRing, i, true);
		details.textContent = sentence(i);
		showTip(i, p.x, p.y);
	});
	svg.addEventListener('pointerleave', hideTip);
	frames.addEventListener('focus', () => {
		if (frames.matches(':focus-visible'))
			focusOn(current);
	});
	frames.addEventListener('blur', () => {
		keysUsed = false;
		ring(focusRing, -1, false);
	});
	input.addEventListener('input', () => {
		clearTimeout(timer);
		timer = setTimeout(() => research(false), n > 100000 ? 150 : 60);
	});
	caseButton.addEventListener('click', () => {
		ignoreCase = !ignoreCase;
		caseButton.setAttribute('aria-pressed', ignoreCase);
		research(false);
	});
	reset.addEventListener('click', () => zoomTo(0));
	window.addEventListener('keydown', onKey);
	window.addEventListener('hashchange', recall);
	window.addEventListener('popstate', recall);
	window.addEventListener('scroll', follow, {passive: true});
	window.addEventListener('resize', () => {
		if (set.fluid === '1')
			draw();
	});
}

decode();
for (const old of Array.from(frames.children))
	if (old !== above && old !== slivers && old !== boxes)
		old.remove();
frames.setAttribute('tabindex', '0');
frames.setAttribute('role', 'application');
frames.setAttribute('aria-label', 'Flame graph: arrow keys move between frames, Enter zooms, Escape shows everything again');
details.setAttribute('aria-live', 'polite');
svg.appendChild(tip);
listen();
recall();
/* A picture that is higher than the window is read from its root. */
if (!inverted && svg === document.documentElement)
	window.scrollTo(0, height);
})();
