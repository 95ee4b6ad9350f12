// Keys are typed once. A public key, whose field shows it, stays for the pages of this tab until the tab is closed. Any
// other key stays in its field alone. None is ever put into an address.

const storeNameOf = ({ dataset }) => `playline-${dataset.key}-key`;

const isPublic = ({ type }) => type === 'text';

/** Makes the fields of one kind of key hold the same text, and fills in what this tab knows. */
export function shareKeys() {
  const fields = [...document.querySelectorAll('[data-key]')];
  for (const field of fields) {
    const known = isPublic(field) ? readStore(field) : '';
    if (known !== '') field.value = known;
    field.addEventListener('input', () => {
      for (const other of fields)
        if (other !== field && other.dataset.key === field.dataset.key) other.value = field.value;
      if (isPublic(field)) writeStore(field, field.value.trim());
    });
  }
}

// A browser that keeps nothing for this site throws: the key is then typed on each page.

function readStore(field) {
  try {
    return sessionStorage.getItem(storeNameOf(field)) ?? '';
  } catch {
    return '';
  }
}

function writeStore(field, key) {
  try {
    if (key === '') sessionStorage.removeItem(storeNameOf(field));
    else sessionStorage.setItem(storeNameOf(field), key);
  } catch {
    // As above.
  }
}
