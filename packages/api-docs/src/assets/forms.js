// Sends the forms of a page to the service that serves the page, and to no other.

import { showAnswer, showFailure, showSending } from './answer.js';
import { freshen, rememberMade } from './fresh-ids.js';
import { shareKeys } from './keys.js';

const forms = [...document.querySelectorAll('form[data-path]')];

shareKeys();
for (const form of forms) {
  const body = form.querySelector('[data-body]');
  if (body !== null) {
    rememberMade(body);
    freshen(body);
  }
  for (const button of form.querySelectorAll('[data-cursor]'))
    button.addEventListener('click', () => {
      form.querySelector(`[data-query="${button.dataset.into}"]`).value = button.value;
      form.requestSubmit();
    });
  for (const button of form.querySelectorAll('dialog button'))
    button.addEventListener('click', () => button.closest('dialog').close(button.value));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit(form);
  });
}

async function submit(form) {
  const button = form.querySelector('[type=submit]');
  // A form that is being sent, or waits for the confirmation, is not sent a second time.
  if (button.ariaDisabled === 'true') return;
  button.ariaDisabled = 'true';
  try {
    if (await isMeant(form)) await send(form);
  } finally {
    button.ariaDisabled = null;
  }
}

/** Waits for the confirmation of a request that destroys something. Resolves to true for all others. */
function isMeant(form) {
  const dialog = form.querySelector('dialog');
  if (dialog === null) return true;
  const { pathname, search } = addressOf(form);
  dialog.querySelector('[data-target]').textContent = `${form.dataset.method} ${pathname}${search}`;
  // Escape closes the dialog with whatever value it has.
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'sure'), { once: true });
  });
}

async function send(form) {
  const body = form.querySelector('[data-body]');
  if (body?.dataset.sent !== undefined) freshen(body);
  showSending(form);
  const startMs = performance.now();
  try {
    const answer = await fetch(addressOf(form), requestOf(form, body));
    const text = await answer.text();
    if (body !== null && !mayComeAgain(answer.status)) body.dataset.sent = '';
    else delete body?.dataset.sent;
    showAnswer(form, { answer, text, tookMs: performance.now() - startMs });
    offerPages(form, answer.ok ? text : '');
  } catch (error) {
    delete body?.dataset.sent;
    showFailure(form, error);
    offerPages(form, '');
  }
}

/** Shows the buttons for the cursors that an answer names. */
function offerPages(form, text) {
  for (const button of form.querySelectorAll('[data-cursor]')) {
    button.value = cursorIn(text, button.dataset.cursor.split('.'));
    button.hidden = button.value === '';
  }
}

function cursorIn(text, members) {
  if (text === '') return '';
  return members.reduce((value, member) => value?.[member], JSON.parse(text)) ?? '';
}

/** After these answers the request may have been stored, so it is sent again with the same ids. */
const mayComeAgain = (status) => status === 429 || status >= 500;

function addressOf(form) {
  const path = form.dataset.path.replace(/\{(\w+)\}/g, (_all, name) =>
    encodeURIComponent(form.querySelector(`[data-path-name="${name}"]`).value),
  );
  const address = new URL(path, location.href);
  for (const field of form.querySelectorAll('[data-query]')) {
    // Empty fields are left out of the address.
    if (field.value !== '') address.searchParams.set(field.dataset.query, field.value);
  }
  return address;
}

function requestOf(form, body) {
  const headers = {};
  for (const field of form.querySelectorAll('[data-key-header]'))
    if (field.value.trim() !== '') headers[field.dataset.keyHeader] = field.value.trim();
  if (body !== null) headers['content-type'] = 'application/json';
  return { method: form.dataset.method, headers, body: body?.value, credentials: 'omit', cache: 'no-store' };
}
