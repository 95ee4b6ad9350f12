// Creates and uses passkeys. Without this file, people sign in with a password.

const isSupported = typeof PublicKeyCredential === 'function' && 'parseCreationOptionsFromJSON' in PublicKeyCredential;

/** Fetches the options of the portal for the values of the form. */
async function optionsFor(form, path) {
  const query = new URLSearchParams();
  for (const name of ['code', 'login', 'name']) {
    const field = form.elements.namedItem(name);
    if (field !== null) query.set(name, field.value);
  }
  const answer = await fetch(`${path}?${query}`, { headers: { accept: 'application/json' }, cache: 'no-store' });
  if (!answer.ok) throw new Error('The portal did not answer. Reload the page.');
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
  const error = button.parentElement.querySelector('[data-passkey-error]');
  button.addEventListener('click', async () => {
    const { form } = button;
    button.disabled = true;
    error.textContent = '';
    try {
      const credential = await credentialFor(button.dataset.passkey, await optionsFor(form, button.dataset.options));
      form.elements.namedItem('response').value = JSON.stringify(credential.toJSON());
      // `submit` skips validation: a passkey needs no password.
      form.submit();
    } catch (fault) {
      error.textContent =
        fault.name === 'NotAllowedError' ? 'No passkey was chosen in time. Try again.' : fault.message;
      button.disabled = false;
    }
  });
}
