// Sends the forms of the reference page to the service that serves it. Nothing is kept and nothing goes elsewhere.

for (const form of document.querySelectorAll('form[data-path]')) {
  renew(form.elements.body);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send(form);
  });
}

/** A message whose id has been here before would be stored only once: each reader gets ids of their own. */
function renew(body) {
  // Browsers have the source of ids only on secure addresses and on this machine.
  if (body === undefined || crypto.randomUUID === undefined) return;
  body.value = body.value.replace(/("messageId": )"[^"]*"/g, (_all, name) => `${name}"${crypto.randomUUID()}"`);
}

async function send(form) {
  const outcome = form.querySelector('[data-outcome]');
  const shown = form.querySelector('[data-answer]');
  const button = form.querySelector('button');
  outcome.textContent = 'Sending …';
  button.setAttribute('aria-disabled', 'true');
  try {
    const answer = await fetch(addressOf(form), requestOf(form));
    const body = await answer.text();
    outcome.textContent = `Status ${answer.status}`;
    shown.textContent = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    if (body !== '') shown.textContent += `\n\n${indented(body)}`;
    shown.hidden = false;
  } catch (error) {
    outcome.textContent = `No answer: ${error.message}`;
    shown.hidden = true;
  } finally {
    button.removeAttribute('aria-disabled');
  }
}

function addressOf(form) {
  const address = new URL(form.dataset.path, location.href);
  for (const field of form.querySelectorAll('[data-query]')) {
    // What is left empty is left out.
    if (field.value !== '') address.searchParams.set(field.dataset.query, field.value);
  }
  return address;
}

function requestOf(form) {
  const { key, body } = form.elements;
  const headers = {};
  if (key.value !== '') headers[form.dataset.keyHeader] = key.value.trim();
  if (body !== undefined) headers['content-type'] = 'application/json';
  return { method: form.dataset.method, headers, body: body?.value, credentials: 'omit', cache: 'no-store' };
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
