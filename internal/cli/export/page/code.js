
// Code, output of programs and changes to files.

const C_WORDS = "abstract as async await bool boolean break byte case catch chan char class const continue crate default defer delete do double else enum export extends extern false final finally float fn for from func function go goto if impl implements import in instanceof int interface let long loop map match mod mut namespace new nil null number operator override package private protected pub public range readonly return self short signed sizeof static string struct super switch this throw trait true try type typedef typeof undefined union unsafe unsigned use using var virtual void volatile where while yield error any";
const HASH_WORDS = "and as assert async await begin break case class continue def del do done elif else elsif end ensure esac except exit export False fi finally for from function global if import in is lambda local module next nil None nonlocal not or pass raise rescue return self set then True try unless until while with yield true false null echo cd";
const SQL_WORDS = "add alter and as asc begin by case commit create delete desc distinct drop else end exists false from function group having if in index insert into is join key left like limit local nil not null on or order primary return select set table then true union unique update values view when where while with";
const words = (s) => new Set(s.split(" "));
const STRING = String.raw`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`;
const NUMBER = String.raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b`;
const WORD = String.raw`[A-Za-z_$][\w$]*`;

const languages = {
  c: { rule: String.raw`(?<c>\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))|(?<s>` + "`(?:[^`\\\\]|\\\\[^])*`|" + STRING + `)|(?<n>${NUMBER})|(?<w>${WORD})`, words: words(C_WORDS) },
  hash: { rule: String.raw`(?<c>#[^\n]*)|(?<s>"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|` + STRING + String.raw`)|(?<t>\$\{?\w+\}?|^[\w.-]+(?=:))|(?<n>${NUMBER})|(?<w>${WORD})`, words: words(HASH_WORDS) },
  sql: { rule: String.raw`(?<c>--[^\n]*|\/\*[^]*?(?:\*\/|$))|(?<s>${STRING})|(?<n>${NUMBER})|(?<w>${WORD})`, words: words(SQL_WORDS), fold: true },
  json: { rule: String.raw`(?<t>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?<s>"(?:[^"\\\n]|\\.)*")|(?<n>-?${NUMBER})|(?<w>true|false|null)`, words: words("true false null") },
  css: { rule: String.raw`(?<c>\/\*[^]*?(?:\*\/|$))|(?<s>${STRING})|(?<t>@[\w-]+|[\w-]+(?=\s*:))|(?<n>#[\da-fA-F]{3,8}\b|\b\d[\d.]*(?:%|\w+)?)`, words: words("") },
  xml: { rule: String.raw`(?<c><!--[^]*?(?:-->|$))|(?<s>${STRING})|(?<k><\/?[\w:-]+|\/?>)|(?<t>[\w:-]+(?==))`, words: words("") },
};

const families = {
  c: "c h cc cpp cxx hpp cs go java js jsx mjs cjs ts tsx mts rs swift kt kts php dart scala proto zig javascript typescript rust golang objc",
  hash: "py python rb ruby sh bash zsh fish shell console yaml yml toml ini conf make makefile mk dockerfile pl perl r ex exs nix tf env gitignore mod",
  sql: "sql lua hs elm",
  json: "json jsonc jsonl json5",
  css: "css scss less",
  xml: "html htm xml svg vue xhtml",
};
const family = new Map();
for (const [name, all] of Object.entries(families)) for (const each of all.split(" ")) family.set(each, name);

function languageOfPath(path) {
  const name = str(path).split(/[\\/]/).pop().toLowerCase();
  return name.includes(".") ? name.split(".").pop() : name;
}

// colour appends code with its words in colours.
function colour(parent, text, language) {
  const l = languages[family.get(str(language).toLowerCase())];
  if (!l || text.length > 100000) {
    parent.append(text);
    return;
  }
  const rule = new RegExp(l.rule, "gm");
  let at = 0;
  for (let m; (m = rule.exec(text)); ) {
    if (m[0] === "") { rule.lastIndex++; continue; }
    let kind = Object.keys(m.groups).find((k) => m.groups[k] !== undefined);
    if (kind === "w") kind = l.words.has(l.fold ? m[0].toLowerCase() : m[0]) ? "k" : "";
    if (!kind) continue;
    if (m.index > at) parent.append(text.slice(at, m.index));
    parent.append(el("span", { class: "tk-" + kind }, m[0]));
    at = rule.lastIndex;
  }
  if (at < text.length) parent.append(text.slice(at));
}

// terminal appends the output of a program: colours as colours, other control
// sequences not at all.
function terminal(parent, text) {
  if (!text.includes("\x1b") && !text.includes("\r")) {
    parent.append(text);
    return;
  }
  // What stands before a carriage return was written over.
  text = text.replace(/\r+\n/g, "\n").split("\n").map((l) => l.slice(l.lastIndexOf("\r", l.length - 2) + 1)).join("\n").replace(/\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g, "");
  let bold = false, shade = "";
  text.split(/(\x1b\[[\d;:?]*[A-Za-z])/).forEach((part, i) => {
    if (i % 2 === 0) {
      const plain = part.replace(/\x1b[^[]?|[\x00-\x08\x0b-\x1f]/g, "");
      if (plain === "") return;
      const name = (bold ? "an-b " : "") + shade;
      parent.append(name.trim() ? el("span", { class: name.trim() }, plain) : plain);
      return;
    }
    if (!part.endsWith("m")) return;
    const codes = part.slice(2, -1).split(/[;:]/).map(Number);
    for (let j = 0; j < codes.length; j++) {
      const c = codes[j];
      if (c === 0) { bold = false; shade = ""; }
      else if (c === 1) bold = true;
      else if (c === 22) bold = false;
      else if (c === 39) shade = "";
      else if (c === 38 || c === 48) j += codes[j + 1] === 5 ? 2 : 4;
      else if (c >= 30 && c <= 37) shade = "an-" + (c - 30);
      else if (c >= 90 && c <= 97) shade = "an-" + (c - 90);
    }
  });
}

// changes appends a diff: of each line the first character says what it is.
function changes(parent, text) {
  for (const line of text.split("\n")) {
    const kind = line[0] === "+" ? "add" : line[0] === "-" ? "del" : /^\s*\.\.\.$|^@@/.test(line) ? "gap" : "same";
    parent.append(el("span", { class: kind }, line === "" ? "\u200b" : line));
  }
}

const CLIP_LINES = 24, CLIP_CHARS = 8000, PART_LINES = 200, PART_CHARS = 16000;

// clipped is where a long text is cut at first: its length for a short one.
function clipped(text, limit) {
  let at = -1;
  for (let n = 0; n < limit; n++) {
    at = text.indexOf("\n", at + 1);
    if (at < 0 || at > CLIP_CHARS) break;
  }
  const end = at < 0 || at > CLIP_CHARS ? Math.min(text.length, CLIP_CHARS) : at;
  return text.length - end < 200 ? text.length : end;
}

// parts cuts a text into pieces that a browser lays out one by one.
function* parts(text) {
  let from = 0;
  while (from < text.length) {
    let to = from, n = 0;
    while (n < PART_LINES && to - from < PART_CHARS) {
      const next = text.indexOf("\n", to);
      if (next < 0) { to = text.length; break; }
      to = next + 1;
      n++;
    }
    if (to - from > 4 * PART_CHARS) to = from + 4 * PART_CHARS;
    yield text.slice(from, to);
    from = to;
  }
}

// block shows text as code: {draw(parent, text), wrap, lines, class}. A long one
// is cut until a button asks for all of it.
function block(text, options) {
  const o = { draw: (parent, t) => parent.append(t), lines: CLIP_LINES, ...options };
  const pre = el("pre", { tabindex: 0 });
  const box = el("div", { class: "block" + (o.wrap ? " wrap" : "") + (o.class ? " " + o.class : "") }, pre);
  const end = clipped(text, o.lines);
  o.draw(pre, text.slice(0, end));
  if (end < text.length) {
    const lines = text.split("\n").length;
    box.whole = text;
    box.showAll = () => {
      if (!box.whole) return;
      delete box.whole;
      box.querySelector(".all").remove();
      pre.replaceChildren();
      for (const part of parts(text)) {
        const piece = el("span", { class: "part" });
        const n = part.split("\n").length;
        piece.style.containIntrinsicSize = "auto " + n + "lh";
        o.draw(piece, part.endsWith("\n") ? part.slice(0, -1) : part);
        pre.append(piece);
      }
    };
    box.append(el("button", { class: "all", type: "button", onclick: () => { box.showAll(); pre.focus(); } },
      "Show all " + (lines > o.lines ? count(lines, "line", "lines") : bytes(text.length))));
  }
  const button = el("button", { class: "small-button copy", type: "button", "aria-label": "Copy this text" }, "copy");
  button.addEventListener("click", () => copy(text, button));
  box.append(button);
  return box;
}

const code = (text, language, options) => block(text, { draw: (p, t) => colour(p, t, language), ...options });
const output = (text, options) => block(text, { draw: terminal, wrap: true, ...options });
const diff = (text) => block(text, { draw: changes, class: "diff", lines: 40 });
