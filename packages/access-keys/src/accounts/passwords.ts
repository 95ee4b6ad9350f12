import crypto, { randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { invalidField } from '@playline/errors';
import { createConcurrencyLimiter } from '../concurrency-limiter.ts';

export const PASSWORD_CHARACTERS_MIN = 12;
const CHARACTERS_MAX = 256;
/** Minimum number of characters besides the login and the product name. */
const REMAINING_CHARACTERS_MIN = 6;

/** 19 MiB and two passes, about 30 ms on one core. */
const COSTS: Costs = { memory: 19_456, passes: 2, parallelism: 1 };
/** Limits the cost of verification, because the parameters come from a stored record. */
const COSTS_MAX: Costs = { memory: 65_536, passes: 8, parallelism: 4 };
const SALT_BYTES = 16;
const TAG_BYTES = 32;

/** Uses up to 38 MiB and two cores. The last caller in a full queue waits about a second. */
const HASHING_LIMITS = {
  concurrentMax: 2,
  waitingMax: 32,
  busyMessage: 'Too many people are signing in. Try again in a few seconds.',
  retryAfterS: 2,
};

interface Costs {
  /** KiB */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

export interface Passwords {
  /**
   * @throws PublicError VALIDATION_ERROR if the password has fewer than 12 or more than 256 characters, or contains
   * little more than the login or product name; TOO_MANY_REQUESTS_ERROR if the queue is full
   */
  hash(wanted: { readonly password: string; readonly login: string }): Promise<string>;
  /** A null hash takes equally long and never matches. @throws PublicError TOO_MANY_REQUESTS_ERROR for a full queue */
  verify(storedHash: string | null, password: string): Promise<boolean>;
}

/** Creates this process's password hasher. @param options.productName not allowed as a password */
export function createPasswords(options: { readonly productName: string; readonly costs?: Costs }): Passwords {
  const { productName, costs: defaultCosts = COSTS } = options;
  const runLimited = createConcurrencyLimiter(HASHING_LIMITS);
  return {
    hash: async ({ password, login }) => {
      const normalised = password.normalize('NFKC');
      assertPassword(normalised, [login, productName]);
      const salt = randomBytes(SALT_BYTES);
      const tag = await runLimited(() => derive(normalised, { salt, costs: defaultCosts, tagBytes: TAG_BYTES }));
      const { memory, passes, parallelism } = defaultCosts;
      return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${toText(salt)}$${toText(tag)}`;
    },
    verify: async (storedHash, password) => {
      const normalised = password.normalize('NFKC');
      const isPossible = normalised.length <= 2 * CHARACTERS_MAX;
      const parsed = storedHash === null ? null : parseStoredHash(storedHash);
      const { salt, costs, tag } = parsed ?? { salt: randomBytes(SALT_BYTES), costs: defaultCosts, tag: null };
      const options = { salt, costs, tagBytes: tag?.length ?? TAG_BYTES };
      const derived = await runLimited(() => derive(isPossible ? normalised : '', options));
      return isPossible && tag !== null && timingSafeEqual(derived, tag);
    },
  };
}

function assertPassword(password: string, names: readonly string[]): void {
  const length = [...password].length;
  if (length < PASSWORD_CHARACTERS_MIN || length > CHARACTERS_MAX)
    throw invalidField('password', `A password must have ${PASSWORD_CHARACTERS_MIN} to ${CHARACTERS_MAX} characters.`);
  let remaining = toAlphanumeric(password);
  for (const name of names.map(toAlphanumeric)) if (name !== '') remaining = remaining.replaceAll(name, '');
  if (remaining.length < REMAINING_CHARACTERS_MIN && remaining !== toAlphanumeric(password))
    throw invalidField('password', 'A password must contain more than the login or the product name.');
}

const toAlphanumeric = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

function derive(password: string, options: { salt: Buffer; costs: Costs; tagBytes: number }): Promise<Buffer> {
  const { salt, costs, tagBytes } = options;
  // Accessed through the module, so that a Node version without argon2 fails only when hashing.
  const argon2 = promisify(crypto.argon2);
  return argon2('argon2id', { message: password, nonce: salt, tagLength: tagBytes, ...costs });
}

const HASH = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

/** Returns null if the format is unknown or the costs exceed the limits. */
function parseStoredHash(storedHash: string): { salt: Buffer; costs: Costs; tag: Buffer } | null {
  const [, memory = '', passes = '', parallelism = '', salt = '', tag = ''] = HASH.exec(storedHash) ?? [];
  const costs = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
  const names = ['memory', 'passes', 'parallelism'] as const;
  if (salt === '' || names.some((name) => costs[name] < 1 || costs[name] > COSTS_MAX[name])) return null;
  return { salt: Buffer.from(salt, 'base64'), costs, tag: Buffer.from(tag, 'base64') };
}

const toText = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
