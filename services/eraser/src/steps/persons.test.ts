import { randomBytes } from 'node:crypto';
import type { ErasureReceipt, ErasureRequest, StoredLink } from '@playline/erasure';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ErasedPerson, findClosures, toPersons } from './persons.ts';

const T = Date.UTC(2026, 5, 15);
const keys = Array.from({ length: 8 }, () => randomBytes(16));
const keyOf = (at: number) => keys[at]!;
const request = (
  subjects: number[],
  {
    cutoffAt = T,
    members = [],
    environmentId = 'env',
  }: { cutoffAt?: number; members?: number[]; environmentId?: string } = {},
): ErasureRequest => ({
  erasureId: randomBytes(16),
  environmentId,
  subjectKeys: subjects.map(keyOf),
  memberKeys: members.map(keyOf),
  cutoffAt,
  requestedAt: cutoffAt - 2_000,
  traceId: '',
});
const link = (a: number, b: number, receivedAtMs = T): StoredLink => ({
  environmentId: 'env',
  last: { generation: 0, offset: 5 },
  a: keyOf(a),
  b: keyOf(b),
  receivedAtMs,
});
const findLinked = (requests: readonly ErasureRequest[], links: readonly StoredLink[]) =>
  toPersons(findClosures(requests, { links, unlinks: [], others: [] }));
/** Describes each person by cut-off per key index and number of requests. */
const describePersons = (persons: readonly ErasedPerson[]) =>
  persons.map(({ closures, identities }) => {
    const found = identities.map(
      ({ key, cutoffMs }) => [keys.findIndex((each) => each.equals(key)), cutoffMs] as const,
    );
    return { cutoffs: new Map(found.sort(([a], [b]) => a - b)), requests: closures.length };
  });
const withCutoff = (cutoffAt: number, ...indexes: number[]) => new Map(indexes.map((index) => [index, cutoffAt]));

describe('findClosures', () => {
  it('a closure excludes identities split off up to the cut-off, unless a later link rejoins them', () => {
    const at = { generation: 0, offset: 9 };
    const separated = (index: number, side: 'split' | 'stayed', unlinkedAtMs = T) => {
      return { environmentId: 'env', key: keyOf(index), side, at, unlinkedAtMs } as const;
    };
    // 0 and 1 were split off from 2 and 3.
    const links = [link(0, 1), link(1, 2), link(2, 3)];
    const unlinks = [separated(0, 'split'), separated(1, 'split'), separated(2, 'stayed'), separated(3, 'stayed')];
    const indexesOf = (subject: number, decisions: { links: StoredLink[]; unlinks: typeof unlinks }) => {
      const persons = toPersons(findClosures([request([subject])], { ...decisions, others: [] }));
      return [...describePersons(persons)[0]!.cutoffs.keys()];
    };
    expect(indexesOf(0, { links, unlinks })).toEqual([0, 1]);
    expect(indexesOf(3, { links, unlinks })).toEqual([2, 3]);
    const rejoining = { ...link(0, 3), last: { generation: 1, offset: 2 } };
    expect(indexesOf(0, { links: [...links, rejoining], unlinks })).toEqual([0, 1, 2, 3]);
    const later = unlinks.map((unlink) => ({ ...unlink, unlinkedAtMs: T + 1 }));
    expect(indexesOf(0, { links, unlinks: later })).toEqual([0, 1, 2, 3]);
  });

  it('a closure includes identities split off after the request', () => {
    const at = { generation: 0, offset: 9 };
    const separated = (index: number, side: 'split' | 'stayed') => {
      return { environmentId: 'env', key: keyOf(index), side, at, unlinkedAtMs: T + 3 } as const;
    };
    const requested = [request([0]), request([0], { cutoffAt: T + 5 })];
    const decisions = {
      links: [link(0, 1, T - 1)],
      unlinks: [separated(0, 'stayed'), separated(1, 'split')],
      others: [],
    };
    const cutoffs = new Map([...withCutoff(T + 5, 0), ...withCutoff(T, 1)]);
    expect(describePersons(toPersons(findClosures(requested, decisions)))).toEqual([{ cutoffs, requests: 2 }]);
  });

  it('a closure includes people from another erasure that was unfinished at the time of the request', () => {
    const erasedAt = T + 40_000;
    const receipt = { visiblyErasedAt: erasedAt } as ErasureReceipt;
    const others = [{ request: request([1], { members: [2], cutoffAt: T - 5 }), receipt }];
    const links = [link(0, 1, T + 30_000)];
    const find = (requested: ErasureRequest[], other = others) =>
      describePersons(toPersons(findClosures(requested, { links, unlinks: [], others: other })));
    const [early, late] = [erasedAt + 1_000, erasedAt + 10_000].map((cutoffAt) => request([0], { cutoffAt }));
    expect(find([early!])).toEqual([{ cutoffs: withCutoff(early!.cutoffAt, 0, 1, 2), requests: 1 }]);
    expect(find([late!])).toEqual([{ cutoffs: withCutoff(late!.cutoffAt, 0, 1), requests: 1 }]);
    // Requests for the same person are resolved separately and ignore erasures with a later cut-off.
    const both = new Map([...withCutoff(late!.cutoffAt, 0, 1), ...withCutoff(early!.cutoffAt, 2)]);
    expect(find([early!, late!])).toEqual([{ cutoffs: both, requests: 2 }]);
    const later = others.map((each) => ({ ...each, request: { ...each.request, cutoffAt: late!.cutoffAt } }));
    expect(find([early!], later)).toEqual([{ cutoffs: withCutoff(early!.cutoffAt, 0, 1), requests: 1 }]);
  });

  it('findClosures returns the same closures as a naive implementation', () => {
    const index = fc.nat({ max: keys.length - 1 });
    const at = fc.integer({ min: T - 2, max: T + 2 });
    const requests = fc.array(fc.tuple(fc.array(index, { minLength: 1, maxLength: 2 }), at), {
      minLength: 1,
      maxLength: 5,
    });
    const links = fc.array(fc.tuple(index, index, at), { maxLength: 12 });
    const property = fc.property(requests, links, (requested, linked) => {
      const found = describePersons(
        findLinked(
          requested.map(([subjects, cutoffAt]) => request(subjects, { cutoffAt })),
          linked.map(([a, b, receivedAtMs]) => link(a, b, receivedAtMs)),
        ),
      );
      expect(found.sort(byFirst)).toEqual(findNaively(requested, linked));
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

interface Person {
  cutoffs: Map<number, number>;
  requests: number;
}
const firstOf = ({ cutoffs }: Person) => Math.min(...cutoffs.keys());
const byFirst = (a: Person, b: Person) => firstOf(a) - firstOf(b);

/** Expands each closure up to its cut-off, then joins closures that have an identity in common. */
function findNaively(requested: [number[], number][], linked: [number, number, number][]): Person[] {
  let persons: Person[] = [];
  for (const [subjects, cutoffAt] of requested) {
    const indexes = new Set(subjects);
    for (let size = 0; size < indexes.size; ) {
      size = indexes.size;
      for (const [a, b, at] of linked) if (at <= cutoffAt && (indexes.has(a) || indexes.has(b))) indexes.add(a).add(b);
    }
    const isSame = ({ cutoffs }: Person) => [...indexes].some((index) => cutoffs.has(index));
    const joined: Person = { cutoffs: withCutoff(cutoffAt, ...indexes), requests: 1 };
    for (const other of persons.filter(isSame)) {
      joined.requests += other.requests;
      for (const [index, at] of other.cutoffs) joined.cutoffs.set(index, Math.max(at, joined.cutoffs.get(index) ?? at));
    }
    persons = [...persons.filter((person) => !isSame(person)), joined];
  }
  for (const person of persons) person.cutoffs = new Map([...person.cutoffs].sort(([a], [b]) => a - b));
  return persons.sort(byFirst);
}
