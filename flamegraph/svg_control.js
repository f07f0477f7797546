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
	matched.title = num('cut') > 1 ? 'A large profile: the lightest frames are not in this file and cannot match.' : matched.textContent;
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
const TOOLS_HEIGHT = 30, TOOLS_LEAST = 28 * fs;
const header = find('header'), legend = find('legend'), title = find('title'), subtitle = find('subtitle');
const kindsShown = legend ? Array.from(legend.querySelectorAll('tspan')) : [];
const tools = element(header, 'foreignObject', {height: TOOLS_HEIGHT, class: 'ui'});
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

/* Breaks the legend, at the right, into rows beside and below the subtitle. Returns the number of rows that it adds. */
function breakLegend(room) {
	let used = subtitle ? subtitle.getComputedTextLength() + 20 : 0, at = 0, rows = 0;
	for (const square of kindsShown) {
		const length = square.textContent.length + square.nextSibling.length, w = legend.getSubStringLength(at, length);
		const breaks = used > 0 && used + w > room;
		const place = breaks ? {x: width - PAD, dy: fs * 1.5} : at ? {dx: 16} : {};
		for (const name of ['x', 'dx', 'dy'])
			if (name in place)
				square.setAttribute(name, place[name]);
			else
				square.removeAttribute(name);
		rows += breaks;
		used = (breaks ? 0 : used) + w + 16;
		at += length;
	}
	return rows;
}

/* Places the parts of the header: the tools beside the title or, in a narrow window, below it. */
function arrange() {
	const room = width - 2 * PAD, beside = title.getComputedTextLength() + 20, below = beside + TOOLS_LEAST > room;
	const left = below ? 0 : beside, y = below ? TOOLS_HEIGHT : 0;
	tools.setAttribute('x', PAD + left);
	tools.setAttribute('y', y + Math.max(2, fs * 1.6 - 15));
	tools.setAttribute('width', Math.max(100, room - left));
	if (subtitle)
		subtitle.setAttribute('y', y + fs * 4.1);
	if (legend) {
		legend.setAttribute('x', width - PAD);
		legend.setAttribute('y', y + num('top') - fs * 0.9);
	}
	top = num('top') + y + breakLegend(room) * fs * 1.5;
	headBack.setAttribute('width', width);
	headBack.setAttribute('height', top - 3);
}

function resize(h) {
	height = h;
	svg.setAttribute('width', width);
	/* At least as high as the window: what lies below the picture has its background and room for tips. */
	const room = svg === document.documentElement ? Math.max(height, window.innerHeight) : height;
	svg.setAttribute('height', room);
	svg.setAttribute('viewBox', '0 0 ' + width + ' ' + room);
	details.setAttribute('y', height - fs);
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
	/* No popstate: the browser sends it too, so the picture would be drawn twice. Each entry has an address of its own. */
	window.addEventListener('hashchange', recall);
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
