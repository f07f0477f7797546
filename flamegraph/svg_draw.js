/* State. */
let zoom = 0, current = 0, pattern = '', ignoreCase = false, hits = null, width = 0, height = 0, inView = [];
let top = num('top'); /* of the frames */
const baseHeight = Number(svg.getAttribute('height')) - top;
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

/* As svg_text_managed_start in svg_text.c. */
function managedStart(name, cells) {
	const paren = name.indexOf('('), stop = paren < 0 ? name.length : paren, rest = paren < 0 ? 0 : 2;
	let nested = 0, at = 0;
	if (cells < 8 || stop + rest <= cells)
		return 0;
	for (let i = 0; i + 1 < stop; i++) {
		const c = name[i];
		nested += (c === '<' || c === '[') - (c === '>' || c === ']');
		if (c !== '.' || nested)
			continue;
		at = i + 1;
		if (2 + stop - at + rest <= cells)
			break;
	}
	return at;
}

function fit(l, cells) {
	const name = names[l];
	if (cells < 3)
		return '';
	if (!wide[l]) {
		if (name.length <= cells)
			return name;
		const at = letters[l] === 'm' ? managedStart(name, cells) : 0, text = (at ? '..' : '') + name.slice(at);
		return text.length <= cells ? text : text.slice(0, cells - 2) + '..';
	}
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

/* Whether letters on this colour must be white, as in palette.c. Style sheets decide for classes. */
function deep(color) {
	if (color[0] !== '#')
		return false;
	const c = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255)
		.map((x) => x <= 0.04045 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4));
	return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] < 0.179129;
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
	const color = colorOf(i);
	paint(b.rect, color);
	b.rect.setAttribute('x', round(x));
	b.rect.setAttribute('y', y);
	b.rect.setAttribute('width', round(w - GAP));
	b.text.setAttribute('class', deep(color) ? 'light' : '');
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
		width = Math.max(360, window.innerWidth);
	else
		width = Number(svg.getAttribute('width'));
	arrange();
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
	resize(top + Math.max(baseHeight, (view.deepest + 1) * fh + bottom));
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

