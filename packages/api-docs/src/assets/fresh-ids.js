// A message that is sent twice under one id counts once. So each body that a reader sends gets new ids and the present
// time, in the members that its field names. Ids and times that the reader typed are kept.

/** By field: the ids and times of the page or of this script. */
const madeIn = new WeakMap();

const namesIn = (list) => (list ?? '').split(' ').filter((name) => name !== '');

/** A pattern for the members that a field names, and their values; nothing if it names none. */
function memberPattern({ dataset }) {
  const names = [...namesIn(dataset.freshIds), ...namesIn(dataset.freshTimes)];
  return names.length === 0 ? /(?!)/g : new RegExp(`("(${names.join('|')})"\\s*:\\s*)"([^"]*)"`, 'g');
}

/** Remembers the ids and times of a field that no reader has touched yet. */
export function rememberMade(field) {
  madeIn.set(field, new Set([...field.value.matchAll(memberPattern(field))].map(([, , , value]) => value)));
}

/** Replaces the ids and times that this script or the page made, by new ids and the present time. */
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

/** A UUID of version 4. `crypto.randomUUID` is missing where the address is neither https nor localhost. */
function createId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
