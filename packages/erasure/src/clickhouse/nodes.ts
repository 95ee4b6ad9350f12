import { COPIED_TABLES } from '@playline/contracts';
import { settleAll } from '@playline/stores';
import type { ErasureRows, FoundRows } from '../rows.ts';

/**
 * Joins the nodes of a cluster, the home first. Every node is searched for every person, because rows of other people
 * may contain the person's keys. A node that does not respond fails the call, so that no receipt is published.
 */
export function joinNodes(nodes: readonly ErasureRows[]): ErasureRows {
  const [home] = nodes as [ErasureRows, ...ErasureRows[]];
  const onEach = <T>(call: (node: ErasureRows) => Promise<T>): Promise<T[]> => settleAll(nodes.map(call));
  const joined = async (find: (node: ErasureRows) => Promise<FoundRows[]>) =>
    sumRows((await onEach(find)).flat(), nameOf);
  return {
    putTargets: async (batchId, targets) => void (await onEach((node) => node.putTargets(batchId, targets))),
    sweep: async (batchId, signal) =>
      sumRows((await onEach((node) => node.sweep(batchId, signal))).flatMap(countOnce), nameOf),
    readFound: async (batchId) =>
      (await onEach((node) => node.readFound(batchId))).flat().map(({ found, shared }, index) => {
        return { found: countOnce(found, index), shared: countOnce(shared, index) };
      }),
    findSurvivors: (batchId) => joined((node) => node.findSurvivors(batchId)),
    findOnDisk: (batchId) => joined((node) => node.findOnDisk(batchId)),
    // Links and consents are on the home.
    findConsents: (batchId) => home.findConsents(batchId),
    findLinks: (batchId) => home.findLinks(batchId),
    findUnlinks: (batchId) => home.findUnlinks(batchId),
    findLaterLinks: (batchId) => home.findLaterLinks(batchId),
    awaitInserts: async (signal) => void (await onEach((node) => node.awaitInserts(signal))),
    // The latest time is after the removal by the clock of every node.
    removeDeleted: async (signal) => {
      const times = await onEach((node) => node.removeDeleted(signal));
      return times.reduce((latest, time) => Math.max(latest, time));
    },
    countReplaced: async (untilMs) => {
      const counts = await onEach((node) => node.countReplaced(untilMs));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    readBatches: async () => {
      const batches = (await onEach((node) => node.readBatches())).flat();
      return [...new Map(batches.map((batch) => [batch.toString('hex'), batch])).values()];
    },
    dropTargets: async (batchId) => void (await onEach((node) => node.dropTargets(batchId))),
    ready: () => home.ready(),
    close: async () => void (await onEach((node) => node.close())),
  };
}

/** Selects the rows of a node to count. Rows of which each node has a copy are counted on the home only. */
const countOnce = <T extends { readonly table: string }>(rows: readonly T[], index: number): T[] =>
  rows.filter(({ table }) => index === 0 || !COPIED_TABLES.includes(table));

const nameOf = ({ table, column, as, environmentId, key }: FoundRows) =>
  `${table} ${column} ${as} ${environmentId} ${key.toString('hex')}`;

/** Adds the rows that several nodes report under the same name. */
function sumRows<T extends { readonly rows: number }>(reported: readonly T[], toName: (each: T) => string): T[] {
  const sums = new Map<string, T>();
  for (const each of reported) {
    const name = toName(each);
    sums.set(name, { ...each, rows: each.rows + (sums.get(name)?.rows ?? 0) });
  }
  return [...sums.values()];
}
