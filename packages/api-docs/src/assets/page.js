// What every page has: samples that can be copied, a menu that closes behind its links, examples that open when they
// are linked to.

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
    // The label is what is read aloud: it says the same as the button.
    button.textContent = done ? 'Copied' : 'Press Ctrl+C';
    button.setAttribute('aria-label', button.textContent);
    setTimeout(() => {
      button.textContent = 'Copy';
      button.setAttribute('aria-label', `Copy ${label}`);
    }, COPIED_MS);
  });
  return button;
}

/** Resolves to false when the browser did not let it: then the sample is selected. */
async function copy(sample) {
  try {
    await navigator.clipboard.writeText(sample.textContent);
    return true;
  } catch {
    // There is no clipboard where the address is neither https nor of this machine.
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
