
// Search over every text of every branch, a slice of time after the other.

const search = { pattern: null, query: "", entries: [], at: -1, ranges: [], range: -1, hit: false, run: 0, total: 0, moving: false };
const LIMIT = 5000; // entries

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

async function find(query) {
  const run = ++search.run;
  clearHits();
  Object.assign(search, { query, pattern: null, entries: [], at: -1, total: 0, hit: false });
  if (query.trim() === "") { report(""); return; }
  const pattern = new RegExp(escaped(query).replace(/\s+/g, "\\s+"), "giu");
  search.pattern = pattern;
  // Most lines can be passed over as they are: plain letters have one form.
  const plain = (query.match(/[A-Za-z0-9_]+/g) || []).sort((a, b) => b.length - a.length)[0];
  const quick = plain ? new RegExp(plain, "i") : null;
  report("…");
  // The shown branch comes first, then the others.
  const order = [...view.path, ...rows.keys()];
  const done = new Set();
  let until = performance.now() + 12;
  for (const i of order) {
    if (done.has(i)) continue;
    if (!here(i)) await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
    if (run !== search.run) return;
    done.add(i);
    if (performance.now() > until) {
      await new Promise((resolve) => setTimeout(resolve));
      if (run !== search.run) return;
      until = performance.now() + 12;
      report("…");
    }
    const raw = rawOf(i);
    if (raw === undefined || (quick && !quick.test(raw)) || !speaks(i)) continue;
    let n = 0;
    for (const text of textsOf(i)) for (pattern.lastIndex = 0; n < 1000 && pattern.exec(text); ) n++;
    if (n === 0) continue;
    search.total += n;
    search.entries.push(i);
    if (search.entries.length === 1) go(1);
    if (search.entries.length >= LIMIT) break;
  }
  report(search.entries.length ? null : "none");
}

function report(text) {
  const n = search.entries.length;
  $("hits").textContent = text === null || (text === "…" && n) ? search.at + 1 + " / " + n + (text === "…" ? "…" : "") : text;
  $("hits").title = n ? count(search.total, "hit", "hits") + " in " + count(n, "entry", "entries") : "";
  $("next").disabled = $("previous").disabled = n === 0;
}

// go moves to the next hit or the one before: within an entry first.
function go(by) {
  if (!search.entries.length) return;
  const range = search.range + by;
  if (search.at >= 0 && range >= 0 && range < search.ranges.length) {
    search.range = range;
  } else {
    search.at = (search.at + by + search.entries.length) % search.entries.length;
    const i = search.entries[search.at];
    search.hit = true;
    search.moving = true;
    const a = reveal(i, false);
    if (!a) return;
    unfold(a);
    search.ranges = rangesIn(a);
    paint(a.parentElement);
    search.range = by > 0 ? 0 : Math.max(0, search.ranges.length - 1);
  }
  paintCurrent();
  const now = search.ranges[search.range];
  if (now) centre(now);
  // Once more when groups above have their height.
  requestAnimationFrame(() => requestAnimationFrame(() => { if (now && now.startContainer.isConnected) centre(now); search.moving = false; }));
  report(null);
}

function centre(range) {
  // A part that is not laid out would tell a place where it is not.
  const part = range.startContainer.parentElement.closest(".part");
  if (part) part.style.contentVisibility = "visible";
  const r = range.getBoundingClientRect();
  const scroller = range.startContainer.parentElement.closest("pre, .table");
  if (scroller) {
    const box = scroller.getBoundingClientRect();
    if (r.right > box.right || r.left < box.left) scroller.scrollLeft += r.left - box.left - box.width / 3;
  }
  if (r.top < $("bar").offsetHeight + 8 || r.bottom > innerHeight - 60) window.scrollBy(0, r.top - innerHeight / 3);
}

// unfold opens what holds hits.
function unfold(a) {
  const has = (text) => { search.pattern.lastIndex = 0; return search.pattern.test(text); };
  for (const box of a.querySelectorAll(".body > details")) {
    box.draw();
    for (const long of box.querySelectorAll(".block, .block-text")) if (long.whole && has(long.whole) && !has(long.textContent)) long.showAll();
    if (has(box.textContent)) box.open = true;
  }
  for (const long of a.querySelectorAll(".block, .block-text")) if (long.whole && has(long.whole) && !has(long.textContent)) long.showAll();
}

// rangesIn finds the hits in an article, across elements of one line of text.
function rangesIn(a) {
  const nodes = [], offsets = [];
  let text = "";
  const walker = document.createTreeWalker(a.querySelector(".body"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && text.length < 5e7) {
    if (walker.currentNode.parentElement.closest("button")) continue;
    offsets.push(text.length);
    nodes.push(walker.currentNode);
    text += walker.currentNode.data;
  }
  const place = (at) => {
    let low = 0, high = offsets.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (offsets[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return [nodes[low], at - offsets[low]];
  };
  const ranges = [];
  search.pattern.lastIndex = 0;
  for (let m; ranges.length < 1000 && (m = search.pattern.exec(text)); ) {
    const range = document.createRange();
    const [end, to] = place(m.index + m[0].length - 1);
    range.setStart(...place(m.index));
    range.setEnd(end, to + 1);
    ranges.push(range);
  }
  return ranges;
}

const canPaint = typeof Highlight === "function" && CSS.highlights;

// paint marks the hits that are drawn below an element; where a browser cannot,
// the entry is marked alone.
function paint(parent) {
  if (!canPaint || !search.pattern) return;
  let hits = CSS.highlights.get("hits");
  if (!hits || hits.size > 5000) {
    CSS.highlights.set("hits", (hits = new Highlight()));
    parent = document;
  }
  for (const a of parent.querySelectorAll(".entry")) {
    if (a.textContent.length < 200000) for (const r of rangesIn(a)) hits.add(new StaticRange(r));
  }
}

function paintCurrent() {
  if (!canPaint) return;
  const now = search.ranges[search.range];
  const one = new Highlight(...(now ? [now] : []));
  one.priority = 1;
  CSS.highlights.set("hit", one);
}

function clearHits() {
  search.ranges = [];
  search.range = -1;
  search.hit = false;
  if (canPaint) CSS.highlights.clear();
}

function searching(on) {
  $("bar").classList.toggle("searching", on);
  $("find").setAttribute("aria-expanded", String(on));
  $("find").setAttribute("aria-label", on ? "Close the search" : "Search");
  if (on) { $("query").focus(); $("query").select(); return; }
  $("query").value = "";
  $("query").blur();
  find("");
}
