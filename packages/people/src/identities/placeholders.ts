/** Recognizes placeholder values that clients send instead of an id and that would join unrelated people. */
import { hash } from 'node:crypto';

const splitTerms = (text: string): string[] => text.split(/\s+/).filter(Boolean);

/** Terms that mean "no value". Any sequence of these terms is a placeholder. */
const EMPTY_TERMS = splitTerms(`
  null nil none nan undefined undef void empty blank missing unset unspecified unavailable unidentified unregistered
  unknown unauthenticated anonymous guest default n/a na notset notavailable notauthenticated notloggedin loggedout
  notfound notapplicable noid nouser novalue nodata nullptr invalid true false inf infinity placeholder changeme tbd todo xxx
`).flatMap((word) => [word, word.replaceAll(/[^a-z]/g, '')]);
/** Field and type names sent instead of a value. */
const FIELD_NAMES = splitTerms(`
  id uid uuid guid udid imei idfa idfv gaid aaid email username userid playerid accountid customerid deviceid
  anonymousid anonid distinctid sessionid clientid visitorid profileid memberid externalid installid advertisingid
  instanceid personid gamerid passportid steamid epicid googleid appleid discordid emailaddress
  string integer boolean
`);
/** Terms that are placeholders only in combination with the terms above: `unknown_user`, `your user id`, `not set`. */
const FILLER_TERMS = splitTerms(`
  anon user player account customer device client visitor session profile member external install installation advertising
  distinct instance person gamer passport steam epic google apple discord custom value name address your my the here insert
  enter replace not is available set authenticated found applicable optional
`);

/** Device ids from emulators, factory defaults and documentation. */
const DEVICE_CONSTANTS = splitTerms(`
  9774d56d682e549c dead00beef 0123456789abcdef 1234567890abcdef 02:00:00:00:00:00 004999010640000 358240051111110
  012345678912345 123456789012345 deadbeef deadbeef-dead-beef-dead-beefdeadbeef 12345678-1234-1234-1234-123456789012
  12345678-1234-1234-1234-123456789abc 12345678-1234-5678-1234-567812345678
  00000000-0000-0000-0000-000000000001
`);
/** Hashes of missing ids. */
const DIGESTS = ['md5', 'sha1', 'sha256'].flatMap((algorithm) =>
  ['', 'null', 'undefined'].map((text) => hash(algorithm, text, 'hex')),
);

const stripPunctuation = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, '');
const CONSTANTS = new Set([...DEVICE_CONSTANTS, ...DIGESTS].map(stripPunctuation));
const CORE_TERMS = new Set([...EMPTY_TERMS, ...FIELD_NAMES].map(stripPunctuation));
const FILLERS = new Set(FILLER_TERMS);

/** Opening and closing template delimiters. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: unfilled templates
const TEMPLATES = splitTerms('${ } {{ }} <% %> $( ) #{ } %{ } [[ ]]');
const NAMED_FORMAT = /%\([^()]*\)[a-z]/;
const FORMAT = /^(%[-+0-9.$]*l?[a-z@]|\$\d|\{\d\})$/;
/** Objects and functions that were converted to strings. */
const PRINTED_OBJECT = /^\W*\[object \w+\]|^(async )?function\b.*\{|^\(?[\w, ]*\)? ?=>/s;
/** Zeros with separators, such as `0.0`, the nil UUID and the zero address. */
const ZEROS = /^[-+]?[0.,:_\s-]+$|^0x0+$/;
/** Two or three equal digits may be a sequential user id. */
const REPEATED = /^(?:([a-z])\1{2,}|(\d)\2{3,})$/;
const PUNCTUATION = /^[-_.?*/\\!#~\s\u2010-\u2015]+$/;
/** Top-level domains accepted in placeholder email addresses such as `null@null.com`. */
const DOMAINS = splitTerms('com net org io');
const EMAIL = new RegExp(`^([^@]+)@([^@]+?)(?:\\.(?:${DOMAINS.join('|')}))?$`);
/** A prefix without an id: `user-`. */
const BARE_PREFIX = /^([a-z]+)[-_:./#]+$/;
const PERCENT = /%[0-9a-f]{2}/;
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const CLOSING = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['(', ')'],
  ['<', '>'],
  ['[', ']'],
  ['{', '}'],
]);
/** Longer strings are not checked. Normalization expands an id of 256 characters up to 18 times. */
const TEXT_MAX = 512;

// Ids are untrusted input, so every rule must take linear time.

/** Removes all enclosing quotes and brackets. */
function unwrap(wrapped: string): string {
  let [start, end] = [0, wrapped.length];
  for (;;) {
    while (start < end && isSpace(wrapped[start]!)) start++;
    while (start < end && isSpace(wrapped[end - 1]!)) end--;
    if (end - start < 2 || CLOSING.get(wrapped[start]!) !== wrapped[end - 1]) return wrapped.slice(start, end);
    start++;
    end--;
  }
}

const isSpace = (character: string): boolean => character.trim() === '';

function hasTemplate(text: string): boolean {
  for (let at = 0; at < TEMPLATES.length; at += 2) {
    const [open, close] = [TEMPLATES[at]!, TEMPLATES[at + 1]!];
    const start = text.indexOf(open);
    if (start >= 0 && text.includes(close, start + open.length)) return true;
  }
  return NAMED_FORMAT.test(text);
}

/** Normalizes an id for comparison: trimmed, lower case, without invisible characters or enclosing quotes. */
export function foldId(id: string): string {
  return unwrap(id.normalize('NFKC').replaceAll(INVISIBLE, '').toLowerCase());
}

/** The complete check. It takes a few microseconds, so a byte filter runs first. */
function classify(id: string): boolean {
  const normalized = id.normalize('NFKC');
  if (normalized.length > TEXT_MAX) return false;
  const visible = normalized.replaceAll(INVISIBLE, '').trim().toLowerCase();
  if (hasTemplate(visible) || (PERCENT.test(visible) && hasTemplate(decode(visible)))) return true;
  if (FORMAT.test(visible) || PRINTED_OBJECT.test(visible)) return true;
  if (isEmptyJson(visible)) return true;
  const text = unwrap(visible);
  if (text === '' || text === '-1' || ZEROS.test(text) || PUNCTUATION.test(text)) return true;
  const chars = stripPunctuation(text);
  return REPEATED.test(chars) || CONSTANTS.has(chars) || CORE_TERMS.has(chars) || hasOnlyEmptyParts(text);
}

/** Decodes percent-encoding. Invalid strings are returned unchanged. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hasOnlyEmptyParts(text: string): boolean {
  const [, prefix = ''] = BARE_PREFIX.exec(text) ?? [];
  if (FILLERS.has(prefix)) return true;
  const [, mailbox, domain] = EMAIL.exec(text) ?? [];
  if (mailbox !== undefined && domain !== undefined) return isEmptyPhrase(mailbox) && isEmptyPhrase(domain);
  return isEmptyPhrase(text);
}

/** Whether all terms are known and at least one is a core term: `undefined undefined`, `unknown_user`. */
function isEmptyPhrase(text: string): boolean {
  const terms = text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return terms.some((word) => CORE_TERMS.has(word)) && terms.every((word) => CORE_TERMS.has(word) || FILLERS.has(word));
}

/** Whether a string is JSON that contains no value: `{}`, `[null]`, `{"id":"undefined"}`. */
function isEmptyJson(text: string): boolean {
  if (!/^[[{]/.test(text)) return false;
  try {
    return isEmptyValue(JSON.parse(text));
  } catch {
    return false;
  }
}

function isEmptyValue(value: unknown): boolean {
  if (typeof value === 'object') return value === null || Object.values(value).every(isEmptyValue);
  return typeof value === 'string' ? classify(value) : value === 0 || typeof value === 'boolean';
}

// The byte filters below rule out nearly all real ids without allocating.

/** Sized for about 200 entries. */
const FILTER_BITS = 2 ** 15;
const FNV_PRIME = 0x01000193;
const EMPTY_HASH = 0x11c9dc5;
const mix = (hashed: number, byte: number): number => Math.imul(hashed ^ byte, FNV_PRIME);
const slotOf = (hashed: number): number => (hashed ^ (hashed >>> 15)) & (FILTER_BITS - 1);
const ENTRIES = [...CORE_TERMS, ...FILLERS, ...CONSTANTS, ...DOMAINS].map((word) => Buffer.from(word));
const PREFIX_BYTES = 4;
/** Bloom filters for known terms and for their first four bytes. */
const TERMS = new Uint8Array(FILTER_BITS);
const PREFIXES = new Uint8Array(FILTER_BITS);
for (const word of [...ENTRIES, Buffer.from('0x0'), Buffer.from('0x00')]) {
  TERMS[slotOf(word.reduce(mix, EMPTY_HASH))] = 1;
  PREFIXES[slotOf(word.subarray(0, PREFIX_BYTES).reduce(mix, EMPTY_HASH))] = 1;
}

const UNKNOWN = 0;
const SEPARATOR = 1;
/** Per byte: the lower-case byte, `SEPARATOR`, or `UNKNOWN`, which requires the complete check. */
const FOLDED = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if (/[0-9a-zA-Z]/.test(character)) return character.toLowerCase().charCodeAt(0);
  return /[-_.:@+/,=|~!?*& ]/.test(character) ? SEPARATOR : UNKNOWN;
});

/** Returns false only if the id is not a placeholder. Does not allocate. */
function mayBePlaceholder(id: Uint8Array): boolean {
  for (let i = 0; i < id.length; i++) if (FOLDED[id[i]!] === UNKNOWN) return true;
  return startsLikePlaceholder(id) && consistsOfKnownTerms(id);
}

/** Whether an id starts like a known term, starts with a repeated character, or has fewer than four characters. */
function startsLikePlaceholder(id: Uint8Array): boolean {
  let chars = 0;
  let idHash = EMPTY_HASH;
  let word = EMPTY_HASH;
  let isInFirstWord = true;
  let first = 0;
  let isRepeated = true;
  for (let i = 0; i < id.length && chars < PREFIX_BYTES; i++) {
    const byte = FOLDED[id[i]!]!;
    if (byte === SEPARATOR) {
      if (chars > 0) isInFirstWord = false;
      continue;
    }
    if (chars === 0) first = byte;
    else if (chars < 3) isRepeated &&= byte === first;
    idHash = mix(idHash, byte);
    if (isInFirstWord) word = mix(word, byte);
    chars++;
  }
  return chars < PREFIX_BYTES || isRepeated || PREFIXES[slotOf(idHash)] === 1 || PREFIXES[slotOf(word)] === 1;
}

const CHAR_X = 'x'.charCodeAt(0);

/** Whether an id is a repeated character or a sequence of known terms, with or without separators. */
function consistsOfKnownTerms(id: Uint8Array): boolean {
  let word = EMPTY_HASH;
  let idHash = EMPTY_HASH;
  let first = 0;
  let isRepeated = true;
  let areKnown = true;
  for (let i = 0; i < id.length; i++) {
    const byte = FOLDED[id[i]!]!;
    if (byte === SEPARATOR) {
      areKnown &&= word === EMPTY_HASH || TERMS[slotOf(word)] === 1;
      word = EMPTY_HASH;
      continue;
    }
    if (first === 0) first = byte;
    isRepeated &&= byte === first || (byte === CHAR_X && i === 1);
    word = mix(word, byte);
    idHash = mix(idHash, byte);
  }
  areKnown &&= word === EMPTY_HASH || TERMS[slotOf(word)] === 1;
  return isRepeated || areKnown || TERMS[slotOf(idHash)] === 1;
}

/** Fits the longest UTF-8 id: 256 characters of 4 bytes. */
const scratch = Buffer.alloc(1_024);

/** Whether an id is a placeholder. Messages, links, consents and erasures ignore placeholders. */
export function isPlaceholder(id: string): boolean {
  // A UTF-16 code unit has at most three bytes in UTF-8.
  if (id.length * 3 > scratch.length) return classify(id);
  return mayBePlaceholder(scratch.subarray(0, scratch.write(id))) && classify(id);
}

/** Like `isPlaceholder`, for a UTF-8 id. */
export function isPlaceholderBytes(id: Uint8Array): boolean {
  return mayBePlaceholder(id) && classify(Buffer.from(id.buffer, id.byteOffset, id.length).toString());
}

/** Whether links of an id are refused in an environment. */
export type IsBlocked = (environmentId: string, id: string) => boolean;

/**
 * Creates the check for blocked ids: placeholders and configured values.
 * @param blockedOf additional blocked values by environment id, compared like placeholders
 */
export function createIsBlocked(blockedOf: Readonly<Record<string, readonly string[]>> = {}): IsBlocked {
  const blockedValues = new Map(Object.entries(blockedOf).map(([id, values]) => [id, new Set(values.map(foldId))]));
  return (environmentId, id) => isPlaceholder(id) || (blockedValues.get(environmentId)?.has(foldId(id)) ?? false);
}
