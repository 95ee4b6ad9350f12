import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseReplication, raiseInsync, toNotices, toWarning } from './apply.ts';

const replication = fc
  .integer({ min: 1, max: 5 })
  .chain((replicationFactor) =>
    fc.integer({ min: 1, max: 6 }).map((minInsyncReplicas) => ({ replicationFactor, minInsyncReplicas })),
  );

describe('the replication of a topic', () => {
  it.each([
    [1, 1, 1, 'if its disk fails, acknowledged records are lost'],
    [2, 2, 2, 'while a broker is down, records are refused'],
    [3, 3, 2, null],
    [7, 3, 2, null],
  ])(
    'with %i brokers has %i replicas, of which %i must be in sync',
    (brokers, replicationFactor, minInsyncReplicas, warning) => {
      const chosen = chooseReplication(brokers, {});
      expect(chosen).toEqual({ replicationFactor, minInsyncReplicas });
      if (warning === null) expect(toWarning(chosen)).toBeNull();
      else expect(toWarning(chosen)).toContain(warning);
    },
  );

  it('matches the requested values if they are possible, with a warning if they risk data loss', () => {
    const chosen = chooseReplication(2, { minInsyncReplicas: 1 });
    expect(chosen).toEqual({ replicationFactor: 2, minInsyncReplicas: 1 });
    expect(toWarning(chosen)).toContain('only one must be in sync');
    expect(chooseReplication(5, { replicationFactor: 1 })).toEqual({ replicationFactor: 1, minInsyncReplicas: 1 });
    expect(() => chooseReplication(2, { replicationFactor: 3 })).toThrow('the cluster has 2');
    expect(() => chooseReplication(3, { minInsyncReplicas: 4 })).toThrow('no record could be stored');
  });

  it('is never lowered, and never requires more in-sync replicas than the topic has', () => {
    const property = fc.property(replication, fc.integer({ min: 1, max: 5 }), (existing, brokers) => {
      const raised = raiseInsync(existing, chooseReplication(brokers, {}));
      expect(raised).toBeGreaterThanOrEqual(existing.minInsyncReplicas);
      if (raised > existing.minInsyncReplicas) expect(raised).toBeLessThanOrEqual(existing.replicationFactor);
    });
    fc.assert(property);
  });

  it('is reported with one sentence per difference from the desired replication', () => {
    const desired = { replicationFactor: 3, minInsyncReplicas: 2 };
    const topics = [
      { name: 'a', replicationFactor: 1, minInsyncReplicas: 1 },
      { name: 'b', replicationFactor: 1, minInsyncReplicas: 1 },
      { name: 'c', replicationFactor: 3, minInsyncReplicas: 2 },
      { name: 'd', replicationFactor: 3, minInsyncReplicas: 3 },
      { name: 'e', replicationFactor: 5, minInsyncReplicas: 2 },
    ];
    expect(toNotices(topics, desired)).toEqual([
      expect.stringMatching(/^a, b: 1 of 3 replicas; /),
      expect.stringMatching(/^d: min\.insync\.replicas 3 instead of 2; unchanged/),
      expect.stringMatching(/^e: 5 replicas instead of 3; unchanged/),
    ]);
  });
});
