// Updates the first steps of an environment until its first message is stored.
import { enableCopy } from './portal.js';

const REFRESH_MS = 3000;

async function refresh() {
  const steps = document.querySelector('[data-refresh]');
  if (steps === null) return;
  const response = await fetch(location.href).catch(() => null);
  if (response?.ok && !response.redirected) {
    const next = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('[data-refresh]');
    // Counts exist, so the page shows them.
    if (next === null) return location.reload();
    if (next.textContent !== steps.textContent) {
      steps.replaceWith(next);
      for (const button of next.querySelectorAll('button.copy')) enableCopy(button);
    }
  }
  setTimeout(refresh, REFRESH_MS);
}

setTimeout(refresh, REFRESH_MS);
