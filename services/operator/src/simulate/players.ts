import type { IdentityType, Surface } from '@playline/contracts';
import { type Context, createContext } from './contexts.ts';
import type { Identity } from './persons.ts';
import { createDeck, type Random } from './random.ts';
import type { Run } from './run.ts';
import type { TimeStyle } from './timestamps.ts';

/** How a client names its user in messages other than identify: not at all, typed or untyped. */
export type UserStyle = 'none' | 'typed' | 'untyped';

export interface Device {
  readonly surface: Surface;
  readonly deviceId: string;
  readonly context: Context;
  readonly timeStyle: TimeStyle;
  readonly userStyle: UserStyle;
  anonymousId: string;
  sessionId: string;
  user: Identity | null;
}

/** One step of a household's story; each gives at most one link fact. */
export type Scene =
  | { readonly act: 'login'; readonly device: number; readonly user: number }
  | { readonly act: 'identify'; readonly device: number; readonly user: Identity }
  | { readonly act: 'logout'; readonly device: number }
  | { readonly act: 'reinstall'; readonly device: number }
  | { readonly act: 'alias'; readonly from: Identity; readonly to: Identity };

/**
 * People and devices whose identities may be linked; no identity of one household occurs in another. Its batches are
 * sent one after the other, so that its link facts are published in the order of its story.
 */
export interface Household {
  readonly index: number;
  readonly recipe: string;
  readonly devices: Device[];
  readonly users: Identity[];
  /** Remaining scenes, in order. */
  readonly story: Scene[];
}

interface Recipe {
  readonly name: string;
  readonly surfaces: readonly (Surface | 'any')[];
  readonly users: readonly (IdentityType | 'untyped' | 'any' | 'same text')[];
  readonly players: number;
  story(users: readonly Identity[], random: Random): Scene[];
}

const login = (device: number, user: number): Scene => ({ act: 'login', device, user });
const logout = (device: number): Scene => ({ act: 'logout', device });
const alias = (from: Identity, to: Identity): Scene => ({ act: 'alias', from, to });

const BLOCKED_IDS = [
  'guest',
  'Anonymous',
  'undefined',
  'NULL',
  '"null"',
  '0',
  '[object Object]',
  '00000000-0000-0000-0000-000000000000',
];

const RECIPES: readonly Recipe[] = [
  { name: 'never logs in', surfaces: ['any'], users: [], players: 1, story: () => [] },
  { name: 'logs in', surfaces: ['any'], users: ['any'], players: 1, story: () => [login(0, 0)] },
  { name: 'logs in untyped', surfaces: ['any'], users: ['untyped'], players: 1, story: () => [login(0, 0)] },
  {
    name: 'two devices of one person',
    surfaces: ['web', 'unity'],
    users: ['any'],
    players: 1,
    story: () => [login(0, 0), login(1, 0), { act: 'reinstall', device: 1 }, login(1, 0)],
  },
  {
    name: 'pixel before the game',
    surfaces: ['pixel', 'unreal'],
    users: ['email'],
    players: 1,
    story: () => [login(0, 0), login(1, 0)],
  },
  {
    name: 'accounts linked by alias',
    surfaces: ['unreal', 'web', 'unity'],
    users: ['steam', 'passport'],
    players: 1,
    story: ([steam, passport]) => [login(0, 0), login(1, 1), alias(steam!, passport!), login(2, 1)],
  },
  {
    name: 'alias before any login',
    surfaces: ['unity', 'any'],
    users: ['epic', 'passport'],
    players: 1,
    story: ([epic, passport]) => [alias(epic!, passport!), login(0, 0), login(1, 1)],
  },
  {
    name: 'shared device',
    surfaces: ['web', 'any'],
    users: ['passport', 'passport'],
    players: 2,
    story: () => [login(0, 0), logout(0), login(0, 1), login(1, 1), logout(0), login(0, 0), login(1, 0)],
  },
  {
    name: 'shared device, untyped',
    surfaces: ['unity'],
    users: ['untyped', 'untyped'],
    players: 2,
    story: () => [login(0, 0), logout(0), login(0, 1)],
  },
  {
    name: 'alias of two known users',
    surfaces: ['any', 'any'],
    users: ['passport', 'passport'],
    players: 2,
    story: ([one, two]) => [login(0, 0), login(1, 1), alias(one!, two!), login(0, 0)],
  },
  {
    name: 'one text under two types',
    surfaces: ['any', 'any'],
    users: ['passport', 'same text'],
    players: 2,
    story: () => [login(0, 0), login(1, 1)],
  },
  {
    name: 'sends a blocked user id',
    surfaces: ['any'],
    users: ['google'],
    players: 1,
    story: ([user], random) => [
      { act: 'identify', device: 0, user: { kind: 'untyped', id: random.pick(BLOCKED_IDS) } },
      login(0, 0),
      alias({ kind: 'custom', id: random.pick(BLOCKED_IDS) }, user!),
    ],
  },
];

const SURFACE_CHOICES: readonly Surface[] = ['web', 'web', 'unity', 'unreal', 'pixel'];
const USER_KINDS: readonly IdentityType[] = [
  'passport',
  'steam',
  'epic',
  'google',
  'apple',
  'discord',
  'email',
  'custom',
];

/** An id in the format of its provider, unique to the run and to `number`. */
export function toUserId(kind: Identity['kind'], run: Run, number: number): string {
  if (kind === 'email') return `player.${number}@${run.tag}.example`;
  if (kind === 'steam' || kind === 'discord')
    return `7${Number.parseInt(run.tag, 16)}${String(number).padStart(6, '0')}`;
  if (kind === 'passport') return `email|${run.tag}${number.toString(16).padStart(8, '0')}`;
  return `${kind}-${run.tag}-${number}`;
}

/** An anonymous id as browsers and engines generate it: a UUID, here with the run's tag inside. */
export function toAnonymousId(run: Run, random: Random): string {
  return `${random.hex(8)}-${random.hex(4)}-4${random.hex(3)}-a${random.hex(3)}-${run.tag}`;
}

function createDevice(surface: Surface, run: Run, random: Random): Device {
  const { context, timeStyle } = createContext(surface, random);
  const styles: readonly UserStyle[] = surface === 'pixel' ? ['none'] : ['none', 'typed', 'typed', 'untyped'];
  return {
    surface,
    deviceId: `device-${random.hex(16)}`,
    context,
    timeStyle,
    userStyle: random.pick(styles),
    anonymousId: toAnonymousId(run, random),
    sessionId: random.hex(32),
    user: null,
  };
}

/** Households with at least `players` players in total; every recipe comes once before any repeats. */
export function createHouseholds(players: number, run: Run, random: Random): Household[] {
  const draw = createDeck(random, RECIPES);
  const households: Household[] = [];
  let userNumber = 0;
  for (let living = 0; living < players; ) {
    const recipe = draw();
    living += recipe.players;
    const users: Identity[] = [];
    for (const wanted of recipe.users) {
      const kind = wanted === 'any' ? random.pick(USER_KINDS) : wanted === 'same text' ? 'custom' : wanted;
      users.push({ kind, id: wanted === 'same text' ? users[0]!.id : toUserId(kind, run, userNumber++) });
    }
    const devices = recipe.surfaces.map((surface) =>
      createDevice(surface === 'any' ? random.pick(SURFACE_CHOICES) : surface, run, random),
    );
    const story = recipe.story(users, random);
    households.push({ index: households.length, recipe: recipe.name, devices, users, story });
  }
  return households;
}
