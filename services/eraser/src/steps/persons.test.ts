import { randomBytes } from 'node:crypto';
import type { ErasureRequest, StoredLink } from '@playline/erasure';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPersons } from './persons.ts';

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
/** Places of the keys of each person, and how many requests it has. */
const findLinked = (requests: readonly ErasureRequest[], links: readonly StoredLink[]) =>
  findPersons(requests, { links, unlinks: [], others: [] });
const show = (persons: ReturnType<typeof findPersons>) =>
  persons.map(({ keys: found, requests, cutoffAt }) => {
    const places = found.map((key) => keys.findIndex((each) => each.equals(key))).sort((a, b) => a - b);
    return { places, requests: requests.length, cutoffAt };
  });

describe('who is erased', () => {
  it('is everybody whom links up to the cut-off lead to, also through others, and nobody whom a later one does', () => {
    const links = [link(0, 1), link(2, 1), link(2, 3, T + 1), link(4, 5)];
    expect(show(findLinked([request([0])], links))).toEqual([{ places: [0, 1, 2], requests: 1, cutoffAt: T }]);
  });

  it('is whom the gateway knew as linked too, with everybody of theirs', () => {
    const persons = findLinked([request([0], { members: [3] })], [link(3, 4)]);
    expect(show(persons)).toEqual([{ places: [0, 3, 4], requests: 1, cutoffAt: T }]);
  });

  it('is one person for requests that have somebody in common, up to the latest cut-off, with whom that one adds', () => {
    const links = [link(0, 1), link(1, 2, T + 5), link(2, 3, T + 6), link(6, 3, T + 5)];
    const persons = findLinked([request([0]), request([1], { cutoffAt: T + 5 }), request([7])], links);
    expect(show(persons)).toEqual([
      { places: [0, 1, 2], requests: 2, cutoffAt: T + 5 },
      { places: [7], requests: 1, cutoffAt: T },
    ]);
  });

  it('is nobody whom an unlink parted, unless a link behind it joined them again, or it came later than the cut-off', () => {
    const at = { generation: 0, offset: 9 };
    const parted = (who: number, side: 'split' | 'stayed', unlinkedAtMs = T) => {
      return { environmentId: 'env', key: keyOf(who), side, at, unlinkedAtMs } as const;
    };
    // 0 and 1 were split off from 2 and 3.
    const links = [link(0, 1), link(1, 2), link(2, 3)];
    const unlinks = [parted(0, 'split'), parted(1, 'split'), parted(2, 'stayed'), parted(3, 'stayed')];
    const placesOf = (subject: number, decisions: { links: StoredLink[]; unlinks: typeof unlinks }) =>
      show(findPersons([request([subject])], { ...decisions, others: [] }))[0]!.places;
    expect(placesOf(0, { links, unlinks })).toEqual([0, 1]);
    expect(placesOf(3, { links, unlinks })).toEqual([2, 3]);
    const again = { ...link(0, 3), last: { generation: 1, offset: 2 } };
    expect(placesOf(0, { links: [...links, again], unlinks })).toEqual([0, 1, 2, 3]);
    const later = unlinks.map((unlink) => ({ ...unlink, unlinkedAtMs: T + 1 }));
    expect(placesOf(0, { links, unlinks: later })).toEqual([0, 1, 2, 3]);
  });

  it('is another person in another environment, with the same keys', () => {
    const persons = findLinked(
      [request([0]), request([0], { environmentId: 'other' })],
      [{ ...link(0, 1), environmentId: 'other' }],
    );
    expect(show(persons).map(({ places }) => places)).toEqual([[0], [0, 1]]);
  });

  it('is what a naive reader of the rules finds, for any requests and links', () => {
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
      expect(found.map(({ places, ...rest }) => ({ places, ...rest })).sort(byFirst)).toEqual(naive(asked, linked));
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

interface Person {
  places: number[];
  requests: number;
  cutoffAt: number;
}
const byFirst = (one: Person, other: Person) => one.places[0]! - other.places[0]!;

/** Grows one set after the other until nothing changes any more. */
function naive(asked: [number[], number][], linked: [number, number, number][]): Person[] {
  let persons = asked.map(([places, cutoffAt]): Person => ({ places: [...places], requests: 1, cutoffAt }));
  for (let before = ''; before !== JSON.stringify(persons); ) {
    before = JSON.stringify(persons);
    for (const person of persons)
      for (const [a, b, at] of linked)
        if (at <= person.cutoffAt && (person.places.includes(a) || person.places.includes(b)))
          person.places = [...new Set([...person.places, a, b])];
    const merged: Person[] = [];
    for (const person of persons) {
      const other = merged.find(({ places }) => places.some((place) => person.places.includes(place)));
      if (other === undefined) merged.push(person);
      else {
        other.places = [...new Set([...other.places, ...person.places])];
        other.requests += person.requests;
        other.cutoffAt = Math.max(other.cutoffAt, person.cutoffAt);
      }
    }
    persons = merged;
  }
  for (const person of persons) person.places = [...new Set(person.places)].sort((a, b) => a - b);
  return persons.sort(byFirst);
}
