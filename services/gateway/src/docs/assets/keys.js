// Keys are typed once. The publishable key is public: games carry it. It stays for the pages of this tab until the tab
// is closed. The secret key stays in its field alone. Neither is ever put into an address.

const STORE_NAME = 'playline-publishable-key';

/** Makes the fields of one kind of key hold the same text, and fills in what this tab knows. */
export function shareKeys() {
  const fields = [...document.querySelectorAll('[data-key]')];
  const known = readStore();
  for (const field of fields) {
    if (field.dataset.key === 'publishable' && known !== '') field.value = known;
    field.addEventListener('input', () => {
      for (const other of fields)
        if (other !== field && other.dataset.key === field.dataset.key) other.value = field.value;
      if (field.dataset.key === 'publishable') writeStore(field.value.trim());
    });
  }
}

// A browser that keeps nothing for this site throws: the key is then typed on each page.

function readStore() {
  try {
    return sessionStorage.getItem(STORE_NAME) ?? '';
  } catch {
    return '';
  }
}

function writeStore(key) {
  try {
    if (key === '') sessionStorage.removeItem(STORE_NAME);
    else sessionStorage.setItem(STORE_NAME, key);
  } catch {
    // As above.
  }
}
