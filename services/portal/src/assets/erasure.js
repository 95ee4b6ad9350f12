// Reloads the steps of an erasure until its receipt exists. The page also works without this script.
import { enableCopy } from './portal.js';

const POLL_MS = 1500;

async function poll() {
  const shown = document.querySelector('.erasure');
  if (shown === null || shown.dataset.complete === 'true') return;
  try {
    const response = await fetch(location.href, { cache: 'no-store' });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const steps = page.querySelector('.erasure');
    // Without steps, the session has ended or the portal is not available: the reader reloads the page.
    if (!response.ok || response.redirected || steps === null) throw new Error('no steps');
    if (steps.dataset.complete === 'true') return replaceAll(page);
    if (steps.querySelector('ol').textContent !== shown.querySelector('ol').textContent)
      shown.querySelector('ol').replaceWith(document.importNode(steps.querySelector('ol'), true));
  } catch {
    shown.querySelector('[role=status]').textContent =
      'Progress is not available. The erasure continues; reload this page.';
  }
  setTimeout(poll, POLL_MS);
}

/** A complete page has another title and the button of the receipt, so the whole content is replaced. */
function replaceAll(page) {
  document.title = page.title;
  const main = document.importNode(page.querySelector('main'), true);
  document.querySelector('main').replaceWith(main);
  for (const button of main.querySelectorAll('button.copy')) enableCopy(button);
  // Announces the result and moves the reading position to it.
  main.focus();
}

setTimeout(poll, POLL_MS);
