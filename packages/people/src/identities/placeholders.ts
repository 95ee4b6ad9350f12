import { hash } from 'node:crypto';

// Values that clients send when they have no id: each of them would join strangers into one person. A value is found by
// its shape where it has one, and otherwise by the words it consists of.

const wordSet = (text: string): string[] => text.split(/\s+/).filter(Boolean);

/** Words for "no value". Alone they are placeholders, and so is any sequence of them. */
const NOTHING = wordSet(`
  null nil none nan undefined undef void empty blank missing unset unspecified unavailable unidentified unregistered
  unknown unauthenticated anonymous guest default n/a na notset notavailable notauthenticated notloggedin loggedout
  notfound notapplicable noid nouser novalue nodata nullptr invalid true false inf infinity placeholder changeme tbd todo xxx
`).flatMap((word) => [word, word.replaceAll(/[^a-z]/g, '')]);
/** Names of fields and types. Sent as a value, they are a literal that nobody replaced. */
const FIELDS = wordSet(`
  id uid uuid guid udid imei idfa idfv gaid aaid email username userid playerid accountid customerid deviceid
  anonymousid anonid distinctid sessionid clientid visitorid profileid memberid externalid installid advertisingid
  instanceid personid gamerid passportid steamid epicid googleid appleid discordid emailaddress
  string integer boolean
`);
/** Words that say nothing by themselves, but next to one of the others: `unknown_user`, `your user id`, `not set`. */
const FILLERS = wordSet(`
  anon user player account customer device client visitor session profile member external install installation advertising
  distinct instance person gamer passport steam epic google apple discord custom value name address your my the here insert
  enter replace not is available set authenticated found applicable optional
`);

/** Device identifiers that many devices share: emulators, factory defaults, examples of documentation. */
const DEVICE_CONSTANTS = wordSet(`
  9774d56d682e549c dead00beef 0123456789abcdef 1234567890abcdef 02:00:00:00:00:00 004999010640000 358240051111110
  012345678912345 123456789012345 deadbeef deadbeef-dead-beef-dead-beefdeadbeef 12345678-1234-1234-1234-123456789012
  12345678-1234-1234-1234-123456789abc 12345678-1234-5678-1234-567812345678
  00000000-0000-0000-0000-000000000001
`);
/** Hashes of nothing: what a client gets that hashes an id it does not have. */
const DIGESTS = ['md5', 'sha1', 'sha256'].flatMap((algorithm) =>
  ['', 'null', 'undefined'].map((text) => hash(algorithm, text, 'hex')),
);

/** Letters and digits only. */
const bare = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, '');
const CONSTANTS = new Set([...DEVICE_CONSTANTS, ...DIGESTS].map(bare));
const MEANINGFUL = new Set([...NOTHING, ...FIELDS].map(bare));
const NEUTRAL = new Set(FILLERS);

/** Syntax of templates and formats that were sent instead of their result. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: templates that nobody filled in
const TEMPLATES = wordSet('${ } {{ }} <% %> $( ) #{ } %{ } [[ ]]');
const NAMED_FORMAT = /%\([^()]*\)[a-z]/;
const FORMAT = /^(%[-+0-9.$]*l?[a-z@]|\$\d|\{\d\})$/;
/** What languages print for an object or a function that was used as text. */
const PRINTED_OBJECT = /^\W*\[object \w+\]|^(async )?function\b.*\{|^\(?[\w, ]*\)? ?=>/s;
/** Only zeros and separators, such as `0.0` and the nil UUID; also in hexadecimal, such as the zero address. */
const ZEROS = /^[-+]?[0.,:_\s-]+$|^0x0+$/;
/** Fewer digits may be the id of one of the first thousand users of a game that counts them. */
const REPEATED = /^(?:([a-z])\1{2,}|(\d)\2{3,})$/;
const PUNCTUATION = /^[-_.?*/\\!#~\s\u2010-\u2015]+$/;
/** Ends of the domain in an e-mail address whose other parts are placeholders. */
const DOMAINS = wordSet('com net org io');
const EMAIL = new RegExp(`^([^@]+)@([^@]+?)(?:\\.(?:${DOMAINS.join('|')}))?$`);
/** A word in front of an id that is missing: `user-`. */
const PREFIX_ALONE = /^([a-z]+)[-_:./#]+$/;
const PERCENT = /%[0-9a-f]{2}/;
/** Characters that nobody sees. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** Closing quotes and brackets by opening ones. */
const CLOSERS = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['(', ')'],
  ['<', '>'],
  ['[', ']'],
  ['{', '}'],
]);
/**
 * A longer text is no placeholder. An id has at most 256 characters, and normalization makes up to 18 of one; the rules take
 * time for each of them.
 */
const TEXT_MAX = 512;

// A client chooses the ids, so nothing here may take more time than grows with their length.

/** Removes quotes and brackets around a text, however many. */
function unwrap(wrapped: string): string {
  let [start, end] = [0, wrapped.length];
  for (;;) {
    while (start < end && isSpace(wrapped[start]!)) start++;
    while (start < end && isSpace(wrapped[end - 1]!)) end--;
    if (end - start < 2 || CLOSERS.get(wrapped[start]!) !== wrapped[end - 1]) return wrapped.slice(start, end);
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

/** Reduces an id to the form in which placeholders are compared: trimmed, without what nobody sees, in lower case. */
export function foldId(id: string): string {
  return unwrap(id.normalize('NFKC').replaceAll(INVISIBLE, '').toLowerCase());
}

/** The rule for every text. It takes some microseconds, so most ids are told apart by their bytes first. */
function classify(id: string): boolean {
  const normalized = id.normalize('NFKC');
  if (normalized.length > TEXT_MAX) return false;
  const visible = normalized.replaceAll(INVISIBLE, '').trim().toLowerCase();
  if (hasTemplate(visible) || (PERCENT.test(visible) && hasTemplate(decode(visible)))) return true;
  if (FORMAT.test(visible) || PRINTED_OBJECT.test(visible)) return true;
  if (isEmptyJson(visible)) return true;
  const text = unwrap(visible);
  if (text === '' || text === '-1' || ZEROS.test(text) || PUNCTUATION.test(text)) return true;
  const letters = bare(text);
  return REPEATED.test(letters) || CONSTANTS.has(letters) || MEANINGFUL.has(letters) || isOfEmptyParts(text);
}

/** Decodes a part of an address; the text itself when it is none. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isOfEmptyParts(text: string): boolean {
  const [, prefix = ''] = PREFIX_ALONE.exec(text) ?? [];
  if (NEUTRAL.has(prefix)) return true;
  const [, mailbox, domain] = EMAIL.exec(text) ?? [];
  if (mailbox !== undefined && domain !== undefined) return isEmptyPhrase(mailbox) && isEmptyPhrase(domain);
  return isEmptyPhrase(text);
}

/** Whether every word of a text means nothing, and at least one says so: `undefined undefined`, `unknown_user`. */
function isEmptyPhrase(text: string): boolean {
  const words = text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return words.some((word) => MEANINGFUL.has(word)) && words.every((word) => MEANINGFUL.has(word) || NEUTRAL.has(word));
}

/** Whether a text is a JSON object or array in which there is no value: `{}`, `[null]`, `{"id":"undefined"}`. */
function isEmptyJson(text: string): boolean {
  if (!/^[[{]/.test(text)) return false;
  try {
    return isHollow(JSON.parse(text));
  } catch {
    return false;
  }
}

function isHollow(value: unknown): boolean {
  if (typeof value === 'object') return value === null || Object.values(value).every(isHollow);
  return typeof value === 'string' ? classify(value) : value === 0 || typeof value === 'boolean';
}

// Nearly every id is told apart by a look at its bytes.

/** About two hundred entries in so many bits. */
const FILTER_BITS = 2 ** 15;
const FNV_PRIME = 0x01000193;
const EMPTY_HASH = 0x11c9dc5;
const mix = (hashed: number, byte: number): number => Math.imul(hashed ^ byte, FNV_PRIME);
const slotOf = (hashed: number): number => (hashed ^ (hashed >>> 15)) & (FILTER_BITS - 1);
const ENTRIES = [...MEANINGFUL, ...NEUTRAL, ...CONSTANTS, ...DOMAINS].map((word) => Buffer.from(word));
const PREFIX_BYTES = 4;
/** Which words exist, and which beginnings: at most four bytes of a word, and of all letters and digits of an id. */
const TERMS = new Uint8Array(FILTER_BITS);
const PREFIXES = new Uint8Array(FILTER_BITS);
for (const word of [...ENTRIES, Buffer.from('0x0'), Buffer.from('0x00')]) {
  TERMS[slotOf(word.reduce(mix, EMPTY_HASH))] = 1;
  PREFIXES[slotOf(word.subarray(0, PREFIX_BYTES).reduce(mix, EMPTY_HASH))] = 1;
}

const OTHER = 0;
const SEPARATOR = 1;
/** Of each byte its lower case if it is a letter or digit, `SEPARATOR`, or `OTHER`, which only the text rule can judge. */
const FOLDED = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if (/[0-9a-zA-Z]/.test(character)) return character.toLowerCase().charCodeAt(0);
  return /[-_.:@+/,=|~!?*& ]/.test(character) ? SEPARATOR : OTHER;
});

/** False only for ids that are certainly no placeholder; allocates nothing. */
function mayBePlaceholder(id: Uint8Array): boolean {
  for (let i = 0; i < id.length; i++) if (FOLDED[id[i]!] === OTHER) return true;
  return startsLikeOne(id) && consistsOfKnownTerms(id);
}

/** Whether an id begins as a word of the lists does, with one character three times, or has fewer than four letters. */
function startsLikeOne(id: Uint8Array): boolean {
  let letters = 0;
  let all = EMPTY_HASH;
  let word = EMPTY_HASH;
  let isInFirstWord = true;
  let first = 0;
  let isRepeated = true;
  for (let i = 0; i < id.length && letters < PREFIX_BYTES; i++) {
    const byte = FOLDED[id[i]!]!;
    if (byte === SEPARATOR) {
      if (letters > 0) isInFirstWord = false;
      continue;
    }
    if (letters === 0) first = byte;
    else if (letters < 3) isRepeated &&= byte === first;
    all = mix(all, byte);
    if (isInFirstWord) word = mix(word, byte);
    letters++;
  }
  return letters < PREFIX_BYTES || isRepeated || PREFIXES[slotOf(all)] === 1 || PREFIXES[slotOf(word)] === 1;
}

const LETTER_X = 'x'.charCodeAt(0);

/** Whether an id is one character again and again, a word of the lists with or without its separators, or several words. */
function consistsOfKnownTerms(id: Uint8Array): boolean {
  let word = EMPTY_HASH;
  let all = EMPTY_HASH;
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
    isRepeated &&= byte === first || (byte === LETTER_X && i === 1);
    word = mix(word, byte);
    all = mix(all, byte);
  }
  areKnown &&= word === EMPTY_HASH || TERMS[slotOf(word)] === 1;
  return isRepeated || areKnown || TERMS[slotOf(all)] === 1;
}

/** Room for the UTF-8 of an id, which has at most 256 characters of 4 bytes. */
const scratch = Buffer.alloc(1_024);

/**
 * Whether a text is no id but what a client sends that has none. Such an id owns nothing and links nobody, in every
 * field: the one rule for messages, links, consents and erasures.
 */
export function isPlaceholder(id: string): boolean {
  // A UTF-16 unit never takes more than three bytes of UTF-8.
  if (id.length * 3 > scratch.length) return classify(id);
  return mayBePlaceholder(scratch.subarray(0, scratch.write(id))) && classify(id);
}

/** The same rule for an id in UTF-8. */
export function isPlaceholderBytes(id: Uint8Array): boolean {
  return mayBePlaceholder(id) && classify(Buffer.from(id.buffer, id.byteOffset, id.length).toString());
}

/** Whether an id may not link anybody in an environment. */
export type IsBlocked = (environmentId: string, id: string) => boolean;

/**
 * Creates the check for blocked ids: placeholders, and values that an operator has named.
 * @param blockedOf further values by environment id, compared as placeholders are
 */
export function createIsBlocked(blockedOf: Readonly<Record<string, readonly string[]>> = {}): IsBlocked {
  const further = new Map(Object.entries(blockedOf).map(([id, values]) => [id, new Set(values.map(foldId))]));
  return (environmentId, id) => isPlaceholder(id) || (further.get(environmentId)?.has(foldId(id)) ?? false);
}
