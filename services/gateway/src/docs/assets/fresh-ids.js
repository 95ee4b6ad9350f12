// A message whose id was stored before is stored no second time: each message that a reader sends gets an id of its
// own, and the time at which it is sent. Ids and times that the reader typed are the reader's.

const MEMBER = /("(messageId|eventTimestamp)"\s*:\s*)"([^"]*)"/g;

/** By field: the ids and times that came with the page or were made here. */
const madeIn = new WeakMap();

/** Remembers the ids and times of a field that no reader has touched yet. */
export function rememberMade(field) {
  madeIn.set(field, new Set([...field.value.matchAll(MEMBER)].map(([, , , value]) => value)));
}

/** Puts new ids and the present time in the place of those that were made by us. */
export function freshen(field) {
  const made = madeIn.get(field);
  field.value = field.value.replace(MEMBER, (all, name, member, value) => {
    if (!made.has(value)) return all;
    const fresh = member === 'messageId' ? createId() : new Date().toISOString();
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
