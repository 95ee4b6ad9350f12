import { createHash } from 'node:crypto';
import type { ConsentRecord, IdentityKind } from '@playline/contracts';
import { createRandom } from '@playline/testkit/random';
import { identitiesOf, type KeyOf } from '../../services/gateway/src/test/expected-records.ts';
import type { Identity } from '../simulate/game/persons.ts';
import { type AcceptedCopy, createSimulatedTraffic, type SimulatedTraffic } from './traffic.ts';

/** An event, which counts once even if several copies are stored. `identity` and `person` are hexadecimal keys or null. */
export interface Fact extends AcceptedCopy {
  /** The message id in lower case. */
  readonly id: string;
  /** Sorts like ClickHouse's UUIDs: by the second half, then by the first half. */
  readonly idOrder: string;
  readonly identity: string | null;
  readonly person: string | null;
}

/** A consent change. Lists of changes are in log order. */
export type Consent = Pick<ConsentRecord, 'status' | 'source' | 'receivedAt'> & { readonly identityKey: Buffer };

/** Everything that is stored, and the facts from which expected rows are computed. */
export interface World extends Pick<SimulatedTraffic, 'copies' | 'rejections'> {
  readonly facts: readonly Fact[];
  readonly consents: readonly Consent[];
  /** Linked identities with their persons. */
  readonly linked: readonly { readonly key: Buffer; readonly kind: IdentityKind; readonly person: string }[];
}

/** The environment that the commands of recipes query. */
export const ENVIRONMENT = 'production';

/** Replaces the gateway's keyed hash. The keys of an identity differ between environments. */
export function createKeyOf(environmentId: string): KeyOf {
  return (kind, id) => createHash('sha256').update(`${environmentId} ${kind} ${id.trim()}`).digest().subarray(0, 16);
}

const keyOf = createKeyOf(ENVIRONMENT);

/** Creates the world from fixed random seeds. */
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

/** Returns the first received copy of each event. Copies have the same id, type, time, name and owner. */
function toFacts(copies: readonly AcceptedCopy[], personOf: ReadonlyMap<string, string>): Fact[] {
  const facts = copies.map((copy): Fact => {
    const { owner } = identitiesOf(copy.message);
    const identity = owner === null ? null : keyOf(owner.kind, owner.id).toString('hex');
    const person = identity === null ? null : (personOf.get(identity) ?? identity);
    const id = copy.message.messageId.toLowerCase();
    return { ...copy, id, idOrder: id.slice(19) + id.slice(0, 18), identity, person };
  });
  const events = Map.groupBy(facts, ({ id, identity, message: { type, eventTime, eventName } }) =>
    JSON.stringify([id, type, eventTime, eventName ?? '', identity]),
  );
  return [...events.values()].map((group) => group.reduce((a, b) => (b.receivedAt < a.receivedAt ? b : a)));
}

/** Creates up to three consent changes for each anonymous identity. */
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
