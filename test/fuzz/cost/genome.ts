/** Descriptions of bodies that the cost search mutates. */
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Random } from '@playline/testkit/random';
import { FIELD } from '../../../services/gateway/src/scan/ranges.ts';

/** Describes a body. Each field has one of a few values, so that changing a field is a small step. */
export interface Genome {
  coding: keyof typeof CODINGS;
  bytes: number;
  count: number;
  /** Fields of every element, as JSON text. `@` becomes a different number in each element. */
  members: string[];
  filler: number;
  location: (typeof LOCATIONS)[number];
  key: string;
}

const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
export const CODINGS = {
  identity: (body: Buffer) => body,
  gzip: (body: Buffer) => gzipSync(body),
  deflate: (body: Buffer) => deflateSync(body),
  br: (body: Buffer) => brotliCompressSync(body, BROTLI),
  zstd: (body: Buffer) => zstdCompressSync(body),
} as const;

/** The filler is one field, many fields, elements of `messages`, repeated `messages` fields, or the whole body. */
const LOCATIONS = ['message', 'context', 'body', 'members', 'context members', 'elements', 'repeated', 'raw'] as const;

/** A prefix, a repeated unit, its closing counterpart for nested fillers, and the text after the units. */
type Filler = readonly [before: string, unit: string, mirror: string, after: string];
const FILLERS: readonly Filler[] = [
  ...['x', ' ', 'é', '😀', '\\n', '\\u0041', '\\u0000', '\\ud83d\\ude00', '\\ud83d', '\\"'].map(
    (unit): Filler => ['"', unit, '', '"'],
  ),
  ['', '1', '', ''],
  ['-0.', '9', '', 'e-9'],
  ...['{}', '[]', '0', '""'].map((element): Filler => ['[', `${element},`, '', `${element}]`]),
  ['[', 'null,', '', '0]'],
  ['{', '"k":0,', '', '"k":0}'],
  ['{', '"\\u006b":0,', '', '"k":0}'],
  ['{', '"@":0,', '', '"k":0}'],
  ['', '[', ']', ''],
  ['', '{"":', '}', '0'],
  ['', '[{"a":', '}]', '0'],
  ['', '[', '', ''],
  ['', '{"a":', '', ''],
  ['', '{', '', ''],
  ['', ' ', '', '0'],
  ['', '\n\t', '', '{}'],
];

const MEMBERS: readonly string[] = [
  '"type":1',
  '"type":"track"',
  '"type":"alias"',
  '"type":"\\u0074rack"',
  '"\\u0074ype":0',
  '"messageId":"@"',
  '"messageId":@',
  '"messageId":"same"',
  '"messageId":"0192f1c0-7b3a-7c4d-8e5f-000000000001"',
  '"messageId":"0192F1C0-7b3a-7c4d-8e5f-000000000001"',
  '"messageId":"0192f1c0-7b3a-7c4d-8e5f-$"',
  '"messageId":"\\u0030192f1c0-7b3a-7c4d-8e5f-$"',
  '"eventTimestamp":"now"',
  '"eventTimestamp":"?"',
  '"eventName":" "',
  '"fromId":"a","toId":" a "',
  '"context":{}',
  '"context":{"library":"@","libraryVersion":"@"}',
  '"properties":{}',
  '"k":0',
  '"@":0',
  ...Object.keys(FIELD).map((name) => `"${name}":1`),
  ...Object.keys(FIELD).map((name) => `"${name}":"\\ud800"`),
];
const INVALID_FIELDS = Object.keys(FIELD).map((name) => (name === 'context' ? '"k":0' : `"${name}":[]`));
const INVALID_CONTEXT = `"context":{${Object.keys(FIELD)
  .slice(FIELD.library)
  .map((name) => `"${name}":[]`)
  .join()}}`;
const KEYS = ['"k"', ...Object.keys(FIELD).map((name) => `"${name}"`)];

const SIZES = [200, 1_000, 4_000, 20_000, 100_000, 400_000, 1_000_000];
const COUNTS = [0, 1, 2, 10, 31, 100, 101];

export function createInitialGenomes(): Genome[] {
  const base: Genome = {
    coding: 'identity',
    bytes: 1_000_000,
    count: 31,
    members: [],
    filler: 0,
    location: 'message',
    key: '"k"',
  };
  const small = { ...base, count: 100, bytes: 200 };
  return [
    ...FILLERS.map((_, filler) => ({ ...base, filler, location: 'raw' as const })),
    ...FILLERS.map((_, filler) => ({ ...base, filler, key: '"properties"' })),
    ...FILLERS.map((_, filler) => ({ ...base, filler, location: 'body' as const })),
    ...[5, 6, 7, 8].map((filler) => ({ ...base, filler, key: '"messageId"' })),
    ...LOCATIONS.map((location) => ({ ...base, location })),
    small,
    { ...small, members: ['"messageId":"@"'] },
    { ...small, members: ['"messageId":"same"'] },
    {
      ...small,
      members: ['"messageId":"@"', INVALID_CONTEXT, ...INVALID_FIELDS.filter((text) => !text.includes('messageId'))],
    },
    { ...small, members: ['"context":{"library":"@"}'] },
  ];
}

export function mutateTimes(genome: Genome, times: number, random: Random): Genome {
  let changed = genome;
  for (let n = 0; n < times; n++) changed = mutate(changed, random);
  return changed;
}

function mutate(genome: Genome, random: Random): Genome {
  const { members } = genome;
  switch (random.below(9)) {
    case 0:
      return { ...genome, coding: random.pick(Object.keys(CODINGS) as Genome['coding'][]) };
    case 1:
      return { ...genome, bytes: random.pick(SIZES) };
    case 2:
      return { ...genome, count: random.pick(COUNTS) };
    case 3:
      return { ...genome, filler: random.below(FILLERS.length) };
    case 4:
      return { ...genome, location: random.pick(LOCATIONS) };
    case 5:
      return { ...genome, key: random.pick(KEYS) };
    case 6:
      return { ...genome, members: members.filter((_, index) => index !== random.below(members.length)) };
    case 7:
      return {
        ...genome,
        members: [...members, random.below(20) === 0 ? INVALID_CONTEXT : random.pick(MEMBERS)].slice(-40),
      };
    default:
      return { ...genome, bytes: Math.max(100, Math.round(genome.bytes * (0.5 + random.below(100) / 100))) };
  }
}

function grow([before, unit, mirror, after]: Filler, bytes: number): string {
  const times = Math.max(0, Math.floor((bytes - before.length - after.length) / Buffer.byteLength(unit + mirror)));
  const inner = unit.includes('@')
    ? Array.from({ length: times }, (_, n) => unit.replace('@', String(n))).join('')
    : unit.repeat(times);
  // In a nested filler, `after` is the innermost value.
  return mirror === '' ? before + inner + after : before + inner + after + mirror.repeat(times);
}

const repeat = (text: string, bytes: number) =>
  Array.from({ length: Math.max(1, Math.floor(bytes / (text.length + 1))) }, () => text).join();

function fillMember({ filler, key, location }: Genome, bytes: number): string | null {
  const value = () => grow(FILLERS[filler] as Filler, bytes);
  if (location === 'message') return `${key}:${value()}`;
  if (location === 'context') return `"context":{"library":"l",${key}:${value()}}`;
  if (location === 'members') return repeat(`${key}:0`, bytes);
  if (location === 'context members') return repeat('"context":{"library":"l"}', bytes);
  return null;
}

function elementOf(members: readonly string[], n: number, nowText: string): string {
  const text = `{${members.join()}}`;
  return text.replaceAll('@', String(n)).replaceAll('$', n.toString(16).padStart(12, '0')).replaceAll('now', nowText);
}

/** Builds the uncompressed body, truncated to 1 MiB. */
export function toBody(genome: Genome, now: Date): Buffer {
  const { bytes, count, members, location, filler, key } = genome;
  if (location === 'raw') return truncate(grow(FILLERS[filler] as Filler, bytes));
  const perElement = Math.floor(bytes / Math.max(1, count));
  const membersLength = members.join().length + 3;
  const filling = fillMember(genome, Math.max(0, perElement - membersLength));
  const all = filling === null ? members : [...members, filling];
  const nowText = now.toISOString();
  const length = location === 'elements' ? Math.max(1, Math.floor(bytes / membersLength)) : count;
  const elements = Array.from({ length }, (_, n) => elementOf(all, n, nowText));
  const messages = `"messages":[${elements.join()}]`;
  if (location === 'body') return truncate(`{${key}:${grow(FILLERS[filler] as Filler, bytes)},${messages}}`);
  if (location === 'repeated') return truncate(`{${repeat(messages, bytes)}}`);
  return truncate(`{${messages}}`);
}

const BODY_BYTES_MAX = 1024 * 1024;
const truncate = (text: string) => Buffer.from(text).subarray(0, BODY_BYTES_MAX);
