// Choose laws and see who is left; choose a wrong version and see who catches it.
const { members, laws, killed } = data;
const chosen = new Set();
const lawButtons = laws.map((law, l) => html("button", { type: "button", "aria-pressed": "false", onclick() {
  if (!chosen.delete(l)) chosen.add(l);
  draw();
} }));
const beasts = members.map((name, m) => html("button", { type: "button", onclick: () => ask(m) }, name));
const plain = (name) => name.replaceAll("_", " ");
const catches = (l) => members.filter((_, m) => killed[m][l]).length;

function ask(m) {
  const names = laws.filter((_, l) => killed[m][l]).map(plain);
  say(names.length ? `${plain(members[m])} breaks ${names.length}: ${names.join("; ")}.` : `${plain(members[m])} breaks no law.`);
}

function draw() {
  const caught = members.map((_, m) => [...chosen].some((l) => killed[m][l]));
  const left = caught.filter((is) => !is).length;
  laws.forEach((law, l) => {
    const more = members.filter((_, m) => killed[m][l] && !caught[m]).length;
    lawButtons[l].setAttribute("aria-pressed", chosen.has(l));
    lawButtons[l].textContent = `${plain(law)} · ${catches(l)}${chosen.size && !chosen.has(l) ? ` (+${more})` : ""}`;
  });
  beasts.forEach((beast, m) => {
    beast.classList.toggle("caught", caught[m]);
    beast.setAttribute("aria-label", `${plain(members[m])}: ${caught[m] ? "caught" : "at large"}`);
  });
  root.dataset.left = left;
  say(`${chosen.size} ${chosen.size === 1 ? "law" : "laws"} chosen, ${members.length - left} of ${members.length} wrong versions caught, ${left} at large.`);
}
const part = (name, nodes) => html("div", { role: "group", "aria-label": name }, html("b", {}, name), html("div", { class: "chips" }, ...nodes));
arrows(lawButtons);
arrows(beasts);
mount(part("laws, and how many they catch", lawButtons), part("wrong versions; choose one to see what it breaks", beasts));
draw();
