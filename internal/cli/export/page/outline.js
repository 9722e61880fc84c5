
// The tree of branches: prompts, summaries and labels, indented where the
// session branches.

const MARKS = { user: "›", compaction: "≡", branch_summary: "↩", bashExecution: "$", custom_message: "✦", assistant: "·" };

// wordsOf is what the outline says of an entry.
function wordsOf(i) {
  const row = rows[i];
  const below = () => {
    // The first entry below that says something.
    for (let at = i, n = 0; n < 50 && children[at].length; n++) {
      at = children[at][0];
      if (rows[at][TEXT] && (rows[at][KIND] === "user" || rows[at][KIND] === "assistant")) return rows[at][TEXT];
    }
    return "";
  };
  switch (row[KIND]) {
    case "user": return row[TEXT] || "(no text)";
    case "assistant": return row[TEXT] || (row[REFS] ? count(row[REFS].length, "tool call", "tool calls") : "(no text)");
    case "compaction": return "Compaction";
    case "branch_summary": return "Summary of a branch";
    case "bashExecution": return row[TEXT];
  }
  return below() || row[TEXT] || row[KIND];
}

const listed = (i) => {
  const row = rows[i];
  return row[KIND] === "user" || row[KIND] === "compaction" || row[KIND] === "branch_summary" || (labels.get(row[ID]) && speaks(i));
};

const MAX_NESTED = 30, MAX_ITEMS = 5000;

// drawOutline draws all branches. Chains are walked, not called: they are long.
function drawOutline() {
  const seen = new Set();
  const top = el("ol");
  const work = roots.length > 1 ? [] : [[roots[0], top, false, 0]];
  let nodes = 0;
  const branch = (c, n, box, depth) => {
    const inner = depth < MAX_NESTED ? el("ol") : box;
    box.append(el("li", { class: "branch" + (view.place.has(c) ? " active" : "") },
      el("span", { class: "branch-name" }, "Branch " + (n + 1) + (view.place.has(c) ? " (shown)" : "")), inner === box ? null : inner));
    return [c, inner, true, depth + 1];
  };
  if (roots.length > 1) work.push(...roots.filter((c) => speaks(c) || children[c].length).map((c, n) => branch(c, n, top, 0)).reverse());
  while (work.length) {
    let [i, box, first, depth] = work.pop();
    while (i !== undefined && !seen.has(i)) {
      seen.add(i);
      if ((listed(i) || first) && speaks(i) && nodes < MAX_ITEMS) { box.append(item(i)); nodes++; }
      first = false;
      const forks = branchesAt(i);
      if (forks.length > 1) {
        work.push(...forks.map((c, n) => branch(c, n, box, depth)).reverse());
        break;
      }
      i = forks[0];
    }
  }
  $("outline").replaceChildren(el("h2", null, "Outline"), top);
}

function item(i) {
  const row = rows[i], label = labels.get(row[ID]);
  const button = el("button", { class: "jump" + (view.place.has(i) ? "" : " off"), type: "button", onclick: () => { drawer(false); location.hash = anchor(row[ID]); reveal(i, true); } },
    el("span", { class: "mark", "aria-hidden": "true" }, MARKS[row[KIND]] || "·"),
    el("span", { class: "words" }, label ? el("span", { class: "tag" }, label) : null, label ? " " : null, wordsOf(i)));
  button.row = i;
  return el("li", null, button);
}

// follow marks the prompt that the window shows.
function follow() {
  if (!view.list.length) return;
  let n = current();
  while (n > 0 && !listed(view.list[n])) n--;
  const row = view.list[n];
  for (const b of $("outline").querySelectorAll(".jump")) {
    if (b.row === row) {
      if (b.getAttribute("aria-current")) return;
      b.setAttribute("aria-current", "location");
      const nav = $("outline"), r = b.getBoundingClientRect(), box = nav.getBoundingClientRect();
      if (r.top < box.top || r.bottom > box.bottom) nav.scrollTop += r.top - box.top - box.height / 3;
    } else b.removeAttribute("aria-current");
  }
}

function drawer(open) {
  const nav = $("outline");
  if (nav.classList.contains("open") === open) return;
  nav.classList.toggle("open", open);
  $("shade").hidden = !open;
  $("menu").setAttribute("aria-expanded", String(open));
  if (open) { follow(); (nav.querySelector("[aria-current]") || nav.querySelector("button") || nav).focus(); }
  else if (nav.contains(document.activeElement)) $("menu").focus();
}
