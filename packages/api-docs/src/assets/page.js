// What every page needs: samples that can be copied, a menu that closes when one of its links is followed, and examples
// that open when a link leads to them.

const COPIED_MS = 2000;

for (const block of document.querySelectorAll('.block')) block.prepend(createCopyButton(block.querySelector('pre')));

function createCopyButton(sample) {
  const button = document.createElement('button');
  const label = sample.parentElement.querySelector('.label').textContent.toLowerCase();
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', `Copy ${label}`);
  button.addEventListener('click', async () => {
    const done = await copy(sample);
    // Screen readers read the label, so it must match the button.
    button.textContent = done ? 'Copied' : 'Press Ctrl+C';
    button.setAttribute('aria-label', button.textContent);
    setTimeout(() => {
      button.textContent = 'Copy';
      button.setAttribute('aria-label', `Copy ${label}`);
    }, COPIED_MS);
  });
  return button;
}

/** Resolves to false when the browser refused to copy. The sample is then selected, so that the reader can copy it. */
async function copy(sample) {
  try {
    await navigator.clipboard.writeText(sample.textContent);
    return true;
  } catch {
    // The clipboard is missing where the address is neither https nor localhost.
    getSelection().selectAllChildren(sample);
    return document.execCommand('copy');
  }
}

const menu = document.querySelector('#menu');
menu.addEventListener('click', ({ target }) => {
  if (target.closest('a') !== null && menu.matches(':popover-open')) menu.hidePopover();
});

addEventListener('hashchange', openTarget);
openTarget();

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  for (let at = target?.closest('details'); at; at = at.parentElement.closest('details')) at.open = true;
  target?.scrollIntoView();
}
