import crypto, { randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { invalidField } from '@playline/errors';
import { createTurns } from '../turns.ts';

export const PASSWORD_CHARACTERS_MIN = 12;
const CHARACTERS_MAX = 256;
/** Least number of characters besides the login and the product's name. */
const OWN_CHARACTERS_MIN = 6;

/** 19 MiB, two passes, about 30 ms of one core. */
const COSTS: Costs = { memory: 19_456, passes: 2, parallelism: 1 };
/** Bounds the cost of a check, because a record may contain any costs. */
const COSTS_MAX: Costs = { memory: 65_536, passes: 8, parallelism: 4 };
const SALT_BYTES = 16;
const TAG_BYTES = 32;

/** 38 MiB on two cores. The last of 32 waiting callers waits about a second. */
const TURNS = {
  concurrentMax: 2,
  waitingMax: 32,
  full: 'Too many people are signing in. Try again in a few seconds.',
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
   * @throws PublicError VALIDATION_ERROR for less than 12 or more than 256 characters, or little more than the login or
   * product name; TOO_MANY_REQUESTS_ERROR when too many callers wait
   */
  hash(wanted: { readonly password: string; readonly login: string }): Promise<string>;
  /** Null matches no password, and takes the same time. @throws PublicError TOO_MANY_REQUESTS_ERROR when too many callers wait */
  verify(kept: string | null, password: string): Promise<boolean>;
}

/** The password hashing of this process. @param options.productName not allowed as a password */
export function createPasswords(options: { readonly productName: string; readonly costs?: Costs }): Passwords {
  const { productName, costs: usual = COSTS } = options;
  const inTurn = createTurns(TURNS);
  return {
    hash: async ({ password, login }) => {
      const given = password.normalize('NFKC');
      assertPassword(given, [login, productName]);
      const salt = randomBytes(SALT_BYTES);
      const tag = await inTurn(() => derive(given, { salt, costs: usual, tagBytes: TAG_BYTES }));
      const { memory, passes, parallelism } = usual;
      return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${toText(salt)}$${toText(tag)}`;
    },
    verify: async (kept, password) => {
      const given = password.normalize('NFKC');
      const isPossible = given.length <= 2 * CHARACTERS_MAX;
      const parsed = kept === null ? null : parseKept(kept);
      const { salt, costs, tag } = parsed ?? { salt: randomBytes(SALT_BYTES), costs: usual, tag: null };
      const wanted = { salt, costs, tagBytes: tag?.length ?? TAG_BYTES };
      const made = await inTurn(() => derive(isPossible ? given : '', wanted));
      return isPossible && tag !== null && timingSafeEqual(made, tag);
    },
  };
}

function assertPassword(password: string, names: readonly string[]): void {
  const length = [...password].length;
  if (length < PASSWORD_CHARACTERS_MIN || length > CHARACTERS_MAX)
    throw invalidField('password', `A password has ${PASSWORD_CHARACTERS_MIN} to ${CHARACTERS_MAX} characters.`);
  let own = toAlphanumeric(password);
  for (const name of names.map(toAlphanumeric)) if (name !== '') own = own.replaceAll(name, '');
  if (own.length < OWN_CHARACTERS_MIN && own !== toAlphanumeric(password))
    throw invalidField('password', 'A password must contain more than the login or the product name.');
}

const toAlphanumeric = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

function derive(password: string, given: { salt: Buffer; costs: Costs; tagBytes: number }): Promise<Buffer> {
  const { salt, costs, tagBytes } = given;
  // Read from the module, so that a Node without argon2 fails only here.
  const argon2 = promisify(crypto.argon2);
  return argon2('argon2id', { message: password, nonce: salt, tagLength: tagBytes, ...costs });
}

const KEPT = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

/** Null for an unknown format, or for costs above the limit. */
function parseKept(kept: string): { salt: Buffer; costs: Costs; tag: Buffer } | null {
  const [, memory = '', passes = '', parallelism = '', salt = '', tag = ''] = KEPT.exec(kept) ?? [];
  const costs = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
  const names = ['memory', 'passes', 'parallelism'] as const;
  if (salt === '' || names.some((name) => costs[name] < 1 || costs[name] > COSTS_MAX[name])) return null;
  return { salt: Buffer.from(salt, 'base64'), costs, tag: Buffer.from(tag, 'base64') };
}

const toText = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
