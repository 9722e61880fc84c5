
// Markdown, drawn as elements. HTML in it stays text; pictures from elsewhere
// become links, because the page fetches nothing.

const MAX_DEPTH = 12;
const MAX_MARKED = 4000; // a longer line is part of a paragraph

function markdown(text) {
  const box = el("div", { class: "md" });
  drawBlocks(box, text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
  return box;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +(.*)|$)/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DELIMITERS = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

function drawBlocks(parent, lines, depth) {
  if (depth > MAX_DEPTH) {
    parent.append(el("p", null, lines.join("\n")));
    return;
  }
  let words = []; // of the paragraph so far
  const flush = () => {
    if (words.length) {
      const p = el("p");
      drawInline(p, words.join("\n"), 0);
      parent.append(p);
    }
    words = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    let m;
    if (line.length > MAX_MARKED) {
      words.push(line);
    } else if (line.trim() === "") {
      flush();
    } else if ((m = FENCE.exec(line))) {
      flush();
      const fence = m[1], inner = [];
      const indent = line.search(/\S/);
      for (i++; i < lines.length; i++) {
        const close = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(lines[i]);
        if (close && close[1][0] === fence[0] && close[1].length >= fence.length) break;
        inner.push(lines[i].slice(Math.min(indent, lines[i].search(/\S|$/))));
      }
      const language = m[2].trim().split(/[\s{,]/)[0];
      parent.append(language === "diff" || language === "patch" ? diff(inner.join("\n")) : code(inner.join("\n"), language, { lines: 60 }));
    } else if ((m = HEADING.exec(line))) {
      flush();
      // The page's own headings are the first two levels.
      const h = el("h" + m[1].length);
      h.setAttribute("aria-level", String(Math.min(m[1].length + 2, 6)));
      drawInline(h, m[2] || "", 0);
      parent.append(h);
    } else if (words.length && /^ {0,3}(=+|-+)\s*$/.test(line)) {
      const h = el(line.trim()[0] === "=" ? "h1" : "h2");
      drawInline(h, words.join("\n"), 0);
      words = [];
      parent.append(h);
    } else if (RULE.test(line)) {
      flush();
      parent.append(el("hr"));
    } else if (QUOTE.test(line)) {
      flush();
      const inner = [];
      for (; i < lines.length && lines[i].trim() !== "" && ((m = QUOTE.exec(lines[i])) || inner.length); i++) {
        m = QUOTE.exec(lines[i]);
        inner.push(m ? m[1] : lines[i]);
      }
      i--;
      const quote = el("blockquote");
      drawBlocks(quote, inner, depth + 1);
      parent.append(quote);
    } else if ((m = ITEM.exec(line)) && (words.length === 0 || m[3])) {
      flush();
      i = drawList(parent, lines, i, depth);
    } else if (line.includes("|") && i + 1 < lines.length && lines[i + 1].includes("-") && lines[i + 1].length < 2000 && DELIMITERS.test(lines[i + 1]) && cells(line).length === cells(lines[i + 1]).length) {
      flush();
      i = drawTable(parent, lines, i);
    } else if (words.length === 0 && /^ {4}/.test(line)) {
      const inner = [];
      for (; i < lines.length && (/^ {4}/.test(lines[i]) || lines[i].trim() === ""); i++) inner.push(lines[i].slice(4));
      i--;
      while (inner.length && inner[inner.length - 1].trim() === "") inner.pop();
      parent.append(code(inner.join("\n"), ""));
    } else {
      words.push(line.trimStart());
    }
  }
  flush();
}

function drawList(parent, lines, i, depth) {
  const first = ITEM.exec(lines[i]);
  const ordered = /\d/.test(first[2]);
  const base = first[1].length;
  const box = el(ordered ? "ol" : "ul", ordered && parseInt(first[2], 10) !== 1 ? { start: parseInt(first[2], 10) } : null);
  while (i < lines.length) {
    const m = ITEM.exec(lines[i]);
    if (!m || m[1].length < base || m[1].length > base + 3 || /\d/.test(m[2]) !== ordered || RULE.test(lines[i])) break;
    const indent = m[1].length + m[2].length + 1;
    const inner = [m[3] || ""];
    let blank = false;
    for (i++; i < lines.length; i++) {
      const line = lines[i];
      if (line.trim() === "") { blank = true; inner.push(""); continue; }
      const lead = line.search(/\S/);
      const next = ITEM.exec(line);
      if (lead < Math.min(indent, base + 2) && (blank || next || FENCE.test(line) || HEADING.test(line))) break;
      if (next && next[1].length <= base + 1) break;
      inner.push(line.slice(Math.min(lead, indent)));
      blank = false;
    }
    while (inner.length && inner[inner.length - 1] === "") inner.pop();
    const item = el("li");
    const task = /^\[([ xX])\] /.exec(inner[0] || "");
    if (task) {
      item.className = "task";
      item.append(el("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[1] === " " ? "open" : "done" }), " ");
      inner[0] = inner[0].slice(4);
    }
    drawBlocks(item, inner, depth + 1);
    // A single line needs no paragraph.
    for (const p of [...item.children]) if (p.tagName === "P" && !inner.includes("")) p.replaceWith(...p.childNodes);
    box.append(item);
  }
  parent.append(box);
  return i - 1;
}

function cells(line) {
  const out = [""];
  const text = line.trim().replace(/^\|/, "").replace(/([^\\]|^)\|$/, "$1");
  let inCode = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\\" && text[i + 1] === "|") { out[out.length - 1] += "|"; i++; continue; }
    if (c === "`") inCode = !inCode;
    if (c === "|" && !inCode) out.push("");
    else out[out.length - 1] += c;
  }
  return out.map((c) => c.trim());
}

function drawTable(parent, lines, i) {
  const sides = cells(lines[i + 1]).map((c) => (c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : null));
  const row = (name, line) => {
    const all = cells(line);
    return el("tr", null, ...sides.map((side, n) => {
      const cell = el(name, { class: side, scope: name === "th" ? "col" : null });
      drawInline(cell, all[n] || "", 0);
      return cell;
    }));
  };
  const body = el("tbody");
  const table = el("table", null, el("thead", null, row("th", lines[i])), body);
  for (i += 2; i < lines.length && lines[i].includes("|") && lines[i].trim() !== ""; i++) body.append(row("td", lines[i]));
  parent.append(el("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, table));
  return i - 1;
}

// safeLink is an address that a reader may follow, "" for any other.
function safeLink(address) {
  const text = str(address).trim();
  if (!/^(?:https?:\/\/|mailto:)/i.test(text) || /[\x00-\x20\x7f]/.test(text)) return "";
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : "";
  } catch {
    return "";
  }
}

function link(address) {
  return el("a", { href: address, title: address, rel: "noopener noreferrer nofollow", target: "_blank" });
}

const SPECIAL = /[\\`*_~![<\n]|https?:\/\//g;

function drawInline(parent, text, depth) {
  let plain = "";
  const put = (node) => {
    if (plain) parent.append(plain);
    plain = "";
    parent.append(node);
  };
  const missing = new Set(); // marks that nothing closes from here on
  let i = 0;
  while (i < text.length) {
    SPECIAL.lastIndex = i;
    const found = depth > MAX_DEPTH ? null : SPECIAL.exec(text);
    if (!found) {
      plain += text.slice(i);
      break;
    }
    plain += text.slice(i, found.index);
    i = found.index;
    const c = text[i];
    let m;
    if (c === "\\" && /[!-/:-@[-`{-~\n]/.test(text[i + 1] || "")) {
      if (text[i + 1] === "\n") put(el("br"));
      else plain += text[i + 1];
      i += 2;
    } else if (c === "\n") {
      if (plain.endsWith("  ")) { plain = plain.trimEnd(); put(el("br")); } else plain += "\n";
      i++;
    } else if (c === "`") {
      const ticks = /^`+/.exec(text.slice(i, i + 40))[0];
      const end = missing.has(ticks) ? -1 : closingTicks(text, i + ticks.length, ticks.length);
      if (end < 0) { missing.add(ticks); plain += ticks; i += ticks.length; }
      else {
        const inner = text.slice(i + ticks.length, end).replace(/\n/g, " ");
        put(el("code", null, inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "" ? inner.slice(1, -1) : inner));
        i = end + ticks.length;
      }
    } else if (c === "*" || c === "_" || c === "~") {
      let mark = c;
      while (mark.length < 3 && text[i + mark.length] === c) mark += c;
      const end = missing.has(mark) || (c === "~" && mark.length !== 2) ? NO_START : closing(text, i, mark);
      if (end < 0) {
        if (end === NO_END) missing.add(mark);
        plain += mark;
        i += mark.length;
      } else {
        const inner = text.slice(i + mark.length, end);
        const node = el(c === "~" ? "del" : mark.length === 1 ? "em" : "strong");
        let within = node;
        if (mark.length === 3) { within = el("em"); node.append(within); }
        drawInline(within, inner, depth + 1);
        put(node);
        i = end + mark.length;
      }
    } else if ((c === "[" || (c === "!" && text[i + 1] === "[")) && (m = bracketed(text, c === "!" ? i + 1 : i))) {
      const address = safeLink(m.address);
      const picture = c === "!";
      const words = el("span");
      drawInline(words, (picture ? "picture: " : "") + (m.words || m.address), depth + 1);
      if (address) {
        const a = link(address);
        a.append(...words.childNodes);
        put(a);
      } else {
        // Where it would lead stays readable.
        put(words);
        plain += " (" + m.address + ")";
      }
      i = m.end;
    } else if (c === "<" && (m = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i.exec(text.slice(i, i + 2010))) && safeLink(m[1])) {
      const a = link(safeLink(m[1]));
      a.append(m[1]);
      put(a);
      i += m[0].length;
    } else if (c === "h" && !/\w/.test(text[i - 1] || "") && (m = /^https?:\/\/[^\s<>"'`]{1,2000}/.exec(text.slice(i, i + 2010)))) {
      let address = m[0].replace(/[.,;:!?*_~]+$/, "");
      if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
      const target = safeLink(address);
      if (target) {
        const a = link(target);
        a.append(address);
        put(a);
      } else plain += address;
      i += address.length;
    } else {
      plain += c;
      i++;
    }
  }
  if (plain) parent.append(plain);
}

function closingTicks(text, from, n) {
  for (let at = text.indexOf("`", from); at >= 0; ) {
    let end = at;
    while (text[end] === "`") end++;
    if (end - at === n) return at;
    at = text.indexOf("`", end);
  }
  return -1;
}

const NO_START = -1, NO_END = -2;

// closing is where the emphasis that opens at i ends.
function closing(text, i, mark) {
  const c = mark[0], space = /\s/;
  const word = (at) => at >= 0 && at < text.length && /[\p{L}\p{N}]/u.test(text[at]);
  const inside = i + mark.length;
  if (inside >= text.length || space.test(text[inside]) || (c === "_" && word(i - 1))) return NO_START;
  for (let at = text.indexOf(mark, inside + 1), n = 0; at >= 0 && n < 200; n++) {
    let run = at;
    while (text[run] === c) run++;
    const length = run - at;
    if (length === mark.length || (length > mark.length && mark.length < 3 && length === 3)) {
      const end = length > mark.length ? run - mark.length : at;
      if (!space.test(text[end - 1]) && !(c === "_" && word(end + mark.length))) return end;
    }
    at = text.indexOf(mark, run);
  }
  return NO_END;
}

// bracketed reads [words](address "title").
function bracketed(text, i) {
  let depth = 0, end = -1;
  for (let at = i; at < text.length && at < i + 2000; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "[") depth++;
    else if (text[at] === "]" && --depth === 0) { end = at; break; }
  }
  if (end < 0 || text[end + 1] !== "(") return null;
  let level = 0, close = -1;
  for (let at = end + 1; at < text.length && at < end + 4000 && text[at] !== "\n"; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "(") level++;
    else if (text[at] === ")" && --level === 0) { close = at; break; }
  }
  if (close < 0) return null;
  const m = /^\s*<?(.*?)>?(?:\s+["'(].*["')])?\s*$/.exec(text.slice(end + 2, close));
  return m && { words: text.slice(i + 1, end), address: m[1], end: close + 1 };
}
