import { CONTEXT_CODE_POINTS_MAX, type ContextString } from '@playline/contracts';
import { FIELD, ROW_SHIFT } from '@playline/events';
import {
  CLOSE_BRACE,
  COMMA,
  endOfNull,
  endOfNumber,
  endOfString,
  endOfValue,
  FAIL,
  hasSurrogateEscape,
  QUOTE,
  SPACE,
  skipColon,
  skipSpace,
} from './json.ts';
import { NameTable, UNKNOWN } from './names.ts';
import type { ScanState } from './state.ts';
import { isVisibleAt } from './text.ts';

/** In the order of `FIELD`, so that a name's place plus `FIELD.library` is its field. */
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

/** Longest string of each name in bytes as escaped: never longer in code points. */
const BYTES_MAX = Int32Array.from(CONTEXT_NAMES, (name) =>
  name === 'screenDensity' ? 0 : CONTEXT_CODE_POINTS_MAX[name],
);

/** Digits a plain number may have and certainly be finite. */
const NUMBER_BYTES_MAX = 32;
/** An object within a message within the array within the body. */
const VALUE_DEPTH = 4;
const LETTER_E = 0x65;
const LOWER_CASE = 0x20;

/** Reads the context of the message being scanned from its opening brace. @returns the place after it, or `FAIL`. */
export function scanContext(state: ScanState, at: number): number {
  const { bytes } = state;
  let i = skipSpace(bytes, at + 1);
  let seen = 0;
  for (;;) {
    if (bytes[i] !== QUOTE) return FAIL;
    const keyEnd = endOfString(bytes, i);
    // A key with escapes may spell a known name: undecided.
    if (keyEnd <= FAIL) return FAIL;
    const name = CONTEXT_TABLE.find(bytes, i + 1, keyEnd - 1);
    i = skipColon(bytes, keyEnd);
    if (i === FAIL) return FAIL;
    if (name === UNKNOWN) i = endOfValue(bytes, i, VALUE_DEPTH);
    else {
      // The last of two equal keys would win: undecided.
      if ((seen & (1 << name)) !== 0) return FAIL;
      seen |= 1 << name;
      i = scanContextField(state, name, i);
    }
    if (i === FAIL) return FAIL;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    if (bytes[i] === CLOSE_BRACE) return (seen & REQUIRED_BITS) === REQUIRED_BITS ? i + 1 : FAIL;
    if (bytes[i] !== COMMA) return FAIL;
    i++;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
  }
}

function scanContextField(state: ScanState, name: number, at: number): number {
  const isRequired = (REQUIRED_BITS & (1 << name)) !== 0;
  if (state.bytes[at] !== QUOTE) {
    const end = endOfNull(state.bytes, at);
    if (end !== FAIL) return isRequired ? FAIL : end;
    return name === SCREEN_DENSITY ? scanDensity(state, at) : FAIL;
  }
  return name === SCREEN_DENSITY ? FAIL : scanContextText(state, name, at);
}

function scanContextText(state: ScanState, name: number, at: number): number {
  const { bytes, batch } = state;
  const read = endOfString(bytes, at);
  if (read === FAIL) return FAIL;
  const next = Math.abs(read);
  const start = at + 1;
  const end = next - 1;
  if (end - start > BYTES_MAX[name]!) return FAIL;
  if ((REQUIRED_BITS & (1 << name)) !== 0 && (start === end || !isVisibleAt(bytes, start))) return FAIL;
  const field = FIELD.library + name;
  if (read < 0) {
    if (hasSurrogateEscape(bytes, start, end)) return FAIL;
    batch.escaped[state.message]! |= 1 << field;
  }
  const slot = (state.message << ROW_SHIFT) + field;
  batch.starts[slot] = start;
  batch.ends[slot] = end;
  return next;
}

/** An exponent may lead beyond the finite numbers: undecided. */
function scanDensity({ bytes, batch, message }: ScanState, at: number): number {
  const end = endOfNumber(bytes, at);
  if (end === FAIL || end - at > NUMBER_BYTES_MAX) return FAIL;
  for (let i = at; i < end; i++) if ((bytes[i]! | LOWER_CASE) === LETTER_E) return FAIL;
  const slot = (message << ROW_SHIFT) + FIELD.screenDensity;
  batch.starts[slot] = at;
  batch.ends[slot] = end;
  return end;
}
