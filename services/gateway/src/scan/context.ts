import { CONTEXT_CODE_POINTS_MAX, type ContextString } from '@playline/contracts';
import {
  CLOSE_BRACE,
  COMMA,
  DIGIT_0,
  DIGIT_9,
  endOfString,
  endOfValue,
  FAIL,
  hasSurrogateEscape,
  LETTER_E,
  LETTER_N,
  LOWER_CASE,
  MINUS,
  QUOTE,
  SPACE,
  skipColon,
  skipSpace,
} from './json.ts';
import { FIELD, ROW_SHIFT, type ScanState } from './ranges.ts';
import { isVisibleAt, NameTable, UNKNOWN } from './text.ts';

/** In the order of `FIELD`, so that the index of a name plus `FIELD.library` is its field. */
const CONTEXT_NAMES = [
  'library',
  'libraryVersion',
  'userAgent',
  'locale',
  'timezone',
  'screen',
  'pageUrl',
  'pagePath',
  'pageReferrer',
  'pageTitle',
  'browserLanguage',
  'screenDensity',
] as const satisfies (ContextString | 'screenDensity')[];
const CONTEXT_TABLE = new NameTable(CONTEXT_NAMES);
const SCREEN_DENSITY = CONTEXT_NAMES.indexOf('screenDensity');
/** library and libraryVersion. */
const REQUIRED_BITS = 0b11;

/** Longest length of a field that is not a string: every string is too long for it. */
const NOT_TEXT = -1;
/** Longest string of each name, in bytes with escapes. A string has at most as many code points. */
const BYTES_MAX = Int32Array.from(CONTEXT_NAMES, (name) =>
  name === 'screenDensity' ? NOT_TEXT : CONTEXT_CODE_POINTS_MAX[name],
);

/** A number of at most this many bytes without an exponent is certainly finite. */
const NUMBER_BYTES_MAX = 32;
/** Nesting depth of a field of the context. */
const VALUE_DEPTH = 4;

/**
 * Reads the context of the message being scanned from its opening brace. A broken rule makes the message doubtful.
 * @returns the place after it, or `FAIL` when it is not JSON
 */
export function scanContext(state: ScanState, at: number): number {
  const { bytes, batch, message } = state;
  // If the message has two contexts, the fields of the first are cleared.
  if (state.isDoubtful) clearContext(state);
  let i = skipSpace(bytes, at + 1);
  let seen = 0;
  if (bytes[i] !== CLOSE_BRACE) {
    for (;;) {
      if (bytes[i] !== QUOTE) return FAIL;
      const keyEnd = endOfString(bytes, i);
      if (keyEnd === FAIL) return FAIL;
      const name =
        keyEnd > FAIL
          ? CONTEXT_TABLE.find(bytes, i + 1, keyEnd - 1)
          : CONTEXT_TABLE.findEscaped(bytes, i + 1, -keyEnd - 1);
      i = skipColon(bytes, Math.abs(keyEnd));
      if (i === FAIL) return FAIL;
      if (name === UNKNOWN) i = endOfValue(bytes, i, VALUE_DEPTH);
      else {
        // The last of equal keys wins.
        if ((seen & (1 << name)) !== 0) state.isDoubtful = true;
        seen |= 1 << name;
        i = bytes[i] === QUOTE ? scanContextText(state, name, i) : scanContextOther(state, name, i);
      }
      if (i === FAIL) return FAIL;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
      if (bytes[i] === CLOSE_BRACE) break;
      if (bytes[i] !== COMMA) return FAIL;
      i++;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    }
  }
  if ((seen & REQUIRED_BITS) !== REQUIRED_BITS) state.isDoubtful = true;
  const slot = (message << ROW_SHIFT) + FIELD.context;
  batch.starts[slot] = at;
  batch.ends[slot] = i + 1;
  return i + 1;
}

/** Clears the fields of a context that a later value replaces. */
export function clearContext({ batch, message }: ScanState): void {
  for (let name = 0; name < CONTEXT_NAMES.length; name++) {
    const field = FIELD.library + name;
    batch.starts[(message << ROW_SHIFT) + field] = 0;
    batch.ends[(message << ROW_SHIFT) + field] = 0;
    batch.escaped[message]! &= ~(1 << field);
  }
}

function scanContextText(state: ScanState, name: number, at: number): number {
  const { bytes, batch, message } = state;
  const read = endOfString(bytes, at);
  if (read === FAIL) return FAIL;
  const next = Math.abs(read);
  const start = at + 1;
  const end = next - 1;
  if (end - start > BYTES_MAX[name]!) state.isDoubtful = true;
  if ((REQUIRED_BITS & (1 << name)) !== 0 && (start === end || !isVisibleAt(bytes, start))) state.isDoubtful = true;
  const field = FIELD.library + name;
  if (read < 0) {
    if (hasSurrogateEscape(bytes, start, end)) state.isDoubtful = true;
    batch.escaped[message]! |= 1 << field;
  } else if (state.isDoubtful) batch.escaped[message]! &= ~(1 << field);
  const slot = (message << ROW_SHIFT) + field;
  batch.starts[slot] = start;
  batch.ends[slot] = end;
  return next;
}

/** Reads a value that is not a string: null, the density, or a value of the wrong type. */
function scanContextOther(state: ScanState, name: number, at: number): number {
  const { bytes, batch, message } = state;
  const end = endOfValue(bytes, at, VALUE_DEPTH);
  if (end === FAIL) return FAIL;
  const field = FIELD.library + name;
  const slot = (message << ROW_SHIFT) + field;
  const isNull = bytes[at] === LETTER_N;
  batch.starts[slot] = at;
  // Null is stored as an empty range, like an absent field.
  batch.ends[slot] = isNull ? at : end;
  batch.escaped[message]! &= ~(1 << field);
  const isSound = isNull
    ? (REQUIRED_BITS & (1 << name)) === 0
    : name === SCREEN_DENSITY && isPlainNumber(bytes, at, end);
  if (!isSound) state.isDoubtful = true;
  return end;
}

/** True for a number that is certainly finite. With an exponent it may not be. */
function isPlainNumber(bytes: Uint8Array, start: number, end: number): boolean {
  const first = bytes[start]!;
  if ((first < DIGIT_0 || first > DIGIT_9) && first !== MINUS) return false;
  if (end - start > NUMBER_BYTES_MAX) return false;
  for (let i = start; i < end; i++) if ((bytes[i]! | LOWER_CASE) === LETTER_E) return false;
  return true;
}
