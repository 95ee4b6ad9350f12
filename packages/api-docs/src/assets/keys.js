// Each key is typed once. A public key is shown in its field and kept for all pages of this tab until the tab is
// closed. Any other key stays in its field only. No key is ever put into an address.

const storeNameOf = ({ dataset }) => `playline-${dataset.key}-key`;

const isPublic = ({ type }) => type === 'text';

/** Gives all fields of one kind of key the same text, and fills in a key that this tab remembers. */
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

// Throws in a browser that stores nothing for this site. The key must then be typed on each page.

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
