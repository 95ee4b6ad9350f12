import { createHash } from 'node:crypto';
import type { ConsentRecord, IdentityKind } from '@playline/contracts';
import { identitiesOf, type KeyOf } from '../../services/gateway/src/test/expected-records.ts';
import type { Identity } from '../../services/operator/src/simulate/persons.ts';
import { createRandom } from '../../services/operator/src/simulate/random.ts';
import { type AcceptedCopy, createSimulatedTraffic, type SimulatedTraffic } from './traffic.ts';

/** One event, to be counted once however many copies are stored. Keys are 32 hexadecimal digits; null for nobody. */
export interface Fact extends AcceptedCopy {
  /** Small letters. */
  readonly id: string;
  /** Sorts as the engine sorts ids: by their second half, then by their first. */
  readonly idOrder: string;
  readonly identity: string | null;
  readonly person: string | null;
}

/** What somebody says about a consent, in the order of the log. */
export type Consent = Pick<ConsentRecord, 'status' | 'source' | 'receivedAt'> & { readonly identityKey: Buffer };

/** All that is stored, and what is true of it. */
export interface World extends Pick<SimulatedTraffic, 'copies' | 'rejections'> {
  readonly facts: readonly Fact[];
  readonly consents: readonly Consent[];
  /** Identities that share a person with others, each with that person. */
  readonly linked: readonly { readonly key: Buffer; readonly kind: IdentityKind; readonly person: string }[];
}

/** Whose answers are known; the commands of recipes ask about it. */
export const ENVIRONMENT = 'production';

/** Stands for the gateway's keyed hash, which is another one in each environment. */
export function createKeyOf(environmentId: string): KeyOf {
  return (kind, id) => createHash('sha256').update(`${environmentId} ${kind} ${id.trim()}`).digest().subarray(0, 16);
}

const keyOf = createKeyOf(ENVIRONMENT);

/** Made once: all that is random in it comes from seeds. */
export function createWorld(): World {
  const { copies, rejections, identities, persons } = createSimulatedTraffic();
  const members = Map.groupBy(identities, (identity) => persons.personOf(identity));
  const personOf = new Map<string, string>();
  const linked: World['linked'][number][] = [];
  for (const group of members.values()) {
    const keys = group.map(({ kind, id }) => keyOf(kind, id).toString('hex')).sort();
    for (const { kind, id } of group) {
      const key = keyOf(kind, id);
      personOf.set(key.toString('hex'), keys[0]!);
      if (new Set(keys).size > 1) linked.push({ key, kind, person: keys[0]! });
    }
  }
  return { copies, rejections, facts: toFacts(copies, personOf), consents: createConsents(identities), linked };
}

/** Of copies with one id, type, time, name and owner the one received first. */
function toFacts(copies: readonly AcceptedCopy[], personOf: ReadonlyMap<string, string>): Fact[] {
  const facts = copies.map((copy): Fact => {
    const { owner } = identitiesOf(copy.message);
    const identity = owner === null ? null : keyOf(owner.kind, owner.id).toString('hex');
    const person = identity === null ? null : (personOf.get(identity) ?? identity);
    const id = copy.message.messageId.toLowerCase();
    return { ...copy, id, idOrder: id.slice(19) + id.slice(0, 18), identity, person };
  });
  const alike = Map.groupBy(facts, ({ id, identity, message: { type, eventTime, eventName } }) =>
    JSON.stringify([id, type, eventTime, eventName ?? '', identity]),
  );
  return [...alike.values()].map((group) => group.reduce((a, b) => (b.receivedAt < a.receivedAt ? b : a)));
}

/** Some never give a consent, some change it. */
function createConsents(identities: readonly Identity[]): Consent[] {
  const random = createRandom(29);
  return identities
    .filter(({ kind }) => kind === 'anonymous')
    .flatMap(({ kind, id }) =>
      Array.from({ length: random.integer(0, 3) }, () => ({
        identityKey: keyOf(kind, id),
        status: random.pick(['none', 'anonymous', 'full', 'full'] as const),
        source: 'CookieBanner',
        receivedAt: Date.parse('2026-06-10T00:00:00Z'),
      })),
    );
}
