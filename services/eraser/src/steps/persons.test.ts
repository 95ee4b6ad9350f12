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
/** For each person: the indexes of the keys, each with its cut-off, and the number of requests. */
const show = (persons: readonly ErasedPerson[]) =>
  persons.map(({ closures, identities }) => {
    const found = identities.map(
      ({ key, cutoffMs }) => [keys.findIndex((each) => each.equals(key)), cutoffMs] as const,
    );
    return { cutoffs: new Map(found.sort(([a], [b]) => a - b)), requests: closures.length };
  });
const until = (cutoffAt: number, ...places: number[]) => new Map(places.map((place) => [place, cutoffAt]));

describe('who is erased', () => {
  it('is everybody reached by links up to the cut-off, also through others, and nobody reached only by a later link', () => {
    const links = [link(0, 1), link(2, 1), link(2, 3, T + 1), link(4, 5)];
    expect(show(findLinked([request([0])], links))).toEqual([{ cutoffs: until(T, 0, 1, 2), requests: 1 }]);
  });

  it('includes those whom the gateway knew as linked, with everybody linked to them', () => {
    const persons = findLinked([request([0], { members: [3] })], [link(3, 4)]);
    expect(show(persons)).toEqual([{ cutoffs: until(T, 0, 3, 4), requests: 1 }]);
  });

  it('is one person for requests with an identity in common, up to the latest cut-off and with its additional people', () => {
    const links = [link(0, 1), link(1, 2, T + 5), link(2, 3, T + 6), link(6, 3, T + 5)];
    const persons = findLinked([request([0]), request([1], { cutoffAt: T + 5 }), request([7])], links);
    expect(show(persons)).toEqual([
      { cutoffs: until(T + 5, 0, 1, 2), requests: 2 },
      { cutoffs: until(T, 7), requests: 1 },
    ]);
  });

  it('excludes people parted by an unlink, unless a later link joined them again or the unlink is after the cut-off', () => {
    const at = { generation: 0, offset: 9 };
    const parted = (who: number, side: 'split' | 'stayed', unlinkedAtMs = T) => {
      return { environmentId: 'env', key: keyOf(who), side, at, unlinkedAtMs } as const;
    };
    // 0 and 1 were split off from 2 and 3.
    const links = [link(0, 1), link(1, 2), link(2, 3)];
    const unlinks = [parted(0, 'split'), parted(1, 'split'), parted(2, 'stayed'), parted(3, 'stayed')];
    const placesOf = (subject: number, decisions: { links: StoredLink[]; unlinks: typeof unlinks }) => {
      const persons = toPersons(findClosures([request([subject])], { ...decisions, others: [] }));
      return [...show(persons)[0]!.cutoffs.keys()];
    };
    expect(placesOf(0, { links, unlinks })).toEqual([0, 1]);
    expect(placesOf(3, { links, unlinks })).toEqual([2, 3]);
    const again = { ...link(0, 3), last: { generation: 1, offset: 2 } };
    expect(placesOf(0, { links: [...links, again], unlinks })).toEqual([0, 1, 2, 3]);
    const later = unlinks.map((unlink) => ({ ...unlink, unlinkedAtMs: T + 1 }));
    expect(placesOf(0, { links, unlinks: later })).toEqual([0, 1, 2, 3]);
  });

  it('includes people whom an unlink parts later for a request before the unlink, not for one after it', () => {
    const at = { generation: 0, offset: 9 };
    const parted = (who: number, side: 'split' | 'stayed') => {
      return { environmentId: 'env', key: keyOf(who), side, at, unlinkedAtMs: T + 3 } as const;
    };
    const asked = [request([0]), request([0], { cutoffAt: T + 5 })];
    const decisions = { links: [link(0, 1, T - 1)], unlinks: [parted(0, 'stayed'), parted(1, 'split')], others: [] };
    const cutoffs = new Map([...until(T + 5, 0), ...until(T, 1)]);
    expect(show(toPersons(findClosures(asked, decisions)))).toEqual([{ cutoffs, requests: 2 }]);
  });

  it('includes people named by another erasure for a request before its receipt, not for a later one', () => {
    const erasedAt = T + 40_000;
    const receipt = { visiblyErasedAt: erasedAt } as ErasureReceipt;
    const others = [{ request: request([1], { members: [2], cutoffAt: T - 5 }), receipt }];
    const links = [link(0, 1, T + 30_000)];
    const find = (asked: ErasureRequest[], other = others) =>
      show(toPersons(findClosures(asked, { links, unlinks: [], others: other })));
    const [early, late] = [erasedAt + 1_000, erasedAt + 10_000].map((cutoffAt) => request([0], { cutoffAt }));
    expect(find([early!])).toEqual([{ cutoffs: until(early!.cutoffAt, 0, 1, 2), requests: 1 }]);
    expect(find([late!])).toEqual([{ cutoffs: until(late!.cutoffAt, 0, 1), requests: 1 }]);
    // Each request counts by itself, even if both are about one person. It ignores erasures with a later cut-off.
    const both = new Map([...until(late!.cutoffAt, 0, 1), ...until(early!.cutoffAt, 2)]);
    expect(find([early!, late!])).toEqual([{ cutoffs: both, requests: 2 }]);
    const later = others.map((each) => ({ ...each, request: { ...each.request, cutoffAt: late!.cutoffAt } }));
    expect(find([early!], later)).toEqual([{ cutoffs: until(early!.cutoffAt, 0, 1), requests: 1 }]);
  });

  it('is a different person in another environment, with the same keys', () => {
    const persons = findLinked(
      [request([0]), request([0], { environmentId: 'other' })],
      [{ ...link(0, 1), environmentId: 'other' }],
    );
    expect(show(persons).map(({ cutoffs }) => cutoffs)).toEqual([until(T, 0), until(T, 0, 1)]);
  });

  it('equals the result of a naive implementation of the rules, for any requests and links', () => {
    const place = fc.nat({ max: keys.length - 1 });
    const at = fc.integer({ min: T - 2, max: T + 2 });
    const requests = fc.array(fc.tuple(fc.array(place, { minLength: 1, maxLength: 2 }), at), {
      minLength: 1,
      maxLength: 5,
    });
    const links = fc.array(fc.tuple(place, place, at), { maxLength: 12 });
    const property = fc.property(requests, links, (asked, linked) => {
      const found = show(
        findLinked(
          asked.map(([subjects, cutoffAt]) => request(subjects, { cutoffAt })),
          linked.map(([a, b, receivedAtMs]) => link(a, b, receivedAtMs)),
        ),
      );
      expect(found.sort(byFirst)).toEqual(naive(asked, linked));
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

interface Person {
  cutoffs: Map<number, number>;
  requests: number;
}
const firstOf = ({ cutoffs }: Person) => Math.min(...cutoffs.keys());
const byFirst = (one: Person, other: Person) => firstOf(one) - firstOf(other);

/** Grows each closure by its own cut-off until nothing changes, then joins those with an identity in common. */
function naive(asked: [number[], number][], linked: [number, number, number][]): Person[] {
  let persons: Person[] = [];
  for (const [subjects, cutoffAt] of asked) {
    const places = new Set(subjects);
    for (let size = 0; size < places.size; ) {
      size = places.size;
      for (const [a, b, at] of linked) if (at <= cutoffAt && (places.has(a) || places.has(b))) places.add(a).add(b);
    }
    const isSame = ({ cutoffs }: Person) => [...places].some((place) => cutoffs.has(place));
    const joined: Person = { cutoffs: until(cutoffAt, ...places), requests: 1 };
    for (const other of persons.filter(isSame)) {
      joined.requests += other.requests;
      for (const [place, at] of other.cutoffs) joined.cutoffs.set(place, Math.max(at, joined.cutoffs.get(place) ?? at));
    }
    persons = [...persons.filter((person) => !isSame(person)), joined];
  }
  for (const person of persons) person.cutoffs = new Map([...person.cutoffs].sort(([a], [b]) => a - b));
  return persons.sort(byFirst);
}
