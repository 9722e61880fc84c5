
// The conversation: the path to one leaf, in groups that are drawn when they
// come near the window and given up again when they are far.

const settings = { tools: false, thinking: false };
const GROUP = 10, NEAR = "1500px", FAR = 8; // FAR in windows
const view = { leaf: -1, path: [], list: [], place: new Map(), results: new Map(), groups: [] };

const near = new IntersectionObserver((changes) => {
  for (const c of changes) {
    const g = c.target.group;
    g.near = c.isIntersecting;
    if (g.near) drawGroup(g);
  }
}, { rootMargin: NEAR + " 0px" });

const far = new IntersectionObserver((changes) => {
  for (const c of changes) if (!c.isIntersecting) dropGroup(c.target.group);
}, { rootMargin: FAR * 100 + "% 0px" });

const anchors = CSS.supports("overflow-anchor", "auto");

// estimate is about how high an entry will be.
function estimate(i) {
  const row = rows[i];
  if (row[KIND] === "user" || row[KIND] === "assistant") return Math.min(90 + row[SIZE] / 4, 700);
  return 60;
}

// drawable says that the entries of a group have been loaded, with the results of
// their calls.
function drawable(g) {
  return g.rows.every((i) => here(i) && (rows[i][KIND] !== "assistant" || list(rows[i][REFS]).every((id) => !view.results.has(id) || here(view.results.get(id)))));
}

function drawGroup(g) {
  if (g.drawn || !drawable(g)) return;
  g.drawn = true;
  const rect = g.box.getBoundingClientRect();
  g.box.style.minHeight = "";
  g.box.replaceChildren(...g.rows.map((i, n) => article(i, n > 0 ? g.rows[n - 1] : g.before, view.results)));
  // Where the browser does not keep the place by itself, and the group is above.
  if (!anchors && rect.bottom < 0) window.scrollBy(0, g.box.offsetHeight - rect.height);
  if (search.hit) paint(g.box);
}

function dropGroup(g) {
  if (!g.drawn || g.near || printing) return;
  if (g.box.contains(document.activeElement)) return;
  g.box.style.minHeight = g.box.offsetHeight + "px";
  g.box.replaceChildren();
  g.drawn = false;
}

// show draws the path to a leaf.
function show(leaf) {
  view.leaf = leaf;
  view.path = leaf < 0 ? [] : pathTo(leaf);
  view.results = new Map();
  const calls = new Set();
  for (const i of view.path) {
    const row = rows[i];
    if (row[KIND] === "assistant" && row[REFS]) row[REFS].forEach((id) => calls.add(id));
    if (row[KIND] === "toolResult" && row[REFS]) view.results.set(row[REFS][0], i);
  }
  const prompts = view.path.filter((i) => rows[i][KIND] === "system").length;
  const start = view.path.findIndex((i) => rows[i][KIND] === "user" || rows[i][KIND] === "assistant");
  view.list = view.path.filter((i, n) => shown(i, calls, n > start && start >= 0, prompts));
  view.place = new Map();
  // A result stands where its call does.
  const callers = new Map();
  let last = 0;
  const at = new Map(view.list.map((i, n) => [i, n]));
  for (const i of view.path) {
    const row = rows[i];
    if (row[KIND] === "assistant" && row[REFS]) for (const id of row[REFS]) callers.set(id, at.get(i));
    if (at.has(i)) last = at.get(i);
    view.place.set(i, row[KIND] === "toolResult" && row[REFS] && callers.has(row[REFS][0]) ? callers.get(row[REFS][0]) : last);
  }
  near.disconnect();
  far.disconnect();
  view.groups = [];
  const boxes = document.createDocumentFragment();
  for (let n = 0; n < view.list.length; n += GROUP) {
    const g = { rows: view.list.slice(n, n + GROUP), before: n > 0 ? view.list[n - 1] : -1, drawn: false, near: false, box: el("div", { class: "group" }) };
    g.box.group = g;
    g.box.style.minHeight = g.rows.reduce((sum, i) => sum + estimate(i), 0) + "px";
    view.groups.push(g);
    boxes.append(g.box);
  }
  $("entries").replaceChildren(boxes);
  for (const g of view.groups) { near.observe(g.box); far.observe(g.box); }
  $("end").replaceChildren(view.list.length ? aside("End of this branch") : aside("There are no messages in this session."));
  drawOutline();
}

// redraw draws what is drawn once more, after a setting changed.
function redraw() {
  folds.clear();
  for (const g of view.groups) if (g.drawn) { g.drawn = false; drawGroup(g); }
}

// articleOf draws the place of a row of the path and gives its article.
function articleOf(i) {
  const place = view.place.get(i);
  if (place === undefined || !view.list.length) return null;
  const g = view.groups[Math.floor(place / GROUP)];
  drawGroup(g);
  return g.box.children[place % GROUP] || null;
}

// reveal goes to an entry of any branch.
function reveal(i, focus) {
  if (!view.place.has(i)) show(newest[i]);
  if (!view.place.has(i)) show(i);
  const a = articleOf(i);
  if (!a) return null;
  scrollTo(a);
  // Groups above may still grow to their height.
  requestAnimationFrame(() => requestAnimationFrame(() => { if (a.isConnected && !search.moving) scrollTo(a); }));
  for (const old of document.querySelectorAll(".entry.target")) old.classList.remove("target");
  a.classList.add("target");
  if (focus) { a.tabIndex = -1; a.focus({ preventScroll: true }); }
  return a;
}

function scrollTo(a) {
  const r = a.getBoundingClientRect();
  window.scrollTo(0, window.scrollY + r.top - $("bar").offsetHeight - 12);
}

// current is the place in the list of the entry at the top of the window.
function current() {
  const top = $("bar").offsetHeight + 24;
  for (let n = 0; n < view.groups.length; n++) {
    const g = view.groups[n], r = g.box.getBoundingClientRect();
    if (r.bottom <= top) continue;
    if (!g.drawn) return n * GROUP;
    for (let k = 0; k < g.box.children.length; k++) if (g.box.children[k].getBoundingClientRect().bottom > top) return n * GROUP + k;
  }
  return view.list.length - 1;
}

function step(by, only) {
  for (let n = current() + by; n >= 0 && n < view.list.length; n += by) {
    if (!only || rows[view.list[n]][KIND] === only) { reveal(view.list[n], true); return; }
  }
}

// Branches: entries below one that say something, each with its newest leaf.
const speaks = (i) => !["label", "context_edit", "usage", "custom", "leaf", "session_info"].includes(rows[i][KIND]);

function branchesAt(i) {
  return children[i].filter((c) => speaks(c) || children[c].length > 0);
}

function switcher(i, forks) {
  const chosen = forks.findIndex((c) => view.place.has(c));
  return el("div", { class: "branches", role: "group", "aria-label": "Branches from here" }, count(forks.length, "branch", "branches") + " from here:",
    ...forks.map((c, n) => el("button", {
      class: "plain-button", type: "button", "aria-pressed": String(n === chosen), disabled: n === chosen,
      title: wordsOf(c), onclick: () => { location.hash = anchor(rows[c][ID]); show(newest[c]); reveal(c, true); },
    }, String(n + 1))));
}

let printing = false;
window.addEventListener("beforeprint", () => { printing = true; view.groups.forEach(drawGroup); });
window.addEventListener("afterprint", () => { printing = false; });
