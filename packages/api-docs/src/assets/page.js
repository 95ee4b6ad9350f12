// Loaded by every page. Adds copy buttons, closes the menu on narrow screens, and expands examples that a link targets.

const COPIED_LABEL_MS = 2000;

for (const block of document.querySelectorAll('.block')) block.prepend(createCopyButton(block.querySelector('pre')));

function createCopyButton(code) {
  const button = document.createElement('button');
  const label = code.parentElement.querySelector('.label').textContent.toLowerCase();
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', `Copy ${label}`);
  button.addEventListener('click', async () => {
    const copied = await copy(code);
    button.textContent = copied ? 'Copied' : 'Press Ctrl+C';
    // Screen readers announce the label, not the text.
    button.setAttribute('aria-label', button.textContent);
    setTimeout(() => {
      button.textContent = 'Copy';
      button.setAttribute('aria-label', `Copy ${label}`);
    }, COPIED_LABEL_MS);
  });
  return button;
}

/** Returns false if the browser blocks copying. In that case, selects the code, so that the reader can press Ctrl+C. */
async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch {
    // The Clipboard API is available only over HTTPS and on localhost.
    getSelection().selectAllChildren(code);
    return document.execCommand('copy');
  }
}

const menu = document.querySelector('#menu');
menu.addEventListener('click', ({ target }) => {
  if (target.closest('a') !== null && menu.matches(':popover-open')) menu.hidePopover();
});

addEventListener('hashchange', expandTarget);
expandTarget();

function expandTarget() {
  const target = document.getElementById(location.hash.slice(1));
  for (let details = target?.closest('details'); details; details = details.parentElement.closest('details'))
    details.open = true;
  target?.scrollIntoView();
}
