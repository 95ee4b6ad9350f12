// All forms on a page share their keys. Public keys are also stored in session storage. Secret keys are not.

const storageKeyOf = ({ dataset }) => `playline-${dataset.key}-key`;

const isPublic = ({ type }) => type === 'text';

/** Synchronises all fields that contain the same key, and fills in stored keys. */
export function shareKeys() {
  const fields = [...document.querySelectorAll('[data-key]')];
  for (const field of fields) {
    const stored = isPublic(field) ? readStorage(field) : '';
    if (stored !== '') field.value = stored;
    field.addEventListener('input', () => {
      for (const other of fields)
        if (other !== field && other.dataset.key === field.dataset.key) other.value = field.value;
      if (isPublic(field)) writeStorage(field, field.value.trim());
    });
  }
}

// Session storage throws if the browser blocks site data. Readers must then enter the key on every page.

function readStorage(field) {
  try {
    return sessionStorage.getItem(storageKeyOf(field)) ?? '';
  } catch {
    return '';
  }
}

function writeStorage(field, key) {
  try {
    if (key === '') sessionStorage.removeItem(storageKeyOf(field));
    else sessionStorage.setItem(storageKeyOf(field), key);
  } catch {
    // The key is not stored.
  }
}
