
// One entry of the conversation as an article.

const ROLES = { user: "You", assistant: "Assistant", toolResult: "Tool result", bashExecution: "Your command", custom: "Extension", custom_message: "Extension", system: "System", branch_summary: "Branch summary", compaction: "Compaction" };
const TEXT_LIMIT = 40000; // of Markdown at once

// shown says whether an entry has a place in the conversation: answered holds the
// calls of the path, begun says that there was a message before, prompts counts
// the system messages of the path.
function shown(i, answered, begun, prompts) {
  const row = rows[i];
  switch (row[KIND]) {
    case "label": case "context_edit": case "usage": case "custom": case "leaf": case "session_info": case "thinking_level_change": return false;
    case "toolResult": return !(row[REFS] && answered.has(row[REFS][0]));
    // The head of the page says this already.
    case "model_change": return begun;
    case "system": return begun || prompts > 1;
    case "custom_message": return row[REFS] !== 0;
  }
  return true;
}

// prose draws text as Markdown, the rest of a very long one when asked for.
function prose(text) {
  if (text.length <= TEXT_LIMIT) return markdown(text);
  const box = el("div");
  const cut = text.lastIndexOf("\n", TEXT_LIMIT);
  box.append(markdown(text.slice(0, cut > TEXT_LIMIT / 2 ? cut : TEXT_LIMIT)));
  box.whole = text;
  box.className = "block-text";
  box.showAll = () => {
    if (!box.whole) return;
    delete box.whole;
    if (text.length > 10 * TEXT_LIMIT) {
      const all = output(text);
      box.replaceChildren(all);
      all.showAll();
    } else box.replaceChildren(markdown(text));
  };
  box.append(el("button", { class: "plain-button", type: "button", onclick: box.showAll }, "Show all of it (" + bytes(text.length) + ")"));
  return box;
}

function drawContent(parent, content) {
  for (const b of blocksOf(content)) {
    if (b.type === "text") { if (str(b.text).trim() !== "") parent.append(prose(b.text)); }
    else if (b.type === "image") parent.append(picture(b));
    else parent.append(code(JSON.stringify(b, null, 2), "json", { wrap: true }));
  }
}

function drawAnswer(parent, m, i, results) {
  let n = 0;
  for (const b of blocksOf(m.content)) {
    const key = rows[i][ID] + "/" + n++;
    if (b.type === "text") {
      if (str(b.text).trim() !== "") parent.append(prose(b.text));
    } else if (b.type === "thinking") {
      const text = str(b.thinking);
      if (text.trim() === "" && !b.redacted) continue;
      parent.append(fold(key, { class: "thinking", open: settings.thinking }, [
        el("span", { class: "what" }, b.redacted ? "Thinking, not readable" : "Thinking: " + firstLine(text.replace(/[*#`]/g, ""))),
      ], (p) => p.append(b.redacted ? "The provider keeps this to itself." : prose(text))));
    } else if (b.type === "toolCall") {
      const at = results.get(str(b.id));
      parent.append(card(key, b, at === undefined ? null : messageOf(at)));
    } else if (b.type === "image") parent.append(picture(b));
    else parent.append(code(JSON.stringify(b, null, 2), "json", { wrap: true }));
  }
  if (m.stopReason === "error" || m.errorMessage) parent.append(el("p", { class: "problem", role: "note" }, "The answer failed: " + (str(m.errorMessage) || "no reason given")));
  else if (m.stopReason === "aborted") parent.append(el("p", { class: "problem", role: "note" }, "Stopped by the user"));
  else if (m.stopReason === "length") parent.append(el("p", { class: "problem", role: "note" }, "Cut off: the answer reached its limit"));
}

function costOf(u) {
  if (!isObject(u)) return "";
  const n = (v) => (typeof v === "number" ? v : 0);
  const input = n(u.input) + n(u.cacheRead) + n(u.cacheWrite);
  if (input + n(u.output) === 0) return "";
  const cost = isObject(u.cost) ? n(u.cost.total) : 0;
  return tokens(input) + " in · " + tokens(n(u.output)) + " out" + (cost > 0 ? " · $" + cost.toFixed(cost < 0.1 ? 4 : 2) : "");
}

const aside = (...words) => el("p", { class: "aside" }, ...words);

// article draws row i. before is the row shown before it, -1 for none.
function article(i, before, results) {
  const row = rows[i], kind = row[KIND], e = entryOf(i);
  const m = isObject(e.message) ? e.message : e;
  const body = el("div", { class: "body" });
  let plain = ""; // what the copy button takes
  let role = ROLES[kind] || kind;
  switch (kind) {
    case "user":
      drawContent(body, m.content);
      plain = textOf(m.content);
      break;
    case "assistant":
      drawAnswer(body, m, i, results);
      plain = textOf(m.content);
      break;
    case "toolResult":
      body.append(card(row[ID], { name: m.toolName, arguments: {} }, m));
      break;
    case "bashExecution": {
      const failed = m.cancelled || (typeof m.exitCode === "number" && m.exitCode !== 0);
      body.append(fold(row[ID], { class: failed ? "bad" : "", open: true }, [
        el("span", { class: "name" }, "$"), el("span", { class: "what" }, firstLine(str(m.command))),
        el("span", { class: "result" }, m.cancelled ? "cancelled" : failed ? "exit " + m.exitCode : ""),
      ], (p) => {
        if (str(m.command).includes("\n")) p.append(code(m.command, "bash", { wrap: true }));
        p.append(str(m.output) ? output(m.output) : title("no output"));
        if (m.excludeFromContext) p.append(title("kept from the model"));
        if (m.truncated && m.fullOutputPath) p.append(title("cut; all of it was in " + m.fullOutputPath));
      }));
      plain = str(m.command) + "\n" + str(m.output);
      break;
    }
    case "custom": case "custom_message":
      role = str(m.customType) || role;
      drawContent(body, m.content);
      plain = textOf(m.content);
      break;
    case "compaction":
      body.append(fold(row[ID], { class: "mark" }, [
        el("span", { class: "name" }, "Compaction"),
        el("span", { class: "what" }, "From here on a summary stands for what is above"),
        el("span", { class: "result" }, e.tokensBefore > 0 ? tokens(e.tokensBefore) + " tokens" : ""),
      ], (p) => {
        if (str(e.firstKeptEntryId) && e.firstKeptEntryId !== row[ID] && byId.has(e.firstKeptEntryId)) {
          p.append(el("p", { class: "edited" }, "Kept word for word ", el("a", { href: anchor(e.firstKeptEntryId) }, "from here"), " on."));
        }
        p.append(prose(str(e.summary)));
      }));
      plain = str(e.summary);
      break;
    case "branch_summary":
      body.append(fold(row[ID], { class: "mark" }, [
        el("span", { class: "name" }, "Branch summary"),
        el("span", { class: "what" }, "What happened on a branch that was left"),
      ], (p) => {
        if (byId.has(e.fromId)) p.append(el("p", { class: "edited" }, el("a", { href: anchor(e.fromId) }, "Go to that branch"), "."));
        p.append(prose(str(e.summary)));
      }));
      plain = str(e.summary);
      break;
    case "model_change":
      body.append(aside("Model: ", el("b", null, str(e.provider) + "/" + str(e.modelId))));
      break;
    case "system": {
      const added = list(m.toolsAdded).filter(isObject).map((t) => str(t.name)), removed = list(m.toolsRemoved).filter(isObject).map((t) => str(t.name));
      body.append(fold(row[ID], { class: "thinking" }, [
        el("span", { class: "what" }, before < 0 || rows[before][KIND] === "model_change" ? "System prompt" : "System prompt changed"),
      ], (p) => {
        if (added.length) p.append(el("p", null, "Tools: " + added.join(", ")));
        if (removed.length) p.append(el("p", null, "Tools removed: " + removed.join(", ")));
        if (textOf(m.content)) p.append(output(textOf(m.content)));
        for (const [name, text] of Object.entries(isObject(m.sections) ? m.sections : {})) p.append(title(name), text === null ? "removed" : output(str(text)));
      }));
      break;
    }
    default:
      body.append(fold(row[ID], { class: "thinking" }, [el("span", { class: "what" }, "Entry of type " + kind)],
        (p) => p.append(code(JSON.stringify(e, null, 2), "json", { wrap: true }))));
  }
  if (edits.has(row[ID])) {
    const edit = entryOf(edits.get(row[ID]));
    body.append(el("p", { class: "edited" }, edit.replacement === null ? "Later taken out of what the model sees" : "Later replaced in what the model sees:"));
    if (isObject(edit.replacement)) drawContent(body, edit.replacement.content);
  }

  const small = kind === "model_change" || kind === "system" || kind === "compaction" || kind === "branch_summary";
  const previous = before >= 0 ? rows[before] : null;
  const continued = small || (kind === "assistant" && previous !== null && previous[KIND] === "assistant") || kind === "toolResult";
  const name = m.responseModel || m.model;
  const a = el("article", { class: "entry " + (ROLES[kind] ? kind : "other") + (continued ? " continued" : ""), id: "entry-" + row[ID], "aria-label": role });
  const right = el("span", { class: "right" });
  if (plain) {
    const button = el("button", { class: "small-button", type: "button", "aria-label": "Copy the text" }, "copy");
    button.addEventListener("click", () => copy(plain, button));
    right.append(button);
  }
  const mark = el("button", { class: "small-button", type: "button", "aria-label": "Link to this place", title: "Link to this place" }, "#");
  mark.addEventListener("click", () => { location.hash = anchor(row[ID]); copy(location.href, mark); });
  right.append(mark);
  const label = labels.get(row[ID]);
  a.append(el("div", { class: "line" },
    el("span", { class: "role" }, role),
    kind === "assistant" && name ? el("span", { class: "model" }, str(name)) : null,
    row[TIME] ? el("time", { datetime: new Date(row[TIME]).toISOString(), title: when.format(row[TIME]) }, clock.format(row[TIME])) : null,
    kind === "assistant" ? el("span", { class: "cost" }, costOf(m.usage)) : null,
    label ? el("span", { class: "tag" }, label) : null,
    right), body);
  const forks = branchesAt(i);
  if (forks.length > 1) a.append(switcher(i, forks));
  return a;
}

const anchor = (id) => "#entry-" + encodeURIComponent(id);
