import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErasureTarget, FoundRows, SweepResult } from '../rows.ts';
import type { MemoryRow } from './memory/rows.ts';
import type { RowsHarness } from './open-rows.ts';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, T } from './people.ts';

const ZERO = '00'.repeat(16);

/** Tests that every store of erased rows must pass. */
export function describeErasureRows(name: string, open: () => Promise<RowsHarness>): void {
  describe(`erasure rows in ${name}`, () => {
    let harness: RowsHarness;
    const batch = newBatch();
    const arrangements: (() => Promise<readonly ErasureTarget[]>)[] = [];
    let found: FoundRows[];
    let sweepResults: SweepResult[];
    beforeAll(async () => {
      harness = await open();
      const { rows } = harness;
      const targets = (await Promise.all(arrangements.map((arrange) => arrange()))).flat();
      sweepResults = [await readFound()];
      await rows.putTargets(batch, targets);
      found = await rows.sweep(batch);
      sweepResults.push(await readFound());
      await sweepRest();
    });
    afterAll(() => harness.close());

    /** Rows of all nodes. */
    const readFound = async (): Promise<SweepResult> => {
      const results = await harness.rows.readFound(batch);
      return { found: results.flatMap((each) => each.found), shared: results.flatMap((each) => each.shared) };
    };
    /** Repeats the sweep while rows survive because merges may move rows during a sweep. */
    const sweepRest = async () => {
      while ((await harness.rows.findSurvivors(batch)).length > 0) await harness.rows.sweep(batch);
    };
    interface Arranged {
      readonly targets: readonly ErasureTarget[];
      readonly check: (found: FoundRows[]) => Promise<unknown>;
    }
    const whenSwept = (targets: Arranged['targets'], check: Arranged['check']): Arranged => ({ targets, check });
    /** Declares a test that shares one sweep with other tests because every sweep rewrites all tables. */
    const itSweeps = (title: string, arrange: () => Promise<Arranged>) => {
      let arranged: Arranged;
      arrangements.push(async () => {
        arranged = await arrange();
        return arranged.targets;
      });
      it(title, async () => {
        const isOwn = ({ environmentId, key }: FoundRows) =>
          arranged.targets.some((target) => target.environmentId === environmentId || target.key.equals(key));
        await arranged.check(found.filter(isOwn));
      });
    };

    const add = async (table: string, ...rows: MemoryRow[]) => {
      for (const row of rows) await harness.add(table, row);
    };
    const namesIn = async (table: string, environmentId: string) => {
      const column = table === 'identity_overrides' ? 'kind' : 'trace_id';
      return (await harness.read(table, environmentId, [column])).map(([name]) => name).sort();
    };

    itSweeps("a sweep deletes only the erased person's rows, in every table", async () => {
      const environmentId = newEnvironment();
      const { event, link, override, consent } = createRowsOf(environmentId);
      const [erased, bystander] = [newKey(), newKey()];
      await add(
        'events',
        event({ name: 'erased', identity_key: erased }),
        event({ name: 'other', identity_key: bystander }),
      );
      await add('events', event({ name: 'anonymous' }));
      for (const side of ['from_key', 'to_key'])
        await add('events', event({ name: 'alias', identity_key: bystander, [side]: erased }));
      const elsewhere = newEnvironment();
      await add('events', createRowsOf(elsewhere).event({ name: 'same key', identity_key: erased }));
      await add('identity_links', link({ name: 'as a', a_key: erased }), link({ name: 'as b', b_key: erased }));
      await add('identity_links', link({ name: 'other', a_key: bystander }));
      await add('identity_overrides', override({ name: 'erased', identity_key: erased }));
      await add('identity_overrides', override({ name: 'other', identity_key: bystander }));
      await add('consent_log', consent({ name: 'erased', identity_key: erased }));
      await add('consent_log', consent({ name: 'other', identity_key: bystander }));
      return whenSwept([{ environmentId, key: erased, cutoffMs: T }], async (found) => {
        expect(found.map(({ table, column, as, rows }) => `${rows} ${as} by ${table}.${column}`).sort()).toEqual([
          '1 own by consent_log.identity_key',
          '1 own by events.from_key',
          '1 own by events.identity_key',
          '1 own by events.to_key',
          '1 own by identity_links.a_key',
          '1 own by identity_links.b_key',
          '1 own by identity_overrides.identity_key',
        ]);
        expect(found.every((rows) => rows.key.equals(erased) && rows.environmentId === environmentId)).toBe(true);
        expect(await namesIn('events', environmentId)).toEqual(['anonymous', 'other']);
        expect(await namesIn('events', elsewhere)).toEqual(['same key']);
        expect(await namesIn('identity_links', environmentId)).toEqual(['other']);
        expect(await namesIn('identity_overrides', environmentId)).toEqual(['other']);
        expect(await namesIn('consent_log', environmentId)).toEqual(['other']);
      });
    });

    itSweeps('a sweep deletes rows whose event time or receipt time is not later than the cut-off', async () => {
      const environmentId = newEnvironment();
      const { event } = createRowsOf(environmentId);
      const key = newKey();
      const at = (name: string, event_time: number, received_at: number) =>
        event({ name, identity_key: key, event_time, received_at });
      await add(
        'events',
        at('at T', T, T),
        at('offline, sent an hour later', BEFORE, T + 3_600_000),
        at('client clock ahead', T + 3_600_000, T),
        at('returned', AFTER, AFTER),
      );
      return whenSwept([{ environmentId, key, cutoffMs: T }], async () =>
        expect(await namesIn('events', environmentId)).toEqual(['returned']),
      );
    });

    itSweeps('identities may have different cut-offs, and the latest cut-off of each identity applies', async () => {
      const environmentId = newEnvironment();
      const { event } = createRowsOf(environmentId);
      const [early, late] = [newKey(), newKey()];
      const between = { event_time: T + 500, received_at: T + 500 };
      await add('events', event({ name: 'early', identity_key: early, ...between }));
      await add('events', event({ name: 'late', identity_key: late, ...between }));
      // The second person has two requests, and the later cut-off applies.
      const twice = { environmentId, key: late };
      const earlier = { environmentId, key: early, cutoffMs: T };
      return whenSwept([earlier, { ...twice, cutoffMs: T + 1_000 }, { ...twice, cutoffMs: T }], async () =>
        expect(await namesIn('events', environmentId)).toEqual(['early']),
      );
    });

    itSweeps("a sweep blanks an erased id in other people's rows up to the cut-off", async () => {
      const environmentId = newEnvironment();
      const { event, link } = createRowsOf(environmentId);
      const [device, user] = [newKey(), newKey()];
      const shared = { identity_key: user, user_key: user, anonymous_key: device, anonymous_id: 'the-device' };
      await add('events', event({ name: 'before', ...shared }));
      await add('events', event({ name: 'after', ...shared, event_time: AFTER, received_at: AFTER }));
      await add('identity_links', link({ name: 'of two others', person_key: device }));
      return whenSwept([{ environmentId, key: device, cutoffMs: T }], async (found) => {
        expect(found.map(({ table, column, as }) => `${as} ${table}.${column}`).sort()).toEqual([
          'carried events.anonymous_key',
          'carried identity_links.person_key',
        ]);
        const columns = ['trace_id', 'identity_key', 'user_key', 'anonymous_key', 'anonymous_id'];
        const [after, before] = (await harness.read('events', environmentId, columns)).sort();
        expect(before).toEqual(['before', user.toString('hex'), user.toString('hex'), ZERO, '']);
        expect(after).toEqual([
          'after',
          user.toString('hex'),
          user.toString('hex'),
          device.toString('hex'),
          'the-device',
        ]);
        expect(await harness.read('identity_links', environmentId, ['person_key'])).toEqual([[ZERO]]);
      });
    });

    itSweeps("a carried id is blanked up to its own cut-off even if the owner's cut-off is earlier", async () => {
      const environmentId = newEnvironment();
      const [device, user] = [newKey(), newKey()];
      const both = { identity_key: user, anonymous_key: device, anonymous_id: 'the-device' };
      const between = { event_time: T + 500, received_at: T + 500 };
      await add('events', createRowsOf(environmentId).event({ name: 'between', ...both, ...between }));
      const targets = [
        { environmentId, key: user, cutoffMs: T },
        { environmentId, key: device, cutoffMs: T + 1_000 },
      ];
      return whenSwept(targets, async () => {
        expect(await harness.read('events', environmentId, ['trace_id', 'anonymous_id'])).toEqual([['between', '']]);
      });
    });

    itSweeps(
      'a sweep stores the number of found rows and identifies rows that were counted several times',
      async () => {
        const environmentId = newEnvironment();
        const { event, link } = createRowsOf(environmentId);
        const [one, two] = [newKey(), newKey()].sort(Buffer.compare) as [Buffer, Buffer];
        await add('events', event({ name: 'alias', identity_key: one, from_key: two, to_key: one }));
        await add('events', event({ name: 'own', identity_key: two }));
        await add('identity_links', link({ name: 'link', a_key: two, b_key: one }), link({ name: 'half', a_key: one }));
        return whenSwept(
          [one, two].map((key) => ({ environmentId, key, cutoffMs: T })),
          async () => {
            const [before, after] = sweepResults as [SweepResult, SweepResult];
            expect(before).toEqual({ found: [], shared: [] });
            const nameOf = ({ table, column, key }: FoundRows) => `${table}.${column} ${key.toString('hex')}`;
            const toSums = (rows: readonly FoundRows[]) => {
              const sums = new Map<string, number>();
              for (const each of rows) sums.set(nameOf(each), (sums.get(nameOf(each)) ?? 0) + each.rows);
              return sums;
            };
            expect(toSums(after.found)).toEqual(toSums(found));
            const shared = after.shared.filter((rows) => rows.environmentId === environmentId);
            expect(shared.sort((a, b) => a.table.localeCompare(b.table))).toEqual([
              { table: 'events', environmentId, keys: [one, one, two], rows: 1 },
              { table: 'identity_links', environmentId, keys: [one, two], rows: 1 },
            ]);
          },
        );
      },
    );

    itSweeps('findConsents returns later consents with their positions', async () => {
      const environmentId = newEnvironment();
      const { consent } = createRowsOf(environmentId);
      const [key, other] = [newKey(), newKey()];
      const at = (kafka_offset: number) => ({ kafka_partition: 3, kafka_offset, logged_at: AFTER + 2 });
      await add('consent_log', consent({ name: 'old', identity_key: key, ...at(1) }));
      await add('consent_log', consent({ name: 'new', identity_key: key, ...at(2), received_at: AFTER }));
      await add('consent_log', consent({ name: 'other', identity_key: other, ...at(3) }));
      return whenSwept([{ environmentId, key, cutoffMs: T }], async () => {
        const position = { partition: 3, offset: 2, loggedAtMs: AFTER + 2 };
        expect(await harness.rows.findConsents(batch)).toEqual([
          { environmentId, identityKey: key, status: 'full', receivedAt: AFTER, position },
        ]);
      });
    });

    it('findUnlinks returns unlinks up to the cut-off with their sides', async () => {
      const environmentId = newEnvironment();
      const [key, other] = [newKey(), newKey()];
      const unlink = (fields: Record<string, unknown>) =>
        add('identity_unlinks', { environment_id: environmentId, link_generation: 1, link_offset: 7, ...fields });
      await unlink({ identity_key: key, side: 'split', unlinked_at: T });
      await unlink({ identity_key: other, side: 'stayed', unlinked_at: T });
      await unlink({ identity_key: key, side: 'none', unlinked_at: T, link_offset: 8 });
      await unlink({ identity_key: key, side: 'stayed', unlinked_at: AFTER, link_offset: 9 });
      const batch = newBatch();
      await harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
      expect(await harness.rows.findUnlinks(batch)).toEqual([
        { environmentId, key, side: 'split', at: { generation: 1, offset: 7 }, unlinkedAtMs: T },
      ]);
    });

    itSweeps('rulings about an erased id are kept and are not returned as later links', async () => {
      const environmentId = newEnvironment();
      const { link } = createRowsOf(environmentId);
      const key = newKey();
      const ruling = { a_key: key, b_key: key, person_key: key, link: 'alias', outcome: 'unchanged' };
      await add('identity_links', link({ name: 'blocked', ...ruling, reason: 'operator_blocked' }));
      await add('identity_links', link({ name: 'allowed', ...ruling, reason: 'operator_allowed' }));
      await add('identity_links', link({ name: 'held', a_key: key, outcome: 'refused', reason: 'suspect' }));
      return whenSwept([{ environmentId, key, cutoffMs: T }], async (found) => {
        expect(found.map(({ rows, column }) => `${rows} by ${column}`)).toEqual(['1 by a_key']);
        expect(await namesIn('identity_links', environmentId)).toEqual(['allowed', 'blocked']);
        const later = await harness.rows.findLaterLinks(batch);
        expect(later.filter((link) => link.environmentId === environmentId)).toEqual([]);
      });
    });

    it('findLinks returns links up to the cut-off, and findLaterLinks the first offsets of later links', async () => {
      const environmentId = newEnvironment();
      const { link } = createRowsOf(environmentId);
      const [key, linked, same, refused, late, far] = Array.from({ length: 6 }, newKey) as Buffer[];
      await add(
        'identity_links',
        link({ name: 'linked', a_key: linked, b_key: key, outcome: 'linked', received_at: T }),
      );
      await add('identity_links', link({ name: 'same', a_key: key, b_key: same, outcome: 'unchanged' }));
      await add('identity_links', link({ name: 'refused', a_key: key, b_key: refused, outcome: 'refused' }));
      const later = {
        outcome: 'linked',
        received_at: AFTER,
        event_time: AFTER,
        link_partition: 2,
        link_offset: 7,
        message_id: randomUUID(),
      };
      await add('identity_links', link({ name: 'late', a_key: key, b_key: late, ...later, link_generation: 1 }));
      const again = { ...later, outcome: 'unchanged', link_generation: 1, link_offset: 9 };
      await add('identity_links', link({ name: 'late', a_key: key, b_key: late, ...again }));
      await add('identity_links', link({ name: 'far', a_key: linked, b_key: far, outcome: 'linked' }));
      const batch = newBatch();
      await harness.rows.putTargets(batch, [{ environmentId, key: key!, cutoffMs: T }]);
      const hex = (...keys: (Buffer | undefined)[]) =>
        keys
          .map((each) => each!.toString('hex'))
          .sort()
          .join(' ');
      const pairs: string[] = [];
      for await (const { a, b } of harness.rows.findLinks(batch)) pairs.push(hex(a, b));
      expect(pairs.sort()).toEqual([hex(linked, key), hex(key, same)].sort());
      expect(await harness.rows.findLaterLinks(batch)).toEqual([
        { environmentId, generation: 1, partition: 2, offset: 7 },
      ]);
    });

    itSweeps(
      'rows inserted after a sweep are survivors, and the next sweep deletes and counts only those rows',
      async () => {
        const environmentId = newEnvironment();
        const key = newKey();
        return whenSwept([{ environmentId, key, cutoffMs: T }], async () => {
          await add('events', createRowsOf(environmentId).event({ name: 'zombie', identity_key: key }));
          expect(await harness.rows.findSurvivors(batch)).toMatchObject([{ table: 'events', rows: 1 }]);
          await harness.rows.sweep(batch);
          expect(await readFound()).toMatchObject({ found: [{ environmentId, rows: 1 }], shared: [] });
          await sweepRest();
        });
      },
    );

    it('a search throws if the batch has no targets, and putTargets rejects the zero key', async () => {
      const environmentId = newEnvironment();
      const [batch, key] = [newBatch(), newKey()];
      await harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
      const zero = { environmentId, key: Buffer.alloc(16), cutoffMs: T };
      await expect(harness.rows.putTargets(newBatch(), [zero])).rejects.toThrow('not be zero');
      const has = async () => (await harness.rows.readBatches()).some((each) => each.equals(batch));
      expect(await has()).toBe(true);
      for (let round = 0; round < 2; round++) await harness.rows.dropTargets(batch);
      expect(await has()).toBe(false);
      await add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
      const { rows } = harness;
      for (const search of [() => rows.sweep(batch), () => rows.findSurvivors(batch), () => rows.findOnDisk(batch)])
        await expect(search()).rejects.toMatchObject({ name: 'StoreFault', code: 'NO_TARGETS' });
      expect(await namesIn('events', environmentId)).toEqual(['one']);
    });
  });
}
