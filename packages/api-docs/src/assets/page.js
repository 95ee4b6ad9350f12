// Loaded by every page. Adds copy buttons and tabs, closes the menu on narrow screens, and expands examples that a link
// targets.

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

for (const [group, tabs] of document.querySelectorAll('[data-tabs]').entries()) addTabs(tabs, group);

/** Shows one block at a time. A choice applies to all groups of the page with the same tab. */
function addTabs(tabs, group) {
  const list = document.createElement('div');
  list.role = 'tablist';
  list.ariaLabel = 'Language';
  for (const [index, panel] of [...tabs.children].entries()) {
    const label = panel.querySelector('.label');
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.role = 'tab';
    tab.id = `tab-${group}-${index}`;
    tab.textContent = label.textContent;
    panel.id = `panel-${group}-${index}`;
    panel.role = 'tabpanel';
    panel.setAttribute('aria-labelledby', tab.id);
    tab.setAttribute('aria-controls', panel.id);
    tab.addEventListener('click', () => selectTab(tab.textContent));
    list.append(tab);
  }
  list.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const all = [...list.children];
    const next = all.at((all.indexOf(document.activeElement) + step) % all.length);
    next.focus();
    next.click();
  });
  tabs.prepend(list);
  showTab(list, list.firstChild);
}

function selectTab(text) {
  for (const list of document.querySelectorAll('[role=tablist]')) {
    const tab = [...list.children].find((one) => one.textContent === text);
    if (tab !== undefined) showTab(list, tab);
  }
}

function showTab(list, selected) {
  for (const tab of list.children) {
    tab.ariaSelected = String(tab === selected);
    tab.tabIndex = tab === selected ? 0 : -1;
    document.getElementById(tab.getAttribute('aria-controls')).hidden = tab !== selected;
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
