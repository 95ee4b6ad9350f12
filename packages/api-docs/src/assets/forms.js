// Sends the requests of the forms on a page to the service that serves the page.

import { refreshValues, rememberGenerated } from './fresh-ids.js';
import { shareKeys } from './keys.js';
import { showFailure, showResponse, showSending } from './response.js';

const forms = [...document.querySelectorAll('form[data-path]')];

shareKeys();
for (const form of forms) {
  const body = form.querySelector('[data-body]');
  if (body !== null) {
    rememberGenerated(body);
    refreshValues(body);
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
  // Ignores further submits while a request is in flight or waits for confirmation.
  if (button.ariaDisabled === 'true') return;
  button.ariaDisabled = 'true';
  try {
    if (await isConfirmed(form)) await send(form);
  } finally {
    button.ariaDisabled = null;
  }
}

/** Shows a confirmation dialog if the request is destructive. Returns true if the request can be sent. */
function isConfirmed(form) {
  const dialog = form.querySelector('dialog');
  if (dialog === null) return true;
  const { pathname, search } = urlOf(form);
  dialog.querySelector('[data-target]').textContent = `${form.dataset.method} ${pathname}${search}`;
  // Escape closes the dialog without changing the return value.
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'confirmed'), { once: true });
  });
}

async function send(form) {
  const body = form.querySelector('[data-body]');
  if (body?.dataset.sent !== undefined) refreshValues(body);
  showSending(form);
  const startMs = performance.now();
  try {
    const response = await fetch(urlOf(form), requestOf(form, body));
    const text = await response.text();
    if (body !== null && !isRetryable(response.status)) body.dataset.sent = '';
    else delete body?.dataset.sent;
    showResponse(form, { response, text, durationMs: performance.now() - startMs });
    showPageButtons(form, response.ok ? text : '');
  } catch (error) {
    delete body?.dataset.sent;
    showFailure(form, error);
    showPageButtons(form, '');
  }
}

/** Shows a button for each cursor in the response. */
function showPageButtons(form, text) {
  for (const button of form.querySelectorAll('[data-cursor]')) {
    button.value = readCursor(text, button.dataset.cursor.split('.'));
    button.hidden = button.value === '';
  }
}

function readCursor(text, path) {
  if (text === '') return '';
  return path.reduce((value, name) => value?.[name], JSON.parse(text)) ?? '';
}

/** A retry must use the same ids, because the service may have processed the request despite this status. */
const isRetryable = (status) => status === 429 || status >= 500;

function urlOf(form) {
  const path = form.dataset.path.replace(/\{(\w+)\}/g, (_match, name) =>
    encodeURIComponent(form.querySelector(`[data-path-name="${name}"]`).value),
  );
  const url = new URL(path, location.href);
  for (const field of form.querySelectorAll('[data-query]')) {
    if (field.value !== '') url.searchParams.set(field.dataset.query, field.value);
  }
  return url;
}

function requestOf(form, body) {
  const headers = {};
  for (const field of form.querySelectorAll('[data-key-header]'))
    if (field.value.trim() !== '') headers[field.dataset.keyHeader] = field.value.trim();
  if (body !== null) headers['content-type'] = 'application/json';
  return { method: form.dataset.method, headers, body: body?.value, credentials: 'omit', cache: 'no-store' };
}
