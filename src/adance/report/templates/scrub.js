"use strict";
(() => {
  const film = JSON.parse(document.getElementById("film").textContent);
  const at = (id) => document.getElementById(id);
  const slider = at("scrub"), play = at("play"), frame = at("frame"), plane = at("plane"), dot = at("dot");
  const walkers = plane ? plane.querySelectorAll(".walkers circle") : [];
  const last = film.labels.length - 1;
  let timer = null;

  function show(i) {
    slider.value = i;
    if (frame) {
      frame.src = film.pictures[i];
      frame.alt = `${film.chains} chains at ${film.labels[i]}`;
    }
    walkers.forEach((walker, n) => {
      walker.setAttribute("cx", film.points[i][2 * n]);
      walker.setAttribute("cy", film.points[i][2 * n + 1]);
    });
    if (plane) plane.setAttribute("aria-label", `The learned density, and ${film.chains} chains at ${film.labels[i]}`);
    at("where").textContent = film.labels[i];
    at("energy").textContent = film.energies[i];
    dot.setAttribute("cx", film.dots[i][0]);
    dot.setAttribute("cy", film.dots[i][1]);
    slider.setAttribute("aria-valuetext", `${film.labels[i]}, mean energy ${film.energies[i]}`);
    slider.style.setProperty("--part", `${(100 * i) / last}%`);
    document.querySelectorAll(".film button").forEach((still) => {
      if (Number(still.dataset.frame) === i) still.setAttribute("aria-current", "step");
      else still.removeAttribute("aria-current");
    });
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.classList.remove("playing");
    play.setAttribute("aria-label", "Play from noise");
  }

  function start() {
    let i = Number(slider.value) < last ? Number(slider.value) : 0;
    play.classList.add("playing");
    play.setAttribute("aria-label", "Stop");
    show(i);
    timer = setInterval(() => {
      i += 1;
      show(i);
      if (i >= last) stop();
    }, 90);
  }

  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  play.addEventListener("click", () => (timer ? stop() : start()));
  document.querySelectorAll(".film button").forEach((still) => {
    still.addEventListener("click", () => { stop(); show(Number(still.dataset.frame)); });
  });
  show(last);
})();
