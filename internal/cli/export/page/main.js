
// Start, controls and keys.

const THEMES = ["auto", "light", "dark"];

function theme(name) {
  if (!THEMES.includes(name)) name = "auto";
  document.documentElement.dataset.theme = name;
  for (const input of document.querySelectorAll("input[name=theme]")) input.checked = input.value === name;
  try { localStorage.setItem("pinch-theme", name); } catch { /* not allowed here */ }
}
try { theme(localStorage.getItem("pinch-theme")); } catch { theme("auto"); }

// The system prompt and the tools of the agent.
function drawSetup() {
  const tools = list(meta.tools).filter(isObject);
  if (!str(meta.systemPrompt) && tools.length === 0) return;
  $("setup").append(fold("setup", { class: "thinking" }, [
    el("span", { class: "what" }, "System prompt and " + count(tools.length, "tool", "tools")),
  ], (p) => {
    if (str(meta.systemPrompt)) p.append(output(meta.systemPrompt));
    for (const t of tools) {
      p.append(fold({}, { class: "" }, [el("span", { class: "name" }, str(t.name)), el("span", { class: "what" }, firstLine(str(t.description)))], (q) => {
        q.append(el("p", null, str(t.description)));
        if (t.parameters) q.append(code(JSON.stringify(t.parameters, null, 2), "json", { wrap: true }));
      }));
    }
  }));
}

function toHash() {
  let id = "";
  try { id = decodeURIComponent(location.hash.replace(/^#entry-/, "")); } catch { /* no address of ours */ }
  if (!location.hash.startsWith("#entry-") || !byId.has(id)) return false;
  reveal(byId.get(id), true);
  return true;
}

for (const t of document.querySelectorAll("time[datetime]")) {
  const at = Date.parse(t.dateTime);
  if (at) t.textContent = when.format(at);
}
drawSetup();
show(byId.has(meta.leafId) ? byId.get(meta.leafId) : rows.length - 1);
// Until all of the page is there it shows what it has.
function loaded() {
  $("loading").remove();
  for (const g of view.groups) if (g.near) drawGroup(g);
  toHash();
  follow();
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", loaded);
else loaded();
window.addEventListener("hashchange", toHash);

let timer = 0, scrolling = false;
$("query").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => find($("query").value), 180);
});
$("search").addEventListener("submit", (e) => {
  e.preventDefault();
  if ($("query").value !== search.query) { clearTimeout(timer); find($("query").value); }
  else go(1);
});
$("query").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && e.shiftKey) { e.preventDefault(); go(-1); }
  if (e.key === "Escape") { e.preventDefault(); searching(false); }
});
$("next").addEventListener("click", () => go(1));
$("previous").addEventListener("click", () => go(-1));
$("find").addEventListener("click", () => searching(!$("bar").classList.contains("searching")));
$("menu").addEventListener("click", () => drawer(!$("outline").classList.contains("open")));
$("shade").addEventListener("click", () => drawer(false));
$("more").addEventListener("click", () => $("panel").showModal());
$("panel").addEventListener("click", (e) => { if (e.target === $("panel")) $("panel").close(); });
for (const input of document.querySelectorAll("input[name=theme]")) input.addEventListener("change", () => theme(input.value));

function toggle(name, on) {
  settings[name] = on;
  $("open-" + name).checked = on;
  redraw();
}
$("open-tools").addEventListener("change", (e) => toggle("tools", e.target.checked));
$("open-thinking").addEventListener("change", (e) => toggle("thinking", e.target.checked));

window.addEventListener("scroll", () => {
  if (scrolling) return;
  scrolling = true;
  setTimeout(() => { scrolling = false; follow(); }, 120);
}, { passive: true });

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("panel").open) return;
  if (e.key === "Escape") { drawer(false); return; }
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  const keys = {
    "/": () => searching(true), n: () => go(1), N: () => go(-1), j: () => step(1), k: () => step(-1),
    "]": () => step(1, "user"), "[": () => step(-1, "user"), "?": () => $("panel").showModal(),
    t: () => (matchMedia("(min-width: 60rem)").matches ? ($("outline").querySelector("[aria-current]") || $("outline").querySelector("button") || $("bar")).focus() : drawer(true)),
    o: () => toggle("tools", !settings.tools),
    d: () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]),
  };
  if (!Object.hasOwn(keys, e.key)) return;
  e.preventDefault();
  keys[e.key]();
});
