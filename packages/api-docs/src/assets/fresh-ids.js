// What was sent once counts no second time: each body that a reader sends gets ids of its own, and the time at which it
// is sent, in the members that its field names. Ids and times that the reader typed are the reader's.

/** By field: the ids and times that came with the page or were made here. */
const madeIn = new WeakMap();

const namesIn = (list) => (list ?? '').split(' ').filter((name) => name !== '');

/** Finds the members of a field with their values; nothing where it names none. */
function memberPattern({ dataset }) {
  const names = [...namesIn(dataset.freshIds), ...namesIn(dataset.freshTimes)];
  return names.length === 0 ? /(?!)/g : new RegExp(`("(${names.join('|')})"\\s*:\\s*)"([^"]*)"`, 'g');
}

/** Remembers the ids and times of a field that no reader has touched yet. */
export function rememberMade(field) {
  madeIn.set(field, new Set([...field.value.matchAll(memberPattern(field))].map(([, , , value]) => value)));
}

/** Puts new ids and the present time in the place of those that were made by us. */
export function freshen(field) {
  const made = madeIn.get(field);
  const ids = namesIn(field.dataset.freshIds);
  field.value = field.value.replace(memberPattern(field), (all, name, member, value) => {
    if (!made.has(value)) return all;
    const fresh = ids.includes(member) ? createId() : new Date().toISOString();
    made.add(fresh);
    return `${name}"${fresh}"`;
  });
}

/** A UUID of version 4. `crypto.randomUUID` is missing where the address is neither https nor of this machine. */
function createId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
