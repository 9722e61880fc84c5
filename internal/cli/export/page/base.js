
// What everything else builds on: elements, and entries out of the page's data.
// Text from the session becomes text nodes, never markup.

const $ = (id) => document.getElementById(id);

// el makes an element: el("a", {class: "x", onclick: f, title: null}, "text", node).
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : String(value));
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);
const str = (v) => (typeof v === "string" ? v : "");
const list = (v) => (Array.isArray(v) ? v : []);

// A bad session must not keep the rest from being read.
function parse(text, otherwise) {
  try { return JSON.parse(text); } catch { return otherwise; }
}

const meta = parse($("meta").textContent, {});

// Columns of the index.
const ID = 0, PARENT = 1, KIND = 2, TIME = 3, SIZE = 4, TEXT = 5, REFS = 6;
const rows = parse($("index").textContent, []);
const byId = new Map();
const children = rows.map(() => []);
const roots = [];
const newest = rows.map((_, i) => i); // the last entry below each
const labels = new Map();
const edits = new Map();
rows.forEach((row, i) => {
  byId.set(row[ID], i);
  if (row[PARENT] < 0) roots.push(i);
  else children[row[PARENT]].push(i);
  if (row[KIND] === "label" && row[REFS]) labels.set(row[REFS][0], row[TEXT]);
  if (row[KIND] === "context_edit" && row[REFS]) edits.set(row[REFS][0], i);
});
for (let i = rows.length - 1; i >= 0; i--) {
  const parent = rows[i][PARENT];
  if (parent >= 0 && newest[i] > newest[parent]) newest[parent] = newest[i];
}

// pathTo lists the rows from a root to one of them; parents may go in a circle.
function pathTo(i) {
  const path = [], seen = new Set();
  for (; i >= 0 && !seen.has(i); i = rows[i][PARENT]) {
    seen.add(i);
    path.push(i);
  }
  return path.reverse();
}

// Entries stand in chunks of lines, most of which come after this script: a chunk
// is whole once there is another behind it. The lines of the last few are kept.
const chunks = document.getElementsByClassName("chunk");
const starts = list(meta.chunks);
const opened = new Map();

function linesOf(chunk) {
  let lines = opened.get(chunk);
  if (!lines) {
    lines = chunks[chunk].textContent.split("\n");
    lines.shift();
    if (opened.size >= 6) opened.delete(opened.keys().next().value);
    opened.set(chunk, lines);
  }
  return lines;
}

function chunkOf(i) {
  let low = 0, high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= i) low = middle;
    else high = middle - 1;
  }
  return low;
}

const here = (i) => document.readyState !== "loading" || chunkOf(i) + 1 < chunks.length;

const rawOf = (i) => { const c = chunkOf(i); return linesOf(c)[i - starts[c]]; };

function entryOf(i) {
  const e = parse(rawOf(i), null);
  return isObject(e) ? e : {};
}

const messageOf = (i) => { const m = entryOf(i).message; return isObject(m) ? m : {}; };

// blocksOf is content as a list of blocks.
function blocksOf(content) {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return list(content).filter(isObject);
}

const textOf = (content) => blocksOf(content).filter((b) => b.type === "text").map((b) => str(b.text)).join("\n\n");

// textsOf is all the text of an entry that the page can show, for searching.
function textsOf(i) {
  const e = entryOf(i), texts = [];
  const add = (v) => {
    if (typeof v === "string") texts.push(v);
    else if (typeof v === "number") texts.push(String(v));
    else if (Array.isArray(v)) v.forEach(add);
    else if (isObject(v)) Object.values(v).forEach(add);
  };
  const m = isObject(e.message) ? e.message : e;
  for (const b of blocksOf(m.content)) {
    if (b.type === "toolCall") { add(b.name); add(b.arguments); }
    else if (b.type !== "image") { add(b.text); add(b.thinking); }
  }
  for (const key of ["toolName", "errorMessage", "command", "output", "summary", "customType", "label", "name", "modelId"]) add(m[key]);
  if (isObject(m.details)) add(m.details.diff);
  if (isObject(m.sections)) add(m.sections);
  return texts;
}

const count = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);

function bytes(n) {
  if (n < 1024) return n + " B";
  if (n < 1 << 20) return (n / 1024).toFixed(n < 10240 ? 1 : 0) + " KB";
  return (n / (1 << 20)).toFixed(1) + " MB";
}

function duration(ms) {
  if (!(ms > 0)) return "";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
  return Math.floor(ms / 60000) + " min " + Math.round((ms % 60000) / 1000) + " s";
}

function tokens(n) {
  if (n >= 1e6) return (n / 1e6).toFixed(1) + "M";
  if (n >= 1e4) return Math.round(n / 1e3) + "k";
  return n >= 1e3 ? (n / 1e3).toFixed(1) + "k" : String(n);
}

const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

function say(text) { $("status").textContent = text; }

// copy puts text into the clipboard, also where a page from a file may not ask
// for it.
async function copy(text, button) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const area = el("textarea", { class: "unseen", readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    try { done = document.execCommand("copy"); } catch { done = false; }
    area.remove();
  }
  say(done ? "Copied" : "The browser does not allow copying");
  if (!button) return;
  const before = button.textContent;
  button.textContent = done ? "copied" : "failed";
  setTimeout(() => { button.textContent = before; }, 1200);
}
