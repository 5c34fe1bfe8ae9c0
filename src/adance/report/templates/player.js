"use strict";
(() => {
  const recording = JSON.parse(document.getElementById("recording").textContent);
  const find = (id) => document.getElementById(id);
  const slider = find("slider"), play = find("play"), frame = find("frame"), plane = find("plane"), dot = find("dot");
  const points = plane ? plane.querySelectorAll(".chains circle") : [];
  const last = recording.labels.length - 1;
  let timer = null;

  function show(i) {
    slider.value = i;
    if (frame) {
      frame.src = recording.pictures[i];
      frame.alt = `${recording.chains} chains at ${recording.labels[i]}`;
    }
    points.forEach((point, n) => {
      point.setAttribute("cx", recording.points[i][2 * n]);
      point.setAttribute("cy", recording.points[i][2 * n + 1]);
    });
    if (plane) plane.setAttribute("aria-label", `The learned density, and ${recording.chains} chains at ${recording.labels[i]}`);
    find("where").textContent = recording.labels[i];
    find("energy").textContent = recording.energies[i];
    dot.setAttribute("cx", recording.dots[i][0]);
    dot.setAttribute("cy", recording.dots[i][1]);
    slider.setAttribute("aria-valuetext", `${recording.labels[i]}, mean energy ${recording.energies[i]}`);
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
