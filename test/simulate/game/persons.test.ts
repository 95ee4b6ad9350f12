import type { IdentityKind } from '@playline/contracts';
import { createGraphFact, createIsBlocked, toLinkFact } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createPersonsModel, type Identity, identityKeyOf, type LinkFact } from './persons.ts';

const anonymous = (id: string): Identity => ({ kind: 'anonymous', id });
const identify = (id: string, to: Identity): LinkFact => ({ link: 'identify', from: anonymous(id), to });
const alias = (from: Identity, to: Identity): LinkFact => ({ link: 'alias', from, to });

const KINDS: readonly IdentityKind[] = ['passport', 'steam', 'email', 'untyped'];
const user = fc.record({ kind: fc.constantFrom(...KINDS), id: fc.constantFrom('a', 'b', 'c', 'guest', 'null') });
const facts = fc.array(
  fc.oneof(
    fc
      .record({ from: fc.constantFrom('p', 'q', 'r', 's', 'undefined'), to: user })
      .map(({ from, to }) => identify(from, to)),
    fc
      .record({ from: user, to: user })
      .filter(({ from, to }) => from.id !== to.id)
      .map(({ from, to }) => alias(from, to)),
  ),
  { maxLength: 40 },
);

/** Applies facts with the linker's rules and graph. @returns a function that returns an identity's person */
async function groupsOfService(given: readonly LinkFact[]): Promise<(identity: Identity) => Promise<string>> {
  const keyOf = (_environmentId: string, kind: string, id: string) => Buffer.from(`${kind} ${id}`.padEnd(16));
  const { graph, rebuild } = openMemoryPeople();
  await rebuild.mintEpoch();
  const toGraphFact = createGraphFact({ keyOf, isBlocked: createIsBlocked() });
  const kindText = (kind: IdentityKind) => (kind === 'untyped' ? '' : kind);
  const sources = given.map(({ link, from, to }) => ({
    environmentId: 'test',
    messageId: Buffer.alloc(16),
    eventTime: 1,
    receivedAt: 1,
    traceId: '',
    type: link,
    anonymousId: link === 'identify' ? from.id : '',
    userId: to.id,
    identityType: kindText(to.kind),
    fromId: from.id,
    fromType: kindText(from.kind),
    toId: to.id,
    toType: kindText(to.kind),
  }));
  const graphFacts = sources.map((source, offset) => toGraphFact(toLinkFact(source)!, offset));
  await graph.apply({ generation: 0, partition: 0, after: -1, through: given.length, facts: graphFacts });
  return async ({ kind, id }) =>
    ((await graph.rootOf('test', keyOf('test', kind, id))) ?? keyOf('test', kind, id)).toString();
}

it('createPersonsModel groups identities in the same way as the identity linker, for facts in any order', async () => {
  await fc.assert(
    fc.asyncProperty(facts, async (given) => {
      const model = createPersonsModel();
      for (const fact of given) model.apply(fact);
      const identities = [
        ...new Map(given.flatMap(({ from, to }) => [from, to]).map((one) => [identityKeyOf(one), one])).values(),
      ];
      const serviceOf = await groupsOfService(given);
      for (const one of identities)
        for (const other of identities)
          expect(model.personOf(one) === model.personOf(other)).toBe(
            (await serviceOf(one)) === (await serviceOf(other)),
          );
    }),
  );
});

it('createPersonsModel returns the same persons if facts are applied more than once', () => {
  fc.assert(
    fc.property(facts, fc.array(fc.nat()), (given, repeats) => {
      const [model, repeated] = [createPersonsModel(), createPersonsModel()];
      for (const fact of given) model.apply(fact);
      for (const [index, fact] of given.entries()) {
        repeated.apply(fact);
        const earlier = given[(repeats[index % Math.max(1, repeats.length)] ?? 0) % (index + 1)]!;
        repeated.apply(earlier);
      }
      for (const { from, to } of given)
        expect(repeated.personOf(from) === repeated.personOf(to)).toBe(model.personOf(from) === model.personOf(to));
    }),
  );
});
