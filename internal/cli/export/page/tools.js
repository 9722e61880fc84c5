
// Tool calls with their results.

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);

function picture(b) {
  const type = str(b.mimeType).toLowerCase(), data = str(b.data);
  if (!PICTURES.has(type) || !/^[A-Za-z0-9+/=\s]+$/.test(data.slice(0, 4096))) {
    return el("p", { class: "notice" }, "A picture of type “" + type.slice(0, 60) + "”, which this page does not show");
  }
  return el("figure", { class: "picture" },
    el("img", { src: "data:" + type + ";base64," + data, alt: "Picture (" + type + ")", loading: "lazy", decoding: "async" }),
    el("figcaption", null, type.slice(6) + ", " + bytes(Math.floor(data.length * 3 / 4))));
}

// fold is a part that opens and closes; what is in it is drawn when it first
// opens. Its state outlives the elements.
const folds = new Map();

function fold(key, options, summary, draw) {
  const box = el("details", { class: "fold " + options.class }, el("summary", null, ...summary));
  box.draw = () => {
    if (box.drawn) return;
    box.drawn = true;
    const inside = el("div", { class: "inside" });
    draw(inside);
    box.append(inside);
  };
  const open = folds.has(key) ? folds.get(key) : options.open;
  if (open) {
    box.open = true;
    box.draw();
  }
  box.addEventListener("toggle", () => {
    folds.set(key, box.open);
    if (box.open) box.draw();
  });
  return box;
}

const firstLine = (text) => {
  const line = text.trimStart().split("\n", 1)[0];
  return line.length > 300 ? line.slice(0, 300) + "…" : line;
};

// gist is an argument list in a few words.
function gist(name, args) {
  if (!isObject(args)) return firstLine(str(args));
  switch (name) {
    case "bash": case "powershell": return firstLine(str(args.command));
    case "read": {
      const from = Number(args.offset), n = Number(args.limit);
      const range = from || n ? ":" + (from || 1) + (n ? "–" + ((from || 1) + n - 1) : "") : "";
      return str(args.path) + range;
    }
    case "grep": case "find": return str(args.pattern) + (args.path ? "  in " + str(args.path) : "");
  }
  for (const key of ["path", "command", "query", "url", "pattern", "name"]) if (typeof args[key] === "string") return firstLine(args[key]);
  const first = Object.values(args).find((v) => typeof v === "string" || typeof v === "number");
  return first === undefined ? "" : firstLine(String(first));
}

function drawArgs(parent, args) {
  if (!isObject(args)) {
    if (args !== undefined && args !== null) parent.append(output(typeof args === "string" ? args : JSON.stringify(args, null, 2)));
    return;
  }
  const names = Object.keys(args);
  if (names.length === 0) return;
  const dl = el("dl", { class: "args" });
  for (const name of names) {
    const v = args[name];
    const long = typeof v === "string" ? v.length > 80 || v.includes("\n") : typeof v === "object" && v !== null;
    dl.append(el("div", null, el("dt", null, name), el("dd", null,
      !long ? el("code", null, String(v)) : typeof v === "string" ? output(v) : code(JSON.stringify(v, null, 2), "json", { wrap: true }))));
  }
  parent.append(dl);
}

// drawPath shows a path that the line above may have cut.
function drawPath(parent, path) {
  if (str(path).length > 30) parent.append(el("p", null, el("code", null, path)));
}

const title = (text) => el("p", { class: "label" }, text);

// inside draws a call and its result, which is null where there is none.
function drawCall(parent, call, result) {
  const name = str(call.name), args = call.arguments, a = isObject(args) ? args : {};
  const details = result && isObject(result.details) ? result.details : {};
  const blocks = result ? blocksOf(result.content) : [];
  const text = textOf(blocks);
  let shown = text;
  let language = "";
  switch (name) {
    case "bash": case "powershell":
      parent.append(code(str(a.command), "bash", { wrap: true }));
      if (a.timeout) parent.append(title("limit " + a.timeout + " s"));
      break;
    case "edit":
      drawPath(parent, a.path);
      if (typeof details.diff === "string" && details.diff !== "") {
        parent.append(diff(details.diff));
        if (!result.isError) shown = "";
      } else {
        for (const e of isObject(a) && Array.isArray(a.edits) ? a.edits.filter(isObject) : [a]) {
          const side = (sign, t) => str(t).split("\n").map((l) => sign + " " + l).join("\n");
          parent.append(diff(side("-", e.oldText) + "\n" + side("+", e.newText)));
        }
      }
      break;
    case "write":
      drawPath(parent, a.path);
      parent.append(code(str(a.content), languageOfPath(a.path)));
      break;
    case "read":
      drawPath(parent, gist("read", a));
      language = languageOfPath(a.path);
      break;
    default:
      drawArgs(parent, args);
  }
  if (typeof call.argumentsError === "string") parent.append(el("p", { class: "problem" }, call.argumentsError));
  const nested = result && isObject(result.nestedCalls) ? list(result.nestedCalls.calls).filter(isObject) : [];
  if (nested.length) {
    parent.append(title(count(nested.length, "call", "calls") + " inside"));
    for (const n of nested) {
      parent.append(fold({}, { class: n.status === "error" ? "bad" : "" }, [
        el("span", { class: "name" }, str(n.name)), el("span", { class: "what" }, gist(str(n.name), n.arguments)),
        el("span", { class: "result" }, str(n.status)),
      ], (p) => {
        drawArgs(p, n.arguments);
        if (n.error) p.append(el("p", { class: "problem" }, typeof n.error === "string" ? n.error : JSON.stringify(n.error)));
      }));
    }
  }
  if (!result) {
    parent.append(title("no result"));
    return;
  }
  if (shown !== "") {
    parent.append(title(result.isError ? "error" : "result"), language && !result.isError ? code(shown, language, { wrap: true }) : output(shown));
  } else if (blocks.length === 0) {
    parent.append(title("empty result"));
  }
  for (const b of blocks) if (b.type === "image") parent.append(picture(b));
}

// card is a call as a fold. result is null where the call was never answered.
function card(key, call, result) {
  const name = str(call.name);
  const blocks = result ? blocksOf(result.content) : [];
  const text = textOf(blocks);
  const facts = [];
  if (result && result.isError) facts.push("failed");
  if (result && result.durationMs >= 1000) facts.push(duration(result.durationMs));
  const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
  if (result && !result.isError && lines > 1 && name !== "edit") facts.push(count(lines, "line", "lines"));
  if (result && !result.isError && name === "edit" && isObject(result.details)) {
    const all = str(result.details.diff).split("\n");
    facts.push("+" + all.filter((l) => l[0] === "+").length + " −" + all.filter((l) => l[0] === "-").length);
  }
  if (!result) facts.push("no result");
  const eager = blocks.some((b) => b.type === "image") || (name === "edit" && result && !result.isError);
  return fold(key, {
    class: "call" + (result && result.isError ? " bad" : ""),
    open: settings.tools || eager,
  }, [
    el("span", { class: "name" }, name || "?"),
    el("span", { class: "what" }, gist(name, call.arguments)),
    el("span", { class: "result" }, facts.join(" · ")),
  ], (parent) => drawCall(parent, call, result));
}
