// Passkeys are made and asked for by the browser: without this file people sign in with a password.

const isSupported = typeof PublicKeyCredential === 'function' && 'parseCreationOptionsFromJSON' in PublicKeyCredential;

/** What the portal asks, for what stands in the form; never kept. */
async function optionsFor(form, path) {
  const question = new URLSearchParams();
  for (const name of ['code', 'login', 'name']) {
    const field = form.elements.namedItem(name);
    if (field !== null) question.set(name, field.value);
  }
  const answer = await fetch(`${path}?${question}`, { headers: { accept: 'application/json' }, cache: 'no-store' });
  if (!answer.ok) throw new Error('The portal did not answer. Load the page again.');
  return answer.json();
}

async function credentialFor(kind, options) {
  if (kind === 'get')
    return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
  return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
}

for (const button of document.querySelectorAll('button[data-passkey]')) {
  if (!isSupported) continue;
  button.hidden = false;
  const told = button.parentElement.querySelector('[data-passkey-told]');
  button.addEventListener('click', async () => {
    const { form } = button;
    button.disabled = true;
    told.textContent = '';
    try {
      const credential = await credentialFor(button.dataset.passkey, await optionsFor(form, button.dataset.options));
      form.elements.namedItem('response').value = JSON.stringify(credential.toJSON());
      // As it is: a passkey needs no password beside it.
      form.submit();
    } catch (fault) {
      told.textContent =
        fault.name === 'NotAllowedError' ? 'No passkey was chosen, or it took too long: try again.' : fault.message;
      button.disabled = false;
    }
  });
}
