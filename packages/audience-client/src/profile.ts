import { type ConsentLevel, createMessageId, type Message, type Properties } from './message.ts';
import { findFault } from './rules.ts';
import { attempt } from './shelf.ts';
import type { AudienceStore } from './store.ts';

/** Keys without the publishable key: a person stays the same when the key is refreshed. */
const ANONYMOUS_ID_KEY = 'audience:anonymousId';
const USER_KEY = 'audience:user';
const REGISTERED_KEY = 'audience:registered';

export type User = Pick<Message, 'userId' | 'identityType'>;

/**
 * The person and the properties that every message carries. Kept in memory, and in the store as far as the consent
 * allows.
 */
export interface Profile {
  readonly anonymousId: string;
  /** Empty when nobody is signed in. */
  readonly user: User;
  /** Merged into the properties of track, page and screen. */
  readonly registered: Properties;
  setUser(user: User): void;
  /** `properties` must be something that JSON can express. */
  setRegistered(properties: Properties): void;
  /** From now on messages are another person's. */
  reset(): void;
  /** Stores, restores or forgets what this consent level allows: see "Consent" in the README. */
  setConsent(level: ConsentLevel): void;
}

/** Reads the store, and changes nothing in it until `setConsent`. */
export function createProfile(store: AudienceStore): Profile {
  let level: ConsentLevel = 'none';
  let user: User = {};
  let registered = readObject(store, REGISTERED_KEY);
  let anonymousId = readAnonymousId(store);
  const keep = (key: string, text: string) =>
    attempt(() => (text === '' || level === 'none' ? store.remove(key) : store.set(key, text)), undefined);
  const keepUser = () => keep(USER_KEY, level === 'full' && user.userId ? JSON.stringify(user) : '');
  const keepRegistered = () => keep(REGISTERED_KEY, JSON.stringify(registered));
  return {
    get anonymousId() {
      return anonymousId;
    },
    get user() {
      return user;
    },
    get registered() {
      return registered;
    },
    setUser: (next) => {
      user = next;
      keepUser();
    },
    setRegistered: (properties) => {
      registered = properties;
      keepRegistered();
    },
    reset: () => {
      anonymousId = createMessageId();
      [user, registered] = [{}, {}];
      keep(ANONYMOUS_ID_KEY, anonymousId);
      keepUser();
      keepRegistered();
    },
    setConsent: (next) => {
      level = next;
      if (level !== 'full') user = {};
      else if (!user.userId) user = readUser(store);
      keep(ANONYMOUS_ID_KEY, anonymousId);
      keepUser();
      keepRegistered();
    },
  };
}

/**
 * Another script may have written nonsense into the store. It is ignored, since it would make the service reject every
 * message.
 */
function readObject(store: AudienceStore, key: string): Properties {
  const properties = attempt(() => JSON.parse(store.get(key) ?? '{}'), {}) ?? {};
  return findFault('page', { properties }) === '' ? properties : {};
}

function readUser(store: AudienceStore): User {
  const { userId, identityType } = readObject(store, USER_KEY) as User;
  return findFault('identify', { userId, identityType }) === '' ? { userId, identityType } : {};
}

function readAnonymousId(store: AudienceStore): string {
  const anonymousId = attempt(() => store.get(ANONYMOUS_ID_KEY), null);
  return anonymousId !== null && findFault('page', { anonymousId }) === '' ? anonymousId : createMessageId();
}
