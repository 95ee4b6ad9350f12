import { keccak_256 } from '@noble/hashes/sha3.js';

const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const CHAIN_NAME = /^[a-z0-9-]{1,64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const DIGITS = /^(0|[1-9]\d*)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UINT64_MAX = 2n ** 64n - 1n;
/** The number of digits of the largest uint256. */
const UINT256_DIGITS = 78;

export const isEnvironmentId = (text: string): boolean => ENVIRONMENT_ID.test(text);
export const isChainName = (text: string): boolean => CHAIN_NAME.test(text);
/** Describes valid addresses in error messages. */
export const ADDRESS_EXPECTED = '0x and 40 hexadecimal digits, which in mixed case must match the EIP-55 checksum';

/**
 * Parses an address in lower case, upper case, or mixed case with a valid EIP-55 checksum, which detects typos.
 * @returns the address in lower case, or null if it is invalid
 */
export function parseAddress(text: string): string | null {
  if (!ADDRESS.test(text)) return null;
  const digits = text.slice(2);
  const lower = digits.toLowerCase();
  if (digits !== lower && digits !== digits.toUpperCase() && digits !== toChecksumCase(lower)) return null;
  return `0x${lower}`;
}

/** EIP-55: a hexadecimal digit is in upper case if the hash digit at its position is 8 or more. */
function toChecksumCase(lower: string): string {
  const hash = Buffer.from(keccak_256(Buffer.from(lower))).toString('hex');
  return lower.replace(/[a-f]/g, (digit, at: number) => (hash[at]! >= '8' ? digit.toUpperCase() : digit));
}

export const isHashText = (text: string): boolean => HASH.test(text);
export const isUuidText = (text: string): boolean => UUID.test(text);

/** Accepts no leading zeros. */
export const isUint256Text = (text: string): boolean => text.length <= UINT256_DIGITS && DIGITS.test(text);
/** Accepts no leading zeros, so that each number has only one representation. */
export const isUint64Text = (text: string): boolean => isUint256Text(text) && BigInt(text) <= UINT64_MAX;

export const toHexText = (bytes: Buffer): `0x${string}` => `0x${bytes.toString('hex')}`;
export const fromHexText = (text: string): Buffer => Buffer.from(text.slice(2), 'hex');
/** The string must be a valid UUID. */
export const fromUuidText = (text: string): Buffer => Buffer.from(text.replaceAll('-', ''), 'hex');
export const toUuidText = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Both bounds are inclusive, in epoch milliseconds. */
export interface TimeWindow {
  fromMs: number;
  toMs: number;
  /** Time of the request. If present, error messages state the bounds as durations. */
  nowMs?: number | undefined;
}

/** Formats a number for people, with commas as thousands separators. */
export const toNumberText = (value: number): string => value.toLocaleString('en-US');

const UNITS = [
  ['day', 24 * 60 * 60 * 1000],
  ['hour', 60 * 60 * 1000],
  ['minute', 60 * 1000],
  ['second', 1000],
] as const;

/** Formats a duration in the largest unit of which it is a multiple greater than one: `30 days`, `24 hours`. */
export function toDurationText(ms: number): string {
  const [name, unitMs] = UNITS.find(([, unitMs]) => ms % unitMs === 0 && ms > unitMs) ?? ['millisecond', 1];
  const count = ms / unitMs;
  return `${toNumberText(count)} ${name}${count === 1 ? '' : 's'}`;
}

/** RFC 3339, section 5.6, with up to 9 fractional digits and without leap seconds: contract, "RFC 3339 details". */
const RFC_3339 =
  /^(\d{4}-\d{2}-(\d{2}))[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

const MINUTE_MS = 60_000;

/** Returns epoch milliseconds, rounded down, or NaN if the string is not an RFC 3339 timestamp. */
export function parseTimestamp(text: string): number {
  const match = RFC_3339.exec(text);
  if (match === null) return Number.NaN;
  const [, date = '', day, hour = '', minute = '', second = '', fraction = '', sign, offsetHour, offsetMinute] = match;
  const localMs = Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}Z`);
  // Date.parse converts 30 February to a day in March.
  if (Number.isNaN(localMs) || new Date(localMs).getUTCDate() !== Number(day)) return Number.NaN;
  if (sign === undefined) return localMs;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * MINUTE_MS;
  return sign === '+' ? localMs - offsetMs : localMs + offsetMs;
}

const MICROSECOND_DIGITS = /\.\d{3}(\d{1,3})/;

/** Returns epoch microseconds, rounded down, or NaN if the string is not an RFC 3339 timestamp. Exact below 2^53. */
export function parseTimestampMicros(text: string): number {
  const [, digits = ''] = MICROSECOND_DIGITS.exec(text) ?? [];
  return parseTimestamp(text) * 1_000 + Number(digits.padEnd(3, '0'));
}

/**
 * Formats a time as ISO 8601 in UTC with six fractional digits.
 * @param micros epoch microseconds, 0 to 2^53 - 1
 */
export function toTimestamp(micros: number): string {
  const rest = micros % 1_000;
  return `${new Date((micros - rest) / 1_000).toISOString().slice(0, -1)}${String(rest).padStart(3, '0')}Z`;
}
