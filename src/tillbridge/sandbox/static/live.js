"use strict";
// Keeps a page fresh: asks a small address for a version, and when that has changed, fetches the page again and
// swaps every part that has an id. A part in which somebody is typing is left alone.

const marker = document.querySelector("[data-live]");

async function refresh() {
  const page = await fetch(location.href, { cache: "no-store" });
  if (!page.ok) return;
  const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
  const latest = fresh.querySelector("[data-live]");
  for (const part of document.querySelectorAll("main [id]")) {
    if (part.parentElement.closest("main [id]") || part.contains(document.activeElement)) continue;
    const other = fresh.getElementById(part.id);
    if (other && other.innerHTML !== part.innerHTML) part.replaceWith(document.adoptNode(other));
  }
  if (latest) marker.dataset.version = latest.dataset.version;
}

async function look() {
  try {
    if (!document.hidden) {
      const answer = await fetch(marker.dataset.live, { cache: "no-store" });
      if (answer.ok && (await answer.json()).version !== marker.dataset.version) await refresh();
    }
  } catch {
    // The sandbox is restarting; the next look will tell.
  }
  setTimeout(look, 1000);
}

if (marker) setTimeout(look, 1000);
