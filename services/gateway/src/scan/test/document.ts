import { isUtf8 } from 'node:buffer';
import { BATCH_MESSAGES_MAX, FREE_FORM_DEPTH_MAX } from '@playline/contracts';
import type { MessageSource } from '@playline/contracts/test';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipSpace,
} from '../json.ts';
import { NameTable } from '../text.ts';

/** An element of `messages` as written in the body. */
export interface BodySource extends MessageSource {
  /** `properties` as sent; undefined if absent. */
  propertiesText?: string;
  /** `traits` as sent; undefined if absent. */
  traitsText?: string;
}

export type DocumentResult = { ok: true; document: unknown; sources: BodySource[] } | { ok: false };

/**
 * Reads a body with JSON.parse and finds the source of its messages. Tests compare the scan with this function.
 * @returns `ok: false` if the body is not UTF-8 JSON
 */
export function readDocument(sent: Buffer): DocumentResult {
  // Removes one byte order mark, as TextDecoder does.
  const body = sent.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? sent.subarray(3) : sent;
  // Decoding without a check would replace invalid bytes with U+FFFD.
  if (!isUtf8(body)) return { ok: false };
  let document: unknown;
  try {
    document = JSON.parse(body.toString('utf8'));
  } catch {
    return { ok: false };
  }
  return { ok: true, document, sources: findSources(body) };
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const ESCAPE = /\\u(?:d[89ab][\da-f]{2}\\ud[c-f]|(d[89a-f]))[\da-f]{2}|\\./gi;
const INTEGER_DIGITS_MAX = 20;

/**
 * Returns JSON as stored: without earlier duplicates of a key, and with replacements for values that ClickHouse cannot
 * read. Tests compare `makeReadable` with this function.
 */
export function toReadableJson(text: string): string {
  return removeDuplicateKeys(text).replace(TOKEN, (token) => {
    if (token.startsWith('"')) return token.replace(ESCAPE, (whole, lone?: string) => (lone ? '\\ufffd' : whole));
    return isStorable(token) ? token : `"${token}"`;
  });
}

const PIECE = /"(?:[^"\\]|\\.)*"|[{}[\],:]|\s+|[^\s{}[\],:"]+/g;

/** Removes members with a later duplicate key by splitting the JSON into tokens and joining the remaining ones. */
function removeDuplicateKeys(text: string): string {
  const pieces = text.match(PIECE) ?? [];
  let at = 0;
  const space = () => (/^\s/.test(pieces[at] ?? '') ? pieces[at++]! : '');
  const value = (): string => {
    const first = pieces[at++]!;
    if (first !== '{' && first !== '[') return first;
    const members: { key: unknown; text: string }[] = [];
    let end = space();
    while (pieces[at] !== '}' && pieces[at] !== ']') {
      const isKeyed = first === '{';
      const key = isKeyed ? (JSON.parse(pieces[at]!) as string).toWellFormed() : members.length;
      let member = isKeyed ? pieces[at++]! + space() + pieces[at++]! + space() + value() : value();
      member += space();
      if (pieces[at] === ',') member += pieces[at++]! + space();
      members.push({ key, text: member });
    }
    end += members
      .filter(({ key }, index) => members.findLastIndex((other) => other.key === key) === index)
      .map((member) => member.text)
      .join('');
    return first + end + pieces[at++]!;
  };
  return value() + pieces.slice(at).join('');
}

function isStorable(number: string): boolean {
  if (/[.e]/i.test(number)) return Number.isFinite(Number(number));
  if (number.length > INTEGER_DIGITS_MAX) return false;
  return BigInt(number) >= -(2n ** 63n) && BigInt(number) < 2n ** 64n;
}

interface Range {
  start: number;
  end: number;
}

/** Finds the elements of `messages`, at most one more than a batch may contain. The body must be JSON. */
function findSources(body: Buffer): BodySource[] {
  const at = skipSpace(body, 0);
  if (body[at] !== OPEN_BRACE) return [];
  const messages = findFields(body, at, BODY_FIELDS).messages;
  if (messages === undefined || body[messages.start] !== OPEN_BRACKET) return [];
  return findElements(body, messages.start).map((range) => readSource(body, range));
}

function readSource(body: Buffer, { start, end }: Range): BodySource {
  const textOf = (range: Range | undefined) => range && body.toString('utf8', range.start, range.end);
  if (body[start] !== OPEN_BRACE) return { bytes: end - start, messageIdText: '' };
  const fields = findFields(body, start, MESSAGE_FIELDS);
  const source: BodySource = { bytes: end - start, messageIdText: textOf(fields.messageId) ?? '' };
  const propertiesText = textOf(fields.properties);
  const traitsText = textOf(fields.traits);
  const tooDeep = (['properties', 'traits'] as const).filter((name) => isTooDeep(body, fields[name]));
  if (tooDeep.length > 0) source.tooDeep = tooDeep;
  if (propertiesText !== undefined) source.propertiesText = propertiesText;
  if (traitsText !== undefined) source.traitsText = traitsText;
  return source;
}

/** Returns true for an object that is nested too deeply. */
function isTooDeep(body: Buffer, range: Range | undefined): boolean {
  if (range === undefined || body[range.start] !== OPEN_BRACE) return false;
  let [depth, deepest] = [0, 0];
  for (let i = range.start; i < range.end; ) {
    if (body[i] === QUOTE) {
      i = skipText(body, i);
      continue;
    }
    if (isOpening(body[i])) deepest = Math.max(deepest, ++depth);
    else if (isClosing(body[i])) depth--;
    i++;
  }
  return deepest > FREE_FORM_DEPTH_MAX;
}

/** Returns the ranges of the elements of the array that starts at `at`. */
function findElements(body: Buffer, at: number): Range[] {
  const ranges: Range[] = [];
  let i = skipSpace(body, at + 1);
  while (body[i] !== CLOSE_BRACKET && ranges.length <= BATCH_MESSAGES_MAX) {
    const end = skipValue(body, i);
    ranges.push({ start: i, end });
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  return ranges;
}

/** Names to find in an object. */
interface Names<Name extends string> {
  names: readonly Name[];
  table: NameTable;
}

function createNames<Name extends string>(...names: Name[]): Names<Name> {
  return { names, table: new NameTable(names) };
}

const BODY_FIELDS = createNames('messages');
const MESSAGE_FIELDS = createNames('messageId', 'properties', 'traits');

/** Returns the ranges of the listed fields of the object at `at`. As in JSON.parse, the last duplicate key wins. */
function findFields<Name extends string>(body: Buffer, at: number, fields: Names<Name>): Partial<Record<Name, Range>> {
  const found: Partial<Record<Name, Range>> = {};
  let i = skipSpace(body, at + 1);
  while (body[i] !== CLOSE_BRACE) {
    const keyEnd = skipText(body, i);
    const name = findName(body, { start: i, end: keyEnd }, fields);
    const start = skipColon(body, keyEnd);
    const end = skipValue(body, start);
    if (name !== undefined) found[name] = { start, end };
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  return found;
}

/** Returns the listed name that a key represents, with or without escapes. */
function findName<Name extends string>(body: Buffer, key: Range, fields: Names<Name>): Name | undefined {
  if (!body.subarray(key.start, key.end).includes(BACKSLASH)) {
    return fields.names[fields.table.find(body, key.start + 1, key.end - 1)];
  }
  const text: unknown = JSON.parse(body.toString('utf8', key.start, key.end));
  return fields.names.find((name) => name === text);
}

/** Returns the offset after the string at `at`. */
function skipText(body: Buffer, at: number): number {
  let i = at + 1;
  while (body[i] !== QUOTE) i += body[i] === BACKSLASH ? 2 : 1;
  return i + 1;
}

const isOpening = (byte: number | undefined) => byte === OPEN_BRACE || byte === OPEN_BRACKET;
const isClosing = (byte: number | undefined) => byte === CLOSE_BRACE || byte === CLOSE_BRACKET;

/** Returns the offset after the value at `at`. Counts brackets instead of recursing, because depth is not limited. */
function skipValue(body: Buffer, at: number): number {
  if (body[at] === QUOTE) return skipText(body, at);
  let i = at;
  if (!isOpening(body[at])) {
    while (!isClosing(body[i]) && body[i] !== COMMA && skipSpace(body, i) === i) i++;
    return i;
  }
  let depth = 0;
  do {
    if (body[i] === QUOTE) {
      i = skipText(body, i);
      continue;
    }
    if (isOpening(body[i])) depth++;
    else if (isClosing(body[i])) depth--;
    i++;
  } while (depth > 0);
  return i;
}
