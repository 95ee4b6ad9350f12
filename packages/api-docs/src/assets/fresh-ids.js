// The service deduplicates messages by id, so every request needs new ids and the current time. Values that the reader
// has edited are not changed.

/** The generated ids and times in each text area. */
const generatedIn = new WeakMap();

const toNames = (list) => (list ?? '').split(' ').filter((name) => name !== '');

/** Returns a pattern that matches the JSON fields to refresh. It never matches if there are no such fields. */
function createFieldPattern({ dataset }) {
  const names = [...toNames(dataset.freshIds), ...toNames(dataset.freshTimes)];
  return names.length === 0 ? /(?!)/g : new RegExp(`("(${names.join('|')})"\\s*:\\s*)"([^"]*)"`, 'g');
}

/** Records the ids and times of the unedited example. */
export function rememberGenerated(textArea) {
  const matches = [...textArea.value.matchAll(createFieldPattern(textArea))];
  generatedIn.set(textArea, new Set(matches.map(([, , , value]) => value)));
}

/** Replaces generated ids and times with new values. */
export function refreshValues(textArea) {
  const generated = generatedIn.get(textArea);
  const ids = toNames(textArea.dataset.freshIds);
  textArea.value = textArea.value.replace(createFieldPattern(textArea), (match, prefix, name, value) => {
    if (!generated.has(value)) return match;
    const fresh = ids.includes(name) ? createId() : new Date().toISOString();
    generated.add(fresh);
    return `${prefix}"${fresh}"`;
  });
}

/** Creates a version 4 UUID. `crypto.randomUUID` is available only over HTTPS and on localhost. */
function createId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
