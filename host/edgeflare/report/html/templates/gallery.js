"use strict";
// Choosing, sorting and enlarging of the findings. Without it the page shows them all.
(() => {
  document.body.insertAdjacentHTML("beforeend", `<dialog id="lens" aria-labelledby="lens-title">
<div class="bar"><h2 id="lens-title"></h2>
<span class="steps"><button type="button" data-step="-1">Previous</button><button type="button" data-step="1">Next</button><button type="button" data-close>Close</button></span></div>
<p class="quiet" id="lens-words"></p>
<div id="lens-pictures"></div>
</dialog>`);
  const lens = document.getElementById("lens");
  const gallery = document.getElementById("gallery");

  const shownCards = (card) =>
    [...card.parentElement.children].filter((other) => !other.hidden);

  // Enlarging: of any list.
  let looked = null;
  const look = (card) => {
    looked = card;
    document.getElementById("lens-title").textContent = card.querySelector("h3").textContent;
    document.getElementById("lens-words").textContent = card.querySelector(".words").textContent;
    const shots = [...card.querySelectorAll(".shots figure")].map((shot) => shot.cloneNode(true));
    document.getElementById("lens-pictures").replaceChildren(...shots);
    const cards = shownCards(card);
    lens.querySelector("[data-step='-1']").disabled = cards[0] === card;
    lens.querySelector("[data-step='1']").disabled = cards[cards.length - 1] === card;
    if (!lens.open) lens.showModal();
  };
  const step = (by) => {
    const cards = shownCards(looked);
    const next = cards[cards.indexOf(looked) + by];
    if (next) look(next);
  };
  lens.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && button.dataset.step) step(Number(button.dataset.step));
    else if (button || event.target === lens) lens.close();
  });
  lens.addEventListener("keydown", (event) => {
    if (event.target.matches("audio")) return;  // it moves within the sound
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
  });
  lens.addEventListener("close", () => looked.querySelector(".enlarge").focus());
  for (const button of document.querySelectorAll(".enlarge")) button.hidden = false;
  document.addEventListener("click", (event) => {
    const card = event.target.closest(".card");
    if (card && event.target.closest(".enlarge, .shots img")) look(card);
  });

  // Choosing and sorting: of the findings.
  if (!gallery) return;
  const form = document.querySelector(".filters");
  const field = form.elements;
  const cards = [...gallery.children];
  const figure = (card, name) =>
    card.dataset[name] === "" ? Infinity : Number(card.dataset[name]);
  const place = new Map(cards.map((card, at) => [card, at]));
  const orders = {
    matters: (a, b) => place.get(a) - place.get(b),
    harm: (a, b) => figure(a, "rank") - figure(b, "rank") || figure(b, "strength") - figure(a, "strength"),
    strength: (a, b) => figure(b, "strength") - figure(a, "strength"),
    queries: (a, b) => figure(a, "queries") - figure(b, "queries"),
    "-queries": (a, b) => figure(b, "queries") - figure(a, "queries"),
    l2: (a, b) => figure(a, "l2") - figure(b, "l2"),
    seed: () => 0,
  };
  const settings = { cause: "sort-of", harm: "harm", class: "class", kind: "kind", device: "device", strength: "strength", order: "order", baseline: "baseline" };
  let ordered = field.order.value;

  const apply = () => {
    const sort = field["sort-of"].value;
    const harm = field.harm ? field.harm.value : "";
    const label = field.class ? field.class.value : "";
    const kind = field.kind ? field.kind.value : "";
    const device = field.device ? field.device.value : "";
    const baseline = field.baseline ? field.baseline.value : "";
    const least = (field.strength.value / 100) * field.strength.dataset.most;
    field["at-least"].value = least ? least.toFixed(3) : "0";
    field.strength.setAttribute("aria-valuetext", field["at-least"].value);
    let count = 0;
    for (const card of cards) {
      card.hidden =
        (sort && card.dataset.sort !== sort) ||
        (harm && card.dataset.harm !== harm) ||
        (label && !card.dataset.classes.split(" ").includes(label)) ||
        (kind && card.dataset.kind !== kind) ||
        (device && card.dataset.device !== device) ||
        (baseline && card.dataset.baseline !== baseline) ||
        figure(card, "strength") < least - 1e-12;
      if (!card.hidden) count += 1;
    }
    if (field.order.value !== ordered) {
      ordered = field.order.value;
      cards.sort((a, b) => orders[ordered](a, b) || figure(a, "seed") - figure(b, "seed"));
      gallery.append(...cards);
    }
    form.querySelector(".shown").textContent = `${count} of ${cards.length} shown`;
    document.querySelector(".none").hidden = count > 0;
  };
  // The choice stands in the address, so that a link to the file can carry it.
  const remember = () => {
    const chosen = new URLSearchParams();
    for (const [key, name] of Object.entries(settings)) {
      const value = field[name] && field[name].value;
      if (value && value !== "0" && !(key === "order" && value === field.order.options[0].value)) chosen.set(key, value);
    }
    history.replaceState(null, "", chosen.size ? `#?${chosen}` : "#findings");
  };
  const recall = () => {
    if (!location.hash.startsWith("#?")) return;
    const chosen = new URLSearchParams(location.hash.slice(2));
    // Anybody can write an address: what a field does not know is left out.
    const knows = (one, value) =>
      one.options ? [...one.options].some((option) => option.value === value) : /^\d+$/.test(value);
    for (const [key, name] of Object.entries(settings)) {
      const one = field[name], value = chosen.get(key);
      if (one && value !== null && knows(one, value)) one.value = value;
    }
    document.getElementById("findings").scrollIntoView();
  };
  const reset = () => { form.reset(); apply(); remember(); };

  form.hidden = false;
  // The filters stay on top of what is scrolled to, in as many rows as they need.
  const cover = () => document.documentElement.style.setProperty("--covered", `${form.offsetHeight}px`);
  new ResizeObserver(cover).observe(form);
  cover();
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => { apply(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { apply(); remember(); }));
  document.querySelector(".again").addEventListener("click", () => { reset(); field["sort-of"].focus(); });
  addEventListener("hashchange", () => { recall(); apply(); });
  recall();
  apply();
})();
