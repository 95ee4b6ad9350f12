// Creates passkeys and signs users in with passkeys. Without JavaScript, users can sign in with a password.

const isSupported = typeof PublicKeyCredential === 'function' && 'parseCreationOptionsFromJSON' in PublicKeyCredential;

/** Fetches WebAuthn options for the values in the form. */
async function fetchOptions(form, path) {
  const query = new URLSearchParams();
  for (const name of ['code', 'login', 'name']) {
    const field = form.elements.namedItem(name);
    if (field !== null) query.set(name, field.value);
  }
  const response = await fetch(`${path}?${query}`, { headers: { accept: 'application/json' }, cache: 'no-store' });
  if (!response.ok) throw new Error('The portal did not respond. Reload the page.');
  return response.json();
}

async function requestCredential(kind, options) {
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
      const credential = await requestCredential(
        button.dataset.passkey,
        await fetchOptions(form, button.dataset.options),
      );
      form.elements.namedItem('response').value = JSON.stringify(credential.toJSON());
      // `submit` does not validate the form, in which the password field is empty.
      form.submit();
    } catch (fault) {
      error.textContent = fault.name === 'NotAllowedError' ? 'No passkey was selected. Try again.' : fault.message;
      button.disabled = false;
    }
  });
}
